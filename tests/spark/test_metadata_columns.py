"""Metadata columns of scans on Spark's own Parquet reader: the values that the Arrow reader gives, and Iceberg Java."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import icebench
from icebench.bench.setup_jars import is_cached
from icebench.engine.scan import Scan
from icebench.engine.spark.arrow_scan import plan_to_arrow_frame
from icebench.engine.spec.transforms import Identity, Truncate
from icebench.engine.table import Table
from icebench.errors import Unsupported
from tests.spark.deleted_tables import FIELDS, open_catalog, rows, with_every_delete

EVERY = ("_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number")
ALIVE = tuple(name for name in EVERY if name != "_deleted")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Every kind of delete, two specs, files from before row lineage and after, and one whose rows moved."""
    made = with_every_delete(tmp_path_factory.mktemp("metadata"))
    made.append(rows(2000, 2100))
    made.update("id between 2010 and 2012", {"name": "'changed'"}, mode="merge-on-read")
    return made


def bag(frame: DataFrame | pa.Table) -> Counter[str]:
    found = frame.toArrow() if isinstance(frame, DataFrame) else frame
    return Counter(map(repr, found.to_pylist()))


def native(session: SparkSession, scan: Scan) -> DataFrame:
    """The scan, of which is certain that no executor decodes it with Arrow."""
    frame: DataFrame = scan.to_spark(session)
    assert "MapInArrow" not in str(frame._jdf.queryExecution().toString())
    return frame


@pytest.mark.parametrize("columns", [EVERY, ALIVE, ("_pos",), ("_file",), ("_deleted",), ("_row_id", "_partition")])
@pytest.mark.parametrize("filter", [None, "id between 20 and 1105", "day = 1 and id > 990", "name = 'changed'"])
def test_three_ways_agree(spark: SparkSession, table: Table, columns: tuple[str, ...], filter: str | None) -> None:
    scan = table.scan(filter, ["id", *columns])
    expected = scan.to_arrow()
    frame = native(spark, scan)
    assert frame.columns == expected.schema.names
    assert bag(frame) == bag(expected)
    in_arrow = plan_to_arrow_frame(spark, scan.plan(), table.store, projection=scan.schema)
    assert in_arrow.dtypes == frame.dtypes
    assert bag(in_arrow) == bag(expected)


def test_of_what_is_read_only_what_is_asked_for_comes(session: SparkSession, table: Table) -> None:
    scan = table.scan(columns=["id", "name", *EVERY])
    expected = scan.to_arrow()
    frame = native(session, scan)
    rows_of = {tuple(row[n] for n in ("_file", "_pos")): row for row in expected.to_pylist()}
    assert bag(frame.select("_pos", "_deleted")) == bag(expected.select(["_pos", "_deleted"]))
    assert frame.where("_deleted").count() == sum(row["_deleted"] for row in rows_of.values()) > 100
    assert frame.where("_pos = 5 and not _deleted").count() == sum(
        row["_pos"] == 5 and not row["_deleted"] for row in rows_of.values()
    )
    one = expected["_file"][0].as_py()
    assert bag(frame.where(frame["_file"] == one)) == bag(
        pa.Table.from_pylist([r for r in rows_of.values() if r["_file"] == one], expected.schema)
    )
    other = native(session, table.scan("id >= 1000", ["id", "_row_id", "_pos"]))
    joined = other.alias("a").join(other.alias("b"), "_row_id").where("a.id = b.id and a._pos = b._pos")
    lineage = [
        row for row in table.scan("id >= 1000", ["_row_id"]).to_arrow()["_row_id"].to_pylist() if row is not None
    ]
    assert joined.count() == len(lineage) == len(set(lineage))
    twice = frame.select("id").where("not _deleted").unionAll(frame.select("id").where("_deleted"))
    assert bag(twice) == bag(expected.select(["id"]))


def test_rows_that_several_keys_delete_are_marked_once(session: SparkSession, tmp_path: Path) -> None:
    fields = pa.schema([("id", pa.int64()), ("f", pa.float64()), ("u", pa.uuid())])
    one = uuid.UUID(int=7)
    made = open_catalog(tmp_path).create_table("db.t", fields, properties={"format-version": "2"})
    values = [0.0, -0.0, float("nan"), None, 1.5]
    own = pa.table(
        {"id": range(5), "f": values, "u": pa.array([one.bytes] * 5, pa.uuid())},
        schema=fields,
    )
    made.append(own)
    for columns, keys in (
        (["f"], {"f": [-0.0, float("nan"), None]}),
        (["f"], {"f": [-0.0, float("nan")]}),
        (["id", "u"], {"id": [4, 4, 4], "u": pa.array([one.bytes] * 3, pa.uuid())}),
    ):
        stream = made.keyed_stream(columns)
        schema = pa.schema([fields.field(name) for name in columns])
        stream.delete(pa.table(keys, schema=schema))
        stream.commit()
    made.append(own)  # newer than all keys
    scan = made.scan(columns=["id", "f", "_deleted", "_pos"])
    frame = native(session, scan)
    assert bag(frame) == bag(scan.to_arrow())
    assert frame.where("_deleted").count() == 4
    assert native(session, made.scan()).count() == 6


def test_partitions_of_every_spec_and_type(session: SparkSession, tmp_path: Path) -> None:
    fields = pa.schema([("id", pa.int64()), ("u", pa.uuid()), ("raw", pa.binary(2)), ("name", pa.string())])
    table = open_catalog(tmp_path).create_table("db.t", fields, partition_spec=[("u", "identity")])
    own = {
        "id": [1, 2, 3],
        "u": pa.array([uuid.UUID(int=9).bytes, None, uuid.UUID(int=9).bytes], pa.uuid()),
        "raw": pa.array([b"ab", b"cd", None], pa.binary(2)),
        "name": ["a/b c%", None, "ä"],
    }
    table.append(pa.table(own, schema=fields))
    table.update_spec(lambda spec: spec.add_field("raw", Identity()).add_field("name", Truncate(1)))
    table.append(pa.table(own, schema=fields))
    scan = table.scan(columns=["id", "_partition", "_spec_id", "_file"])
    found = [row.asDict(recursive=True) for row in native(session, scan).collect()]
    expected = scan.to_arrow().to_pylist()
    for row in expected:
        row["_partition"]["u"] = None if row["_partition"]["u"] is None else str(row["_partition"]["u"])
    assert Counter(map(repr, found)) == Counter(map(repr, expected))


def test_names_of_the_table_come_first(session: SparkSession, tmp_path: Path) -> None:
    names = ["_position", "_icebench_row", "_icebench_key", "_metadata", "_icebench_2147483540"]
    own = pa.table({name: range(at, at + 10) for at, name in enumerate(names)})
    table = open_catalog(tmp_path).create_table("db.t", own.schema, properties={"format-version": "3"})
    table.append(own)
    table.delete("_position in (3, 4)", "merge-on-read")
    scan = table.scan("_icebench_key >= 5", [*names, "_file", "_row_id", "_deleted"])
    assert bag(native(session, scan)) == bag(scan.to_arrow())
    assert native(session, table.scan()).count() == 8
    assert sorted(row[0] for row in native(session, table.scan(columns=["_position"])).collect()) == [
        0,
        1,
        2,
        5,
        6,
        7,
        8,
        9,
    ]


def test_a_name_that_sparks_reader_fills_is_refused_with_places(spark: SparkSession, tmp_path: Path) -> None:
    own = pa.table({"_tmp_metadata_row_index": [7, 8], "id": [1, 2]})
    table = open_catalog(tmp_path).create_table("db.t", own.schema, properties={"format-version": "3"})
    table.append(own)
    assert bag(native(spark, table.scan())) == bag(own)
    with pytest.raises(Unsupported, match="_tmp_metadata_row_index"):
        table.scan(columns=["id", "_pos"]).to_spark(spark)
    table.delete("id = 1", "merge-on-read")
    with pytest.raises(Unsupported, match="_tmp_metadata_row_index"):
        table.scan(columns=["id"]).to_spark(spark)


def test_files_without_field_ids_have_places_too(session: SparkSession, tmp_path: Path) -> None:
    table = open_catalog(tmp_path).create_table("db.t", FIELDS, properties={"format-version": "3"})
    path = tmp_path / "imported.parquet"
    pq.write_table(rows(0, 100).rename_columns(["number", "name", "day"]), path)
    mapping = [{"field-id": 1, "names": ["id", "number"]}, {"field-id": 2, "names": ["name"]}]
    table.set_properties({"schema.name-mapping.default": json.dumps(mapping)})
    file = icebench.DataFile(
        file_path=str(path), file_format="parquet", record_count=100, file_size_in_bytes=path.stat().st_size
    )
    table.add_files([file])
    table.append(rows(100, 110))
    table.delete("id in (5, 50, 105)", "merge-on-read")
    scan = table.scan("id > 3", ["id", "name", "day", *EVERY])
    assert bag(native(session, scan)) == bag(scan.to_arrow())
    assert native(session, table.scan()).count() == 107


@pytest.mark.skipif(not is_cached(), reason="Iceberg's Spark runtime is not in the Ivy cache")
@pytest.mark.parametrize("version", [2, 3])
def test_values_are_those_of_iceberg_java(spark: SparkSession, version: int) -> None:
    name = f"iceberg_java.metadata_columns.t{version}"
    spark.sql("create namespace if not exists iceberg_java.metadata_columns")
    spark.sql(
        f"""create table {name} (id bigint, data string, p int) using iceberg partitioned by (p)
            tblproperties ('format-version'='{version}', 'write.delete.mode'='merge-on-read',
                           'write.update.mode'='merge-on-read')"""
    )
    spark.sql(f"insert into {name} select id, concat('d', id), cast(id % 3 as int) from range(300)")
    spark.sql(f"delete from {name} where id in (1, 5, 7, 299)")
    spark.sql(f"alter table {name} add partition field bucket(4, id)")
    spark.sql(f"insert into {name} select id, 'new', cast(id % 2 as int) from range(300, 400)")
    spark.sql(f"update {name} set data = 'other' where id between 290 and 310")
    place = spark.sql(f"select file from {name}.metadata_log_entries order by timestamp desc, file desc").head()
    assert place is not None
    table = icebench.load_table(str(place[0]))
    ours = ["id", "data", "_file", "_pos", "_spec_id", "_partition"]
    if version == 3:
        ours += ["_row_id", "_last_updated_sequence_number"]
    for columns in (ours, [*ours, "_deleted"]):
        theirs = spark.table(name).select(*columns)
        assert counted(native(spark, table.scan(columns=columns)), columns) == counted(theirs, columns)


def counted(frame: DataFrame, columns: list[str]) -> Counter[Any]:
    return Counter(tuple(str(row[name]) for name in columns) for row in frame.collect())
