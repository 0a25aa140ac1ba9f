from __future__ import annotations

import pyarrow as pa
import pytest

import icebench
from icebench.engine.operations import row_writer as operation
from icebench.engine.operations.row_changes import Mode
from icebench.engine.read.matches import matched_rows
from icebench.engine.runtime.counters import COMMIT_ATTEMPTS, FILES_WRITTEN, Counters
from icebench.engine.spec.updates import UpgradeFormatVersion
from icebench.errors import Invalid, Unsupported, ValidationFailed

ROWS = pa.schema([pa.field("id", pa.int64()), pa.field("day", pa.int32())])


def table(catalog: icebench.Catalog, rows: int = 10, **properties: str) -> icebench.Table:
    named = {name.replace("_", "-"): value for name, value in properties.items()}
    made = catalog.create_table("db.t", ROWS, properties=named)
    made.append(numbers(0, rows))
    return made


def numbers(start: int, stop: int) -> pa.Table:
    return pa.table({"id": range(start, stop), "day": [n // 5 for n in range(start, stop)]}, schema=ROWS)


def ids(made: icebench.Table) -> list[int]:
    found: list[int] = made.scan(columns=["id"]).to_arrow()["id"].to_pylist()
    return sorted(found)


def stored(made: icebench.Table) -> set[str]:
    return {info.location for info in made.store.list(made.location)}


class TestMode:
    def test_the_property_says_it(self, catalog: icebench.Catalog) -> None:
        made = catalog.create_table("db.t", ROWS, properties={"write.delete.mode": "merge-on-read"})
        made.append(numbers(0, 10))
        snapshot = made.delete("id = 1")
        assert snapshot is not None
        assert snapshot.summary["added-position-deletes"] == "1"
        again = made.delete("id = 2", "copy-on-write")
        assert again is not None
        assert again.summary["deleted-data-files"] == "1"

    def test_another_word_is_refused(self, catalog: icebench.Catalog) -> None:
        with pytest.raises(Invalid, match="'quickly' is neither"):
            table(catalog).delete("id = 1", "quickly")  # type: ignore[arg-type]

    def test_version_1_has_no_delete_files(self, catalog: icebench.Catalog) -> None:
        made = table(catalog, format_version="1")
        with pytest.raises(Unsupported, match="format version 1"):
            made.delete("id = 1", "merge-on-read")
        made.delete("id = 1", "copy-on-write")
        assert ids(made) == [0, *range(2, 10)]


def test_nothing_matched_is_no_snapshot(catalog: icebench.Catalog) -> None:
    made = table(catalog)
    before = stored(made), made.metadata_location
    assert made.delete("id > 100", "merge-on-read") is None
    assert made.delete("day is null", "copy-on-write") is None
    assert (stored(made), made.metadata_location) == before


@pytest.mark.parametrize("version", ["2", "3"])
def test_files_that_are_written_again_keep_deletes_of_rows_outside_the_filter(
    catalog: icebench.Catalog, version: str
) -> None:
    made = table(catalog, format_version=version)
    stream = made.keyed_stream(["id"])
    stream.delete(made.scan("id in (8, 9)", columns=["id"]).to_arrow())
    stream.commit()
    made.delete("id = 1", "copy-on-write")
    assert ids(made) == [0, *range(2, 8)]
    stream.delete(made.scan("id = 7", columns=["id"]).to_arrow())
    stream.commit()
    made.update("id = 2", {"day": 77}, "copy-on-write")
    assert ids(made) == [0, *range(2, 7)]


def test_an_empty_table(catalog: icebench.Catalog) -> None:
    made = catalog.create_table("db.t", ROWS)
    assert made.delete("id > 0", "merge-on-read") is None


def test_a_file_without_remaining_rows_goes(catalog: icebench.Catalog) -> None:
    made = table(catalog)
    made.append(numbers(10, 20))
    for rows in ("id < 4", "id < 10"):
        snapshot = made.delete(rows, "merge-on-read")
    assert snapshot is not None
    assert snapshot.summary["deleted-data-files"] == "1"
    assert snapshot.summary["removed-delete-files"] == "1"
    assert snapshot.summary["total-delete-files"] == "0"
    assert ids(made) == list(range(10, 20))
    plan = made.scan().plan()
    assert plan.files.num_rows == 1
    assert plan.files["deletes"].to_pylist() == [[]]


def test_vectors_replace_each_other(catalog: icebench.Catalog) -> None:
    made = table(catalog, format_version="3")
    for n in range(5):
        made.delete(f"id = {n}", "merge-on-read")
    (deletes,) = made.scan().plan().files["deletes"].to_pylist()
    assert [(d["file_format"], d["record_count"]) for d in deletes] == [("puffin", 5)]
    assert ids(made) == list(range(5, 10))
    head = made.current_snapshot
    assert head is not None
    assert head.summary["total-delete-files"] == "1"
    assert head.summary["total-position-deletes"] == "5"


def test_position_deletes_of_version_2_are_replaced_by_vectors_after_an_upgrade(catalog: icebench.Catalog) -> None:
    made = table(catalog)
    made.delete("id = 0", "merge-on-read")
    upgraded = catalog.load_table("db.t")
    upgrade(upgraded)
    upgraded.refresh()
    upgraded.delete("id = 1", "merge-on-read")
    (deletes,) = upgraded.scan().plan().files["deletes"].to_pylist()
    assert [(d["file_format"], d["record_count"]) for d in deletes] == [("puffin", 2)]
    assert ids(upgraded) == list(range(2, 10))


def upgrade(made: icebench.Table) -> None:
    committer = made._committer
    assert committer is not None
    committer.commit(made._identifier, committer.load_state(made._identifier), [], [UpgradeFormatVersion(3)])


def test_the_snapshot_says_who(catalog: icebench.Catalog) -> None:
    counters = Counters()
    made = table(catalog)
    snapshot = made.delete("id = 1", "merge-on-read", snapshot_properties={"job": "42"}, counters=counters)
    assert snapshot is not None
    assert snapshot.summary["job"] == "42"
    assert counters[COMMIT_ATTEMPTS] == 1
    # A delete file, a manifest and a manifest list.
    assert counters[FILES_WRITTEN] == 3


def test_branches(catalog: icebench.Catalog) -> None:
    made = table(catalog)
    made.append(numbers(10, 12), branch="audit")
    made.delete("id < 5", "merge-on-read", branch="audit")
    made.delete("id >= 5", "copy-on-write", branch="main")
    assert ids(made) == [0, 1, 2, 3, 4]
    read = made.scan(columns=["id"], ref="audit").to_arrow()["id"].to_pylist()
    assert sorted(read) == [5, 6, 7, 8, 9, 10, 11]


def test_a_new_branch_starts_from_main(catalog: icebench.Catalog) -> None:
    made = table(catalog)
    made.delete("id < 9", "merge-on-read", branch="small")
    assert ids(made) == list(range(10))
    assert made.scan(ref="small").count() == 1


class TestOthersInBetween:
    """Another commit lands between the scan and the commit of a delete."""

    def delete_with(
        self, made: icebench.Table, between: list[object], monkeypatch: pytest.MonkeyPatch, rows: str, mode: str
    ) -> None:
        found = matched_rows
        pending = list(between)

        def then(*args: object, **options: object) -> object:
            result = list(found(*args, **options))  # type: ignore[arg-type]
            while pending:
                pending.pop(0)()  # type: ignore[operator]
            return result

        monkeypatch.setattr(operation, "matched_rows", then)
        made.delete(rows, mode)  # type: ignore[arg-type]

    @pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
    def test_rows_that_match_fail_it(
        self, catalog: icebench.Catalog, monkeypatch: pytest.MonkeyPatch, mode: str
    ) -> None:
        made, theirs = table(catalog), catalog.load_table("db.t")
        before = stored(made)
        with pytest.raises(ValidationFailed, match="may hold rows"):
            self.delete_with(made, [lambda: theirs.append(numbers(3, 5))], monkeypatch, "id = 4", mode)
        assert ids(theirs.refresh()) == sorted([*range(10), 3, 4])
        left = stored(made) - before
        assert not [name for name in left if "deletes" in name]
        assert len([name for name in left if name.endswith(".parquet")]) == 1

    @pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
    def test_other_rows_stay(self, catalog: icebench.Catalog, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
        made, theirs = table(catalog), catalog.load_table("db.t")
        self.delete_with(made, [lambda: theirs.append(numbers(50, 52))], monkeypatch, "id = 4", mode)
        assert ids(made) == [0, 1, 2, 3, 5, 6, 7, 8, 9, 50, 51]

    @pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
    def test_with_snapshot_isolation_they_stay_even_when_they_match(
        self, catalog: icebench.Catalog, monkeypatch: pytest.MonkeyPatch, mode: str
    ) -> None:
        made = catalog.create_table("db.t", ROWS, properties={"write.delete.isolation-level": "snapshot"})
        made.append(numbers(0, 10))
        theirs = catalog.load_table("db.t")
        self.delete_with(made, [lambda: theirs.append(numbers(4, 5))], monkeypatch, "id = 4", mode)
        assert ids(made) == list(range(10))

    def test_deletions_of_the_same_row_agree(self, catalog: icebench.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
        made, theirs = table(catalog), catalog.load_table("db.t")
        between = [lambda: theirs.delete("id < 5", "merge-on-read")]
        self.delete_with(made, [*between], monkeypatch, "id = 4", "merge-on-read")
        assert ids(made) == [5, 6, 7, 8, 9]

    @pytest.mark.parametrize(
        ("ours", "theirs_mode", "version"),
        [
            ("copy-on-write", "merge-on-read", "2"),
            ("merge-on-read", "copy-on-write", "2"),
            ("copy-on-write", "copy-on-write", "2"),
            ("merge-on-read", "merge-on-read", "3"),
            ("copy-on-write", "merge-on-read", "3"),
        ],
    )
    def test_deleted_rows_never_come_back(
        self, catalog: icebench.Catalog, monkeypatch: pytest.MonkeyPatch, ours: str, theirs_mode: str, version: str
    ) -> None:
        made, theirs = table(catalog, format_version=version), catalog.load_table("db.t")
        between = [lambda: theirs.delete("id = 7", theirs_mode)]  # type: ignore[arg-type]
        with pytest.raises(ValidationFailed):
            self.delete_with(made, [*between], monkeypatch, "id = 4", ours)
        assert ids(made.refresh()) == [0, 1, 2, 3, 4, 5, 6, 8, 9]
        made.delete("id = 4", ours)  # type: ignore[arg-type]
        assert ids(made) == [0, 1, 2, 3, 5, 6, 8, 9]


class TestMergedPositionDeletes:
    """Version 2: one position-delete file a data file, however often rows of it are deleted."""

    def test_a_file_of_its_own_is_replaced(self, catalog: icebench.Catalog) -> None:
        made = table(catalog)
        for n in range(5):
            snapshot = made.delete(f"id = {n}", "merge-on-read")
        assert snapshot is not None
        counted = {name: snapshot.summary.get(name) for name in ("added-position-deletes", "removed-position-deletes")}
        assert counted == {"added-position-deletes": "5", "removed-position-deletes": "4"}
        assert (snapshot.summary["total-delete-files"], snapshot.summary["total-position-deletes"]) == ("1", "5")
        (deletes,) = made.scan().plan().files["deletes"].to_pylist()
        assert [each["record_count"] for each in deletes] == [5]
        assert ids(made) == list(range(5, 10))
        before = made.scan(columns=["id"], snapshot_id=made.snapshots[3].snapshot_id).to_arrow()["id"].to_pylist()
        assert sorted(before) == list(range(3, 10))

    def test_a_file_of_the_partition_stays(self, catalog: icebench.Catalog) -> None:
        made = table(catalog)
        made.append(numbers(10, 20))
        made.set_properties({"write.delete.granularity": "partition"})
        made.delete("id in (0, 10)", "merge-on-read")
        made.set_properties({"write.delete.granularity": "file"})
        for n in (1, 2):
            snapshot = made.delete(f"id = {n}", "merge-on-read")
        assert snapshot is not None
        assert (snapshot.summary["total-delete-files"], snapshot.summary["total-position-deletes"]) == ("2", "4")
        assert ids(made) == [*range(3, 10), *range(11, 20)]
        made.set_properties({"write.delete.granularity": "partition"})
        snapshot = made.delete("id = 3", "merge-on-read")
        assert snapshot is not None
        assert (snapshot.summary.get("removed-delete-files"), snapshot.summary["total-delete-files"]) == (None, "3")
        assert ids(made) == [*range(4, 10), *range(11, 20)]

    def test_updates_and_transactions_too(self, catalog: icebench.Catalog) -> None:
        made = table(catalog)
        made.delete("id = 0", "merge-on-read")
        made.update("id = 1", {"day": 7}, "merge-on-read")
        with made.transaction() as changes:
            changes.delete("id = 2", "merge-on-read")
            changes.delete("id = 3", "merge-on-read")
        counts = [f["record_count"] for f in made.inspect.files().to_pylist() if f["content"] == 1]
        assert counts == [4]
        assert ids(made) == [1, *range(4, 10)]

    def test_two_that_merge_the_same_file_meanwhile_agree(self, catalog: icebench.Catalog) -> None:
        made, theirs = table(catalog), catalog.load_table("db.t")
        made.delete("id = 0", "merge-on-read")
        late = made.transaction()
        late.delete("id = 1", "merge-on-read")
        theirs.delete("id = 2", "merge-on-read")
        late.commit()
        assert ids(made.refresh()) == list(range(3, 10))
        assert len(made.inspect.delete_files()) == 2
        made.delete("id = 3", "merge-on-read")
        assert [each["record_count"] for each in made.inspect.delete_files().to_pylist()] == [4]

    def test_a_rewrite_meanwhile_fails_it(self, catalog: icebench.Catalog) -> None:
        made, theirs = table(catalog), catalog.load_table("db.t")
        made.delete("id = 0", "merge-on-read")
        late = made.transaction()
        late.delete("id = 1", "merge-on-read")
        theirs.maintenance.rewrite_data_files(rewrite_all=True)
        with pytest.raises(ValidationFailed, match="was removed"):
            late.commit()
        assert ids(made.refresh()) == list(range(1, 10))


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_an_upgrade_meanwhile_fails_what_was_written_for_version_2(catalog: icebench.Catalog, mode: Mode) -> None:
    made = table(catalog)
    late = made.transaction()
    late.delete("id = 1", mode)
    other = catalog.load_table("db.t")
    other.upgrade_format(3)
    other.append(numbers(10, 11))
    with pytest.raises(ValidationFailed, match="was upgraded from format version 2 to 3"):
        late.commit()
    assert ids(made.refresh()) == list(range(11))


def test_rows_that_get_ids_meanwhile_are_not_written_again_without(catalog: icebench.Catalog) -> None:
    made = table(catalog)
    other = catalog.load_table("db.t")
    other.upgrade_format(3)
    made.refresh()
    # Both were made before any row had an id.
    rewrites, marks = made.transaction(), made.transaction()
    rewrites.delete("id = 1", "copy-on-write")
    marks.delete("id = 1", "merge-on-read")
    other.refresh().append(other.scan("id = 0").to_arrow())
    with pytest.raises(ValidationFailed, match="gave ids to rows"):
        rewrites.commit()
    before = other.scan(columns=["id", "_row_id"]).to_arrow().to_pylist()
    marks.commit()
    after = made.scan(columns=["id", "_row_id"]).to_arrow().to_pylist()
    assert sorted(after, key=str) == sorted((row for row in before if row["id"] != 1), key=str)
