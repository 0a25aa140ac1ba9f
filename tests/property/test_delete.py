"""Deletes against a list of rows: whatever the format version, the mode, the layout and the filter."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import icebench
from icebench.engine.operations.row_changes import Mode

Row = tuple[int, int | None, str | None]

ROWS = pa.schema([pa.field("id", pa.int64()), pa.field("n", pa.int32()), pa.field("name", pa.string())])
SPECS: list[list[tuple[str, str]]] = [[], [("n", "identity")], [("name", "truncate[1]")], [("id", "bucket[3]")]]


@dataclass(frozen=True)
class Filter:
    """SQL, and the rows that it is true for."""

    text: str
    matches: Callable[[Row], bool]


def filters() -> st.SearchStrategy[Filter]:
    small = st.integers(-1, 12)
    letters = st.sampled_from(["a", "b", "ab", "c", ""])
    return st.one_of(
        small.map(lambda v: Filter(f"id < {v}", lambda row: row[0] < v)),
        small.map(lambda v: Filter(f"n = {v}", lambda row: row[1] == v)),
        small.map(lambda v: Filter(f"n <> {v}", lambda row: row[1] is not None and row[1] != v)),
        letters.map(lambda v: Filter(f"name >= '{v}'", lambda row: row[2] is not None and row[2] >= v)),
        letters.map(lambda v: Filter(f"name like '{v}%'", lambda row: row[2] is not None and row[2].startswith(v))),
        st.just(Filter("n is null", lambda row: row[1] is None)),
        st.just(Filter("name is not null and n > 1", lambda row: row[2] is not None and (row[1] or 0) > 1)),
        st.just(Filter("n > 2 or id = 3", lambda row: (row[1] or 0) > 2 or row[0] == 3)),
        st.just(Filter("id is not null", lambda row: True)),
    )


ROW = st.tuples(
    st.integers(0, 10), st.none() | st.integers(0, 4), st.none() | st.sampled_from(["a", "ab", "abc", "b", "c", ""])
)
STEPS = st.lists(
    st.one_of(
        st.lists(ROW, min_size=1, max_size=12),
        st.tuples(filters(), st.sampled_from(["merge-on-read", "copy-on-write"])),
    ),
    min_size=2,
    max_size=7,
)


def arrow(rows: list[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, ROWS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=ROWS)


def contents(table: icebench.Table) -> Counter[Row]:
    read = table.scan().to_arrow()
    return Counter(zip(*(read[name].to_pylist() for name in ROWS.names), strict=True))


@contextmanager
def catalog() -> Iterator[icebench.Catalog]:
    place = tempfile.mkdtemp()
    try:
        yield icebench.load_catalog(place)
    finally:
        shutil.rmtree(place)


@settings(max_examples=60)
@given(st.sampled_from([1, 2, 3]), st.sampled_from(SPECS), STEPS)
def test_what_is_left_is_what_the_filter_is_not_true_for(
    version: int, spec: list[tuple[str, str]], steps: list[list[Row] | tuple[Filter, Mode]]
) -> None:
    with catalog() as opened:
        table = opened.create_table("db.t", ROWS, partition_spec=spec, properties={"format-version": str(version)})
        model: list[Row] = []
        row_ids: dict[Row, set[int]] = {}
        for step in steps:
            if isinstance(step, list):
                table.append(arrow(step))
                model += step
            else:
                filter, mode = step
                before = len(model)
                model = [row for row in model if not filter.matches(row)]
                chosen: Mode = "copy-on-write" if version == 1 else mode
                snapshot = table.delete(filter.text, chosen)
                assert (snapshot is None) == (len(model) == before), filter.text
            assert contents(table) == Counter(model), step
            assert table.scan().count() == len(model)
            if version == 3:
                row_ids = check_row_ids(table, row_ids)
        check_summary(table, model)


def check_row_ids(table: icebench.Table, before: dict[Row, set[int]]) -> dict[Row, set[int]]:
    """No two rows share an id, and a row that stays keeps its own, also when it is rewritten."""
    read = table.scan(columns=[*ROWS.names, "_row_id"]).to_arrow()
    ids = read["_row_id"].to_pylist()
    assert None not in ids
    assert len(set(ids)) == len(ids)
    now: dict[Row, set[int]] = {}
    for row, row_id in zip(zip(*(read[name].to_pylist() for name in ROWS.names), strict=True), ids, strict=True):
        now.setdefault(row, set()).add(row_id)
    for row, known in before.items():
        if row in now and len(now[row]) >= len(known):
            assert known <= now[row]
    return now


def check_summary(table: icebench.Table, model: list[Row]) -> None:
    """The summary's totals are those of the files, whichever way rows went."""
    head = table.current_snapshot
    if head is None:
        return
    files = table.scan().plan().files
    assert int(head.summary["total-data-files"]) == files.num_rows
    stored = sum(files["record_count"].to_pylist())
    assert int(head.summary["total-records"]) == stored
    assert stored - int(head.summary["total-position-deletes"]) <= len(model)
