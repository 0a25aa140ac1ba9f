"""Scans whose last row groups are shared between threads give what one thread gives."""

from __future__ import annotations

import io
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.codec.parquet_choice import KERNELS
from engine.columnar.schemas import from_arrow_schema
from engine.errors import CorruptTable
from engine.read import in_order
from engine.read.reader import read_files
from engine.read.request import FileRead, ReadRequest
from engine.runtime.counters import Counters
from engine.runtime.local import LocalRunner
from engine.storage.memory import MemoryStore

PATH = "memory://b/f.parquet"
ROWS, COLUMNS = 3_000, 8


@pytest.fixture(autouse=True)
def shares(monkeypatch: pytest.MonkeyPatch) -> None:
    assert KERNELS.load()
    monkeypatch.setattr(in_order, "_VALUES_TO_SHARE", 1)
    monkeypatch.setattr(in_order, "available_threads", lambda: 3)


def stored(row_group_rows: int) -> tuple[pa.Table, bytes]:
    random = np.random.default_rng(row_group_rows)
    fields = [pa.field(f"c{n}", pa.int64(), metadata={"PARQUET:field_id": str(n + 1)}) for n in range(COLUMNS)]
    table = pa.table([random.integers(0, 9**n, ROWS) for n in range(1, COLUMNS + 1)], schema=pa.schema(fields))
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=row_group_rows, compression="zstd", write_page_checksum=True)
    return table, sink.getvalue()


def read(table: pa.Table, data: bytes, threads: int) -> pa.Table:
    store = MemoryStore()
    store.write(PATH, data)
    schema = from_arrow_schema(table.schema)
    request = ReadRequest(store=store, projection=schema, schemas=(schema,), needed_by="table db.t")
    files = [FileRead(file_path=PATH, record_count=ROWS)] * 2
    return pa.Table.from_batches(read_files(files, request, runner=LocalRunner(threads), counters=Counters()))


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("row_group_rows", [ROWS, 1_100, 100])
def test_rows_and_their_order_are_those_of_the_file(threads: int, row_group_rows: int) -> None:
    table, data = stored(row_group_rows)
    found = read(table, data, threads)
    assert found.to_pydict() == pa.concat_tables([table, table]).to_pydict()


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_damage_in_two_columns_is_told_of_the_first(threads: int) -> None:
    table, data = stored(ROWS)
    group = pq.read_metadata(io.BytesIO(data)).row_group(0)
    damaged = bytearray(data)
    for column in (2, 5):
        chunk = group.column(column)
        damaged[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 0xFF
    with pytest.raises(CorruptTable, match="column c2"):
        read(table, bytes(damaged), threads)


def test_a_reader_that_is_left_early_ends_its_threads() -> None:
    table, data = stored(500)
    store = MemoryStore()
    store.write(PATH, data)
    schema = from_arrow_schema(table.schema)
    request = ReadRequest(store=store, projection=schema, schemas=(schema,))
    batches = read_files(
        [FileRead(file_path=PATH, record_count=ROWS)], request, runner=LocalRunner(2), counters=Counters()
    )
    assert sum(batch.num_rows for batch in islice(batches, 2)) == 1_000
    batches.close()  # type: ignore[attr-defined]
