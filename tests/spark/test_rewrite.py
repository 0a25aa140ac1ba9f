"""Data files rewritten by executors: as threads do it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import icebench
from icebench.engine.maintenance.rewrite_data_files import Progress
from icebench.engine.maintenance.rewrite_group import GroupRewrite
from icebench.engine.spark import memory
from icebench.errors import FileNotFound, Unsupported

ROWS = pa.schema([pa.field("id", pa.int64()), pa.field("p", pa.string()), pa.field("x", pa.int32())])


def filled(place: Path, version: int) -> icebench.Table:
    table = icebench.load_catalog(str(place)).create_table(
        "db.t", ROWS, partition_spec=[("p", "identity")], properties={"format-version": str(version)}
    )
    for start in range(0, 60, 10):
        ids = range(start, start + 10)
        table.append(pa.table({"id": ids, "p": ["abc"[i % 3] for i in ids], "x": [i * 7 % 60 for i in ids]}, ROWS))
    if version > 1:
        table.delete("id in (3, 44)", "merge-on-read")
    return table


def contents(table: icebench.Table) -> list[dict[str, Any]]:
    lineage = ["_row_id", "_last_updated_sequence_number"] if table.metadata.format_version == 3 else []
    found: list[dict[str, Any]] = table.scan(columns=["id", "p", "x", *lineage]).to_arrow().sort_by("id").to_pylist()
    return found


@pytest.mark.parametrize("version", [1, 2, 3])
def test_rows_stay(spark: SparkSession, tmp_path: Path, version: int) -> None:
    table = filled(tmp_path, version)
    before = contents(table)
    reported: list[Progress] = []
    done = table.maintenance.rewrite_data_files(spark=spark, progress=reported.append)
    assert (done.groups, done.rewritten_data_files, done.added_data_files, len(reported)) == (3, 18, 3, 3)
    assert done.added_bytes == sum(file["file_size_in_bytes"] for file in table.inspect.files().to_pylist())
    assert contents(table) == before
    done = table.maintenance.rewrite_data_files(
        "zorder", zorder_by=["x", "id"], rewrite_all=True, spark=spark, sort_memory_bytes=500
    )
    assert (done.rewritten_data_files, done.added_data_files) == (3, 3)
    assert contents(table) == before
    assert not any("_sorting" in info.location for info in table.store.list(table.location))


def test_memory_is_what_executors_have(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = filled(tmp_path, 3)
    before = contents(table)
    given: list[tuple[int, int]] = []
    real = GroupRewrite.__init__

    def noted(self: GroupRewrite, **fields: Any) -> None:
        given.append((fields["memory_bytes"], fields["threads"]))
        real(self, **fields)

    monkeypatch.setattr(memory, "row_memory_bytes", lambda _: 700)
    monkeypatch.setattr(GroupRewrite, "__init__", noted)
    done = table.maintenance.rewrite_data_files("sort", sort_order=["x"], rewrite_all=True, spark=spark)
    assert given[0] == (700, 1)
    # A group has at most four times as many bytes, unless one file has more.
    assert done.groups > 3
    assert contents(table) == before
    done = table.maintenance.rewrite_data_files(
        "sort", sort_order=["x"], rewrite_all=True, spark=spark, sort_memory_bytes=900_000
    )
    assert (given[-1], done.groups) == ((900_000, 1), 3)


def test_a_group_that_fails(spark: SparkSession, tmp_path: Path) -> None:
    table = filled(tmp_path, 2)
    (gone, *_) = (path for path in table.scan().plan().files["file_path"].to_pylist() if "p=b" in path)
    table.store.delete(gone)
    before = {info.location for info in table.store.list(f"{table.location}/data")}
    done_on = table.metadata.current_snapshot_id
    with pytest.raises(FileNotFound, match="no such file"):
        table.maintenance.rewrite_data_files(spark=spark)
    assert {info.location for info in table.store.list(f"{table.location}/data")} == before
    done = table.maintenance.rewrite_data_files(spark=spark, partial_progress=True)
    (failed,) = done.failed
    assert (done.groups, gone in failed.file_paths) == (2, True)
    assert isinstance(failed.error, FileNotFound)
    assert (failed.error.location, f"snapshot {done_on}" in str(failed.error)) == (gone, True)


def test_storage_of_this_process(spark: SparkSession, tmp_path: Path) -> None:
    table = icebench.load_catalog(f"memory://{tmp_path.name}").create_table("db.t", ROWS)
    for start in range(6):
        table.append(pa.table({"id": [start], "p": ["a"], "x": [0]}, ROWS))
    with pytest.raises(Unsupported):
        table.maintenance.rewrite_data_files(spark=spark)


def test_executors_cluster_files(spark: SparkSession, tmp_path: Path) -> None:
    table = filled(tmp_path, 3)
    before = contents(table)
    table.set_properties({"icebench.clustering.strategy": "sort", "icebench.clustering.keys": "x"})
    table.set_properties({"icebench.clustering.fan-in": "2"})
    done = table.maintenance.cluster(spark=spark)
    assert done.rewritten_data_files > 0
    assert contents(table) == before
    assert table.maintenance.cluster(spark=spark).merges == 0
