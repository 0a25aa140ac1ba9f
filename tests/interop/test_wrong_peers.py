"""What other engines answer wrongly, in the fewest steps: docs/design/interop.md lists it. A test fails on the day
that an engine is right."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

import icebench
from icebench.bench.workloads.equality_deletes import write_equality_deletes
from tests.interop.histories.readers import duckdb_connection

ROWS = pa.table({"id": pa.array([1, 2, 3, 4, 5], pa.int32()), "v": list("abcde")})


def without_two(catalog: icebench.Catalog, name: str = "db.t") -> icebench.Table:
    """A table of five rows of which an equality delete, with bounds as Java writes them, removes the one of id 2."""
    table = catalog.create_table(name, ROWS.schema)
    table.append(ROWS)
    deletes = write_equality_deletes(table, ROWS.select(["id"]).slice(1, 1), f"{table.location}/data/by-key.parquet")
    two = struct.pack("<i", 2)
    bounds = {"lower_bounds": {1: two}, "upper_bounds": {1: two}, "value_counts": {1: 1}, "null_value_counts": {1: 0}}
    table.add_files([replace(deletes, **bounds)])  # type: ignore[arg-type]
    return table


def ids(table: icebench.Table) -> list[int]:
    table.refresh()
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def test_a_delete_of_pyiceberg_brings_back_what_an_equality_delete_removed(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/catalog.db"
    table = without_two(icebench.load_catalog(address, warehouse=str(tmp_path), name="own"))
    assert ids(table) == [1, 3, 4, 5]
    theirs = SqlCatalog("own", uri=address, warehouse=str(tmp_path))
    # It refuses equality deletes where it sees them; those whose bounds its filter excludes it does not see.
    theirs.load_table("db.t").delete("id = 4")
    theirs.close()
    assert ids(table) == [1, 2, 3, 5]


def test_a_delete_of_pyiceberg_by_inequality_removes_files_of_nulls(tmp_path: Path) -> None:
    theirs = SqlCatalog("own", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    theirs.create_namespace("db")
    table = theirs.create_table("db.t", ROWS.schema)
    table.append(ROWS.slice(0, 2))
    table.append(pa.table({"id": [3], "v": [None]}, schema=ROWS.schema))
    assert table.scan("v <> 'b'").to_arrow()["id"].to_pylist() == [1]
    # Its metrics say that a file of nulls alone meets the filter whole; a row of it does not.
    table.delete("v <> 'b'")
    assert table.scan().to_arrow()["id"].to_pylist() == [2]
    theirs.close()


def test_java_shows_deleted_rows_in_a_session_that_read_the_table_before_its_key_became_long(
    spark: SparkSession,
) -> None:
    catalog = icebench.load_catalog(spark.conf.get("spark.sql.catalog.iceberg_java.warehouse") or "")
    table = without_two(catalog, "peers.promoted")

    def theirs() -> list[int]:
        spark.catalog.refreshTable("iceberg_java.peers.promoted")
        return sorted(row["id"] for row in spark.table("iceberg_java.peers.promoted").select("id").collect())

    assert theirs() == [1, 3, 4, 5]
    table.update_schema(lambda schema: schema.promote_column("id", icebench.LONG))
    assert ids(table) == [1, 3, 4, 5]
    # Executors keep the keys of a delete file under its name: they are still of the type int.
    assert theirs() == [1, 2, 3, 4, 5]
    spark.conf.set("spark.sql.iceberg.executor-cache.enabled", "false")
    try:
        assert theirs() == [1, 3, 4, 5]
    finally:
        spark.conf.unset("spark.sql.iceberg.executor-cache.enabled")
        catalog.drop_table("peers.promoted")


def test_duckdb_exchanges_deletion_vectors_where_java_appends_to_a_table_of_two_specs(spark: SparkSession) -> None:
    catalog = icebench.load_catalog(spark.conf.get("spark.sql.catalog.iceberg_java.warehouse") or "")
    table = catalog.create_table("peers.vectors", ROWS.schema, properties={"format-version": "3"})
    table.append(ROWS.slice(0, 2))
    table.append(ROWS.slice(2, 2))
    table.update_spec(lambda spec: spec.add_field("v", icebench.parse_transform("identity")))
    table.append(ROWS.slice(4))
    table.append(pa.table({"id": [6, 7], "v": ["f", "f"]}, schema=ROWS.schema))
    table.delete("id in (1, 4, 6)", "merge-on-read")

    def theirs() -> list[int]:
        with duckdb_connection() as connection:
            found = connection.execute(f"select id from iceberg_scan('{table.metadata_location}')").fetchall()
        return sorted(id for (id,) in found)

    assert theirs() == ids(table)
    # Java lists manifests of the newest spec first.
    spark.sql("insert into iceberg_java.peers.vectors values (8, 'g')")
    assert theirs() != ids(table)
    catalog.drop_table("peers.vectors")
