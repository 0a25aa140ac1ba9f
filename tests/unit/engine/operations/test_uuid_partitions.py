"""Changes of a table that is partitioned by uuid, with the summaries that Iceberg Java writes: bounds in the order of
signed numbers, so that the lower one may lie above the upper one, or both inside the values."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

import icebench
from icebench.engine.codec.manifests.partition_summaries import _FieldSummary
from icebench.engine.operations.row_changes import Mode

ROWS = pa.schema([pa.field("u", pa.uuid()), pa.field("n", pa.int64())])
LOW, MIDDLE, HIGH = (uuid.UUID(int=i) for i in (1, 1 << 120, 0xF << 124))


def rows(*of: tuple[uuid.UUID, int]) -> pa.Table:
    ids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([u.bytes for u, _ in of], pa.binary(16)))
    return pa.table({"u": ids, "n": pa.array([n for _, n in of], pa.int64())}, schema=ROWS)


def signed(value: uuid.UUID) -> int:
    return int.from_bytes(value.bytes, "big", signed=True)


@pytest.fixture
def table(catalog: icebench.Catalog, monkeypatch: pytest.MonkeyPatch) -> icebench.Table:
    def as_java(self: _FieldSummary, values: list[uuid.UUID]) -> None:
        known = [*values, *(self._bounds or ())]
        self._bounds = (min(known, key=signed), max(known, key=signed)) if known else None

    monkeypatch.setattr(_FieldSummary, "_widen", as_java)
    made = catalog.create_table("db.t", ROWS, partition_spec=[("u", "identity")], properties={"format-version": "2"})
    made.append(rows((LOW, 1), (MIDDLE, 2), (HIGH, 3)))
    made.append(rows((LOW, 4), (MIDDLE, 5), (HIGH, 6)))
    return made


def left(table: icebench.Table) -> list[int]:
    return sorted(table.scan().to_arrow()["n"].to_pylist())


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize(("partition", "expected"), [(LOW, [2, 3, 5, 6]), (MIDDLE, [1, 3, 4, 6]), (HIGH, [1, 2, 4, 5])])
def test_a_partition_is_deleted(table: icebench.Table, mode: Mode, partition: uuid.UUID, expected: list[int]) -> None:
    table.delete(f"u = '{partition}'", mode)
    assert left(table) == expected


def test_files_are_compacted(table: icebench.Table) -> None:
    done = table.maintenance.rewrite_data_files(min_input_files=2)
    assert (done.rewritten_data_files, done.added_data_files) == (6, 3)
    assert left(table) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(("partition", "expected"), [(LOW, [2, 3, 5, 6, 7]), (HIGH, [1, 2, 4, 5, 7])])
def test_a_partition_is_replaced(table: icebench.Table, partition: uuid.UUID, expected: list[int]) -> None:
    table.overwrite_partitions(rows((partition, 7)))
    assert left(table) == expected
