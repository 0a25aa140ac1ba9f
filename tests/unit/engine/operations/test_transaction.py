from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import icebench
from icebench.engine.operations.row_operations import RowOperations
from icebench.engine.spec.schema_evolution import SchemaUpdate
from icebench.engine.spec.types import DATE, LONG, STRING
from icebench.errors import Invalid, StorageFailed, ValidationFailed

ROWS = pa.schema([pa.field("id", pa.int64()), pa.field("day", pa.string())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "day": [f"d{i}" for i in ids]}, schema=ROWS)


@pytest.fixture(params=["1", "2", "3"])
def table(catalog: icebench.Catalog, request: pytest.FixtureRequest) -> icebench.Table:
    made = catalog.create_table("db.t", ROWS, properties={"format-version": request.param})
    made.append(rows(1, 2, 3))
    return made


def ids(table: icebench.Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def stored(table: icebench.Table) -> set[str]:
    return {info.location for info in table.store.list(table.location) if "metadata.json" not in info.location}


def test_changes_become_visible_together(table: icebench.Table, catalog: icebench.Catalog) -> None:
    before = table.metadata_location
    with table.transaction() as transaction:
        transaction.append(rows(4, 5))
        transaction.delete("id in (1, 4)", "copy-on-write")
        transaction.update_schema(lambda s: s.add_column("n", LONG))
        transaction.append(pa.table({"id": [6], "day": ["x"], "n": [7]}))
        transaction.create_tag("done")
        assert catalog.load_table("db.t").metadata_location == before
        assert len(transaction.metadata.snapshots) == 4
    assert ids(table) == [2, 3, 5, 6]
    assert [s.operation for s in table.snapshots] == ["append", "append", "overwrite", "append"]
    assert len(table.metadata.metadata_log) == 2
    assert table.scan("n = 7").count() == 1
    assert table.refs["done"].snapshot_id == table.metadata.current_snapshot_id
    assert ids(catalog.load_table("db.t")) == [2, 3, 5, 6]


@pytest.mark.parametrize("branch", ["main", "tag"])
def test_a_refused_append_leaves_no_columns(table: icebench.Table, branch: str) -> None:
    table.set_properties({"write.spark.accept-any-schema": "true"})
    table.create_tag("tag")
    table.update_schema(lambda s: s.add_column("on", DATE))
    # A millisecond past midnight is no date; to a tag, no rows are appended, after they were written.
    days = pa.array([1 if branch == "main" else 0], pa.date64())
    before, files = table.schema.fields, stored(table)
    with table.transaction() as transaction:
        transaction.append(rows(4))
        with pytest.raises(Invalid):
            transaction.append(pa.table({"id": [5], "on": days, "new": ["x"]}), branch=branch, merge_schema=True)
        assert transaction.metadata.schema.fields == before
        transaction.append(rows(6))
    assert table.schema.fields == before
    assert ids(table) == [1, 2, 3, 4, 6]
    assert len([each for each in stored(table) - files if each.endswith(".parquet")]) == 2


def test_an_exception_discards_all(table: icebench.Table) -> None:
    before, files = table.metadata_location, stored(table)
    transaction = table.transaction()

    def fail() -> None:
        with transaction:
            transaction.append(rows(4))
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        fail()
    assert (table.refresh().metadata_location, stored(table)) == (before, files)
    with pytest.raises(Invalid, match="over"):
        transaction.append(rows(4))


def test_a_catalog_that_can_not_be_asked_leaves_no_files(
    table: icebench.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = stored(table)
    transaction = table.transaction()
    transaction.append(rows(4))
    transaction.delete("id = 1", "copy-on-write")
    assert stored(table) > files

    def fail(*_: object) -> None:
        raise StorageFailed("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(type(transaction._staged.committer), "load_state", fail)
        with pytest.raises(StorageFailed, match="no answer"):
            transaction.commit()
    assert stored(table) == files
    assert ids(table) == [1, 2, 3]


def test_nothing_is_nothing(table: icebench.Table) -> None:
    before = table.metadata_location
    with table.transaction() as transaction:
        assert transaction.delete("id = 100", "copy-on-write") is None
    assert table.refresh().metadata_location == before


READS: list[Callable[[RowOperations], object]] = [
    lambda t: t.delete("id = 7", "copy-on-write"),
    lambda t: t.delete("id > 6 and day = 'd7'", "copy-on-write"),
    lambda t: t.update("id = 7", {"day": "x"}, "copy-on-write"),
    lambda t: t.overwrite(rows(), "id = 7"),
]


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("comes_first", [True, False])
def test_rows_that_were_looked_for_in_vain_may_not_come_meanwhile(
    table: icebench.Table, catalog: icebench.Catalog, read: Callable[[RowOperations], object], *, comes_first: bool
) -> None:
    """Two transactions that each look for what the other adds: one of them has to fail."""
    transaction, theirs = table.transaction(), catalog.load_table("db.t").transaction()
    if comes_first:
        assert read(transaction) is None
    transaction.append(rows(8))
    if not comes_first:
        assert read(transaction) is None
    assert theirs.delete("id = 8", "copy-on-write") is None
    theirs.append(rows(7))
    theirs.commit()
    with pytest.raises(ValidationFailed, match="may hold rows that this change was meant for"):
        transaction.commit()
    assert ids(table.refresh()) == [1, 2, 3, 7]


@pytest.mark.parametrize("read", READS)
def test_other_rows_may_come_and_so_may_all_under_snapshot_isolation(
    table: icebench.Table, catalog: icebench.Catalog, read: Callable[[RowOperations], object]
) -> None:
    with table.transaction() as transaction:
        read(transaction)
        transaction.append(rows(8))
        catalog.load_table("db.t").append(rows(9))
    assert ids(table.refresh()) == [1, 2, 3, 8, 9]
    table.set_properties({"write.delete.isolation-level": "snapshot", "write.update.isolation-level": "snapshot"})
    with table.transaction() as transaction:
        read(transaction)
        transaction.append(rows(10))
        catalog.load_table("db.t").append(rows(7))
    assert ids(table.refresh()) == [1, 2, 3, 7, 8, 9, 10]


def swap_names(schema: SchemaUpdate) -> None:
    schema.rename_column("day", "old_day")
    schema.add_column("day", STRING)


@pytest.mark.parametrize(
    ("evolve", "message"),
    [
        (lambda s: s.drop_column("day"), "another commit changed a column of the filter, .*'day'.* run the operation"),
        (lambda s: s.rename_column("day", "night"), "another commit changed a column of the filter"),
        (swap_names, "another commit gave 'day' to another column"),
    ],
)
@pytest.mark.parametrize("found", ["d1", "nothing"])
@pytest.mark.parametrize("rows_come", [True, False])
def test_a_column_of_the_filter_that_another_commit_changes_is_a_conflict(
    table: icebench.Table,
    catalog: icebench.Catalog,
    evolve: Callable[[SchemaUpdate], object],
    message: str,
    found: str,
    *,
    rows_come: bool,
) -> None:
    transaction, theirs = table.transaction(), catalog.load_table("db.t")
    transaction.delete(f"day = '{found}'", "copy-on-write")
    transaction.append(rows(8))
    theirs.update_schema(evolve)
    if rows_come:
        theirs.append(pa.table({"id": [9]}))
    with pytest.raises(ValidationFailed, match=message):
        transaction.commit()
    assert ids(table.refresh()) == [1, 2, 3, *([9] if rows_come else [])]


@pytest.mark.parametrize(
    "evolve",
    [
        lambda s: s.drop_column("day"),
        lambda s: s.rename_column("day", "night"),
        lambda s: s.add_column("more", LONG),
        lambda s: s.make_optional("id"),
    ],
)
def test_other_columns_may_change_meanwhile(
    catalog: icebench.Catalog, evolve: Callable[[SchemaUpdate], object]
) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("day", pa.string())])
    table = catalog.create_table("db.t", schema)
    table.append(rows(1, 2, 3).cast(schema))
    with table.transaction() as transaction:
        transaction.delete("id = 2", "copy-on-write")
        catalog.load_table("db.t").update_schema(evolve)
    assert ids(table.refresh()) == [1, 3]


def test_own_rows_and_other_branches_are_no_conflict(table: icebench.Table, catalog: icebench.Catalog) -> None:
    table.create_branch("b")
    with table.transaction() as transaction:
        transaction.delete("id = 7", "copy-on-write")
        transaction.append(rows(7))
        transaction.delete("id = 8", "copy-on-write", branch="b")
        catalog.load_table("db.t").append(rows(6), branch="b")
    assert ids(table.refresh()) == [1, 2, 3, 7]


def test_a_branch_that_was_only_read_is_watched(table: icebench.Table, catalog: icebench.Catalog) -> None:
    table.create_branch("b")
    transaction = table.transaction()
    transaction.delete("id = 7", "copy-on-write", branch="b")
    transaction.append(rows(8))
    catalog.load_table("db.t").append(rows(7), branch="b")
    with pytest.raises(ValidationFailed, match="may hold rows"):
        transaction.commit()


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_a_branch_that_was_read_and_went_back_matters_to_serializable_changes(
    table: icebench.Table, catalog: icebench.Catalog, isolation: str
) -> None:
    first = table.metadata.current_snapshot_id
    table.append(rows(5))
    table.create_branch("b").set_properties({"write.delete.isolation-level": isolation})
    transaction = table.transaction()
    transaction.delete("id = 7", "copy-on-write", branch="b")
    transaction.append(rows(8))
    catalog.load_table("db.t").rollback(snapshot_id=first, branch="b")
    if isolation == "snapshot":
        transaction.commit()
        return
    with pytest.raises(ValidationFailed, match="no longer in the branch"):
        transaction.commit()


def test_a_transaction_that_only_looked_commits_nothing(table: icebench.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    transaction = table.transaction()
    transaction.delete("id = 7", "copy-on-write")

    def refuse(*_: object) -> None:
        raise AssertionError("there is nothing to commit")

    monkeypatch.setattr(type(transaction._staged.committer), "commit", refuse)
    transaction.commit()


def test_rows_that_come_to_main_come_to_a_branch_that_is_not_there(
    table: icebench.Table, catalog: icebench.Catalog
) -> None:
    transaction = table.transaction()
    transaction.delete("id = 7", "copy-on-write", branch="new")
    transaction.append(rows(8), branch="other")
    catalog.load_table("db.t").append(rows(7))
    with pytest.raises(ValidationFailed, match="may hold rows"):
        transaction.commit()


def test_appends_of_others_stay_and_numbers_are_given_anew(table: icebench.Table, catalog: icebench.Catalog) -> None:
    theirs = catalog.load_table("db.t")
    with table.transaction() as transaction:
        transaction.append(rows(4, 5))
        transaction.delete("id = 4", "copy-on-write")
        theirs.append(rows(50))
        if table.metadata.format_version > 1:
            theirs.delete("id = 1", "merge-on-read")
    assert ids(table) == ([1] if table.metadata.format_version == 1 else []) + [2, 3, 5, 50]
    if table.metadata.format_version == 1:
        return
    plan = table.scan().plan().files
    numbers = sorted(zip(plan["data_sequence_number"].to_pylist(), plan["record_count"].to_pylist(), strict=True))
    assert numbers == [(1, 3), (2, 1), (5, 1)]
    if table.metadata.format_version == 3:
        row_ids = table.scan(columns=["id", "_row_id"]).to_arrow()["_row_id"].to_pylist()
        assert len(set(row_ids)) == len(row_ids)


def test_rows_of_a_transaction_are_newer_than_what_others_delete_by_key_meanwhile(catalog: icebench.Catalog) -> None:
    made = catalog.create_table(
        "db.t", ROWS, properties={"format-version": "2", "commit.manifest.min-count-to-merge": "5"}
    )
    for n in range(3):
        made.append(rows(n))
    stream = catalog.load_table("db.t").keyed_stream(["id"])
    with made.transaction() as transaction:
        # The second append merges the manifest of the first, which has a preliminary sequence number.
        transaction.append(rows(10))
        transaction.append(rows(11))
        for _ in range(3):
            stream.delete(pa.table({"id": [10, 11]}))
            stream.commit()
    assert ids(made) == [0, 1, 2, 10, 11]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("change", ["update", "upsert", "delete"])
def test_rows_that_a_transaction_adds_and_changes_have_ids_of_their_own(
    catalog: icebench.Catalog, change: str, mode: Any
) -> None:
    made = catalog.create_table("db.t", ROWS, properties={"format-version": "3"})
    made.append(rows(1, 2))
    before = lineage(made)
    with made.transaction() as transaction:
        transaction.append(rows(4, 5, 6))
        if change == "update":
            transaction.update("id in (2, 5)", {"day": "new"}, mode)
        elif change == "upsert":
            transaction.upsert(pa.table({"id": [2, 5, 7], "day": ["new"] * 3}, schema=ROWS), ["id"], mode)
        else:
            transaction.delete("id in (2, 5)", mode)
        transaction.update("id = 1", {"day": "new"}, mode)
        transaction.delete("id = 6", mode)
        catalog.load_table("db.t").append(rows(10, 11, 12, 13, 14, 15))
    after = lineage(made)
    expected = {1, 2, 4, 5, 10, 11, 12, 13, 14, 15} | ({7} if change == "upsert" else set())
    assert after.keys() == (expected - {2, 5} if change == "delete" else expected)
    row_ids = [row_id for row_id, _ in after.values()]
    assert len(set(row_ids)) == len(row_ids)
    assert max(row_ids) < (made.metadata.next_row_id or 0)
    kept = after.keys() & before.keys()
    assert {i: after[i][0] for i in kept} == {i: before[i][0] for i in kept}
    # The others' commit took number 2, which was the transaction's first.
    assert {after[i][1] for i in range(10, 16)} == {2}
    assert min(after[i][1] for i in after.keys() - set(range(10, 16))) > 2


def lineage(table: icebench.Table) -> dict[int, tuple[int, int]]:
    """Row ids and numbers of the last update."""
    read = table.scan(columns=["id", "_row_id", "_last_updated_sequence_number"]).to_arrow()
    return {i: (row_id, number) for i, row_id, number in zip(*(c.to_pylist() for c in read.columns), strict=True)}


def test_what_others_add_is_looked_at_from_the_beginning(table: icebench.Table, catalog: icebench.Catalog) -> None:
    theirs = catalog.load_table("db.t")
    files = stored(table)
    transaction = table.transaction()
    transaction.append(rows(4))
    theirs.append(rows(2))
    transaction.delete("id = 2", "copy-on-write")
    files |= stored(theirs) - {f for f in stored(theirs) if f not in files and "data/" in f}
    with pytest.raises(ValidationFailed, match="may hold rows"):
        transaction.commit()
    assert ids(table.refresh()) == [1, 2, 2, 3]


def test_columns_that_another_writer_numbers_first(table: icebench.Table, catalog: icebench.Catalog) -> None:
    theirs = catalog.load_table("db.t")
    transaction = table.transaction()
    transaction.update_schema(lambda s: s.add_column("ours", LONG))
    transaction.append(pa.table({"id": [4], "ours": [1]}))
    theirs.update_schema(lambda s: s.add_column("theirs", STRING))
    with pytest.raises(ValidationFailed, match="'ours' another id"):
        transaction.commit()
    assert ids(table.refresh()) == [1, 2, 3]


def test_transactions_end_once(table: icebench.Table) -> None:
    transaction = table.transaction()
    transaction.append(rows(9))
    transaction.commit()
    for again in (transaction.commit, transaction.discard):
        with pytest.raises(Invalid, match="over"):
            again()
    assert ids(table) == [1, 2, 3, 9]


def moved_back(transaction: RowOperations, first: int) -> str:
    transaction.rollback(snapshot_id=first)  # type: ignore[attr-defined]
    return "main"


def made_at_an_older_snapshot(transaction: RowOperations, first: int) -> str:
    transaction.create_branch("b", snapshot_id=first)  # type: ignore[attr-defined]
    return "b"


def moved_forward(transaction: RowOperations, first: int) -> str:
    transaction.fast_forward("old", "main")  # type: ignore[attr-defined]
    return "old"


MOVES = [moved_back, made_at_an_older_snapshot, moved_forward]


@pytest.mark.parametrize("move", MOVES)
def test_rows_are_changed_where_the_transaction_moved_a_branch(
    table: icebench.Table, move: Callable[[RowOperations, int], str]
) -> None:
    first = table.metadata.current_snapshot_id
    assert first is not None
    table.create_branch("old", snapshot_id=first)
    table.append(rows(4))
    with table.transaction() as transaction:
        branch = move(transaction, first)
        transaction.delete("id = 1", "copy-on-write", branch=branch)
    expected = [2, 3, 4] if move is moved_forward else [2, 3]
    assert sorted(table.scan(ref=branch).to_arrow()["id"].to_pylist()) == expected


def test_what_others_add_to_where_a_branch_was_moved_is_a_conflict(
    table: icebench.Table, catalog: icebench.Catalog
) -> None:
    first = table.metadata.current_snapshot_id
    table.create_branch("old", snapshot_id=first)
    table.append(rows(4))
    transaction = table.transaction()
    transaction.fast_forward("old", "main")
    transaction.delete("id >= 1", "copy-on-write", branch="old")
    catalog.load_table("db.t").append(rows(5))
    with pytest.raises(ValidationFailed, match="may hold rows"):
        transaction.commit()
