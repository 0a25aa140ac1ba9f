from __future__ import annotations

from dataclasses import replace

import pytest

from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.changes.evolution import UpgradeFormat
from icebench.engine.commit.changes.merge_append import MergeAppend
from icebench.engine.commit.changes.overwrite import Overwrite
from icebench.engine.commit.changes.rewrite_manifests import RewriteManifests
from icebench.engine.commit.changes.row_delta import RowDelta
from icebench.engine.commit.conflicts import Validation
from icebench.engine.commit.file_refs import ref_to
from icebench.engine.commit.manifests import AddedManifests, load_manifests, write_manifests
from icebench.engine.commit.staged_snapshot import Staged, branch_head, stage_snapshot
from icebench.engine.commit.staging_context import Staging
from icebench.engine.expressions.parse import parse
from icebench.engine.expressions.predicate import TRUE
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.metadata_columns import DELETE_FILE_PATH_ID
from icebench.engine.spec.snapshots import Operation, SnapshotRef
from icebench.engine.spec.updates import RemoveSnapshots, SetSnapshotRef
from icebench.errors import Invalid, ValidationFailed
from tests.unit.engine.commit.tables import BY_DAY, World, data_file, deletes_of, metadata, world

A, B = data_file("a"), data_file("b")
HEAD = 101


def table_with(*files: DataFile, base: TableMetadata | None = None) -> World:
    w = world(base)
    w.transaction().commit([Append(data_files=list(files))])
    return w


def delete_from(*files: DataFile, name: str = "d", **options: object) -> RowDelta:
    validation = Validation(starting_snapshot_id=HEAD, referenced=[ref_to(file) for file in files], **options)  # type: ignore[arg-type]
    return RowDelta(delete_files=[deletes_of(*files, name=name)], validation=validation)


class Rewrite:
    """Removes files and adds others, as a compaction or an overwrite does."""

    def __init__(self, removed: list[DataFile], added: list[DataFile], operation: Operation) -> None:
        self.removed = removed
        self.operation = operation
        self.added = AddedManifests(added, ManifestContent.DATA)

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        snapshot_id = staging.new_snapshot_id()
        entries = [
            ManifestEntry(
                status=EntryStatus.DELETED,
                snapshot_id=snapshot_id,
                sequence_number=1,
                file_sequence_number=1,
                data_file=file,
            )
            for file in self.removed
        ]
        gone = write_manifests(
            entries, base=base, content=ManifestContent.DATA, snapshot_id=snapshot_id, staging=staging
        )
        return stage_snapshot(
            base,
            staging,
            branch="main",
            snapshot_id=snapshot_id,
            operation=self.operation,
            written=[*gone, *self.added.written(base, snapshot_id, staging)],
            kept=[],
            summary={},
        )


def commit_after(w: World, *changes: object, then: RowDelta) -> None:
    """Other commits come in between the preparation of `then` and its commit."""
    for change in changes:
        w.transaction().commit([change])  # type: ignore[list-item]
    w.transaction().commit([then])


def test_position_deletes_are_added() -> None:
    w = table_with(A, B)
    w.transaction().commit([delete_from(A)])
    snapshot = w.metadata.current_snapshot
    assert snapshot is not None
    assert snapshot.operation == "delete"
    expected = {
        "added-delete-files": "1",
        "added-position-delete-files": "1",
        "added-position-deletes": "1",
        "added-files-size": "50",
        "total-data-files": "2",
        "total-records": "20",
        "total-files-size": "250",
        "total-delete-files": "1",
        "total-position-deletes": "1",
        "total-equality-deletes": "0",
        "changed-partition-count": "1",
    }
    assert snapshot.summary == expected
    manifests = load_manifests(snapshot, w.store)
    assert [(m.content, m.sequence_number) for m in manifests] == [
        (ManifestContent.DELETES, 2),
        (ManifestContent.DATA, 1),
    ]


def test_data_and_deletes_together_are_an_overwrite() -> None:
    w = table_with(A)
    change = RowDelta(
        data_files=[B],
        delete_files=[deletes_of(A)],
        validation=Validation(starting_snapshot_id=HEAD, referenced=[ref_to(A)]),
    )
    w.transaction().commit([change])
    assert w.files() == {"a": 1, "b": 2, "deletes": 2}
    w.transaction().commit([RowDelta(data_files=[data_file("c")])])
    assert [s.operation for s in w.metadata.snapshots] == ["append", "overwrite", "append"]


def test_version_1_has_no_deletes_and_version_2_no_vectors() -> None:
    w = table_with(A, base=metadata(1))
    with pytest.raises(Invalid, match="upgrade it to format version 2"):
        w.transaction().commit([delete_from(A)])
    w = table_with(A)
    vector = replace(deletes_of(A), file_format="puffin", content_offset=4, content_size_in_bytes=40)
    change = RowDelta(delete_files=[vector], validation=Validation(starting_snapshot_id=HEAD, referenced=[ref_to(A)]))
    with pytest.raises(Invalid, match="format version 3"):
        w.transaction().commit([change])


def test_version_3_takes_no_position_delete_files() -> None:
    w = table_with(A, base=metadata(3))
    stored = w.stored()
    with pytest.raises(Invalid, match=r"/d\.parquet: format version 3 takes no position-delete files"):
        w.transaction().commit([delete_from(A)])
    assert w.stored() == stored


def test_an_upgrade_to_version_3_between_attempts_refuses_position_delete_files() -> None:
    w = table_with(A)
    w.committer.before = [lambda: w.transaction().commit([Append(data_files=[B]), UpgradeFormat(3)])]
    with pytest.raises(Invalid, match="takes no position-delete files"):
        w.transaction().commit([delete_from(A)])
    assert w.files() == {"a": 1, "b": 2}


def test_an_upgraded_table_keeps_its_position_delete_files() -> None:
    w = table_with(A, B)
    validation = Validation(starting_snapshot_id=HEAD, referenced=[ref_to(A), ref_to(B)])
    of_a, of_b = deletes_of(A, name="of_a"), deletes_of(B, name="of_b")
    w.transaction().commit([RowDelta(delete_files=[of_a, of_b], validation=validation)])
    w.transaction().commit([UpgradeFormat(3)])
    w.transaction().commit([RewriteManifests(by_partition=True)])
    w.transaction().commit([MergeAppend(data_files=[data_file("c")])])
    vector = replace(of_b, file_path="v", file_format="puffin", content_offset=4, content_size_in_bytes=40)
    # The manifest that lists both is written without the one that the vector replaces.
    w.transaction().commit([RowDelta(delete_files=[vector], removed_deletes=[ref_to(of_b)], validation=validation)])
    assert w.files() == {"a": 1, "b": 1, "of_a": 2, "c": 4, "v": 5}


def test_position_deletes_must_say_what_they_point_into() -> None:
    with pytest.raises(Invalid, match="must say which"):
        RowDelta(delete_files=[deletes_of(A)])
    RowDelta(delete_files=[equality(A)])


def equality(like: DataFile, name: str = "eq") -> DataFile:
    made = deletes_of(like, name=name)
    return replace(made, content=FileContent.EQUALITY_DELETES, referenced_data_file=None, equality_ids=(1,))


@pytest.mark.parametrize("operation", ["overwrite", "replace", "delete"])
def test_a_removed_data_file_is_a_failure(operation: Operation) -> None:
    w = table_with(A, B)
    before = set(w.stored())
    rewrite = Rewrite([A], [data_file("a2")], operation)
    with pytest.raises(ValidationFailed, match=r"a\.parquet was removed by snapshot 102"):
        commit_after(w, rewrite, then=delete_from(A))
    assert w.metadata.current_snapshot_id == 102
    assert not [name for name in w.stored() - before if "000000000003" in name]


def test_another_removed_data_file_is_none() -> None:
    w = table_with(A, B)
    commit_after(w, Rewrite([B], [data_file("b2")], "overwrite"), then=delete_from(A))
    assert w.metadata.snapshots[-1].operation == "delete"


def test_a_conflict_found_only_at_the_second_attempt() -> None:
    w = table_with(A, B)
    w.committer.before = [lambda: w.transaction().commit([Rewrite([A], [], "delete")])]
    with pytest.raises(ValidationFailed, match="was removed"):
        w.transaction().commit([delete_from(A)])
    assert "d" not in w.files()


MON, TUE = data_file("mon", day="mon"), data_file("tue", day="tue")
IS_MONDAY = parse("day = 'mon'")


class TestSerializableIsolation:
    def test_rows_that_were_meant_too_fail_it(self) -> None:
        w = table_with(MON, base=metadata(spec=BY_DAY))
        new = Append(data_files=[data_file("new", day="mon")])
        with pytest.raises(ValidationFailed, match=r"snapshot 102 added .*/new\.parquet"):
            commit_after(w, new, then=delete_from(MON, added_rows=IS_MONDAY))

    def test_other_rows_do_not(self) -> None:
        w = table_with(MON, base=metadata(spec=BY_DAY))
        commit_after(w, Append(data_files=[TUE]), then=delete_from(MON, added_rows=IS_MONDAY))
        assert w.files() == {"mon": 1, "tue": 2, "d": 3}

    def test_nor_do_bounds_that_exclude_them(self) -> None:
        w = table_with(A)
        far = replace(B, lower_bounds={1: (50).to_bytes(8, "little")}, upper_bounds={1: (60).to_bytes(8, "little")})
        near = delete_from(A, added_rows=parse("id between 10 and 20"))
        commit_after(w, Append(data_files=[far]), then=near)
        with pytest.raises(ValidationFailed, match=r"/b\.parquet"):
            commit_after(w, then=delete_from(A, added_rows=parse("id between 55 and 70")))

    def test_nor_does_a_compaction_of_other_files(self) -> None:
        w = table_with(A, B)
        compaction = Rewrite([B], [data_file("b2")], "replace")
        commit_after(w, compaction, then=delete_from(A, added_rows=TRUE))

    def test_snapshot_isolation_lets_them_stay(self) -> None:
        w = table_with(A)
        commit_after(w, Append(data_files=[data_file("new")]), then=delete_from(A))
        assert w.files() == {"a": 1, "new": 2, "d": 3}


class TestOtherDeletes:
    def test_two_deletions_agree(self) -> None:
        w = table_with(A)
        commit_after(w, delete_from(A, name="theirs"), then=delete_from(A, name="ours"))
        assert w.files() == {"a": 1, "theirs": 2, "ours": 3}

    def test_an_update_and_a_deletion_of_a_row_do_not(self) -> None:
        w = table_with(A)
        ours = delete_from(A, name="ours", refuse_deletes="all")
        with pytest.raises(ValidationFailed, match=r"snapshot 102 added .*/theirs\.parquet"):
            commit_after(w, delete_from(A, name="theirs"), then=ours)

    def test_deletes_of_another_file_do(self) -> None:
        w = table_with(A, B)
        commit_after(w, delete_from(B, name="theirs"), then=delete_from(A, name="ours", refuse_deletes="all"))

    def test_a_file_is_also_named_by_its_bounds(self) -> None:
        w = table_with(A, B)

        def bounded(file: DataFile) -> RowDelta:
            path = file.file_path.encode()
            bounds = {DELETE_FILE_PATH_ID: path}
            made = replace(
                deletes_of(file, name="theirs"), referenced_data_file=None, lower_bounds=bounds, upper_bounds=bounds
            )
            validation = Validation(starting_snapshot_id=HEAD, referenced=[ref_to(file)])
            return RowDelta(delete_files=[made], validation=validation)

        commit_after(w, bounded(B), then=delete_from(A, name="ours", refuse_deletes="all"))
        w = table_with(A, B)
        with pytest.raises(ValidationFailed):
            commit_after(w, bounded(A), then=delete_from(A, name="ours", refuse_deletes="all"))

    @pytest.mark.parametrize(("day", "fails"), [("mon", True), ("tue", False)])
    def test_deletes_of_unnamed_files_count_by_partition(self, day: str, *, fails: bool) -> None:
        a, b = data_file("a", day="mon"), data_file("b", day=day)
        w = table_with(a, b, base=metadata(spec=BY_DAY))
        theirs = RowDelta(delete_files=[equality(b, "theirs")])
        ours = delete_from(a, name="ours", refuse_deletes="all")
        if fails:
            with pytest.raises(ValidationFailed):
                commit_after(w, theirs, then=ours)
        else:
            commit_after(w, theirs, then=ours)

    def test_an_unpartitioned_equality_delete_is_global(self) -> None:
        w = table_with(A)
        theirs = RowDelta(delete_files=[equality(A, "theirs")])
        with pytest.raises(ValidationFailed, match="theirs"):
            commit_after(w, theirs, then=delete_from(A, name="ours", refuse_deletes="all"))


class TestHistory:
    def test_a_rolled_back_branch_fails(self) -> None:
        w = table_with(A)
        w.transaction().commit([Append(data_files=[B])])
        change = RowDelta(
            delete_files=[deletes_of(B)], validation=Validation(starting_snapshot_id=102, referenced=[ref_to(B)])
        )
        w.committer.apply([], [SetSnapshotRef("main", SnapshotRef(snapshot_id=101, type="branch"))])
        with pytest.raises(ValidationFailed, match=r"snapshot 102.*no longer in the branch"):
            w.transaction().commit([change])

    def test_an_expired_history_fails(self) -> None:
        w = table_with(A)
        for name in ("b", "c", "d"):
            w.transaction().commit([Append(data_files=[data_file(name)])])
        w.committer.apply([], [RemoveSnapshots(frozenset({102}))])
        with pytest.raises(ValidationFailed, match="102 was expired"):
            w.transaction().commit([delete_from(A)])

    def test_an_empty_start_sees_everything(self) -> None:
        w = table_with(A)
        change = RowDelta(
            data_files=[B],
            validation=Validation(starting_snapshot_id=None, added_rows=TRUE),
        )
        with pytest.raises(ValidationFailed, match=r"a\.parquet"):
            w.transaction().commit([change])

    def test_nothing_happened(self) -> None:
        w = table_with(A)
        assert branch_head(w.metadata, "main") == w.metadata.current_snapshot
        w.transaction().commit([delete_from(A, added_rows=TRUE, refuse_deletes="all")])


def test_a_data_file_that_was_removed_before_is_missed_where_the_change_does_not_know_it() -> None:
    w = table_with(A, B)
    w.transaction().commit([Overwrite(removed_data=[ref_to(A)])])
    head = w.metadata.current_snapshot_id
    for file, name in ((A, "a"), (B, "b")):
        validation = Validation(starting_snapshot_id=head, referenced=[ref_to(file)], listed=[ref_to(file)])
        change = RowDelta(delete_files=[deletes_of(file, name=name)], validation=validation)
        if file is A:
            with pytest.raises(ValidationFailed, match="the table has no data file"):
                w.transaction().commit([change])
        else:
            w.transaction().commit([change])
