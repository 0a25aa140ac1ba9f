"""Sketches of distinct values as Iceberg Java computes them of the same rows, each read by the other."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

import engine
from engine.codec.puffin.file import read_blob, read_footer
from engine.codec.puffin.theta import NDV, THETA_SKETCH, decode_theta
from engine.file_indexes.blob import FILE_INDEX
from engine.maintenance.profile.statistics import distinct_values
from engine.spec.statistics import StatisticsFile
from tests.interop.histories.places import Place, directory_place
from tests.interop.metrics_columns import SCHEMA, cycled

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = directory_place(spark, tmp_path_factory.mktemp("statistics"))
    yield made
    made.close()


def statistics_of(table: engine.Table) -> StatisticsFile:
    """The file of the current snapshot."""
    metadata = table.refresh().metadata
    return next(each for each in metadata.statistics if each.snapshot_id == metadata.current_snapshot_id)


def sketches(table: engine.Table) -> dict[int, tuple[str, bytes]]:
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
    told = table.maintenance.compute_table_stats(["few", "many", "s.x"]).distinct_values
    assert (told["few"], told["s.x"]) == (17, 5)
    spark.conf.set("spark.sql.cbo.enabled", "true")
    spark.conf.set("spark.sql.iceberg.report-column-stats", "true")
    try:
        plan = spark.table(name)._jdf.queryExecution().optimizedPlan()
        reported = plan.stats().attributeStats().toString()
    finally:
        spark.conf.set("spark.sql.cbo.enabled", "false")
    counts = dict(re.findall(r"(few|many)#\d+L? -> ColumnStat\(Some\((\d+)\)", reported))
    assert counts == {"few": "17", "many": str(told["many"])}
    pyiceberg = StaticTable.from_metadata(table.metadata_location).metadata.statistics
    listed = [(blob.type, blob.fields, blob.properties) for each in pyiceberg for blob in each.blob_metadata]
    schema = table.schema()
    assert listed == [
        (THETA_SKETCH, [schema.find(column).field_id], {NDV: str(count)}) for column, count in told.items()
    ]
    spark.sql(f"call {place.spark_catalog}.system.compute_table_stats(table => '{name}')")
    java = distinct_values(table.refresh().metadata, table.current_snapshot)
    many = schema.find("many").field_id
    assert abs(java[many] - told["many"]) < 0.06 * 20_000
    ours, theirs = table.maintenance.compute_table_stats(["many"]), sketches(table)
    assert ours.files_read == 1  # those of Java are not taken over
    assert theirs[many][0] == str(told["many"])


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
    assert [blob.type for blob in statistics_of(table).blob_metadata] == [THETA_SKETCH, FILE_INDEX]
    assert sketches(table) == before
    assert table.scan("id = 7").plan().files.num_rows == 1
