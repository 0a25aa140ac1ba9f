from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icebench
from icebench.engine.commit.changes.row_delta import RowDelta
from icebench.engine.commit.commit_loop import Transaction
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.conflicts import Validation
from icebench.engine.commit.file_refs import ref_of, refs_of_deletes
from icebench.engine.commit.retry import Waiting
from icebench.engine.commit.staging_context import Staging
from icebench.engine.operations.row_changes import Mode
from icebench.engine.plan.scan import table_scan
from icebench.engine.read.plans import planned_files
from icebench.engine.runtime.counters import ROW_GROUPS_READ, ROW_GROUPS_SKIPPED, ROWS_DECODED
from icebench.engine.table import Table
from icebench.errors import Invalid, NotFound

ROWS = pa.schema([pa.field("id", pa.int64()), pa.field("data", pa.string())])
Change = tuple[str, int, Any, Any]


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[icebench.Catalog]:
    opened = icebench.load_catalog(f"{tmp_path}/wh")
    yield opened
    opened.close()


def table(catalog: icebench.Catalog, version: int = 2, **properties: str) -> icebench.Table:
    made = catalog.create_table("db.t", ROWS, properties={"format-version": str(version), **properties})
    made.append(rows((1, "a"), (2, "b"), (3, "c")))
    return made


def rows(*values: tuple[int, str | None]) -> pa.Table:
    return pa.table({"id": [v[0] for v in values], "data": [v[1] for v in values]}, schema=ROWS)


def changes(table: icebench.Table, **options: Any) -> list[Change]:
    """Type, ordinal and values, in order; the first snapshot left out."""
    options.setdefault("from_snapshot_id", table.snapshots[0].snapshot_id)
    found = table.changelog_scan(**options).to_arrow()
    line = [s.snapshot_id for s in table.snapshots[1:] if s.operation != "replace"]
    given = found.to_pylist()
    if not options.get("from_inclusive"):
        assert all(line[row["_change_ordinal"]] == row["_commit_snapshot_id"] for row in given)
    return [(row["_change_type"], row["_change_ordinal"], row["id"], row["data"]) for row in given]


@pytest.mark.parametrize(("version", "mode"), [(1, "copy-on-write"), (2, "merge-on-read"), (3, "merge-on-read")])
def test_each_change_is_reported_once_in_its_snapshot(catalog: icebench.Catalog, version: int, mode: Mode) -> None:
    made = table(catalog, version)
    made.append(rows((4, "d")))
    made.delete("id = 2", mode)
    made.delete("id = 3", "copy-on-write")
    made.update("id = 1", {"data": "A"}, mode)
    expected = [
        ("INSERT", 0, 4, "d"),
        ("DELETE", 1, 2, "b"),
        ("DELETE", 2, 3, "c"),
        ("DELETE", 3, 1, "a"),
        ("INSERT", 3, 1, "A"),
    ]
    assert changes(made) == expected
    assert changes(made, filter="id >= 3") == [expected[0], expected[2]]
    assert changes(made, filter="data = 'A'") == [expected[4]]
    by_id = [*expected[:3], ("UPDATE_BEFORE", 3, 1, "a"), ("UPDATE_AFTER", 3, 1, "A")]
    assert changes(made, identifier_columns=["id"]) == by_id
    assert changes(made, net_changes=True) == [expected[0], *expected[1:3], *expected[3:]]


def test_columns_change_nothing_about_which_rows_changed(catalog: icebench.Catalog) -> None:
    made = table(catalog)
    made.update("id = 1", {"data": "A"}, "copy-on-write")
    found = made.changelog_scan(made.snapshots[0].snapshot_id, columns=["id"]).to_arrow()
    assert found.column_names == ["id", "_change_type", "_change_ordinal", "_commit_snapshot_id"]
    assert found["id"].to_pylist() == [1, 1]


def test_equality_deletes(catalog: icebench.Catalog) -> None:
    made = table(catalog)
    stream = made.keyed_stream(["id"])
    stream.update(rows((1, "A")))
    stream.delete(rows((2, None)).select(["id"]))
    stream.insert(rows((9, "z")))
    stream.commit()
    expected = changes(made)
    assert sorted(expected) == [
        ("DELETE", 0, 1, "a"),
        ("DELETE", 0, 2, "b"),
        ("INSERT", 0, 1, "A"),
        ("INSERT", 0, 9, "z"),
    ]
    stream = made.keyed_stream(["id"])
    stream.delete(rows((2, None)).select(["id"]))  # gone already
    stream.commit()
    assert changes(made) == expected


def test_rewrites_have_no_changes_and_no_number(catalog: icebench.Catalog) -> None:
    made = table(catalog)
    made.append(rows((4, "d")))
    # Manifests that were written anew list files of older snapshots, which are not new.
    replaced = replace(made.snapshots[1], operation="replace")
    metadata = replace(made.metadata, snapshots=(made.snapshots[0], replaced))
    again = Table(("t",), TableState(metadata=metadata, metadata_location="x"), made.store, None)
    assert changes(again) == []


def test_a_row_that_two_snapshots_move_there_and_back_has_no_net_change(catalog: icebench.Catalog) -> None:
    made = table(catalog)
    made.update("id = 1", {"data": "x"}, "merge-on-read")
    made.update("id = 1", {"data": "a"}, "copy-on-write")
    made.append(rows((2, "b")))
    made.delete("id = 3", "merge-on-read")
    assert len(changes(made)) == 6
    assert changes(made, net_changes=True) == [("INSERT", 2, 2, "b"), ("DELETE", 3, 3, "c")]
    with pytest.raises(Invalid, match="net changes have no updates"):
        changes(made, net_changes=True, identifier_columns=["id"])


def test_equal_rows_cancel_one_for_one(catalog: icebench.Catalog) -> None:
    made = table(catalog)
    made.append(rows((1, "a"), (1, "a")))
    before = made.snapshots[-1].snapshot_id
    made.overwrite(rows((1, "a")), "id = 1")
    found = made.changelog_scan(before).to_arrow().to_pylist()
    assert [(f["_change_type"], f["id"]) for f in found] == [("DELETE", 1), ("DELETE", 1)]


def test_rows_keep_their_identity_in_version_3(catalog: icebench.Catalog) -> None:
    made = table(catalog, 3)
    made.update("id = 1", {"id": 7}, "copy-on-write")
    assert changes(made) == [("DELETE", 0, 1, "a"), ("INSERT", 0, 7, "a")]
    assert changes(made, compute_updates=True) == [("UPDATE_BEFORE", 0, 1, "a"), ("UPDATE_AFTER", 0, 7, "a")]


def test_rows_of_before_an_upgrade_have_no_ids(catalog: icebench.Catalog) -> None:
    made = table(catalog, 2)
    made.upgrade_format(3)
    made.update("id = 1", {"data": "A"}, "copy-on-write")
    assert changes(made) == [("DELETE", 0, 1, "a"), ("INSERT", 0, 1, "A")]


def test_what_identifies_rows(catalog: icebench.Catalog) -> None:
    made = table(catalog)
    made.append(rows((1, "a2")))
    made.overwrite(rows((1, "a3")), "id = 1")
    start = made.snapshots[1].snapshot_id
    with pytest.raises(Invalid, match=r"several rows with identifier \[1\]"):
        made.changelog_scan(start, identifier_columns=["id"]).to_arrow()
    with pytest.raises(Invalid, match="need identifier columns"):
        made.changelog_scan(start, compute_updates=True)
    with pytest.raises(Invalid, match="no_such"):
        made.changelog_scan(start, identifier_columns=["no_such"])


def test_an_identifier_beyond_the_years_of_python_is_shown(catalog: icebench.Catalog) -> None:
    days = pa.array([4_000_000], pa.int32()).cast(pa.date32())
    made = catalog.create_table("db.far", pa.schema({"day": days.type, "n": pa.int64()}))
    made.append(pa.table({"day": days, "n": [1]}))
    made.overwrite(pa.table({"day": pa.concat_arrays([days, days]), "n": [2, 3]}))
    with pytest.raises(Invalid, match=r"several rows with identifier \['\+12921-08-18'\]"):
        made.changelog_scan(identifier_columns=["day"]).to_arrow()


def test_net_changes_and_updates_are_not_combined(catalog: icebench.Catalog) -> None:
    made = table(catalog)
    for identifiers in (None, ["id"]):
        with pytest.raises(Invalid, match="net changes have no updates"):
            made.changelog_scan(net_changes=True, compute_updates=True, identifier_columns=identifiers)


def test_deletes_come_before_updates_and_inserts_after(catalog: icebench.Catalog) -> None:
    made = table(catalog)
    made.overwrite(rows((9, "new"), (2, "B")), "id < 3")
    assert changes(made, identifier_columns=["id"]) == [
        ("DELETE", 0, 1, "a"),
        ("UPDATE_BEFORE", 0, 2, "b"),
        ("UPDATE_AFTER", 0, 2, "B"),
        ("INSERT", 0, 9, "new"),
    ]


@pytest.mark.parametrize("version", [2, 3])
def test_rows_whose_delete_is_lifted_come_back(catalog: icebench.Catalog, version: int) -> None:
    made = table(catalog, version)
    made.delete("id = 2", "merge-on-read")
    (file,) = planned_files(table_scan(made.metadata, made.store).plan())
    lifted = RowDelta(
        removed_deletes=refs_of_deletes(file, file.deletes),
        validation=Validation(starting_snapshot_id=made.metadata.current_snapshot_id, referenced=[ref_of(file)]),
    )
    Transaction(catalog._inner, ("db", "t"), Staging(store=made.store), Waiting()).commit([lifted])
    made.refresh()
    assert changes(made) == [("DELETE", 0, 2, "b"), ("INSERT", 1, 2, "b")]
    assert changes(made, net_changes=True) == []


def test_what_is_not_in_the_line(catalog: icebench.Catalog) -> None:
    made = table(catalog)
    made.delete("id = 1", "merge-on-read")
    made.append(rows((4, "d")))
    first, second, third = (s.snapshot_id for s in made.snapshots)
    with pytest.raises(Invalid, match="not an ancestor"):
        made.changelog_scan(third, first)
    with pytest.raises(NotFound, match="no snapshot 17"):
        made.changelog_scan(17)
    metadata = replace(made.metadata, snapshots=made.snapshots[1:])
    expired = Table(("t",), TableState(metadata=metadata, metadata_location="x"), made.store, None)
    for start in (None, 17):
        with pytest.raises(NotFound, match=f"the oldest that is left of this line is {second}"):
            expired.changelog_scan(start)
    with pytest.raises(NotFound, match=f"what snapshot {second} removed is no longer known"):
        expired.changelog_scan(first).to_arrow()
    assert expired.changelog_scan(second).to_arrow()["id"].to_pylist() == [4]
    assert expired.changelog_scan(third, from_inclusive=True).to_arrow()["id"].to_pylist() == [4]


def test_a_column_of_the_name_of_a_change_column_is_refused(catalog: icebench.Catalog) -> None:
    made = catalog.create_table("db.u", pa.schema([pa.field("_change_type", pa.int64())]))
    with pytest.raises(Invalid, match="rename it first"):
        made.changelog_scan()


def test_nested_columns_are_compared_too(catalog: icebench.Catalog) -> None:
    nested = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("s", pa.struct([pa.field("x", pa.float64()), pa.field("y", pa.string())])),
            pa.field("l", pa.list_(pa.struct([pa.field("d", pa.decimal128(9, 2))]))),
            pa.field("m", pa.map_(pa.string(), pa.int64())),
        ]
    )
    values: list[dict[str, Any]] = [
        {"id": 1, "s": {"x": float("nan"), "y": None}, "l": [{"d": None}, None], "m": [("b", 1), ("a", None)]},
        {"id": 2, "s": None, "l": None, "m": None},
        {"id": 3, "s": {"x": -0.0, "y": ""}, "l": [], "m": []},
    ]
    made = catalog.create_table("db.u", nested)
    made.append(pa.Table.from_pylist(values, schema=nested))
    changed = [
        {**values[0], "m": [("a", None), ("b", 1)]},
        {**values[1], "s": {"x": None, "y": None}},
        {**values[2], "s": {"x": 0.0, "y": ""}},
    ]
    made.overwrite(pa.Table.from_pylist(changed, schema=nested))
    found = made.changelog_scan(made.snapshots[0].snapshot_id, columns=["id", "s"]).to_arrow()
    assert sorted(zip(found["id"].to_pylist(), found["_change_type"].to_pylist(), strict=True)) == [
        (2, "DELETE"),
        (2, "INSERT"),
        (3, "DELETE"),
        (3, "INSERT"),
    ]


def test_only_row_groups_with_changes_are_decoded(catalog: icebench.Catalog) -> None:
    made = catalog.create_table("db.u", ROWS, properties={"write.parquet.row-group-size-bytes": "2000"})
    made.append(rows(*((i, f"value {i}") for i in range(2000))))
    made.delete("id = 1500", "merge-on-read")
    counters = icebench.Counters()
    scan = made.changelog_scan(made.snapshots[0].snapshot_id, counters=counters)
    assert scan.to_arrow()["id"].to_pylist() == [1500]
    assert counters[ROW_GROUPS_READ] == 1
    assert counters[ROW_GROUPS_SKIPPED] > 5
    assert counters[ROWS_DECODED] < 400


def test_the_append_scan(catalog: icebench.Catalog) -> None:
    made = table(catalog)
    made.append(rows((4, "d")))
    made.overwrite(rows((5, "e")), "id = 4")
    made.append(rows((6, "f")))
    start = made.snapshots[0].snapshot_id
    counters = icebench.Counters()
    scan = made.incremental_append_scan(start, columns=["id", "_pos"], counters=counters)
    assert scan.to_arrow().to_pylist() == [{"id": 4, "_pos": 0}, {"id": 6, "_pos": 0}]
    assert scan.count() == 2
    assert made.incremental_append_scan(filter="id < 3").to_arrow()["id"].to_pylist() == [1, 2]
    assert made.incremental_append_scan(start, start, from_inclusive=True).count() == 3
    assert made.incremental_append_scan(start, start).count() == 0


@pytest.mark.parametrize("options", [{}, {"net_changes": True}, {"identifier_columns": ["id"]}])
def test_nothing_happened(catalog: icebench.Catalog, options: dict[str, Any]) -> None:
    made = table(catalog)
    last = made.snapshots[-1].snapshot_id
    assert changes(made, from_snapshot_id=last, to_snapshot_id=last, **options) == []
    assert catalog.create_table("db.u", ROWS).changelog_scan(**options).to_arrow().num_rows == 0


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_one_file_concern_their_own_rows_only(catalog: icebench.Catalog, version: int) -> None:
    made = table(catalog, version)
    made.append(rows(*((i, "x") for i in range(10, 20))))
    for id_ in (12, 17, 10):
        made.delete(f"id = {id_}", "merge-on-read")
    expected = [("DELETE", 1, 12, "x"), ("DELETE", 2, 17, "x"), ("DELETE", 3, 10, "x")]
    assert changes(made)[10:] == expected
    assert changes(made, filter="id < 15")[5:] == [expected[0], expected[2]]
