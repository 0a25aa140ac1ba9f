from typing import Any

import pytest

from icebench.bench.definition import Definition
from icebench.bench.errors import ConfigError
from icebench.bench.layouts.layout import Layout, Term


def layout(**values: Any) -> Layout:
    return Layout.parse(Definition({"name": "mine", **values}, "layout[0]"))


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("a", Term(column="a")),
        ("identity(a)", Term(column="a")),
        ("Month( a )", Term(column="a", transform="month")),
        ("bucket(16, a.b)", Term(column="a.b", transform="bucket[16]")),
        ("a desc", Term(column="a", descending=True, nulls_last=True)),
        ("a DESC NULLS FIRST", Term(column="a", descending=True)),
        ("truncate(3,a) nulls last", Term(column="a", transform="truncate[3]", nulls_last=True)),
    ],
)
def test_terms_are_as_users_write_them(text: str, term: Term) -> None:
    assert layout(sort=[text]).sort == (term,)


def test_everything_that_a_layout_says() -> None:
    made = layout(
        description="mine own",
        partition=["day(d)", "b"],
        zorder=["b", "c"],
        files=7,
        file_index=["c"],
        cluster_manifests=True,
        properties={"write": {"parquet": {"page-size-bytes": 4096}}, "write.delete.mode": "copy-on-write", "x": True},
    )
    assert made == Layout(
        name="mine",
        description="mine own",
        partition=(Term(column="d", transform="day"), Term(column="b")),
        zorder=("b", "c"),
        files=7,
        file_index=("c",),
        cluster_manifests=True,
        properties={"write.parquet.page-size-bytes": "4096", "write.delete.mode": "copy-on-write", "x": "true"},
    )
    assert made.columns == ("d", "b", "b", "c", "c")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"partition": ["mnth(a)"]},
            r"layout\[0\]\.partition\[0\]: unknown transform 'mnth' \(did you mean 'month'",
        ),
        ({"partition": ["a", "bucket(a)"]}, r"layout\[0\]\.partition\[1\]: transform 'bucket' needs a width"),
        ({"partition": ["month(3, a)"]}, "transform 'month' takes no width"),
        ({"partition": ["a desc"]}, r"'a desc' is not a term such as 'month\(ss_sold_date\)'"),
        ({"partition": "a"}, r"layout\[0\]\.partition: must be a list"),
        ({"sort": ["a up"]}, "'a up' is not a term such as 'ss_item_sk desc nulls last'"),
        ({"sort": ["a"], "hilbert": ["b"]}, r"layout\[0\]\.hilbert: rows have one order: sort or hilbert"),
        ({"zorder": ["a", "a"]}, r"layout\[0\]\.zorder\[1\]: column 'a' is listed twice"),
        ({"files": -1}, r"layout\[0\]\.files: -1 is below 0"),
        (
            {"files": 3, "properties": {"write.target-file-size-bytes": 9}},
            "say files or the property write",
        ),
        ({"properties": {"a": {"b": [1]}}}, r"layout\[0\]\.properties\.a\.b: must be text, a number, true or false"),
        ({"partitions": []}, r"layout\[0\]: unknown key 'partitions' \(did you mean 'partition'\?\)"),
    ],
)
def test_errors_name_the_key_and_suggest(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^.*{message}"):
        layout(**values)


def test_columns_are_those_of_the_rows() -> None:
    made = layout(partition=["month(day)"], sort=["item"])
    made.check(["day", "item", "more"], "layouts[2]")
    with pytest.raises(ConfigError, match=r"layouts\[2\]: unknown column of layout mine: 'item' \(did you mean 'itm'"):
        made.check(["day", "itm"], "layouts[2]")
