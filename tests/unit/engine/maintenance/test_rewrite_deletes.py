"""`rewrite_position_deletes` and `convert_equality_deletes`; random tables are in `tests/property/`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import icebench
from icebench.engine.commit.target import Target
from icebench.engine.maintenance.rewrite_deletes import RewrittenDeletes
from icebench.errors import Invalid, ValidationFailed

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("p", pa.string())])


def rows(start: int, count: int = 10) -> pa.Table:
    return pa.table({"id": range(start, start + count), "p": ["ab"[i % 2] for i in range(count)]}, SCHEMA)


def filled(place: Path, version: int, *, files: int = 3, **properties: str) -> icebench.Table:
    """Files of ten rows, by partitions of two."""
    spec = [("p", "identity")]
    given = {"format-version": str(version), **{name.replace("_", "."): value for name, value in properties.items()}}
    table = icebench.load_catalog(str(place)).create_table("db.t", SCHEMA, partition_spec=spec, properties=given)
    for number in range(files):
        table.append(rows(10 * number))
    return table


def deletes(table: icebench.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.inspect.delete_files().to_pylist()
    return found


def kinds(table: icebench.Table) -> list[tuple[int, str]]:
    return sorted((each["content"], each["file_format"].lower()) for each in deletes(table))


def contents(table: icebench.Table, snapshot_id: int | None = None) -> list[dict[str, Any]]:
    lineage = ["_row_id", "_last_updated_sequence_number"] if table.metadata.format_version == 3 else []
    scan = table.scan(columns=["id", "p", *lineage], snapshot_id=snapshot_id)
    found: list[dict[str, Any]] = scan.to_arrow().sort_by("id").to_pylist()
    return found


def delete_keys(table: icebench.Table, *ids: int) -> None:
    stream = table.keyed_stream(["id", "p"])
    stream.delete(pa.table({"id": ids, "p": ["ab"[i % 2] for i in ids]}, SCHEMA))
    stream.commit()


def before_commit(meanwhile: Callable[[], object]) -> Any:
    """What others do after a rewrite has planned, before it commits."""
    commit, called = Target.commit, list[bool]()

    def interrupted(self: Target, *args: Any) -> Any:
        if not called:
            called.append(True)
            meanwhile()
        return commit(self, *args)

    return patch.object(Target, "commit", interrupted)


@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_position_delete_files_become_fewer(tmp_path: Path, granularity: str) -> None:
    table = filled(tmp_path, 2)
    table.set_properties({"write.delete.granularity": "partition"})
    for number in (1, 3, 13, 23, 5, 15):  # all of one partition
        table.delete(f"id = {number}", "merge-on-read")
    table.delete("id = 4", "merge-on-read")
    assert len(deletes(table)) == 7
    before, number = contents(table), table.metadata.last_sequence_number - 1
    assert table.maintenance.rewrite_position_deletes(min_input_files=7) == RewrittenDeletes()
    table.set_properties({"write.delete.granularity": granularity})
    done = table.maintenance.rewrite_position_deletes(snapshot_properties={"job": "7"})
    # By data file, the one of row 23 is as it should be.
    removed, count = (5, 2) if granularity == "file" else (6, 1)
    assert (done.removed_delete_files, done.added_delete_files) == (removed, count)
    assert done.snapshot == table.current_snapshot
    assert done.snapshot is not None
    assert (done.snapshot.operation, done.snapshot.summary["job"]) == ("replace", "7")
    own = [e for e in table.inspect.entries().to_pylist() if e["snapshot_id"] == done.snapshot.snapshot_id]
    new = [e for e in own if e["status"] == 1]
    assert [e["sequence_number"] for e in new] == [number] * count
    assert sum(e["data_file"]["file_size_in_bytes"] for e in new) == done.added_bytes
    assert contents(table) == before
    assert table.maintenance.rewrite_position_deletes(min_input_files=1) == RewrittenDeletes()
    assert contents(table) == before


def test_a_file_that_is_alone_with_its_data_file_is_left(tmp_path: Path) -> None:
    table = filled(tmp_path, 2, files=6)
    table.delete("id % 10 = 3", "merge-on-read")
    assert len(deletes(table)) == 6
    assert table.maintenance.rewrite_position_deletes() == RewrittenDeletes()
    assert table.maintenance.rewrite_position_deletes(rewrite_all=True).added_delete_files == 6
    with pytest.raises(Invalid, match="min_input_files"):
        table.maintenance.rewrite_position_deletes(min_input_files=0)


def test_deletes_of_removed_data_files_go(tmp_path: Path) -> None:
    table = filled(tmp_path, 2, files=6, write_delete_granularity="partition")
    table.set_properties({"write.delete.granularity": "partition"})
    for number in range(5):
        table.delete(f"id in ({10 * number + 1}, {51 + 2 * number % 8})", "merge-on-read")
    table.delete("id >= 50", "copy-on-write")
    before = contents(table)
    done = table.maintenance.rewrite_position_deletes()
    assert (done.removed_delete_files, done.added_delete_files) == (5, 1)
    assert [each["record_count"] for each in deletes(table)] == [5]
    table.delete("id < 60", "copy-on-write")
    assert table.maintenance.rewrite_position_deletes() == RewrittenDeletes(
        removed_delete_files=1, removed_bytes=done.added_bytes, snapshot=table.current_snapshot
    )
    assert deletes(table) == []
    assert len(before) == 45


def test_in_version_3_they_become_vectors(tmp_path: Path) -> None:
    table = filled(tmp_path, 2, files=3)
    table.set_properties({"write.delete.granularity": "partition"})
    table.delete("id in (1, 3, 11)", "merge-on-read")
    table.upgrade_format(3)
    table.delete("id = 13", "merge-on-read")  # a vector for one of the files, with position 11 in it
    assert kinds(table) == [(1, "parquet"), (1, "puffin")]
    before = contents(table)
    done = table.maintenance.rewrite_position_deletes()
    assert (done.removed_delete_files, done.added_delete_files) == (1, 1)
    assert kinds(table) == [(1, "puffin")] * 2
    assert contents(table) == before
    assert table.maintenance.rewrite_position_deletes() == RewrittenDeletes()


@pytest.mark.parametrize("version", [2, 3])
def test_equality_deletes_become_positions(tmp_path: Path, version: int) -> None:
    table = filled(tmp_path, version)
    table.delete("id in (1, 2, 5)", "merge-on-read")
    delete_keys(table, 1, 3, 13, 24)
    delete_keys(table, 3)
    delete_keys(table, 99)
    table.append(rows(3, 1))  # a row that comes after the deletes of its key
    before = contents(table)
    planned = table.current_snapshot
    assert planned is not None
    done = table.maintenance.convert_equality_deletes()
    assert done.snapshot == table.current_snapshot
    assert done.snapshot is not None
    assert done.snapshot.operation == "delete"
    assert int(done.snapshot.summary["removed-equality-delete-files"]) == 4
    assert kinds(table) == [(1, "puffin" if version == 3 else "parquet")] * 4
    assert sum(each["record_count"] for each in deletes(table)) == 6
    assert contents(table) == before == contents(table, planned.snapshot_id)
    assert table.maintenance.convert_equality_deletes() == RewrittenDeletes()
    changes = table.changelog_scan(from_snapshot_id=planned.snapshot_id).to_arrow()
    assert changes.num_rows == 0


@pytest.mark.parametrize("version", [2, 3])
def test_a_file_without_a_live_row_keeps_none(tmp_path: Path, version: int) -> None:
    table = filled(tmp_path, version)
    delete_keys(table, *range(1, 10, 2))  # all rows of one file
    before = contents(table)
    assert table.maintenance.convert_equality_deletes().added_delete_files == 1
    assert contents(table) == before
    assert len(before) == 25


@pytest.mark.parametrize("version", [2, 3])
def test_keys_of_no_row_are_only_removed(tmp_path: Path, version: int) -> None:
    table = filled(tmp_path, version)
    table.delete("id = 3", "merge-on-read")
    before = deletes(table)
    delete_keys(table, 3, 5)
    delete_keys(table, 99)
    table.delete("id = 5", "copy-on-write")
    done = table.maintenance.convert_equality_deletes()
    assert done.snapshot is not None
    assert done.added_delete_files == 1
    delete_keys(table, 3)
    done = table.maintenance.convert_equality_deletes()
    assert done.snapshot is not None
    assert (done.removed_delete_files, done.added_delete_files, done.snapshot.operation) == (1, 0, "replace")
    assert len(before) == len(deletes(table)) == 1


@pytest.mark.parametrize("version", [2, 3])
def test_a_rewrite_that_was_planned_before_the_keys_came_brings_no_row_back(tmp_path: Path, version: int) -> None:
    table = filled(tmp_path, version)
    other = icebench.load_catalog(str(tmp_path)).load_table("db.t")

    def meanwhile() -> None:
        delete_keys(other, 3, 13)
        assert other.maintenance.convert_equality_deletes().added_delete_files == 2

    with before_commit(meanwhile), pytest.raises(ValidationFailed, match="may delete rows"):
        table.maintenance.rewrite_data_files(rewrite_all=True)
    assert not {3, 13} & {row["id"] for row in contents(table.refresh())}


@pytest.mark.parametrize("version", [2, 3])
def test_a_rewrite_of_the_data_files_meanwhile_is_a_conflict(tmp_path: Path, version: int) -> None:
    table = filled(tmp_path, version)
    other = icebench.load_catalog(str(tmp_path)).load_table("db.t")
    delete_keys(table, 3, 13)
    with (
        before_commit(lambda: other.maintenance.rewrite_data_files(rewrite_all=True)),
        pytest.raises(ValidationFailed, match="was removed by snapshot"),
    ):
        table.maintenance.convert_equality_deletes()
    assert not {3, 13} & {row["id"] for row in contents(table.refresh())}


@pytest.mark.parametrize("version", [2, 3])
def test_keys_that_come_meanwhile_stay(tmp_path: Path, version: int) -> None:
    table = filled(tmp_path, version)
    other = icebench.load_catalog(str(tmp_path)).load_table("db.t")
    delete_keys(table, 3)
    with before_commit(lambda: delete_keys(other, 5)):
        table.maintenance.convert_equality_deletes()
    assert sorted(each["content"] for each in deletes(table.refresh())) == [1, 2]
    assert not {3, 5} & {row["id"] for row in contents(table)}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("keys", [False, True])
def test_rows_that_are_deleted_meanwhile_stay_deleted(tmp_path: Path, version: int, *, keys: bool) -> None:
    table = filled(tmp_path, 2)
    table.set_properties({"write.delete.granularity": "partition"})
    for number in (1, 3, 5, 21, 23):
        table.delete(f"id = {number}", "merge-on-read")
    delete_keys(table, 11)
    if version == 3:
        table.upgrade_format(3)
    other = icebench.load_catalog(str(tmp_path)).load_table("db.t")

    def rewrite() -> None:
        maintenance = table.maintenance
        _ = maintenance.convert_equality_deletes() if keys else maintenance.rewrite_position_deletes()

    with before_commit(lambda: other.delete("id in (13, 7)", "merge-on-read")):
        if version == 3:
            with pytest.raises(ValidationFailed):
                rewrite()
        else:
            rewrite()
    expected = np.setdiff1d(np.arange(30), [1, 3, 5, 21, 23, 11, 13, 7]).tolist()
    assert [row["id"] for row in contents(table.refresh())] == expected


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_a_dry_run_predicts(tmp_path: Path, version: int, granularity: str) -> None:
    """What goes, and how many files come: one for each data file, or for each partition."""
    table = filled(tmp_path, 2, write_delete_granularity="partition")
    for number in range(3):  # each concerns all data files
        table.delete(f"id % 10 in ({2 * number}, {2 * number + 1})", "merge-on-read")
    if version == 3:
        table.upgrade_format(3)
    table.set_properties({"write.delete.granularity": granularity})
    before, states = contents(table), len(table.snapshots)
    foretold = table.maintenance.rewrite_position_deletes(rewrite_all=True, dry_run=True)
    assert (foretold.snapshot, len(table.refresh().snapshots)) == (None, states)
    done = table.maintenance.rewrite_position_deletes(rewrite_all=True)
    assert foretold.removed_delete_files == done.removed_delete_files == 6
    assert foretold.removed_bytes == done.removed_bytes
    assert foretold.added_delete_files == done.added_delete_files
    assert done.added_delete_files == (2 if (version, granularity) == (2, "partition") else 6)
    assert [row["id"] for row in contents(table)] == [row["id"] for row in before]
