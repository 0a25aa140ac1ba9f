"""`table.maintenance.rewrite_manifests`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.errors import Invalid

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("p", pa.string())])


def filled(place: Path, version: str) -> icebench.Table:
    """Six appends of three partitions each, some rows deleted."""
    table = icebench.load_catalog(str(place)).create_table(
        "db.t",
        SCHEMA,
        partition_spec=[("p", "identity")],
        properties={"format-version": version, "commit.manifest-merge.enabled": "false"},
    )
    for number in range(6):
        table.append(pa.table({"id": range(6 * number, 6 * number + 6), "p": list("aabbcc")}))
    if version != "1":
        table.delete("id in (0, 8)", "merge-on-read")
    return table


@pytest.mark.parametrize("version", ["1", "2", "3"])
@pytest.mark.parametrize("by_partition", [True, False])
def test_few_manifests_with_the_same_files(tmp_path: Path, version: str, by_partition: bool) -> None:
    table = filled(tmp_path, version)
    lineage = ["_row_id"] if version == "3" else []
    rows = table.scan(columns=["id", "p", *lineage]).to_arrow().sort_by("id")
    files = table.inspect.files().select(["file_path", "record_count"]).sort_by("file_path")
    before = table.scan().plan()
    snapshot = table.maintenance.rewrite_manifests(by_partition=by_partition, snapshot_properties={"job": "7"})
    assert snapshot == table.current_snapshot
    assert snapshot.operation == "replace"
    assert (snapshot.summary["manifests-replaced"], snapshot.summary["job"]) == (
        str(before.counters["manifests_in_list"]),
        "7",
    )
    after = table.scan().plan()
    assert after.counters["manifests_in_list"] == (1 if version == "1" else 2)
    assert after.counters["files_planned"] == before.counters["files_planned"]
    assert table.inspect.files().select(["file_path", "record_count"]).sort_by("file_path") == files
    assert table.scan(columns=["id", "p", *lineage]).to_arrow().sort_by("id") == rows
    listed = [file.rpartition("p=")[2][0] for file in after.files.column("file_path").to_pylist()]
    assert (listed == sorted(listed)) is by_partition


def test_an_empty_table_has_none(tmp_path: Path) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", SCHEMA)
    with pytest.raises(Invalid, match="no manifests"):
        table.maintenance.rewrite_manifests()
