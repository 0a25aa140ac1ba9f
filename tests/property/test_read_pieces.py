"""Row groups read piece by piece give what brute force gives: deletes by position and by key, filters that exclude row
groups and pieces, splits, threads, batches of any size."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.columnar.schemas import from_arrow_schema
from icebench.engine.deletes.files import DeleteFile, FileRead
from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.parse import parse
from icebench.engine.formats.parquet import source as parquet
from icebench.engine.read import row_group, row_group_stream
from icebench.engine.read.positions import read_rows_at
from icebench.engine.read.reader import read_files
from icebench.engine.read.request import ReadRequest
from icebench.engine.runtime.counters import (
    DELETE_POSITIONS_APPLIED,
    ROW_GROUPS_READ,
    ROW_GROUPS_SKIPPED,
    ROWS_DECODED,
    ROWS_DELETED,
    ROWS_RETURNED,
    Counters,
)
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.metadata_columns import DELETE_FILE_PATH_ID, DELETE_POS_ID, DELETED, POS, ROW_ID
from icebench.engine.spec.schema import Schema
from icebench.engine.storage.memory import MemoryStore
from icebench.errors import CorruptTable

PATH, POSITIONS, KEYS = "memory://b/data.parquet", "memory://b/positions.parquet", "memory://b/keys.parquet"
ROWS = 40


def field(name: str, type_: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, type_, metadata={"PARQUET:field_id": str(field_id)})


ARROW = pa.schema(
    [
        field("id", pa.int64(), 1),
        field("key", pa.int32(), 2),
        field("price", pa.decimal128(7, 2), 3),
        field("text", pa.string(), 4),
        field("s", pa.struct([field("x", pa.int32(), 6), field("y", pa.int32(), 7)]), 5),
    ]
)
SCHEMA = from_arrow_schema(ARROW)
FIELDS = {f.name: f for f in SCHEMA.fields}
FILTERS = (None, "id < 7", "id >= 11 and id < 25", "key = 3", "price is null", "s.x = 1 and id > 20", "id < 0")


def row(number: int) -> dict[str, object]:
    return {
        "id": number,
        "key": None if number % 7 == 6 else number % 5,
        "price": None if number % 9 == 4 else Decimal(number * 37 % 1000) / 100,
        "text": "é" * (number % 4),
        "s": None if number % 11 == 10 else {"x": number % 3, "y": number},
    }


def matches(text: str | None, number: int) -> bool:
    own = row(number)
    struct = own["s"]
    return {
        "id < 7": number < 7,
        "id >= 11 and id < 25": 11 <= number < 25,
        "key = 3": own["key"] == 3,
        "price is null": own["price"] is None,
        "s.x = 1 and id > 20": isinstance(struct, dict) and struct["x"] == 1 and number > 20,
        "id < 0": False,
    }.get(text or "", True)


def write(store: MemoryStore, location: str, table: pa.Table, **options: object) -> int:
    sink = io.BytesIO()
    pq.write_table(table, sink, store_decimal_as_integer=True, **options)
    store.write(location, sink.getvalue(), overwrite=True)
    return len(sink.getvalue())


def delete_file(store: MemoryStore, location: str, table: pa.Table, content: FileContent) -> DeleteFile:
    return DeleteFile(
        content=content,
        file_path=location,
        file_format="parquet",
        record_count=table.num_rows,
        file_size_in_bytes=write(store, location, table),
        sequence_number=1,
        equality_ids=(2,) if content is FileContent.EQUALITY_DELETES else (),
    )


def stored(row_group_rows: int, positions: Sequence[int], keys: Sequence[int | None]) -> tuple[MemoryStore, FileRead]:
    store = MemoryStore()
    table = pa.Table.from_pylist([row(n) for n in range(ROWS)], schema=ARROW)
    # Pages of a few rows, so that pieces begin within pages and pages within pieces.
    write(store, PATH, table, row_group_size=row_group_rows, data_page_size=16, write_batch_size=3)
    deletes = []
    if positions:
        fields = [field("file_path", pa.string(), DELETE_FILE_PATH_ID), field("pos", pa.int64(), DELETE_POS_ID)]
        deleted = pa.table([[PATH] * len(positions), sorted(positions)], schema=pa.schema(fields))
        deletes.append(delete_file(store, POSITIONS, deleted, FileContent.POSITION_DELETES))
    if keys:
        deleted = pa.table([pa.array(keys, pa.int32())], schema=pa.schema([ARROW.field("key")]))
        deletes.append(delete_file(store, KEYS, deleted, FileContent.EQUALITY_DELETES))
    return store, FileRead(file_path=PATH, record_count=ROWS, deletes=tuple(deletes), first_row_id=1000)


@contextmanager
def pieces_of(rows: int, *, are_large: bool) -> Iterator[None]:
    """Pieces of so many rows, whatever they take in memory; row groups too large to be decoded whole, or not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_group, "_LEAST_ROWS", rows)
        for limit in ("_MOST_ROWS", "_MOST_FILTERED_ROWS"):
            patch.setattr(row_group, limit, rows)
        if are_large:
            patch.setattr(row_group_stream, "_WHOLE_BYTES", 0)
            patch.setattr(parquet, "_AT_ONCE_BYTES", 0)
        yield


def parts(store: MemoryStore, cuts: Sequence[float]) -> list[tuple[int, int]]:
    """Byte ranges that make up the data file."""
    size = store.size(PATH)
    ends = [0, *sorted(int(cut * size) for cut in cuts), size]
    return [(start, end - start) for start, end in pairwise(ends)]


SETTINGS = {
    "row_group_rows": st.sampled_from([1, 6, 7, 15, ROWS]),
    "piece_rows": st.sampled_from([1, 2, 3, 5, 8, 100]),
    "are_large": st.booleans(),
    "threads": st.sampled_from([1, 2, 3]),
    "text": st.sampled_from(FILTERS),
}


@given(
    **SETTINGS,
    batch_rows=st.sampled_from([1, 2, 4, 1000]),
    names=st.sampled_from([["id", "key", "price", "text", "s"], ["text"], ["price", "id"], ["s", "key"], []]),
    positions=st.sets(st.integers(0, ROWS - 1)) | st.just(set(range(20))) | st.just(set(range(ROWS))),
    keys=st.sets(st.sampled_from([None, 0, 3, 9])),
    cuts=st.lists(st.floats(0, 1), max_size=3),
    shows_deleted=st.booleans(),
    narrow=st.booleans(),
)
def test_pieces_give_what_brute_force_gives(
    *,
    row_group_rows,
    piece_rows,
    are_large,
    threads,
    text,
    batch_rows,
    names,
    positions,
    keys,
    cuts,
    shows_deleted,
    narrow,
):
    store, file = stored(row_group_rows, positions, list(keys))
    places = [*(FIELDS[name] for name in names), POS, ROW_ID, *([DELETED] if shows_deleted else [])]
    request = ReadRequest(
        store=store,
        projection=Schema(tuple(places)),
        schemas=(SCHEMA,),
        batch_rows=batch_rows,
        narrow_decimals=narrow,
    )
    residual = None if text is None else bind(parse(text), SCHEMA)
    deleted = {n for n in range(ROWS) if n in positions or row(n)["key"] in keys}
    matching = [n for n in range(ROWS) if matches(text, n)]
    expected = [
        {name: row(n)[name] for name in names}
        | {"_pos": n, "_row_id": 1000 + n}
        | ({"_deleted": n in deleted} if shows_deleted else {})
        for n in matching
        if shows_deleted or n not in deleted
    ]
    counters, found = Counters(), []
    with pieces_of(piece_rows, are_large=are_large):
        for part in parts(store, cuts):
            one = replace(file, residual=residual, byte_range=part)
            batches = list(read_files([one], request, runner=LocalRunner(threads), counters=counters))
            assert all(0 < batch.num_rows <= batch_rows for batch in batches)
            found += [own for batch in batches for own in batch.to_pylist()]
    assert found == expected
    groups = [range(start, min(start + row_group_rows, ROWS)) for start in range(0, ROWS, row_group_rows)]
    assert counters[ROW_GROUPS_READ] + counters[ROW_GROUPS_SKIPPED] == len(groups)
    assert counters[ROWS_RETURNED] == len(expected)
    if residual is None:
        gone = [group for group in groups if not shows_deleted and positions.issuperset(group)]
        assert counters[ROW_GROUPS_SKIPPED] == len(gone)
        assert counters[ROWS_DECODED] == ROWS - sum(map(len, gone))
        assert counters[DELETE_POSITIONS_APPLIED] == len(positions)
        assert counters[ROWS_DELETED] == len(deleted)


@given(**SETTINGS, positions=st.sets(st.integers(0, ROWS - 1)))
def test_rows_at_positions_are_those_of_brute_force(*, row_group_rows, piece_rows, are_large, threads, text, positions):
    store, file = stored(row_group_rows, (), ())
    request = ReadRequest(store=store, projection=Schema((FIELDS["id"], POS)), schemas=(SCHEMA,))
    residual = None if text is None else bind(parse(text), SCHEMA)
    one = replace(file, residual=residual)
    with pieces_of(piece_rows, are_large=are_large):
        at = np.array(sorted(positions), np.int64)
        batches = read_rows_at([(one, at)], request, runner=LocalRunner(threads), counters=Counters())
        found = [own["_pos"] for batch in batches for own in batch.to_pylist()]
    assert found == [n for n in sorted(positions) if matches(text, n)]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("are_large", [True, False])
def test_damage_within_a_row_group_is_reported_and_what_came_before_it_is_right(threads: int, are_large: bool) -> None:
    table = pa.table({"id": range(5000)}, schema=pa.schema([ARROW.field("id")]))
    store = MemoryStore()
    write(
        store,
        PATH,
        table,
        use_dictionary=False,
        compression="none",
        data_page_size=800,
        write_batch_size=100,
        write_page_checksum=True,
    )
    damaged = bytearray(store.read(PATH))
    damaged[damaged.index((4050).to_bytes(8, "little"))] ^= 1
    store.write(PATH, bytes(damaged), overwrite=True)
    schema = Schema((FIELDS["id"],))
    request = ReadRequest(store=store, projection=schema, schemas=(schema,), needed_by="table db.t")
    file = FileRead(file_path=PATH, record_count=5000)
    found: list[int] = []
    batches = read_files([file], request, runner=LocalRunner(threads), counters=Counters())
    with pieces_of(1000, are_large=are_large), pytest.raises(CorruptTable, match=r"row group 0.*needed by table db\.t"):
        found.extend(n for batch in batches for n in batch.column(0).to_pylist())
    assert found == list(range(len(found)))
    assert len(found) <= 4050


def test_columns_that_no_row_is_left_for_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the last row that matches nothing else is decoded, though the row group has more pieces."""
    store, file = stored(ROWS, (), ())
    decoded: list[tuple[str, ...]] = []
    beside = row_group._Columns.beside

    def noted(self, known, piece):
        before = self._taken
        made = beside(self, known, piece)
        decoded.extend([tuple(f.name for f in self.wanted.fields)] * (self._taken - before))
        return made

    monkeypatch.setattr(row_group._Columns, "beside", noted)
    request = ReadRequest(store=store, projection=Schema((FIELDS["text"],)), schemas=(SCHEMA,))
    one = replace(file, residual=bind(parse("id >= 11 and id < 25"), SCHEMA))
    with pieces_of(4, are_large=True):
        found = list(read_files([one], request, runner=LocalRunner(1), counters=Counters()))
    assert sum(batch.num_rows for batch in found) == 14
    assert decoded.count(("id",)) == ROWS // 4
    assert decoded.count(("text",)) == 24 // 4 + 1


def test_a_reader_that_is_left_early_ends_its_threads() -> None:
    store, file = stored(15, (), ())
    request = ReadRequest(store=store, projection=SCHEMA, schemas=(SCHEMA,))
    for are_large in (False, True):
        with pieces_of(5, are_large=are_large):
            batches = read_files([file], request, runner=LocalRunner(2), counters=Counters())
            assert next(batches).column(0).to_pylist() == [0, 1, 2, 3, 4]
            batches.close()  # type: ignore[attr-defined]
