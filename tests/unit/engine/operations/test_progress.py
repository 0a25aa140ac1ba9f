"""Long calls report how far they are."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.engine.runtime.progress import Step

SCHEMA = pa.schema([("id", pa.int64())])
LATER = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def table(tmp_path: Path) -> icebench.Table:
    return icebench.load_catalog(str(tmp_path)).create_table("db.t", SCHEMA, sort_order=["id"])


def batches(*sizes: int) -> Iterator[pa.RecordBatch]:
    for size in sizes:
        yield pa.record_batch({"id": range(size)}, SCHEMA)


def said(steps: list[Step]) -> list[tuple[str, str, int, int | None]]:
    return [(step.what, step.unit, step.done, step.total) for step in steps]


def test_a_stream_reports_its_rows(table: icebench.Table) -> None:
    steps: list[Step] = []
    table.append(pa.RecordBatchReader.from_batches(SCHEMA, batches(3, 0, 4)), progress=steps.append)
    assert said(steps) == [
        ("append", "rows", 3, None),
        ("append", "rows", 3, None),
        ("append", "rows", 7, None),
        ("append", "rows", 7, 7),
    ]
    assert table.scan().count() == 7


def test_a_table_is_written_as_without(table: icebench.Table) -> None:
    steps: list[Step] = []
    rows = pa.table({"id": [3, 1, 2]}, SCHEMA)
    table.append(rows, progress=steps.append)
    assert said(steps) == [("append", "rows", 0, 3), ("append", "rows", 3, 3)]
    assert table.scan().to_arrow()["id"].to_pylist() == [1, 2, 3]  # a table is sorted, a stream is not


def test_what_the_callback_raises_ends_the_call_and_leaves_nothing(table: icebench.Table) -> None:
    def stop(step: Step) -> None:
        if step.done > 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.append(pa.RecordBatchReader.from_batches(SCHEMA, batches(3, 4)), progress=stop)
    assert table.refresh().current_snapshot is None
    assert not list(table.store.list(f"{table.location}/data"))


def test_an_error_of_the_stream_is_the_same(table: icebench.Table) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield from batches(3)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        table.append(pa.RecordBatchReader.from_batches(SCHEMA, broken()), progress=lambda _: None)


def test_rewrites_report_bytes_and_expiries_files(table: icebench.Table) -> None:
    for _ in range(4):
        table.append(pa.table({"id": [1]}, SCHEMA))
    steps: list[Step] = []
    done = table.maintenance.rewrite_data_files(rewrite_all=True, progress=steps.append)
    assert said(steps) == [("rewrite_data_files", "bytes", done.rewritten_bytes, done.rewritten_bytes)]
    steps.clear()
    expired = table.maintenance.expire_snapshots(older_than=LATER, progress=steps.append)
    files = sum(
        (
            expired.deleted_data_files,
            expired.deleted_position_delete_files,
            expired.deleted_equality_delete_files,
            expired.deleted_manifests,
            expired.deleted_manifest_lists,
            expired.deleted_statistics_files,
        )
    )
    assert files > 8
    assert said(steps) == [("expire_snapshots", "files", n, files) for n in range(files + 1)]
    steps.clear()
    table.maintenance.expire_snapshots(older_than=LATER, progress=steps.append)
    assert said(steps) == []
