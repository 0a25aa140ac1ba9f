"""Rewriting files and manifests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.changes.overwrite import Overwrite
from icebench.engine.commit.changes.rewrite_files import RewriteFiles
from icebench.engine.commit.changes.rewrite_manifests import RewriteManifests
from icebench.engine.commit.changes.row_delta import RowDelta
from icebench.engine.commit.conflicts import Validation
from icebench.engine.commit.file_refs import ref_to
from icebench.engine.commit.manifests import load_manifests
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.inheritance import apply_inheritance
from icebench.engine.spec.manifest import EntryStatus, ManifestEntry
from icebench.engine.spec.updates import AddPartitionSpec, SetDefaultSpec
from icebench.errors import Invalid, NotFound, ValidationFailed
from tests.unit.engine.commit.tables import BY_DAY, World, data_file, deletes_of, metadata, world

A, B, C = data_file("a"), data_file("b"), data_file("c")


def table_with(*files: DataFile, format_version: int = 2) -> World:
    w = world(metadata(format_version))
    for file in files:
        w.transaction().commit([Append(data_files=[file])])
    return w


def compaction(w: World, *removed: DataFile, to: DataFile) -> RewriteFiles:
    """Planned now."""
    refs = [ref_to(file) for file in removed]
    return RewriteFiles(
        data_files=[to],
        removed_data=refs,
        data_sequence_number=w.metadata.last_sequence_number,
        validation=Validation(
            starting_snapshot_id=w.metadata.current_snapshot_id, referenced=refs, refuse_deletes="positions"
        ),
    )


def equality_deletes(name: str) -> DataFile:
    return DataFile(
        content=FileContent.EQUALITY_DELETES,
        file_path=f"memory://wh/t/data/{name}.parquet",
        file_format="parquet",
        record_count=1,
        file_size_in_bytes=50,
        equality_ids=(1,),
    )


@pytest.mark.parametrize("version", [1, 2, 3])
def test_files_are_replaced_with_the_number_of_the_plan(version: int) -> None:
    w = table_with(A, B, format_version=version)
    change = compaction(w, A, B, to=data_file("ab", rows=20))
    w.transaction().commit([Append(data_files=[C])])
    w.transaction().commit([change])
    assert w.files() == ({"ab": 2, "c": 3} if version > 1 else {"ab": 0, "c": 0})
    snapshot = w.metadata.snapshots[-1]
    assert (snapshot.operation, snapshot.summary["total-records"]) == ("replace", "30")


def test_equality_deletes_after_the_plan_still_apply() -> None:
    # Planned at sequence 2, equality delete at 3, committed at 4: the rewritten file must be older than the delete.
    w = table_with(A, B)
    change = compaction(w, A, B, to=data_file("ab", rows=20))
    w.transaction().commit([RowDelta(delete_files=[equality_deletes("eq")])])
    w.transaction().commit([change])
    assert w.files() == {"ab": 2, "eq": 3}


@pytest.mark.parametrize("by_path", [True, False])
def test_position_deletes_after_the_plan_fail_it(by_path: bool) -> None:
    w = table_with(A, B)
    change = compaction(w, A, B, to=data_file("ab", rows=20))
    deletes = deletes_of(A) if by_path else deletes_of(A, B)
    theirs = Validation(starting_snapshot_id=102, referenced=[ref_to(A)])
    w.transaction().commit([RowDelta(delete_files=[deletes], validation=theirs)])
    with pytest.raises(ValidationFailed, match="may delete rows"):
        w.transaction().commit([change])


def test_a_copy_on_write_delete_after_the_plan_fails_it() -> None:
    w = table_with(A, B)
    change = compaction(w, A, B, to=data_file("ab", rows=20))
    theirs = Validation(starting_snapshot_id=102, referenced=[ref_to(A)], refuse_deletes="all")
    w.transaction().commit(
        [Overwrite(data_files=[data_file("a2", rows=9)], removed_data=[ref_to(A)], validation=theirs)]
    )
    with pytest.raises(ValidationFailed, match=r"a\.parquet was removed"):
        w.transaction().commit([change])
    assert w.files() == {"a2": 3, "b": 2}


def test_a_compaction_fails_a_copy_on_write_delete_planned_before() -> None:
    w = table_with(A, B)
    theirs = Validation(starting_snapshot_id=102, referenced=[ref_to(A)], refuse_deletes="all")
    delete = Overwrite(data_files=[data_file("a2", rows=9)], removed_data=[ref_to(A)], validation=theirs)
    w.transaction().commit([compaction(w, A, B, to=data_file("ab", rows=20))])
    with pytest.raises(ValidationFailed, match=r"a\.parquet was removed"):
        w.transaction().commit([delete])
    assert w.files() == {"ab": 2}


def test_rewrites_that_would_lose_or_bring_back_rows_are_refused() -> None:
    refs = [ref_to(A)]
    with pytest.raises(Invalid, match="replaces files"):
        RewriteFiles()
    with pytest.raises(Invalid, match="which ones they replace"):
        RewriteFiles(data_files=[B])
    with pytest.raises(Invalid, match="refuse concurrent position deletes"):
        RewriteFiles(data_files=[B], removed_data=refs, data_sequence_number=1)
    watched = Validation(starting_snapshot_id=1, referenced=refs, refuse_deletes="positions")
    with pytest.raises(Invalid, match="sequence number of their plan"):
        RewriteFiles(data_files=[B], removed_data=refs, validation=watched)


def entries(w: World) -> Iterator[ManifestEntry]:
    for manifest in load_manifests(w.metadata.current_snapshot, w.store):
        yield from apply_inheritance(decode_entries(w.store.read(manifest.manifest_path)), manifest)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_manifests_are_clustered_and_entries_keep_everything(version: int) -> None:
    w = world(metadata(version, BY_DAY, properties={"commit.manifest.target-size-bytes": "1"}))
    for n in range(6):
        w.transaction().commit([Append(data_files=[data_file(f"f{n}", day="xy"[n % 2])])])
    before = {e.data_file.file_path: (e.snapshot_id, e.sequence_number, e.data_file) for e in entries(w)}
    w.transaction().commit([RewriteManifests(by_partition=True)])
    after = list(entries(w))
    assert {e.status for e in after} == {EntryStatus.EXISTING}
    assert {e.data_file.file_path: (e.snapshot_id, e.sequence_number, e.data_file) for e in after} == before
    assert [e.data_file.partition for e in after] in ([("x",)] * 3 + [("y",)] * 3, [("y",)] * 3 + [("x",)] * 3)
    (manifest,) = load_manifests(w.metadata.current_snapshot, w.store)
    assert manifest.existing_files_count == 6
    snapshot = w.metadata.snapshots[-1]
    assert snapshot.operation == "replace"
    assert {k: v for k, v in snapshot.summary.items() if k.startswith("manifests")} == {
        "manifests-created": "1",
        "manifests-kept": "0",
        "manifests-replaced": "6",
    }
    assert snapshot.summary["total-data-files"] == "6"


def test_delete_manifests_are_rewritten_too() -> None:
    w = table_with(A, B)
    for n, file in enumerate([A, B]):
        watched = Validation(starting_snapshot_id=102 + n, referenced=[ref_to(file)])
        w.transaction().commit([RowDelta(delete_files=[deletes_of(file, name=f"d{n}")], validation=watched)])
    before = w.files()
    w.transaction().commit([RewriteManifests()])
    assert w.files() == before
    assert len(load_manifests(w.metadata.current_snapshot, w.store)) == 2


def test_entries_at_neighbouring_places_of_two_manifests_stay_whole() -> None:
    w = world(metadata(2, BY_DAY))
    for names, days in (("ab", "xy"), ("cd", "yx")):
        files = [data_file(name, day=day) for name, day in zip(names, days, strict=True)]
        w.transaction().commit([Append(data_files=files)])
    before = {e.data_file.file_path: e.data_file for e in entries(w)}
    w.transaction().commit([RewriteManifests(by_partition=True)])
    assert {e.data_file.file_path: e.data_file for e in entries(w)} == before
    assert [e.data_file.partition for e in entries(w)] == [("y",), ("y",), ("x",), ("x",)]


def test_manifests_of_two_specs_stay_apart() -> None:
    w = table_with(A, B)
    w.committer.apply([], [AddPartitionSpec(BY_DAY), SetDefaultSpec()])
    for name in "cd":
        w.transaction().commit([Append(data_files=[replace(data_file(name, day="x"), spec_id=1)])])
    w.transaction().commit([RewriteManifests(by_partition=True)])
    assert w.files() == {"a": 1, "b": 2, "c": 3, "d": 4}
    listed = load_manifests(w.metadata.current_snapshot, w.store)
    assert sorted((m.partition_spec_id, m.existing_files_count) for m in listed) == [(0, 2), (1, 2)]


def test_only_some_manifests() -> None:
    w = table_with(A, B, C)
    w.transaction().commit([RewriteManifests(selects=lambda m: m.sequence_number < 3)])
    assert [m.sequence_number for m in load_manifests(w.metadata.current_snapshot, w.store)] == [4, 3]
    assert w.files() == {"a": 1, "b": 2, "c": 3}


def test_what_others_do_meanwhile_stays_done() -> None:
    w = table_with(A, B)
    theirs = Overwrite(removed_data=[ref_to(A)])
    w.committer.before = [lambda: w.transaction().commit([Append(data_files=[C]), theirs])]
    w.transaction().commit([RewriteManifests()])
    assert w.files() == {"b": 2, "c": 3}


def test_an_empty_table_has_nothing_to_rewrite() -> None:
    with pytest.raises(Invalid, match="no manifests"):
        world().transaction().commit([RewriteManifests()])
    w = world()
    w.transaction().commit([Append(data_files=[A])])
    with pytest.raises(NotFound, match="no branch or tag 'other'"):
        w.transaction().commit([RewriteManifests(branch="other")])


def test_manifests_are_rewritten_again_and_again() -> None:
    w = table_with(A, B)
    w.transaction().commit([RewriteManifests()])
    w.transaction().commit([Append(data_files=[C])])
    w.transaction().commit([RewriteManifests()])
    w.transaction().commit([RewriteManifests()])
    assert w.files() == {"a": 1, "b": 2, "c": 4}
    assert len(load_manifests(w.metadata.current_snapshot, w.store)) == 1
