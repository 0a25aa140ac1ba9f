"""Plans of real tables, read."""

from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.engine.codec.manifests.manifest_list import decode_manifest_list, encode_manifest_list
from icebench.engine.plan.scan import ScanPlan, table_scan
from icebench.engine.read.matches import matched_rows
from icebench.engine.read.plans import count_rows, planned_files, read_plan, request_for, schemas_by_age
from icebench.engine.runtime.counters import ROWS_DECODED, ROWS_RETURNED, Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.metadata_columns import FILE, POS
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Identity, Truncate
from icebench.engine.spec.types import INT, LONG
from icebench.engine.table import Table
from icebench.engine.write.delete_files import write_equality_deletes
from icebench.errors import FileNotFound

ROWS = pa.table({"id": range(40), "p": [f"p{i % 4}" for i in range(40)]})


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = icebench.load_catalog(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    properties = {"write.parquet.row-group-size-bytes": "32"}
    made = catalog.create_table("db.t", ROWS.schema, properties=properties)
    made.append(ROWS.slice(0, 25))
    made.append(ROWS.slice(25))
    return made


def plan_of(table: Table, filter: str | None = None, columns: list[str] | None = None) -> ScanPlan:
    return table_scan(table.metadata, table.store, filter=filter, columns=columns, table_name="db.t").plan()


def test_a_plan_gives_its_rows(table: Table) -> None:
    found = read_plan(plan_of(table), table.store).read_all()
    assert found.sort_by("id").to_pydict() == ROWS.to_pydict()
    found = read_plan(plan_of(table, "p = 'p1' and id > 20", ["id"]), table.store).read_all()
    assert sorted(found.column("id").to_pylist()) == [21, 25, 29, 33, 37]
    assert found.schema.names == ["id"]


def test_tasks_together_give_the_rows_of_the_plan_once(table: Table) -> None:
    plan = plan_of(table, "id < 33")
    tasks = plan.tasks(split_bytes=100)
    assert len(tasks) > 4
    ids = [i for task in tasks for i in read_plan(plan, table.store, task=task).read_all().column("id").to_pylist()]
    assert sorted(ids) == list(range(33))


def test_rows_are_counted_without_reading_where_nothing_is_left_to_decide(table: Table) -> None:
    counters = Counters()
    assert count_rows(plan_of(table), table.store, counters=counters) == 40
    assert counters[ROWS_DECODED] == 0
    assert counters[ROWS_RETURNED] == 40
    assert count_rows(plan_of(table, "p = 'p1' and id > 20"), table.store, counters=counters) == 5
    assert counters[ROWS_DECODED] > 0


def test_matches_are_given_by_file_and_position(table: Table) -> None:
    plan = plan_of(table, "p = 'p1'")
    request = request_for(plan, table.store)
    matches = list(matched_rows(planned_files(plan), request, runner=LocalRunner(1)))
    by_path = {m.file.file_path: m.positions.tolist() for m in matches}
    assert sorted(by_path.values()) == [[0, 4, 8, 12], [1, 5, 9, 13, 17, 21]]
    assert set(by_path) == {f.file_path for f in planned_files(plan)}
    assert all(not len(m.deleted_before) and not m.superseded for m in matches)


def test_metadata_columns_may_be_projected(table: Table) -> None:
    plan = plan_of(table, "id = 30")
    (row,) = read_plan(plan, table.store, projection=Schema((FILE, POS))).read_all().to_pylist()
    assert row["_pos"] == 5
    assert row["_file"] in plan.files.column("file_path").to_pylist()


def test_a_missing_data_file_is_named_with_table_and_snapshot(table: Table) -> None:
    plan = plan_of(table)
    path = plan.files.column("file_path")[0].as_py()
    table.store.delete(path)
    assert plan.snapshot is not None
    with pytest.raises(FileNotFound, match=rf"needed by table db\.t, snapshot {plan.snapshot.snapshot_id}"):
        read_plan(plan, table.store, table_name="db.t").read_all()


def test_an_empty_table_gives_no_rows(tmp_path: Path) -> None:
    catalog = icebench.load_catalog(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    empty = catalog.create_table("db.t", ROWS.schema)
    plan = plan_of(empty)
    assert read_plan(plan, empty.store).read_all().num_rows == 0
    assert count_rows(plan, empty.store) == 0


@pytest.mark.parametrize("version", [2, 3])
def test_rows_of_files_with_deletes_are_counted_by_reading(tmp_path: Path, version: int) -> None:
    catalog = icebench.load_catalog(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    made = catalog.create_table("db.t", ROWS.schema, properties={"format-version": str(version)})
    made.append(ROWS.slice(0, 25))
    made.append(ROWS.slice(25))
    made.delete("id in (3, 4)", "merge-on-read")
    counters = Counters()
    assert count_rows(plan_of(made), made.store, counters=counters) == 38
    # The other file is counted by its metadata.
    assert counters[ROWS_DECODED] <= 25
    assert counters[ROWS_RETURNED] == 38


def test_vectors_in_one_puffin_file_are_those_of_their_data_files(tmp_path: Path) -> None:
    catalog = icebench.load_catalog(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    made = catalog.create_table("db.t", ROWS.schema, properties={"format-version": "3"})
    made.append(ROWS.slice(0, 25))
    made.append(ROWS.slice(25))
    made.delete("id in (1, 27, 39)", "merge-on-read")
    deletes = [deletes for file in planned_files(plan_of(made)) for deletes in file.deletes]
    assert len({each.file_path for each in deletes}) == 1
    assert len({each.content_offset for each in deletes}) == 2
    read = read_plan(plan_of(made), made.store).read_all()
    assert sorted(read.column("id").to_pylist()) == [i for i in range(40) if i not in (1, 27, 39)]


def test_partition_tuples_have_the_fields_of_their_files_spec(tmp_path: Path) -> None:
    catalog = icebench.load_catalog(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    made = catalog.create_table("db.t", ROWS.schema, partition_spec=[("p", "identity")])
    made.append(ROWS.slice(0, 1))
    made.update_spec(lambda spec: spec.drop_field("p").add_field("id", Truncate(10)))
    made.append(ROWS.slice(35, 1))
    made.update_spec(lambda spec: spec.add_field("p", Identity()))
    made.append(ROWS.slice(22, 1))
    found = {(file.spec_id, file.partition) for file in planned_files(plan_of(made))}
    assert found == {(0, ("p0",)), (1, (30,)), (2, (20, "p2"))}


def test_the_type_of_a_dropped_column_is_that_of_the_newest_schema_with_it(table: Table) -> None:
    table.update_schema(lambda schema: schema.add_column("n", INT))
    table.update_schema(lambda schema: schema.promote_column("n", LONG))
    table.update_schema(lambda schema: schema.drop_column("n"))
    first, *others = schemas_by_age(table.metadata.schema, table.metadata)
    assert first == table.metadata.schema
    assert [s.schema_id for s in others] == [2, 1, 0]
    assert next(s.by_id[3].type for s in (first, *others) if 3 in s.by_id) == LONG


@pytest.mark.parametrize("oldest_first", [False, True])
def test_a_delete_file_that_was_added_again_deletes_newer_rows_too(tmp_path: Path, oldest_first: bool) -> None:
    catalog = icebench.load_catalog(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    made = catalog.create_table("db.t", pa.schema([("id", pa.int64())]), properties={"format-version": "2"})
    made.append(pa.table({"id": [1, 2]}))
    keys = pa.table({"id": [1]})
    (delete,) = write_equality_deletes(keys, columns=["id"], metadata=made.metadata, store=made.store)
    made.add_files([delete], check_duplicate_files=False)
    made.append(pa.table({"id": [1, 3]}))
    made.add_files([delete], check_duplicate_files=False)
    made.append(pa.table({"id": [1, 4]}))
    head = made.current_snapshot
    assert head is not None
    assert head.manifest_list is not None
    manifests = sorted(
        decode_manifest_list(made.store.read(head.manifest_list)),
        key=lambda each: each.sequence_number,
        reverse=not oldest_first,
    )
    encoded = encode_manifest_list(
        manifests, format_version=2, snapshot_id=head.snapshot_id, sequence_number=head.sequence_number
    )
    Path(head.manifest_list.removeprefix("file://")).write_bytes(encoded)
    made = icebench.load_table(made.metadata_location)
    numbers = {f.data_sequence_number: {d.sequence_number for d in f.deletes} for f in planned_files(plan_of(made))}
    assert numbers == {1: {2, 4}, 3: {4}, 5: set()}
    assert sorted(made.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]
    explained = made.scan().explain().delete_files
    assert sorted(each.why for each in explained) == ["applies to 1 planned file", "applies to 2 planned files"]
    changes = made.changelog_scan().to_arrow().group_by("_change_type").aggregate([("id", "list")]).to_pylist()
    assert {each["_change_type"]: sorted(each["id_list"]) for each in changes} == {
        "INSERT": [1, 1, 1, 2, 3, 4],
        "DELETE": [1, 1],
    }
    catalog.load_table("db.t").maintenance.convert_equality_deletes()
    assert sorted(catalog.load_table("db.t").scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]
