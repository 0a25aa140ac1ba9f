"""Groups of files that move to another partition spec."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

import icebench
from icebench.engine.maintenance import row_order
from icebench.engine.maintenance.range_files import MOST_RANGES, RangeFiles
from icebench.engine.maintenance.row_order import Sorter
from icebench.engine.write.partitioned import MAX_OPEN_FILES

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])


def moving(catalog: icebench.Catalog, partitions: int, version: int = 2) -> icebench.Table:
    """Three files, each with two rows of every partition of the new spec; one row is deleted."""
    table = catalog.create_table("db.t", SCHEMA, properties={"format-version": str(version)})
    for start in range(0, 6 * partitions, 2 * partitions):
        ids = range(start, start + 2 * partitions)
        table.append(pa.table({"id": ids, "p": [str(i * 17 % partitions) for i in ids]}, SCHEMA))
    table.delete("id = 7", "merge-on-read")
    table.update_spec(lambda spec: spec.add_field("p", "identity"))
    return table


def rows_of_partitions(table: icebench.Table) -> dict[str, list[dict[str, Any]]]:
    """Rows by partition in the order of the files, with their lineage in format version 3."""
    lineage = ["_row_id", "_last_updated_sequence_number"] if table.metadata.format_version == 3 else []
    found: dict[str, list[dict[str, Any]]] = {}
    for row in table.scan(columns=["id", "p", *lineage]).to_arrow().to_pylist():
        found.setdefault(row["p"], []).append(row)
    return found


@pytest.mark.parametrize(
    ("version", "memory", "ranges"),
    [
        pytest.param(2, 1 << 30, MOST_RANGES, id="in memory"),
        pytest.param(3, 40_000, MOST_RANGES, id="by ranges"),
        pytest.param(3, 20_000, 3, id="by ranges larger than memory"),
    ],
)
def test_more_partitions_than_files_are_open_get_a_file_each(
    catalog: icebench.Catalog, monkeypatch: pytest.MonkeyPatch, version: int, memory: int, ranges: int
) -> None:
    monkeypatch.setattr(row_order, "MOST_RANGES", ranges)
    partitions = MAX_OPEN_FILES + 10
    table = moving(catalog, partitions, version)
    before = rows_of_partitions(table)
    with patch.object(RangeFiles, "read", autospec=True, side_effect=RangeFiles.read) as read:
        done = table.maintenance.rewrite_data_files(rewrite_all=True, sort_memory_bytes=memory)
    assert done.added_data_files == partitions
    assert read.called == (memory == 40_000)
    assert rows_of_partitions(table) == before
    assert not [file for file in table.store.list(table.location) if file.location.endswith(".arrow")]


def test_as_many_partitions_as_files_are_open_are_not_sorted(catalog: icebench.Catalog) -> None:
    table = moving(catalog, MAX_OPEN_FILES)
    before = rows_of_partitions(table)
    with patch.object(Sorter, "sorted_rows", side_effect=AssertionError):
        assert table.maintenance.rewrite_data_files(rewrite_all=True).added_data_files == MAX_OPEN_FILES
    assert rows_of_partitions(table) == before
