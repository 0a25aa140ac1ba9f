"""Sketches of distinct values as Iceberg Java computes them of the same rows, each read by the other."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

import icebench
from icebench.engine.codec.puffin.file import read_blob, read_footer
from icebench.engine.codec.puffin.theta import NDV, THETA_SKETCH, decode_theta
from icebench.engine.commit.changes.statistics import UpdateStatistics
from icebench.engine.file_indexes.blob import FILE_INDEX
from icebench.engine.maintenance.compute_partition_stats import read_partition_stats
from icebench.engine.maintenance.profile.statistics import distinct_values
from icebench.engine.spec.statistics import StatisticsFile
from tests.interop.histories.places import Place, directory_place
from tests.interop.metrics_columns import SCHEMA, cycled

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = directory_place(spark, tmp_path_factory.mktemp("statistics"), "statistics")
    yield made
    made.close()


def statistics_of(table: icebench.Table) -> StatisticsFile:
    """The file of the current snapshot."""
    metadata = table.refresh().metadata
    return next(each for each in metadata.statistics if each.snapshot_id == metadata.current_snapshot_id)


def sketches(table: icebench.Table) -> dict[int, tuple[str, bytes]]:
    """The estimate and the bytes of each sketch in the file, by the column's id."""
    data = table.store.read(statistics_of(table).statistics_path)
    blobs = [blob for blob in read_footer(data).blobs if blob.type == THETA_SKETCH]
    return {blob.fields[0]: (blob.properties[NDV], read_blob(data, blob)) for blob in blobs}


def test_sketches_are_those_of_iceberg_java_to_the_byte(spark: SparkSession, place: Place) -> None:
    """Of all primitive types that Spark has; it hashes a UUID as its text, against the specification."""
    name = f"{place.spark_catalog}.db.types"
    table = place.ours.create_table("db.types", SCHEMA, properties={"format-version": "2"})
    table.append(cycled(60))
    table.delete("id < 7", "merge-on-read")
    spark.sql(f"call {place.spark_catalog}.system.compute_table_stats(table => '{name}')")
    java = sketches(table)
    assert distinct_values(table.metadata, table.current_snapshot) == {i: int(ndv) for i, (ndv, _) in java.items()}
    computed = table.maintenance.compute_table_stats()
    ours = sketches(table)
    assert len(computed.distinct_values) == len(ours) == len(java) == 67
    schema = table.schema()
    for i, (ndv, data) in java.items():
        assert ours[i][0] == ndv == str(decode_theta(data).estimate), schema.name_of[i]
        if schema.row_primitive(i).name != "uuid":
            assert ours[i][1] == data, schema.name_of[i]


def test_spark_plans_by_sketches_of_ours(spark: SparkSession, place: Place) -> None:
    """Columns on the top level and in structs, with few and with many values; PyIceberg lists the same blobs."""
    name = f"{place.spark_catalog}.db.cbo"
    columns = pa.schema([("few", pa.int32()), ("many", pa.int64()), ("s", pa.struct([("x", pa.string())]))])
    table = place.ours.create_table("db.cbo", columns)
    rows = [{"few": i % 17, "many": i, "s": {"x": f"x{i % 5}"}} for i in range(20_000)]
    table.append(pa.Table.from_pylist(rows, schema=columns))
    estimates = table.maintenance.compute_table_stats(["few", "many", "s.x"]).distinct_values
    assert (estimates["few"], estimates["s.x"]) == (17, 5)
    spark.conf.set("spark.sql.cbo.enabled", "true")
    spark.conf.set("spark.sql.iceberg.report-column-stats", "true")
    try:
        plan = spark.table(name)._jdf.queryExecution().optimizedPlan()
        reported = plan.stats().attributeStats().toString()
    finally:
        spark.conf.set("spark.sql.cbo.enabled", "false")
    counts = dict(re.findall(r"(few|many)#\d+L? -> ColumnStat\(Some\((\d+)\)", reported))
    assert counts == {"few": "17", "many": str(estimates["many"])}
    pyiceberg = StaticTable.from_metadata(table.metadata_location).metadata.statistics
    listed = [(blob.type, blob.fields, blob.properties) for each in pyiceberg for blob in each.blob_metadata]
    schema = table.schema()
    assert listed == [
        (THETA_SKETCH, [schema.find(column).field_id], {NDV: str(count)}) for column, count in estimates.items()
    ]
    spark.sql(f"call {place.spark_catalog}.system.compute_table_stats(table => '{name}')")
    java = distinct_values(table.refresh().metadata, table.current_snapshot)
    many = schema.find("many").field_id
    assert abs(java[many] - estimates["many"]) < 0.06 * 20_000
    ours, theirs = table.maintenance.compute_table_stats(["many"]), sketches(table)
    assert ours.files_read == 1  # those of Java are not taken over
    assert theirs[many][0] == str(estimates["many"])


def test_iceberg_java_drops_indexes_and_ours_keep_its_sketches(spark: SparkSession, place: Place) -> None:
    """Java writes a new file with its sketches alone: scans then go without the index, and find the same rows."""
    name = f"{place.spark_catalog}.db.both"
    table = place.ours.create_table("db.both", pa.schema([("id", pa.int64()), ("n", pa.int64())]))
    for start in range(3):
        table.append(pa.table({"id": range(start, 30, 3), "n": range(10)}))
    table.maintenance.build_index("id", kind="values")
    call = f"call {place.spark_catalog}.system.compute_table_stats(table => '{name}'"
    spark.sql(f"{call}, columns => array('n'))")
    assert [blob.type for blob in statistics_of(table).blob_metadata] == [THETA_SKETCH]
    assert table.refresh().scan("id = 7").to_arrow()["id"].to_pylist() == [7]
    before = sketches(table)
    table.maintenance.build_index("id", kind="values")
    footer = read_footer(table.store.read(statistics_of(table).statistics_path))
    assert [blob.type for blob in footer.blobs] == [THETA_SKETCH, FILE_INDEX]
    assert [blob.type for blob in statistics_of(table).blob_metadata] == [THETA_SKETCH]
    assert sketches(table) == before
    assert table.scan("id = 7").plan().files.num_rows == 1


def java_partitions(spark: SparkSession, name: str) -> list[tuple[object, ...]]:
    """The rows that Java reads of the current snapshot's partition statistics file: partition, counts, last update."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    type_ = jvm.org.apache.iceberg.Partitioning.partitionType(table)
    anything = jvm.java.lang.Class.forName("java.lang.Object")
    scan = table.newPartitionStatisticsScan().useSnapshot(table.currentSnapshot().snapshotId()).scan()
    rows = scan.iterator()
    found: list[tuple[object, ...]] = []
    while rows.hasNext():
        row = rows.next()
        partition = tuple(str(row.partition().get(i, anything)) for i in range(type_.fields().size()))
        found.append(
            (
                partition,
                row.specId(),
                row.dataRecordCount(),
                row.dataFileCount(),
                row.totalDataFileSizeInBytes(),
                row.positionDeleteRecordCount(),
                row.positionDeleteFileCount(),
                row.equalityDeleteRecordCount(),
                row.equalityDeleteFileCount(),
                row.totalRecords(),
                row.lastUpdatedAt(),
                row.lastUpdatedSnapshotId(),
                row.dvCount() or 0,
            )
        )
    return found


def our_partitions(table: icebench.Table) -> list[tuple[object, ...]]:
    metadata = table.refresh().metadata
    file = next(f for f in metadata.partition_statistics if f.snapshot_id == metadata.current_snapshot_id)
    rows = read_partition_stats(metadata, file, table.store).to_pylist()
    return [
        (
            tuple("None" if v is None else str(v) for v in row["partition"].values()),
            row["spec_id"],
            *(row.get(name) or (None if name in ("total_record_count", "last_updated_at") else 0) for name in STATS),
        )
        for row in rows
    ]


STATS = (
    "data_record_count",
    "data_file_count",
    "total_data_file_size_in_bytes",
    "position_delete_record_count",
    "position_delete_file_count",
    "equality_delete_record_count",
    "equality_delete_file_count",
    "total_record_count",
    "last_updated_at",
    "last_updated_snapshot_id",
    "dv_count",
)


@pytest.mark.parametrize(("version", "file_format"), [(2, "parquet"), (2, "avro"), (3, "parquet")])
def test_partition_statistics_are_those_of_iceberg_java(
    version: int, file_format: str, spark: SparkSession, place: Place
) -> None:
    """Whole, and from a file of an ancestor, over an evolved spec and deletes; each reads those of the other."""
    own = f"db.partitions_v{version}_{file_format}"
    name = f"{place.spark_catalog}.{own}"
    columns = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("day", pa.date32())])
    spec = [("kind", "identity"), ("day", "month")]
    properties = {"format-version": str(version), "write.format.default": file_format}
    table = place.ours.create_table(own, columns, partition_spec=spec, properties=properties)

    def add(start: int) -> None:
        kinds = ["ab"[i % 2] if i % 5 else None for i in range(20)]
        rows = [{"id": start + i, "kind": kind, "day": dt.date(2026, 1 + i % 3, 1)} for i, kind in enumerate(kinds)]
        table.refresh().append(pa.Table.from_pylist(rows, schema=columns))

    def forget(snapshot_ids: Iterable[int]) -> None:
        table.refresh().maintenance.table.commit([UpdateStatistics(removed_partition=list(snapshot_ids))])

    def java() -> tuple[Any, Any]:
        """What both readers see of the file that Java writes of the snapshot."""
        spark.sql(f"call {place.spark_catalog}.system.compute_partition_stats(table => '{name}')")
        return java_partitions(spark, name), our_partitions(table)

    def ours() -> tuple[Any, Any]:
        """The same of ours, from the same files of ancestors."""
        forget([table.metadata.current_snapshot_id or 0])
        table.refresh().maintenance.compute_partition_stats()
        return java_partitions(spark, name), our_partitions(table)

    add(0)
    table.delete("id < 3", "merge-on-read")
    by_java = java()
    assert table.refresh().metadata.partition_statistics[-1].statistics_path.endswith(file_format)
    assert ours() == by_java
    assert len(by_java[0]) == 9
    add(100)
    table.delete("kind = 'a' and id > 104", "merge-on-read")
    table.delete("id = 110", "copy-on-write")
    by_java = java()
    assert ours() == by_java
    table.update_spec(lambda spec: spec.drop_field("day_month").add_field("id", "bucket[2]"))
    add(200)
    table.delete("id = 210", "copy-on-write")
    forget(file.snapshot_id for file in table.metadata.partition_statistics)
    by_java = java()
    assert ours() == by_java
    # From a file on, Java 1.12 mistakes partitions whose spec is not the whole common type, and counts them twice.
    add(300)
    from_files = ours()
    forget(file.snapshot_id for file in table.refresh().metadata.partition_statistics)
    assert java() == from_files
