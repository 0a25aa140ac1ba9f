from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.changes.overwrite import Overwrite
from icebench.engine.commit.changes.row_delta import RowDelta
from icebench.engine.commit.conflicts import Validation
from icebench.engine.commit.file_refs import FileRef, ref_to
from icebench.engine.commit.manifests import load_manifests
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.inheritance import apply_inheritance
from icebench.engine.spec.manifest import EntryStatus, ManifestEntry
from icebench.engine.spec.updates import UpgradeFormatVersion
from icebench.errors import Invalid, ValidationFailed
from tests.unit.engine.commit.tables import BY_DAY, World, data_file, deletes_of, metadata, world

A, B, C = data_file("a"), data_file("b"), data_file("c")


def table_with(*files: DataFile, format_version: int = 2) -> World:
    w = world(metadata(format_version))
    for file in files:
        w.transaction().commit([Append(data_files=[file])])
    return w


def overwrite(w: World, removed: list[DataFile], added: list[DataFile], **options: object) -> Overwrite:
    refs = [ref_to(file) for file in removed]
    validation = Validation(starting_snapshot_id=w.metadata.current_snapshot_id, referenced=refs, refuse_deletes="all")
    return Overwrite(data_files=added, removed_data=refs, validation=validation, **options)  # type: ignore[arg-type]


def entries(w: World) -> dict[str, ManifestEntry]:
    found = {}
    for manifest in load_manifests(w.metadata.current_snapshot, w.store):
        for entry in apply_inheritance(decode_entries(w.store.read(manifest.manifest_path)), manifest):
            found[entry.data_file.file_path.rpartition("/")[2].removesuffix(".parquet")] = entry
    return found


def test_files_are_replaced() -> None:
    w = world()
    w.transaction().commit([Append(data_files=[A, B])])
    w.transaction().commit([Append(data_files=[C])])
    w.transaction().commit([overwrite(w, [A], [data_file("a2", rows=4)])])
    assert w.files() == {"a2": 3, "b": 1, "c": 2}
    found = entries(w)
    assert [(found[n].status, found[n].snapshot_id, found[n].sequence_number) for n in ("a", "b", "c", "a2")] == [
        (EntryStatus.DELETED, 103, 1),
        (EntryStatus.EXISTING, 101, 1),
        (EntryStatus.ADDED, 102, 2),
        (EntryStatus.ADDED, 103, 3),
    ]
    snapshot = w.metadata.current_snapshot
    assert snapshot is not None
    assert snapshot.operation == "overwrite"
    assert snapshot.summary["deleted-records"] == "10"
    assert snapshot.summary["added-records"] == "4"
    assert snapshot.summary["total-records"] == "24"
    assert snapshot.summary["total-data-files"] == "3"


def test_manifests_without_the_files_are_kept() -> None:
    w = table_with(A, B, C)
    before = {m.manifest_path for m in load_manifests(w.metadata.current_snapshot, w.store)}
    w.transaction().commit([overwrite(w, [B], [])])
    after = {m.manifest_path for m in load_manifests(w.metadata.current_snapshot, w.store)}
    assert len(before & after) == 2
    assert w.metadata.snapshots[-1].operation == "delete"
    assert w.files() == {"a": 1, "c": 3}


def test_deleted_entries_are_dropped_by_the_next_snapshot() -> None:
    w = table_with(A, B)
    w.transaction().commit([overwrite(w, [A], [])])
    assert entries(w)["a"].status is EntryStatus.DELETED
    w.transaction().commit([Append(data_files=[C])])
    assert "a" not in entries(w)
    # Nor does it come back when its manifest is rewritten.
    w = world()
    w.transaction().commit([Append(data_files=[A, B, C])])
    w.transaction().commit([overwrite(w, [A], [])])
    w.transaction().commit([overwrite(w, [B], [])])
    assert {name: e.status.name for name, e in entries(w).items()} == {"b": "DELETED", "c": "EXISTING"}


def test_everything() -> None:
    w = table_with(A, B)
    w.transaction().commit([overwrite(w, [A, B], [])])
    assert w.files() == {}
    assert w.metadata.snapshots[-1].summary["total-records"] == "0"


def test_a_file_that_is_gone_fails() -> None:
    w = table_with(A, B)
    change = overwrite(w, [A], [C])
    w.transaction().commit([overwrite(w, [A], [data_file("theirs")])])
    with pytest.raises(ValidationFailed, match=r"a\.parquet"):
        w.transaction().commit([change])
    assert w.files() == {"b": 2, "theirs": 3}


def test_or_was_never_there() -> None:
    w = table_with(A)
    with pytest.raises(ValidationFailed, match=r"b\.parquet and 1 more not in the table"):
        w.transaction().commit([overwrite(w, [A, B, C], [])])
    assert w.files() == {"a": 1}


def test_appends_in_between_stay_and_rewritten_manifests_serve_again() -> None:
    w = table_with(A, B)
    w.committer.before = [lambda: w.transaction().commit([Append(data_files=[C])])]
    transaction = w.transaction()
    ours = w.last
    transaction.commit([overwrite(w, [A], [data_file("a2")])])
    assert w.files() == {"a2": 4, "b": 2, "c": 3}
    assert ours is not None
    assert len([name for name in ours.written if "-m" in name]) == 2


def test_a_delete_in_between_fails_it() -> None:
    # The rows that it deleted would come back in the rewritten file.
    w = table_with(A)
    change = overwrite(w, [A], [data_file("a2")])
    theirs = Validation(starting_snapshot_id=101, referenced=[ref_to(A)])
    w.transaction().commit([RowDelta(delete_files=[deletes_of(A)], validation=theirs)])
    with pytest.raises(ValidationFailed, match="may delete rows"):
        w.transaction().commit([change])


def test_rewriting_rows_without_looking_at_deletes_is_refused() -> None:
    with pytest.raises(Invalid, match="refuse concurrent deletes"):
        Overwrite(data_files=[B], removed_data=[ref_to(A)])
    Overwrite(removed_data=[ref_to(A)])


def test_deletes_go_with_their_file() -> None:
    w = table_with(A, B)
    deletes = deletes_of(A, name="d")
    validation = Validation(starting_snapshot_id=102, referenced=[ref_to(A)])
    w.transaction().commit([RowDelta(delete_files=[deletes], validation=validation)])
    w.transaction().commit([overwrite(w, [A], [], removed_deletes=[ref_to(deletes)])])
    assert w.files() == {"b": 2}
    summary = w.metadata.snapshots[-1].summary
    assert summary["removed-delete-files"] == "1"
    assert summary["total-delete-files"] == "0"
    assert summary["total-position-deletes"] == "0"


def vector(name: str, referenced: DataFile, offset: int) -> DataFile:
    return replace(
        deletes_of(referenced, name=name),
        file_path=f"memory://wh/t/data/{name}.puffin",
        file_format="puffin",
        content_offset=offset,
        content_size_in_bytes=40,
    )


def test_vectors_in_one_file_are_distinguished_by_their_offset() -> None:
    w = table_with(A, B, format_version=3)
    of_a, of_b = vector("v", A, 4), vector("v", B, 44)
    validation = Validation(starting_snapshot_id=102, referenced=[ref_to(A), ref_to(B)])
    w.transaction().commit([RowDelta(delete_files=[of_a, of_b], validation=validation)])
    newer = Validation(starting_snapshot_id=103, referenced=[ref_to(A)], refuse_deletes="positions")
    change = RowDelta(delete_files=[vector("w", A, 4)], removed_deletes=[ref_to(of_a)], validation=newer)
    w.transaction().commit([change])
    live = [
        (e.data_file.file_path.rpartition("/")[2], e.data_file.content_offset, e.sequence_number)
        for m in load_manifests(w.metadata.current_snapshot, w.store)
        for e in apply_inheritance(decode_entries(w.store.read(m.manifest_path)), m)
        if e.status is not EntryStatus.DELETED and e.data_file.file_format == "puffin"
    ]
    assert sorted(live) == [("v.puffin", 44, 3), ("w.puffin", 4, 4)]
    assert w.metadata.snapshots[-1].summary["removed-dvs"] == "1"


def test_two_vectors_of_one_file_at_once_conflict() -> None:
    w = table_with(A, format_version=3)

    def change(name: str) -> RowDelta:
        newest = Validation(starting_snapshot_id=101, referenced=[ref_to(A)], refuse_deletes="positions")
        return RowDelta(delete_files=[vector(name, A, 4)], validation=newest)

    ours = change("ours")
    w.transaction().commit([change("theirs")])
    with pytest.raises(ValidationFailed, match="theirs"):
        w.transaction().commit([ours])


def test_row_ids_survive_a_rewritten_manifest() -> None:
    w = world(metadata(3))
    w.transaction().commit([Append(data_files=[data_file("a", rows=10), data_file("b", rows=5)])])
    w.transaction().commit([overwrite(w, [data_file("a")], [])])
    assert entries(w)["b"].data_file.first_row_id == 10


def test_an_upgrade_between_attempts_writes_rewritten_manifests_again() -> None:
    w = table_with(A, B)
    w.committer.before = [lambda: w.committer.apply([], [UpgradeFormatVersion(3)])]
    w.transaction().commit([overwrite(w, [A], [C])])
    assert w.files() == {"b": 2, "c": 3}


def test_data_sequence_numbers_may_be_kept() -> None:
    w = table_with(A, B)
    change = overwrite(w, [A], [data_file("a2")], data_sequence_number=1, operation="replace")
    w.transaction().commit([change])
    assert w.files() == {"a2": 1, "b": 2}
    found = entries(w)["a2"]
    assert (found.sequence_number, found.file_sequence_number) == (1, 3)
    assert w.metadata.snapshots[-1].operation == "replace"


@given(st.lists(st.sampled_from(["mon", "tue", "wed", "thu"]), min_size=1, max_size=8), st.data())
def test_only_manifests_that_may_list_a_file_are_read(days: list[str], data: st.DataObject) -> None:
    w = world(metadata(spec=BY_DAY))
    files = [data_file(f"f{n}", day=day) for n, day in enumerate(days)]
    for file in files:
        w.transaction().commit([Append(data_files=[file])])
    removed = [files[n] for n in sorted(data.draw(st.sets(st.integers(0, len(files) - 1), min_size=1)))]
    known = data.draw(st.booleans())
    refs = [replace(ref_to(file), partition=file.partition if known else None) for file in removed]
    w.transaction().commit([Overwrite(removed_data=refs)])
    assert set(w.files()) == {f"f{n}" for n, file in enumerate(files) if file not in removed}


def test_a_reference_names_its_file() -> None:
    assert ref_to(A) == FileRef(file_path=A.file_path)
    assert ref_to(vector("v", A, 4)).key == ("memory://wh/t/data/v.puffin", 4)
    # Other delete files may carry an offset of no meaning.
    assert ref_to(replace(deletes_of(A), content_offset=9)).content_offset is None


def test_an_upgrade_in_between_writes_manifests_without_the_file_again() -> None:
    w = world(metadata(1))
    w.transaction().commit([Append(data_files=[A, B])])
    w.committer.compares = True
    w.committer.before = [lambda: w.committer.apply([], [UpgradeFormatVersion(2)])]
    w.transaction().commit([overwrite(w, [A], [])])
    # A manifest of version 1 has no numbers, which version 2 wants of files that were there before.
    found = entries(w)
    assert {name: entry.sequence_number for name, entry in found.items() if entry.status is EntryStatus.EXISTING} == {
        "b": 0
    }
