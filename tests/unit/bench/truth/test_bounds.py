import struct
from dataclasses import replace
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.expressions.parser import parse

import icebench
from icebench.bench.truth.bounds import MOST_COLUMNS, choose_filters
from icebench.bench.truth.filters import filter_names
from icebench.bench.truth.manifests import FileEntry, live_files
from icebench.bench.truth.metadata import TableJson, load_table_json
from icebench.bench.truth.rows import GroundTruth
from tests.unit.bench.execution.scripted import small_table


def table_of(kind: str) -> TableJson:
    return TableJson("m", {"schema": {"fields": [{"id": 1, "name": "x", "type": kind, "required": False}]}})


def file_of(low: bytes | None, high: bytes | None) -> FileEntry:
    return FileEntry(
        content=0,
        path="f",
        format="parquet",
        records=9,
        size_bytes=9,
        partition={},
        spec_id=0,
        lower_bounds={} if low is None else {1: low},
        upper_bounds={} if high is None else {1: high},
    )


def texts(kind: str, low: bytes, high: bytes) -> list[str]:
    return [choice.text for choice in choose_filters(table_of(kind), [file_of(low, high)])]


@pytest.mark.parametrize(
    ("kind", "low", "high", "expected"),
    [
        ("int", struct.pack("<i", -100), struct.pack("<i", 100), ["x = -100", "x >= 0 and x < 2"]),
        ("long", struct.pack("<q", 5), struct.pack("<q", 5), ["x = 5"]),
        ("long", struct.pack("<i", 0), struct.pack("<q", 1000), ["x = 0", "x >= 500 and x < 510"]),
        (
            "date",
            struct.pack("<i", 0),
            struct.pack("<i", 200),
            ["x = '1970-01-01'", "x >= '1970-04-11' and x < '1970-04-13'"],
        ),
        ("decimal(7, 2)", b"\xff", b"\x00\xc7", ["x = -0.01", "x >= 0.99 and x < 1.01"]),
        ("string", b"it's", b"zz", ["x = 'it''s'"]),
        (
            "timestamp",
            struct.pack("<q", 0),
            struct.pack("<q", 1),
            [
                "x = '1970-01-01T00:00:00.000000'",
                "x >= '1970-01-01T00:00:00.000000' and x < '1970-01-01T00:00:00.000001'",
            ],
        ),
        ("timestamptz", struct.pack("<q", -1), struct.pack("<q", -1), ["x = '1969-12-31T23:59:59.999999+00:00'"]),
    ],
)
def test_literals_of_every_type(kind: str, low: bytes, high: bytes, expected: list[str]) -> None:
    assert texts(kind, low, high) == expected


@pytest.mark.parametrize(
    ("name", "written"),
    [("id", "id"), ("Id", '"Id"'), ("v w", '"v w"'), ("select", '"select"'), ("order", '"order"'), ("ä", '"ä"')],
)
def test_names_that_are_no_plain_words_are_quoted(name: str, written: str) -> None:
    rows = pa.table({name: [0, 1000]})
    table = TableJson("m", {"schema": {"fields": [{"id": 1, "name": name, "type": "long", "required": False}]}})
    chosen = choose_filters(table, [file_of(struct.pack("<q", 0), struct.pack("<q", 1000))])
    assert [choice.text for choice in chosen] == [f"{written} = 0", f"{written} >= 500 and {written} < 510"]
    for choice, count in zip(chosen, [1, 0], strict=True):
        assert filter_names(choice.text, [name]) == {name}
        assert len(duckdb.sql(f"from rows where {choice.text}").fetchall()) == count
        assert len(icebench.filter_rows(rows, choice.text)) == count
        frame = pl.DataFrame(rows)
        assert len(frame.filter(pl.sql_expr(choice.text))) == count
        assert name in str(parse(choice.text))


@pytest.mark.parametrize("name", ["d.t", 'a"b'])
def test_names_that_a_filter_cannot_have_for_every_engine_are_left_out(name: str) -> None:
    fields = [{"id": 1, "name": each, "type": "long", "required": False} for each in (name, "x")]
    bound = struct.pack("<q", 5)
    file = replace(file_of(bound, bound), lower_bounds={1: bound, 2: bound}, upper_bounds={1: bound, 2: bound})
    chosen = choose_filters(TableJson("m", {"schema": {"fields": fields}}), [file, file])
    assert [choice.text for choice in chosen] == ["x = 5"]


@pytest.mark.parametrize("kind", ["double", "boolean", "uuid", "binary", "nested"])
def test_types_that_are_left_out(kind: str) -> None:
    assert texts(kind, b"\x00" * 8, b"\x01" * 8) == []


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz"])
def test_times_that_python_does_not_know_are_left_out(kind: str) -> None:
    layout, far = ("<i", 2**31 - 1) if kind == "date" else ("<q", 2**63 - 1)
    for low, high in ((far, far), (-far, 0), (0, far)):
        assert texts(kind, struct.pack(layout, low), struct.pack(layout, high)) == []


def test_most_files_must_have_bounds() -> None:
    with_bounds, without = file_of(struct.pack("<i", 1), struct.pack("<i", 9)), file_of(None, None)
    assert choose_filters(table_of("int"), [with_bounds, with_bounds, without])
    assert not choose_filters(table_of("int"), [with_bounds, without])
    assert not choose_filters(table_of("int"), [])


@given(st.lists(st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(0, 99)), min_size=1, max_size=9))
def test_a_range_lies_within_the_span(spans: list[tuple[int, int]]) -> None:
    files = [file_of(struct.pack("<q", low), struct.pack("<q", low + width)) for low, width in spans]
    chosen = choose_filters(table_of("long"), files)
    assert chosen[0].text.startswith("x = ")
    for choice in chosen[1:]:
        start = int(choice.text.split()[2])
        assert min(low for low, _ in spans) <= start <= max(low + width for low, width in spans)


def test_partition_and_sort_columns_come_first(tmp_path: Path) -> None:
    table = load_table_json(small_table(tmp_path, partitioned=True))
    sorted_too = TableJson(
        table.location,
        {
            **table.values,
            "default-sort-order-id": 1,
            "sort-orders": [{"order-id": 1, "fields": [{"source-id": 5, "transform": "identity"}]}],
        },
    )
    files = live_files(sorted_too)
    chosen = choose_filters(sorted_too, files)
    assert list(dict.fromkeys(choice.name.rpartition("_")[0] for choice in chosen)) == ["day", "name", "moment", "id"]
    assert len({choice.name for choice in chosen}) == len(chosen) == 2 * MOST_COLUMNS - 1
    reasons = {choice.name: choice.reason for choice in chosen}
    assert reasons["day_equal"] == "partition column"
    assert reasons["moment_range"] == "sort column, 1% of its span"
    assert reasons["id_equal"] == "one of the first columns with bounds"
    truth = GroundTruth(sorted_too, files)
    for choice in chosen:
        if choice.name.endswith("_equal"):
            assert truth.matching(choice.text), choice


def test_a_row_that_is_replaced_does_not_matter_here(tmp_path: Path) -> None:
    files = live_files(load_table_json(small_table(tmp_path)))
    assert choose_filters(table_of("long"), [replace(files[0], records=0)])
