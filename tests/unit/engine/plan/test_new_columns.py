"""Files that are older than a column; the rule is tested in `tests/property/test_plan_new_columns.py`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from icebench.engine.plan.scan import table_scan
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.manifest import EntryStatus, ManifestEntry
from icebench.engine.spec.partitioning import UNPARTITIONED
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.spec.types import INT, STRING, NestedField
from icebench.engine.spec.values import encode_value
from tests.property.table_builder import TableBuilder, data_file

A = NestedField(field_id=1, name="a", type=INT)
OLD = Schema((A,), 0)


def planned(
    column: NestedField, filter: str, *entries: ManifestEntry, added_by: int = 1, schema_ids: tuple[int, ...] = (0, 1)
) -> list[str]:
    """The files to read in a table of two snapshots, 0 of before the column was added and 1 of after, that are listed
    by a manifest that one of them wrote; `schema_ids` are those that the metadata state."""
    new = Schema((A, column), 1)
    builder = TableBuilder(new, (UNPARTITIONED,), format_version=3, schemas=(OLD, new))
    for content in FileContent:
        own = [e for e in entries if e.data_file.content is content]
        if own:
            by = added_by if content is FileContent.DATA else 0
            builder.add_manifest(own, sequence_number=2, snapshot_id=by, schema=new if by else OLD)
    metadata = builder.metadata()
    snapshots = [
        Snapshot(snapshot_id=i, timestamp_ms=i, manifest_list="memory://t/x", operation="append", schema_id=schema_id)
        for i, schema_id in enumerate(schema_ids)
    ]
    metadata = replace(metadata, snapshots=(*snapshots, *metadata.snapshots))
    plan = table_scan(metadata, builder.store, filter=filter, runner=LocalRunner(1)).plan()
    return [
        path.removeprefix("memory://t/") + "".join(f"+{d['file_path'].removeprefix('memory://t/')}" for d in deletes)
        for path, deletes in zip(plan.files["file_path"].to_pylist(), plan.files["deletes"].to_pylist(), strict=True)
    ]


def entry(path: str, snapshot_id: int, status: EntryStatus = EntryStatus.ADDED, **more: Any) -> ManifestEntry:
    return ManifestEntry(
        status=status,
        snapshot_id=snapshot_id,
        sequence_number=1,
        file_sequence_number=1,
        data_file=data_file(f"memory://t/{path}", **more),
    )


@pytest.mark.parametrize(
    ("column", "matching"),
    [
        (NestedField(field_id=2, name="b", type=INT, initial_default=0), "b = 0"),
        (NestedField(field_id=2, name="b", type=STRING, initial_default=""), "b = ''"),
    ],
)
def test_a_default_that_is_nothing_much_is_a_value(column: NestedField, matching: str) -> None:
    assert planned(column, matching, entry("old", 0), added_by=0) == ["old"]
    assert planned(column, "b is null", entry("old", 0), added_by=0) == []


def test_a_file_with_metrics_of_a_column_has_it() -> None:
    column = NestedField(field_id=2, name="b", type=INT)
    metrics: dict[str, Any] = {
        "lower_bounds": {2: encode_value(INT, 1)},
        "value_counts": {2: 10},
        "null_value_counts": {2: 0},
    }
    mixed = (entry("without", 0), entry("with", 0, **metrics))
    assert planned(column, "b = 1", *mixed, added_by=0) == ["with"]


def test_a_schema_id_alone_decides_nothing() -> None:
    """Another writer records the wrong one: of a schema without the column, or of none that the table has."""
    column = NestedField(field_id=2, name="b", type=INT)
    assert planned(column, "b = 1", entry("new", 1), schema_ids=(0, 0)) == ["new"]
    assert planned(column, "b = 1", entry("new", 1), schema_ids=(-1, -1)) == ["new"]
    assert planned(column, "b = 1", entry("old", 0), added_by=0, schema_ids=(-1, -1)) == ["old"]


def test_the_schema_of_a_manifest_alone_decides_nothing() -> None:
    column = NestedField(field_id=2, name="b", type=INT)
    assert planned(column, "b = 1", entry("new", 0), added_by=0, schema_ids=(1, 1)) == ["new"]


def test_entries_that_were_rewritten_after_the_column_was_added_are_not_skipped() -> None:
    column = NestedField(field_id=2, name="b", type=INT)
    assert planned(column, "b = 1", entry("old", 0, EntryStatus.EXISTING)) == ["old"]


def test_a_manifest_may_list_files_that_are_younger_than_it_seems() -> None:
    """A manifest that an old snapshot's writer is said to have added, with files of others in it."""
    column = NestedField(field_id=2, name="b", type=INT)
    files = (entry("old", 0), entry("new", 1, EntryStatus.EXISTING))
    assert planned(column, "b = 1", *files, added_by=0) == ["new"]


def test_deletes_are_not_skipped_for_the_age_of_their_snapshot() -> None:
    column = NestedField(field_id=2, name="b", type=INT)
    deletes = entry("delete", 0, content=FileContent.POSITION_DELETES)
    assert planned(column, "b = 1", entry("new", 1), deletes) == ["new+delete"]


def test_manifests_that_are_filtered_together_keep_their_own_schemas() -> None:
    """The metadata state the old schema of all snapshots."""
    column = NestedField(field_id=2, name="b", type=INT)
    new = Schema((A, column), 1)
    builder = TableBuilder(new, (UNPARTITIONED,), schemas=(OLD, new))
    for number in range(8):
        schema = new if number % 2 else OLD
        builder.add_manifest([entry(str(number), 0)], sequence_number=2, snapshot_id=0, schema=schema)
    metadata = builder.metadata()
    snapshot = Snapshot(snapshot_id=0, timestamp_ms=0, manifest_list="memory://t/x", operation="append", schema_id=0)
    metadata = replace(metadata, snapshots=(snapshot, *metadata.snapshots))
    plan = table_scan(metadata, builder.store, filter="b = 1", runner=LocalRunner(1)).plan()
    assert plan.files["file_path"].to_pylist() == [f"memory://t/{number}" for number in (1, 3, 5, 7)]
