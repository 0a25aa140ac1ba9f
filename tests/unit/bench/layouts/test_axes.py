"""What is varied, and the layouts that come of it."""

from __future__ import annotations

from typing import Any

import pytest

from icebench.bench.definition import Definition
from icebench.bench.errors import ConfigError
from icebench.bench.experiment import Experiment, parse_values
from icebench.bench.layouts.axes import Axes, text_of
from icebench.bench.layouts.layout import Layout

CODEC = "write.parquet.compression-codec"


def experiment(axes: dict[str, Any], **more: Any) -> Experiment:
    return parse_values(
        {
            "name": "x",
            "layouts": ["sorted", "monthly"],
            "engines": ["icebench"],
            "workload": {"kind": "tpcds", "scale": 0.01},
            "filters": {"one": "ss_item_sk = 1"},
            "table": {"files": 61, "properties": {CODEC: "zstd"}},
            "axes": axes,
            **more,
        }
    )


def names(axes: dict[str, Any], **more: Any) -> list[str]:
    return [layout.name for layout in experiment(axes, **more).layouts]


def test_what_is_varied_is_another_layout_and_the_usual_values_are_the_layout_itself() -> None:
    found = experiment({"layouts": ["sorted"], CODEC: ["zstd", "snappy"], "files": [61, 7]})
    assert {layout.name: (layout.files, layout.properties[CODEC]) for layout in found.layouts} == {
        "sorted": (61, "zstd"),
        "sorted (compression-codec=snappy)": (61, "snappy"),
        "sorted (files=7)": (7, "zstd"),
        "monthly": (61, "zstd"),
    }
    assert all(layout.sort for layout in found.layouts if layout.name.startswith("sorted"))


def test_all_layouts_are_varied_where_none_is_named() -> None:
    assert names({"files": [5, 7]}) == [
        "sorted",
        "sorted (files=7)",
        "monthly",
        "monthly (files=7)",
    ]


def test_designs_try_their_combinations() -> None:
    axes = {"files": [61, 7], CODEC: ["zstd", "snappy"], "format_version": [2, 3], "layouts": ["sorted"]}
    counts = {design: len(names({**axes, "design": design})) for design in ("one-at-a-time", "full", "fractional")}
    assert counts == {"one-at-a-time": 1 + 4, "full": 1 + 8, "fractional": 1 + 4}


def test_keys_of_layouts_are_values_as_they_are() -> None:
    orders: list[object] = [["ss_item_sk"], ["ss_sold_date", "ss_item_sk desc"], []]
    found = experiment({"sort": orders, "layouts": ["sorted"]}).layouts
    assert [layout.name for layout in found[1:3]] == [
        "sorted (sort=ss_sold_date+ss_item_sk desc)",
        "sorted (sort=none)",
    ]
    assert [term.descending for term in found[1].sort] == [False, True]
    assert found[2].sort == ()
    curves = [
        layout for layout in experiment({"zorder": [[], ["ss_item_sk", "ss_sold_date"]]}).layouts if layout.zorder
    ]
    assert [layout.sort for layout in curves] == [(), ()]


def test_a_target_size_takes_the_place_of_a_number_of_files() -> None:
    layout = experiment({"write.target-file-size-bytes": [1_000_000, 2_000_000]}).layouts[0]
    assert (layout.files, layout.properties["write.target-file-size-bytes"]) == (None, "1000000")


def test_an_empty_order_leaves_other_orders_as_they_are() -> None:
    axes = {"sort": [[], ["ss_item_sk"]], "hilbert": [[], ["ss_sold_date", "ss_item_sk"]], "layouts": ["monthly"]}
    found = {layout.name: layout for layout in experiment(axes).layouts}
    assert found["monthly (sort=ss_item_sk)"].columns[1:] == ("ss_item_sk",)
    assert found["monthly (hilbert=ss_sold_date+ss_item_sk)"].curve == ("ss_sold_date", "ss_item_sk")
    usual, along, *_ = experiment({"hilbert": axes["hilbert"], "layouts": ["sorted"]}).layouts
    assert (bool(usual.sort), usual.curve, along.sort) == (True, (), ())


def test_no_number_of_files_leaves_a_target_size_as_it_is() -> None:
    target = {"write.target-file-size-bytes": "1000000"}
    usual, eight, *_ = experiment({"files": [0, 8]}, table={"properties": target}).layouts
    assert (usual.files, usual.properties.items() >= target.items()) == (None, True)
    assert (eight.files, eight.properties.keys() & target.keys()) == (8, set())


def test_names_say_what_is_unusual_in_plain_words() -> None:
    axes = {
        "write.parquet.row-group-size-bytes": [128 << 20, 512 << 10, 1_000_000],
        "write.metadata.metrics.default": ["truncate(16)", "counts"],
        "layouts": ["sorted"],
    }
    assert names(axes) == [
        "sorted",
        "sorted (row-group-size-bytes=512 KB)",
        "sorted (row-group-size-bytes=1000000)",
        "sorted (metrics.default=counts)",
        "monthly",
    ]
    found = experiment(axes).layouts
    assert [layout.properties.get("write.parquet.row-group-size-bytes") for layout in found] == [
        "134217728",
        "524288",
        "1000000",
        "134217728",
        None,
    ]


def test_two_properties_that_end_alike_have_their_whole_names() -> None:
    axes = Axes.parse(Definition({"a.b": [1, 2], "c.b": [True, False]}, "axes"))
    assert axes.levels == {"a.b": ("1", "2"), "c.b": ("true", "false")}
    assert text_of(["a", "b"]) == "a+b"


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"fils": [1, 2]}, r"axes\.fils: unknown axis .* 'fils' \(did you mean 'files'\?\)"),
        ({"files": [1]}, r"axes\.files: an axis needs two values or more, all different"),
        ({"files": [1, 1]}, r"axes\.files: an axis needs two values"),
        ({"files": 3}, r"axes\.files: must be a list, not 3"),
        ({"files": [1, "many"]}, r"axes \(sorted\)\.files: must be a whole number, not 'many'"),
        ({"sort": [["ss_item_sk"], ["nothing"]]}, r"axes: unknown column of layout sorted .*'nothing'"),
        ({"format_version": [2, 1]}, r"axes\.format_version: row-level deletes need format version 2 or 3"),
        (
            {"sort": [[], ["ss_item_sk"]], "hilbert": [[], ["ss_item_sk"]], "design": "full"},
            r"axes\.hilbert: contradicts sort in a combination of this design: sort=ss_item_sk, hilbert=ss_item_sk",
        ),
        ({"sort": [["ss_item_sk"], []], "zorder": [[], ["ss_item_sk"]]}, r"axes\.zorder: contradicts sort in "),
        (
            {"files": [0, 8], "write.target-file-size-bytes": [1 << 20, 1 << 22]},
            r"axes\.write\.target-file-size-bytes: contradicts files in .*: files=8, target-file-size-bytes=1 MB",
        ),
        (
            {"sort": [["ss_item_sk"], ["ss_item_sk asc"]]},
            r"axes: 'sorted' and 'sorted \(sort=ss_item_sk asc\)' are the same layout",
        ),
        ({"files": [1, 2], "layouts": ["sortd"]}, r"axes\.layouts\[0\]: unknown layout of this experiment 'sortd'"),
        ({"files": [1, 2], "design": "half"}, r"axes\.design: unknown design 'half'"),
        ({"files": [1, 2], "design": "fractional"}, r"axes\.design: a fractional design needs three axes"),
    ],
)
def test_wrong_axes_are_one_line(axes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        experiment(axes)


def test_without_axes_nothing_is_varied() -> None:
    assert names({}) == ["sorted", "monthly"]
    assert Axes().varied(Layout(name="a")) == [Layout(name="a")]


def test_what_is_left_out_takes_its_axes_and_baseline_along() -> None:
    made = experiment({"files": [61, 7], "layouts": ["sorted"]}, baseline="sorted")
    assert [layout.name for layout in made.adjusted(only=["monthly"]).layouts] == ["monthly"]
    assert [layout.name for layout in made.adjusted(only=["sorted"]).layouts] == ["sorted", "sorted (files=7)"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"weights": {"two": 1}}, "weights: unknown filter 'two'; known: one"),
        ({"weights": {"one": -1}}, "weights.one: -1 is not at least 0"),
        ({"weights": {"one": 0}}, "weights: at least one must be above 0"),
        ({"baseline": "daily"}, "baseline: unknown layout 'daily'"),
        ({"profile": "far"}, "profile: unknown profile 'far'"),
    ],
)
def test_wrong_costings_are_one_line(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        experiment({}, **more)
