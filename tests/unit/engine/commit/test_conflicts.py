"""What other commits did meanwhile, and whether it makes a change wrong."""

from __future__ import annotations

import math
import struct
import uuid
from collections.abc import Callable
from dataclasses import replace

import pytest

from icebench.engine.codec.manifests.manifest_list import encode_manifest_list
from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.changes.change import Change
from icebench.engine.commit.changes.evolution import UpdateSpec
from icebench.engine.commit.changes.overwrite import Overwrite
from icebench.engine.commit.changes.row_delta import RowDelta
from icebench.engine.commit.conflicts import Validation
from icebench.engine.commit.file_refs import FileRef, ref_to
from icebench.engine.commit.manifests import load_manifests, write_manifests
from icebench.engine.commit.snapshot_producer import SnapshotProducer
from icebench.engine.commit.staged_snapshot import Staged, stage_snapshot
from icebench.engine.commit.staging_context import Staging
from icebench.engine.expressions.predicate import Predicate, equal
from icebench.engine.spec.creation import new_table_metadata
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.inheritance import apply_inheritance
from icebench.engine.spec.manifest import EntryStatus, ManifestContent
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import Partition, partition_spec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Identity
from icebench.engine.spec.types import DOUBLE, LONG, NestedField
from icebench.engine.spec.values import encode_value
from icebench.errors import Invalid, ValidationFailed
from tests.unit.engine.commit.tables import BY_DAY, World, data_file, deletes_of, metadata, world

OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_0001))[0]


def with_ids(file: DataFile, low: int, high: int) -> DataFile:
    return replace(
        file,
        lower_bounds={1: encode_value(LONG, low)},
        upper_bounds={1: encode_value(LONG, high)},
        value_counts={1: file.record_count},
        null_value_counts={1: 0},
    )


def equality_deletes(name: str, *, spec_id: int = 0, partition: Partition = ()) -> DataFile:
    return DataFile(
        content=FileContent.EQUALITY_DELETES,
        file_path=f"memory://wh/t/data/{name}.parquet",
        file_format="parquet",
        spec_id=spec_id,
        partition=partition,
        record_count=1,
        file_size_in_bytes=50,
        equality_ids=(1,),
    )


def rewriting(w: World, old: DataFile, filter: Predicate | None = None) -> Overwrite:
    """A copy-on-write change of one file, prepared on the table as it is."""
    head = w.metadata.current_snapshot
    assert head is not None
    validation = Validation(
        starting_snapshot_id=head.snapshot_id, referenced=[ref_to(old)], added_rows=filter, refuse_deletes="all"
    )
    new = replace(old, file_path=old.file_path.replace(".parquet", "-new.parquet"))
    return Overwrite(data_files=[new], removed_data=[ref_to(old)], validation=validation)


def commit(w: World, *changes: Change) -> None:
    w.transaction().commit(changes)


OLD = with_ids(data_file("old"), 1, 5)


@pytest.mark.parametrize(
    ("ids", "fails"), [((1, 9), True), ((7, 7), True), ((6, 8), True), ((8, 9), False), ((0, 6), False)]
)
@pytest.mark.parametrize("writer", ["append", "overwrite", "row delta"])
def test_files_that_others_add_and_that_may_match(writer: str, ids: tuple[int, int], *, fails: bool) -> None:
    w = world()
    other = data_file("other")
    commit(w, Append(data_files=[OLD, other]))
    change: SnapshotProducer = rewriting(w, OLD, equal("id", 7))
    theirs = with_ids(data_file("theirs"), *ids)
    gone = Validation(starting_snapshot_id=101, referenced=[ref_to(other)], refuse_deletes="all")
    kinds: dict[str, Callable[[], SnapshotProducer]] = {
        "append": lambda: Append(data_files=[theirs]),
        "overwrite": lambda: Overwrite(data_files=[theirs], removed_data=[ref_to(other)], validation=gone),
        "row delta": lambda: RowDelta(data_files=[theirs], delete_files=[equality_deletes("d", partition=())]),
    }
    if writer == "row delta":
        # Deletes are another conflict; here only the rows that came.
        validation = Validation(starting_snapshot_id=101, added_rows=equal("id", 7))
        change = Append(data_files=[data_file("ours")], validation=validation)
    commit(w, kinds[writer]())
    if not fails:
        commit(w, change)
        return
    with pytest.raises(ValidationFailed, match=r"theirs\.parquet, which may hold rows"):
        commit(w, change)


def test_a_filter_of_no_column_is_the_callers_fault() -> None:
    w = world()
    commit(w, Append(data_files=[OLD]))
    for schema in (None, w.metadata.schema):
        validation = Validation(starting_snapshot_id=101, added_rows=equal("nothing", 7), schema=schema)
        with pytest.raises(Invalid, match="nothing"):
            commit(w, Append(data_files=[data_file("ours")], validation=validation))


def test_files_without_bounds_may_match() -> None:
    w = world()
    commit(w, Append(data_files=[OLD]))
    change = rewriting(w, OLD, equal("id", 7))
    commit(w, Append(data_files=[data_file("theirs")]))
    with pytest.raises(ValidationFailed, match="theirs"):
        commit(w, change)


def test_only_snapshots_since_the_change_was_prepared_count() -> None:
    w = world()
    commit(w, Append(data_files=[OLD]))
    commit(w, Append(data_files=[with_ids(data_file("before"), 7, 7)]))
    commit(w, rewriting(w, OLD, equal("id", 7)))
    assert w.files() == {"before": 2, "old-new": 3}


class Carry:
    """Lists the delete files of others in a manifest of its own, as ADDED by those: some writers merge so."""

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        manifests = load_manifests(base.current_snapshot, staging.store)
        carried = [
            entry
            for manifest in manifests
            if manifest.content is ManifestContent.DELETES
            for entry in apply_inheritance(decode_entries(staging.store.read(manifest.manifest_path)), manifest)
        ]
        assert {entry.status for entry in carried} == {EntryStatus.ADDED}
        snapshot_id = staging.new_snapshot_id()
        content = ManifestContent.DELETES
        return stage_snapshot(
            base,
            staging,
            branch="main",
            snapshot_id=snapshot_id,
            operation="overwrite",
            summary={},
            written=write_manifests(carried, base=base, content=content, snapshot_id=snapshot_id, staging=staging),
            kept=[manifest for manifest in manifests if manifest.content is ManifestContent.DATA],
        )


def test_deletes_of_before_that_another_commit_lists_anew_are_no_conflict() -> None:
    w = world()
    commit(w, Append(data_files=[OLD]))
    commit(w, RowDelta(delete_files=[equality_deletes("before")]))
    change = rewriting(w, OLD)
    commit(w, Carry())
    (manifest,) = (m for m in load_manifests(w.metadata.current_snapshot, w.store) if m.content.name == "DELETES")
    assert (manifest.added_snapshot_id, manifest.added_files_count) == (103, 1)
    commit(w, change)
    assert "old-new" in w.files()


@pytest.mark.parametrize("version", [2, 3])
def test_equality_deletes_of_an_unpartitioned_spec_concern_all_files(version: int) -> None:
    w = world(metadata(version))
    commit(w, Append(data_files=[OLD]))
    change = rewriting(w, OLD)
    commit(w, RowDelta(delete_files=[equality_deletes("theirs")]))
    with pytest.raises(ValidationFailed, match="theirs"):
        commit(w, change)


@pytest.mark.parametrize("version", [1, 2])
def test_equality_deletes_of_a_spec_that_lost_its_fields_concern_all_files(version: int) -> None:
    """Format version 1 keeps a dropped field, as void: its deletes have a tuple of nulls, and are global."""
    w = world(metadata(version, spec=BY_DAY))
    old = data_file("old", day="x")
    commit(w, Append(data_files=[old]), UpdateSpec(lambda s: s.drop_field("day")))
    w.committer.state = replace(w.committer.state, metadata=replace(w.metadata, format_version=2))
    change = rewriting(w, old)
    spec = w.metadata.spec
    assert spec.is_unpartitioned
    assert len(spec.fields) == (1 if version == 1 else 0)
    theirs = equality_deletes("theirs", spec_id=spec.spec_id, partition=(None,) * len(spec.fields))
    commit(w, RowDelta(delete_files=[theirs]))
    with pytest.raises(ValidationFailed, match="theirs"):
        commit(w, change)


@pytest.mark.parametrize(("partition", "fails"), [("x", True), ("y", False), (None, False)])
def test_equality_deletes_of_a_partition_concern_its_files(partition: str | None, *, fails: bool) -> None:
    w = world(metadata(spec=BY_DAY))
    old = data_file("old", day="x")
    commit(w, Append(data_files=[old]))
    change = rewriting(w, old)
    commit(w, RowDelta(delete_files=[equality_deletes("theirs", partition=(partition,))]))
    if not fails:
        commit(w, change)
        return
    with pytest.raises(ValidationFailed, match="theirs"):
        commit(w, change)


def of_doubles() -> World:
    schema = Schema((NestedField(field_id=1, name="id", type=LONG), NestedField(field_id=2, name="f", type=DOUBLE)))
    return world(
        new_table_metadata(
            schema,
            partition_spec(schema, [("f", Identity())]),
            location="memory://wh/t",
            uuid=uuid.UUID(int=1),
            now_ms=1_000,
            format_version=2,
        )
    )


@pytest.mark.parametrize(
    ("own", "theirs", "fails"),
    [
        (math.nan, math.nan, True),
        (math.nan, float("-nan"), True),
        (OTHER_NAN, math.nan, True),
        (0.0, 0.0, True),
        (-0.0, -0.0, True),
        (0.0, -0.0, False),
        (-0.0, 0.0, False),
        (math.nan, 0.0, False),
    ],
)
def test_partitions_of_floats_are_equal_as_in_the_specification(own: float, theirs: float, *, fails: bool) -> None:
    w = of_doubles()
    old = replace(data_file("old"), partition=(own,))
    commit(w, Append(data_files=[old]))
    change = rewriting(w, old)
    commit(w, RowDelta(delete_files=[equality_deletes("theirs", partition=(theirs,))]))
    if not fails:
        commit(w, change)
        return
    with pytest.raises(ValidationFailed, match="theirs"):
        commit(w, change)


def test_a_file_whose_partition_is_unknown_may_be_in_any() -> None:
    w = world(metadata(spec=BY_DAY))
    old = data_file("old", day="x")
    commit(w, Append(data_files=[old]))
    change = rewriting(w, old)
    assert change.validation is not None
    change.validation = replace(change.validation, referenced=[FileRef(file_path=old.file_path, partition=None)])
    commit(w, RowDelta(delete_files=[equality_deletes("theirs", partition=("y",))]))
    with pytest.raises(ValidationFailed, match="theirs"):
        commit(w, change)


@pytest.mark.parametrize(
    ("spelling", "fails"),
    [
        ("memory://wh/t/data/old.parquet", True),
        ("/t/data/old.parquet", True),
        ("memory:/t/data/old.parquet", True),
        ("memory://other/t/data/old.parquet", False),
        ("memory://wh/t/data/other.parquet", False),
    ],
)
def test_position_deletes_name_their_data_file_in_any_spelling(spelling: str, *, fails: bool) -> None:
    w = world()
    commit(w, Append(data_files=[OLD, data_file("other")]))
    change = rewriting(w, OLD)
    deletes = DataFile(
        content=FileContent.POSITION_DELETES,
        file_path="memory://wh/t/data/theirs.parquet",
        file_format="parquet",
        record_count=1,
        file_size_in_bytes=50,
        referenced_data_file=spelling,
    )
    kept = Validation(starting_snapshot_id=101, referenced=[ref_to(OLD)])
    commit(w, RowDelta(delete_files=[deletes], validation=kept))
    if not fails:
        commit(w, change)
        return
    with pytest.raises(ValidationFailed, match="theirs"):
        commit(w, change)


@pytest.mark.parametrize("spelling", ["memory://wh/t/data/old.parquet", "/t/data/old.parquet"])
def test_a_data_file_that_went_is_missed_in_any_spelling(spelling: str) -> None:
    w = world()
    commit(w, Append(data_files=[OLD, data_file("other")]))
    head = Validation(starting_snapshot_id=101, referenced=[FileRef(file_path=spelling)])
    deletes = replace(deletes_of(OLD), referenced_data_file=spelling)
    commit(w, rewriting(w, OLD))
    with pytest.raises(ValidationFailed, match="was removed by snapshot"):
        commit(w, RowDelta(delete_files=[deletes], validation=head))


def forget_counts(w: World) -> None:
    """Write the newest manifest list again as writers of version 1 may: without counts."""
    head = w.metadata.current_snapshot
    assert head is not None
    assert head.manifest_list is not None
    listed = [
        replace(
            m,
            added_files_count=None,
            existing_files_count=None,
            deleted_files_count=None,
            added_rows_count=None,
            existing_rows_count=None,
            deleted_rows_count=None,
        )
        for m in load_manifests(head, w.store)
    ]
    data = encode_manifest_list(
        listed,
        format_version=1,
        snapshot_id=head.snapshot_id,
        parent_snapshot_id=head.parent_snapshot_id,
        sequence_number=0,
    )
    w.store.delete(head.manifest_list)
    w.store.write(head.manifest_list, data)
    assert all(m.added_files_count is None for m in load_manifests(head, w.store))


def test_manifests_without_counts_are_looked_into_for_added_files() -> None:
    w = world(metadata(1))
    commit(w, Append(data_files=[OLD]))
    change = rewriting(w, OLD, equal("id", 7))
    commit(w, Append(data_files=[with_ids(data_file("theirs"), 7, 7)]))
    forget_counts(w)
    with pytest.raises(ValidationFailed, match="theirs"):
        commit(w, change)


def test_manifests_without_counts_are_looked_into_for_removed_files() -> None:
    w = world(metadata(1))
    commit(w, Append(data_files=[OLD, data_file("other")]))
    change = rewriting(w, OLD)
    commit(w, rewriting(w, OLD))
    forget_counts(w)
    with pytest.raises(ValidationFailed, match=r"old\.parquet was removed by snapshot"):
        commit(w, change)


def test_manifests_without_counts_are_kept_and_searched() -> None:
    w = world(metadata(1))
    commit(w, Append(data_files=[OLD, data_file("other")]))
    forget_counts(w)
    commit(w, rewriting(w, OLD))
    assert set(w.files()) == {"old-new", "other"}
