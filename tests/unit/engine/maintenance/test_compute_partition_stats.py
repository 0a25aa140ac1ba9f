"""Partition statistics files; `tests/property/` holds sums to brute force, `tests/interop/` rows to Iceberg Java."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icebench
from icebench.engine.columnar.schemas import field_id_of, to_arrow_schema
from icebench.engine.commit.changes.statistics import UpdateStatistics
from icebench.engine.formats.file_writers import open_writer, write_options
from icebench.engine.formats.partition_statistics import partition_rows_schema
from icebench.engine.maintenance.compute_partition_stats import read_partition_stats
from icebench.engine.spec.statistics import PartitionStatisticsFile
from icebench.engine.spec.types import INT, STRING, NestedField, StructType
from icebench.errors import CorruptTable, Invalid, NotFound, Unsupported
from tests.unit.bench.cli.test_main import exit_code

COLUMNS = pa.schema([("n", pa.int32()), ("t", pa.string())])


@pytest.fixture
def table(catalog: icebench.Catalog) -> icebench.Table:
    made = catalog.create_table("db.t", COLUMNS, partition_spec=[("n", "identity"), ("t", "identity")])
    append(made, (2, "b"), (1, None), (1, "b"), (None, "z"), (1, "a"))
    return made


def append(table: icebench.Table, *rows: tuple[int | None, str | None]) -> None:
    table.append(pa.Table.from_pylist([{"n": n, "t": t} for n, t in rows], schema=COLUMNS))


def newest(table: icebench.Table) -> PartitionStatisticsFile:
    return table.refresh().metadata.partition_statistics[-1]


def rows(table: icebench.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_partition_stats(table.metadata, newest(table), table.store).to_pylist()
    return found


@pytest.mark.parametrize("version", [2, 3])
def test_the_file_has_the_schema_of_the_specification(table: icebench.Table, version: int) -> None:
    if version == 3:
        table.upgrade_format(3)
    table.maintenance.compute_partition_stats()
    schema = pq.read_schema(pa.BufferReader(table.store.read(newest(table).statistics_path)))
    required = [1, 2, 3, 4, 5, *([6, 7, 8, 9, 13] if version == 3 else [])]
    assert [field_id_of(f) for f in schema] == [*range(1, 13), *([13] if version == 3 else [])]
    assert [field_id_of(f) for f in schema if not f.nullable] == sorted(required)
    assert [(f.name, field_id_of(f), f.type) for f in schema.field("partition").type] == [
        ("n", 1000, pa.int32()),
        ("t", 1001, pa.string()),
    ]
    ints = {"spec_id", "data_file_count", "position_delete_file_count", "equality_delete_file_count", "dv_count"}
    assert {f.name for f in schema if f.type == pa.int32()} == ints & set(schema.names)


def test_rows_are_in_order_nulls_first(table: icebench.Table) -> None:
    table.maintenance.compute_partition_stats()
    found = [(row["partition"]["n"], row["partition"]["t"]) for row in rows(table)]
    assert found == [(None, "z"), (1, None), (1, "a"), (1, "b"), (2, "b")]


def test_only_manifests_since_an_ancestor_are_read(table: icebench.Table) -> None:
    assert table.maintenance.compute_partition_stats().manifests_read == 1
    append(table, (1, "a"), (7, "a"))
    append(table, (1, "a"))
    done = table.maintenance.compute_partition_stats()
    assert (done.manifests_read, done.partitions) == (2, 6)
    counts = {(row["partition"]["n"], row["partition"]["t"]): row["data_record_count"] for row in rows(table)}
    assert counts[1, "a"] == 3
    assert counts[7, "a"] == counts[1, "b"] == 1
    again = table.maintenance.compute_partition_stats()
    assert (again.statistics_path, again.manifests_read) == (newest(table).statistics_path, 0)


def test_removed_files_leave_their_partition_with_its_last_change(table: icebench.Table) -> None:
    table.delete("n = 2", "copy-on-write")
    snapshot = table.current_snapshot
    assert snapshot is not None
    table.maintenance.compute_partition_stats()
    (row,) = [row for row in rows(table) if row["partition"]["n"] == 2]
    assert (row["data_file_count"], row["last_updated_snapshot_id"]) == (0, snapshot.snapshot_id)
    assert row["last_updated_at"] == snapshot.timestamp_ms
    assert {row["total_record_count"] for row in rows(table)} == {None}


def test_deletes_and_evolved_specs_are_computed_on(catalog: icebench.Catalog, table: icebench.Table) -> None:
    """From the manifests since the ancestor, among which is one that carries files over and removes one."""
    table.upgrade_format(3)
    append(table, (1, "x"), (2, "x"))
    table.maintenance.compute_partition_stats()
    table.delete("n = 1 and t = 'x'", "copy-on-write")
    assert table.maintenance.compute_partition_stats().manifests_read == 1
    assert [r["data_file_count"] for r in rows(table) if r["partition"] == {"n": 1, "t": "x"}] == [0]
    append(table, (8, "x"), (8, "x"))
    table.delete("n = 8 and t = 'x'", "copy-on-write")
    table.update_spec(lambda spec: spec.drop_field("n"))
    append(table, (9, "y"), (7, "y"))
    table.delete("n = 9", "merge-on-read")
    table.maintenance.compute_partition_stats()
    (row,) = [r for r in rows(table) if r["partition"] == {"n": None, "t": "y"}]
    found = row["data_record_count"], row["position_delete_record_count"], row["position_delete_file_count"]
    assert (*found, row["dv_count"]) == (2, 1, 0, 1)


def replaced(table: icebench.Table, data: bytes) -> None:
    path = newest(table).statistics_path
    table.store.delete(path)
    table.store.write(path, data)


@pytest.mark.parametrize("damage", ["no parquet", "other columns", "no counts", "gone", "wrong counts"])
def test_a_damaged_file_is_computed_anew(table: icebench.Table, damage: str) -> None:
    table.maintenance.compute_partition_stats()
    file = newest(table)
    if damage == "no parquet":
        replaced(table, b"PAR1")
    elif damage == "gone":
        table.store.delete(file.statistics_path)
    else:
        out = pa.BufferOutputStream()
        known = pq.read_table(pa.BufferReader(table.store.read(file.statistics_path)))
        at = known.schema.get_field_index("data_record_count")
        changed = known.set_column(at, known.schema.field(at), pa.array([9] * len(known), pa.int64()))
        damaged = {"other columns": pa.table({"a": [1]}), "no counts": known.remove_column(at), "wrong counts": changed}
        pq.write_table(damaged[damage], out)
        replaced(table, out.getvalue().to_pybytes())
    said = {
        "no parquet": "not a readable Parquet file",
        "other columns": "has no field ids",
        "no counts": "no partition statistics: column 'data_record_count' is missing",
    }
    if damage in said:
        with pytest.raises((CorruptTable, Unsupported), match=said[damage]):
            read_partition_stats(table.metadata, file, table.store)
    append(table, (1, "a"))
    assert table.maintenance.compute_partition_stats().manifests_read == 2
    assert sum(row["data_record_count"] for row in rows(table)) == 6


def test_numbers_of_rows_after_deletes_that_others_wrote_are_kept_of_unchanged_partitions(
    table: icebench.Table,
) -> None:
    table.maintenance.compute_partition_stats()
    known = pq.read_table(pa.BufferReader(table.store.read(newest(table).statistics_path)))
    at, out = known.schema.get_field_index("total_record_count"), pa.BufferOutputStream()
    pq.write_table(known.set_column(at, known.schema.field(at), pa.array([1] * len(known), pa.int64())), out)
    replaced(table, out.getvalue().to_pybytes())
    append(table, (1, "a"), (7, "a"))
    assert table.maintenance.compute_partition_stats().manifests_read == 1
    totals = {(row["partition"]["n"], row["partition"]["t"]): row["total_record_count"] for row in rows(table)}
    assert totals == {(None, "z"): 1, (1, None): 1, (1, "a"): None, (1, "b"): 1, (2, "b"): 1, (7, "a"): None}


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_files_of_other_formats_are_read(table: icebench.Table, file_format: str) -> None:
    table.maintenance.compute_partition_stats()
    found, file = rows(table), newest(table)
    path = f"{file.statistics_path}.{file_format}"
    parts = NestedField(field_id=1000, name="n", type=INT), NestedField(field_id=1001, name="t", type=STRING)
    schema = partition_rows_schema(StructType(parts), 2)
    out, columns = table.store.open_output(path), to_arrow_schema(schema)
    writer = open_writer(out, columns, schema, modes={}, options=write_options(file_format, {}))
    writer.add(pa.RecordBatch.from_pylist(found, columns))
    writer.close()
    other = PartitionStatisticsFile(snapshot_id=file.snapshot_id, statistics_path=path, file_size_in_bytes=1)
    table.maintenance.table.commit([UpdateStatistics(partition=[other])])
    assert rows(table) == found
    assert table.maintenance.compute_partition_stats().manifests_read == 0


def test_files_of_unknown_formats_are_computed_anew(table: icebench.Table) -> None:
    snapshot = table.current_snapshot
    assert snapshot is not None
    file = PartitionStatisticsFile(snapshot_id=snapshot.snapshot_id, statistics_path="/x.csv", file_size_in_bytes=1)
    table.maintenance.table.commit([UpdateStatistics(partition=[file])])
    with pytest.raises(Unsupported, match="reading csv files is not supported"):
        rows(table)
    assert table.maintenance.compute_partition_stats().manifests_read == 1
    assert len(rows(table)) == 5


def test_tables_without_partitions_are_refused(catalog: icebench.Catalog, table: icebench.Table) -> None:
    whole = catalog.create_table("db.u", COLUMNS)
    append(whole, (1, "a"))
    with pytest.raises(Invalid, match="not partitioned"):
        whole.maintenance.compute_partition_stats()
    with pytest.raises(NotFound):
        table.maintenance.compute_partition_stats(snapshot_id=1)
    with pytest.raises(Invalid, match="without a snapshot"):
        catalog.create_table("db.e", COLUMNS, partition_spec=[("n", "identity")]).maintenance.compute_partition_stats()


def test_files_go_with_their_snapshots(table: icebench.Table) -> None:
    table.maintenance.compute_partition_stats()
    old = newest(table).statistics_path
    append(table, (1, "a"))
    table.maintenance.compute_partition_stats()
    assert not table.maintenance.remove_orphan_files(older_than="2999-01-01T00:00:00Z", dry_run=False).locations
    done = table.maintenance.expire_snapshots(older_than="2999-01-01T00:00:00Z")
    assert done.deleted_statistics_files == 1
    assert not table.store.exists(old)
    assert len(rows(table)) == 5


def test_the_command_and_the_profile_show_it(
    table: icebench.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("maintain", "compute-partition-stats", tmp_path / "wh", "db.t") == 0
    shown = capsys.readouterr().out
    assert "partitions                      5, in" in shown
    assert "manifests read                  1" in shown
    append(table, (1, "a"), (1, "c"), (1, "d"))
    assert exit_code("profile", tmp_path / "wh", "db.t") == 0
    assert "of partitions; 60 % of the rows changed since" in capsys.readouterr().out
