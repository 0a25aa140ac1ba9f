from __future__ import annotations

from dataclasses import replace

import pytest

from icebench.engine.codec.avro.file import read_header
from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.changes.merge_append import MergeAppend
from icebench.engine.commit.changes.overwrite import Overwrite
from icebench.engine.commit.conflicts import Validation
from icebench.engine.commit.file_refs import ref_to
from icebench.engine.commit.manifests import load_manifests
from icebench.engine.runtime.counters import FILES_WRITTEN
from icebench.engine.spec.manifest import EntryStatus, ManifestContent
from icebench.engine.spec.partitioning import UNPARTITIONED, partition_spec
from icebench.engine.spec.snapshots import SnapshotRef
from icebench.engine.spec.transforms import Identity
from icebench.engine.spec.updates import AddPartitionSpec, RemovePartitionSpecs, SetSnapshotRef, UpgradeFormatVersion
from icebench.errors import Invalid, ValidationFailed
from tests.unit.engine.commit.tables import BY_DAY, SCHEMA, data_file, deletes_of, metadata, world


def test_a_first_append() -> None:
    w = world()
    state = w.transaction().commit([Append(data_files=[data_file("a"), data_file("b")], properties={"batch": "7"})])
    snapshot = state.metadata.current_snapshot
    assert snapshot is not None
    assert (snapshot.snapshot_id, snapshot.parent_snapshot_id, snapshot.sequence_number) == (101, None, 1)
    assert (snapshot.operation, snapshot.schema_id, snapshot.timestamp_ms) == ("append", 0, 1_500)
    assert snapshot.summary == {
        "batch": "7",
        "added-data-files": "2",
        "added-records": "20",
        "added-files-size": "200",
        "changed-partition-count": "1",
        "total-data-files": "2",
        "total-records": "20",
        "total-files-size": "200",
        "total-delete-files": "0",
        "total-position-deletes": "0",
        "total-equality-deletes": "0",
    }
    assert state.metadata.refs == {"main": SnapshotRef(snapshot_id=101, type="branch")}
    assert [(e.snapshot_id, e.timestamp_ms) for e in state.metadata.snapshot_log] == [(101, 1_500)]
    assert w.files() == {"a": 1, "b": 1}
    assert w.last is not None
    assert w.last.counters[FILES_WRITTEN] == 2


def test_appends_follow_each_other() -> None:
    w = world()
    for name in "abc":
        w.transaction().commit([Append(data_files=[data_file(name)])])
    assert w.files() == {"a": 1, "b": 2, "c": 3}
    first, second, third = w.metadata.snapshots
    assert [second.parent_snapshot_id, third.parent_snapshot_id] == [101, 102]
    assert third.summary["total-records"] == "30"
    manifests = load_manifests(third, w.store)
    assert [(m.added_snapshot_id, m.sequence_number, m.added_files_count) for m in manifests] == [
        (103, 3, 1),
        (102, 2, 1),
        (101, 1, 1),
    ]
    assert first.manifest_list != second.manifest_list


def test_entries_inherit_their_sequence_number() -> None:
    w = world()
    w.transaction().commit([Append(data_files=[data_file("a")])])
    (manifest,) = load_manifests(w.metadata.current_snapshot, w.store)
    (entry,) = decode_entries(w.store.read(manifest.manifest_path))
    assert (entry.status, entry.snapshot_id) == (EntryStatus.ADDED, 101)
    assert (entry.sequence_number, entry.file_sequence_number) == (None, None)


def test_a_manifest_holds_one_spec() -> None:
    base = metadata(spec=BY_DAY)
    w = world(base)
    files = [data_file("a", day="mon"), data_file("b", day="tue"), data_file("c", day="mon")]
    w.transaction().commit([Append(data_files=files)])
    (manifest,) = load_manifests(w.metadata.current_snapshot, w.store)
    assert manifest.partitions is not None
    assert [(p.lower_bound, p.upper_bound, p.contains_null) for p in manifest.partitions] == [(b"mon", b"tue", False)]
    assert w.metadata.snapshots[0].summary["changed-partition-count"] == "2"


def test_many_files_go_into_manifests_of_the_target_size() -> None:
    w = world(metadata(properties={"commit.manifest.target-size-bytes": "4000"}))
    w.transaction().commit([Append(data_files=[data_file(f"f{n:05}") for n in range(2_600)])])
    manifests = load_manifests(w.metadata.current_snapshot, w.store)
    # A part of 1,024 entries, of which several threads make several at once, is never divided.
    assert [m.added_files_count for m in manifests] == [1024, 1024, 552]
    assert len(w.files()) == 2_600


def test_no_rows_make_an_empty_snapshot() -> None:
    w = world()
    w.transaction().commit([Append(data_files=[])])
    assert w.files() == {}
    assert w.metadata.snapshots[0].summary["total-records"] == "0"
    w.transaction().commit([Append(data_files=[data_file("a")])])
    assert w.files() == {"a": 2}


def test_a_new_branch_starts_where_main_is() -> None:
    w = world()
    w.transaction().commit([Append(data_files=[data_file("a")])])
    w.transaction().commit([Append(data_files=[data_file("b")], branch="audit")])
    w.transaction().commit([Append(data_files=[data_file("c")])])
    assert w.files() == {"a": 1, "c": 3}
    assert w.files("audit") == {"a": 1, "b": 2}
    assert w.metadata.snapshot(102).parent_snapshot_id == 101
    assert w.metadata.snapshot(103).parent_snapshot_id == 101
    assert w.metadata.snapshot(102).summary["total-data-files"] == "2"


def test_a_branch_keeps_its_retention() -> None:
    w = world()
    w.transaction().commit([Append(data_files=[data_file("a")])])
    ref = SnapshotRef(snapshot_id=101, type="branch", min_snapshots_to_keep=5, max_ref_age_ms=9)
    w.committer.apply([], [SetSnapshotRef("audit", ref)])
    w.transaction().commit([Append(data_files=[data_file("b")], branch="audit")])
    assert w.metadata.ref("audit") == SnapshotRef(
        snapshot_id=102, type="branch", min_snapshots_to_keep=5, max_ref_age_ms=9
    )


def test_a_tag_is_not_written_to() -> None:
    w = world()
    w.transaction().commit([Append(data_files=[data_file("a")])])
    w.committer.apply([], [SetSnapshotRef("v1", SnapshotRef(snapshot_id=101, type="tag"))])
    with pytest.raises(Invalid, match="'v1' is a tag"):
        w.transaction().commit([Append(data_files=[data_file("b")], branch="v1")])
    assert w.stored() == {"00000000-0000-0000-0000-000000000001-m0.avro", _list_name(w)}


def _list_name(w: object) -> str:
    location = w.metadata.snapshots[0].manifest_list  # type: ignore[attr-defined]
    return str(location).rpartition("/")[2]


def test_version_1() -> None:
    w = world(metadata(1))
    w.transaction().commit([Append(data_files=[data_file("a")])])
    w.transaction().commit([Append(data_files=[data_file("b")])])
    assert w.files() == {"a": 0, "b": 0}
    assert [s.sequence_number for s in w.metadata.snapshots] == [0, 0]
    (manifest, _) = load_manifests(w.metadata.current_snapshot, w.store)
    (entry,) = decode_entries(w.store.read(manifest.manifest_path))
    assert entry.snapshot_id == 102


def test_version_3_assigns_row_ids_to_manifests_without() -> None:
    w = world(metadata(3))
    w.transaction().commit([Append(data_files=[data_file("a", rows=10), data_file("b", rows=5)])])
    w.transaction().commit([Append(data_files=[data_file("c", rows=7)])])
    assert [(s.first_row_id, s.added_rows) for s in w.metadata.snapshots] == [(0, 15), (15, 7)]
    assert w.metadata.next_row_id == 22
    manifests = load_manifests(w.metadata.current_snapshot, w.store)
    assert [m.first_row_id for m in manifests] == [15, 0]


def test_an_upgraded_table_gives_row_ids_to_what_was_there() -> None:

    w = world(metadata(2))
    w.transaction().commit([Append(data_files=[data_file("a", rows=10)])])
    w.committer.apply([], [UpgradeFormatVersion(3)])
    w.transaction().commit([Append(data_files=[data_file("b", rows=7)])])
    snapshot = w.metadata.current_snapshot
    assert snapshot is not None
    assert (snapshot.first_row_id, snapshot.added_rows) == (0, 17)
    assert [m.first_row_id for m in load_manifests(snapshot, w.store)] == [0, 7]


def test_rows_of_before_an_upgrade_get_ids_where_their_manifest_is_merged() -> None:
    w = world(metadata(2, properties={"commit.manifest.min-count-to-merge": "2"}))
    w.transaction().commit([Append(data_files=[data_file("a", rows=10)])])
    w.committer.apply([], [UpgradeFormatVersion(3)])
    w.transaction().commit([MergeAppend(data_files=[data_file("b", rows=7)])])
    (merged,) = load_manifests(w.metadata.current_snapshot, w.store)
    assert (merged.existing_rows_count, merged.added_rows_count, merged.first_row_id) == (10, 7, 0)
    assert w.metadata.next_row_id == 17
    w.transaction().commit([Append(data_files=[data_file("c", rows=5)])])
    assert w.metadata.snapshots[-1].first_row_id == 17


def test_only_data_files_of_known_specs() -> None:
    w = world()
    with pytest.raises(Invalid, match="POSITION_DELETES"):
        w.transaction().commit([Append(data_files=[deletes_of(data_file("a"))])])

    with pytest.raises(Invalid, match="partition spec 5"):
        w.transaction().commit([Append(data_files=[replace(data_file("a"), spec_id=5)])])
    assert w.metadata.snapshots == ()
    assert w.stored() == set()


def test_a_partition_spec_that_is_another_at_the_next_attempt_fails_the_change() -> None:
    w = world(metadata(spec=UNPARTITIONED))
    w.committer.apply([], [AddPartitionSpec(BY_DAY)])
    by_id = replace(partition_spec(SCHEMA, [("id", Identity())]), spec_id=1)

    def give_the_id_again() -> None:
        w.committer.apply([], [RemovePartitionSpecs(frozenset({1})), AddPartitionSpec(by_id)])
        w.transaction().commit([Append(data_files=[data_file("theirs")])])

    w.committer.before = [give_the_id_again]
    with pytest.raises(ValidationFailed, match="partition spec 1"):
        w.transaction().commit([Append(data_files=[replace(data_file("ours", day="x"), spec_id=1)])])
    assert w.files() == {"theirs": 1}


def test_time_does_not_go_back_when_clocks_differ() -> None:
    w = world()
    w.now_ms = 900_000
    w.transaction().commit([Append(data_files=[data_file("a")])])
    w.now_ms = 1_000
    w.transaction().commit([Append(data_files=[data_file("b")])])
    assert [s.timestamp_ms for s in w.metadata.snapshots] == [900_000, 900_000]


def test_manifests_of_no_live_file_are_left_out() -> None:
    w = world()
    w.transaction().commit([Append(data_files=[])])
    w.transaction().commit([Append(data_files=[data_file("a")])])
    manifests = load_manifests(w.metadata.current_snapshot, w.store)
    assert [m.content for m in manifests] == [ManifestContent.DATA]


@pytest.mark.parametrize(("former", "version"), [(1, 2), (2, 3), (1, 3)])
@pytest.mark.parametrize("kind", ["append", "merge append", "overwrite", "several specs"])
def test_an_upgrade_between_attempts_writes_manifests_in_the_new_version(kind: str, former: int, version: int) -> None:
    """Of what the change adds, of what it merges, and of what it takes a file out of."""
    w = world(metadata(former, properties={"commit.manifest.min-count-to-merge": "2"}))
    w.transaction().commit([Append(data_files=[data_file("a"), data_file("b")])])
    w.committer.compares = True
    new = data_file("new")
    if kind == "several specs":
        w.committer.apply([], [AddPartitionSpec(BY_DAY)])
        change: Append | Overwrite = Append(data_files=[new, replace(data_file("day", day="x"), spec_id=1)])
    elif kind == "overwrite":
        validation = Validation(starting_snapshot_id=101, referenced=[ref_to(data_file("a"))], refuse_deletes="all")
        change = Overwrite(data_files=[new], removed_data=[ref_to(data_file("a"))], validation=validation)
    else:
        change = (MergeAppend if kind == "merge append" else Append)(data_files=[new])
    w.committer.before = [lambda: w.committer.apply([], [UpgradeFormatVersion(version)])]
    w.transaction().commit([change])
    head = w.metadata.current_snapshot
    assert head is not None
    own = [m for m in load_manifests(head, w.store) if m.added_snapshot_id == head.snapshot_id]
    headers = [read_header(w.store.read(m.manifest_path)) for m in own]
    assert [header.text("format-version") for header in headers] == [str(version)] * len(own)
    names = {"append": "a b new", "merge append": "a b new", "overwrite": "b new", "several specs": "a b day new"}
    assert w.files() == {name: int(former > 1) + (name in ("new", "day")) for name in names[kind].split()}
    assert {m.partition_spec_id for m in own} == ({0, 1} if kind == "several specs" else {0})
    assert {m.manifest_path.rpartition("/")[2] for m in load_manifests(head, w.store)} <= w.stored()
