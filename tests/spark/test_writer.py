"""DataFrames written by executors: the rows arrive, once, where the table wants them."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import icebench
from icebench.engine.runtime.counters import FILES_WRITTEN, Counters
from icebench.engine.spark.frame_writer import write_dataframe
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import SortField, SortOrder
from icebench.engine.spec.transforms import Bucket, Day, Identity, Transform, Truncate
from icebench.engine.spec.types import (
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    DecimalType,
    NestedField,
    StructType,
    list_type,
)
from icebench.engine.storage.local import LocalStore
from icebench.errors import Invalid, StorageFailed, Unsupported
from tests.unit.engine.write.metadata_for_writes import metadata_of

SCHEMA = Schema(
    (
        NestedField(field_id=1, name="id", type=LONG, required=True),
        NestedField(field_id=2, name="p", type=STRING),
        NestedField(field_id=3, name="at", type=TIMESTAMPTZ),
        NestedField(field_id=4, name="x", type=DecimalType(7, 2)),
    )
)


def metadata(
    directory: Path, *partitioned_by: tuple[str, Transform], order: SortOrder | None = None, **properties: str
) -> TableMetadata:
    named = {name.replace("_", "-").replace("write-", "write."): text for name, text in properties.items()}
    made = metadata_of(SCHEMA, partitioned_by, sort_order=order, properties=named)
    return replace(made, location=str(directory / "t"))


def rows_of(files: Sequence[DataFile]) -> list[list[dict[str, Any]]]:
    return [pq.read_table(file.file_path).to_pylist() for file in files]


def frame_of(spark: SparkSession, count: int = 1000, partitions: int = 4) -> DataFrame:
    return spark.range(0, count, 1, partitions).select(
        "id",
        F.concat(F.lit("p"), F.col("id") % 3).alias("p"),
        F.timestamp_seconds(F.col("id") * 3600).alias("at"),
        (F.col("id") / 4).cast("decimal(7,2)").alias("x"),
    )


def test_each_task_writes_its_rows_and_reports_its_files(spark: SparkSession, tmp_path: Path) -> None:
    counters = Counters()
    files = write_dataframe(frame_of(spark), metadata=metadata(tmp_path), store=LocalStore(), counters=counters)
    assert [f.record_count for f in files] == [250] * 4
    assert [Path(f.file_path).name[:5] for f in files] == ["00000", "00001", "00002", "00003"]
    assert counters[FILES_WRITTEN] == 4
    rows = [row for own in rows_of(files) for row in own]
    assert [row["id"] for row in rows] == list(range(1000))
    assert rows[5] == {
        "id": 5,
        "p": "p2",
        "at": dt.datetime(1970, 1, 1, 5, tzinfo=dt.UTC),
        "x": Decimal("1.25"),
    }
    for file, own in zip(files, rows_of(files), strict=True):
        assert file.file_size_in_bytes == Path(file.file_path).stat().st_size
        assert file.lower_bounds[1] == min(row["id"] for row in own).to_bytes(8, "little")
        assert file.null_value_counts == {1: 0, 2: 0, 3: 0, 4: 0}
        assert file.split_offsets


@pytest.mark.parametrize("mode", ["none", "hash", "range"])
def test_rows_go_to_their_partitions_in_every_distribution(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    order = SortOrder((SortField(source_ids=(1,), transform=Identity(), direction="desc"),), 1)
    made = metadata(
        tmp_path, ("p", Identity()), ("id", Bucket(2)), ("at", Day()), order=order, write_distribution_mode=mode
    )
    files = write_dataframe(frame_of(spark, 300), metadata=made, store=LocalStore())
    assert sum(f.record_count for f in files) == 300
    for file, rows in zip(files, rows_of(files), strict=True):
        ids = [row["id"] for row in rows]
        for row in rows:
            day = (row["at"].date() - dt.date(1970, 1, 1)).days
            assert file.partition == (row["p"], Bucket(2).apply(LONG, row["id"]), day)
        if mode == "none":
            assert file.sort_order_id is None
        else:
            assert file.sort_order_id == 1
            assert ids == sorted(ids, reverse=True)
    partitions = {f.partition for f in files}
    if mode == "hash":
        assert len(files) == len(partitions)


def test_ranges_hardly_overlap(spark: SparkSession, tmp_path: Path) -> None:
    keys = SortField(source_ids=(4,), transform=Truncate(100)), SortField(source_ids=(1,), transform=Identity())
    made = metadata(tmp_path, order=SortOrder(keys, 1), write_distribution_mode="range")
    coalesce = "spark.sql.adaptive.coalescePartitions.enabled"
    spark.conf.set(coalesce, "false")
    try:
        files = write_dataframe(frame_of(spark).orderBy(F.rand(3)), metadata=made, store=LocalStore())
    finally:
        spark.conf.unset(coalesce)
    assert len(files) == 2
    ids = sorted([row["id"] for row in rows] for rows in rows_of(files))
    assert ids[0] + ids[1] == list(range(1000))


def test_all_types_arrive(spark: SparkSession, tmp_path: Path) -> None:
    inner = StructType((NestedField(field_id=5, name="l", type=list_type(6, INT)),))
    schema = Schema(
        (
            NestedField(field_id=1, name="u", type=UUID),
            NestedField(field_id=2, name="day", type=DATE),
            NestedField(field_id=3, name="at", type=TIMESTAMP),
            NestedField(field_id=4, name="s", type=inner),
            NestedField(field_id=7, name="d", type=DOUBLE),
            NestedField(field_id=8, name="absent", type=STRING),
        )
    )
    frame = spark.sql(
        """select '00000000-0000-0000-0000-000000000001' u, date'0001-01-01' day, timestamp_ntz'1582-10-04 01:02:03' at,
           named_struct('l', array(1, null)) s, double('NaN') d
           union all select null, null, null, null, null"""
    )
    made = replace(metadata_of(schema), location=str(tmp_path / "t"))
    files = write_dataframe(frame.coalesce(1), metadata=made, store=LocalStore())
    (rows,) = rows_of(files)
    assert str(rows[0]["u"]) == "00000000-0000-0000-0000-000000000001"
    assert rows[0]["day"] == dt.date(1, 1, 1)
    assert rows[0]["s"] == {"l": [1, None]}
    assert rows[1] == dict.fromkeys(("u", "day", "at", "s", "d", "absent"))
    assert files[0].nan_value_counts == {7: 1}


UUIDS = Schema((NestedField(field_id=1, name="the.u", type=UUID), NestedField(field_id=2, name="n", type=LONG)))


def test_texts_that_are_uuids_are_the_uuids_that_python_makes_of_them(spark: SparkSession, tmp_path: Path) -> None:
    draw = random.Random(1)
    plain = [str(uuid.UUID(int=draw.getrandbits(128))) for _ in range(5)]
    texts = [*plain, plain[0].upper(), plain[1].replace("-", ""), f"{{{plain[2]}}}", f"urn:uuid:{plain[3]}", None]
    frame = spark.createDataFrame([(text, n) for n, text in enumerate(texts)], "`the.u` string, n bigint")
    made = replace(metadata_of(UUIDS), location=str(tmp_path / "t"))
    files = write_dataframe(frame, metadata=made, store=LocalStore())
    found = sorted((row["n"], row["the.u"]) for rows in rows_of(files) for row in rows)
    assert found == [(n, None if text is None else uuid.UUID(text)) for n, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("text", "mode"),
    [("not-a-uuid", "none"), ("0" * 31, "hash"), ("0" * 32 + "\n", "range"), ("0x" + "1" * 30, "none"), ("", "none")],
)
def test_a_text_that_is_no_uuid_is_reported_and_leaves_nothing(
    spark: SparkSession, tmp_path: Path, text: str, mode: str
) -> None:
    values = [(None, 0), (str(uuid.UUID(int=1)), 1), (text, 2)]
    frame = spark.createDataFrame(values, "`the.u` string, n bigint").coalesce(1)
    properties = {"write.distribution-mode": mode}
    made = metadata_of(UUIDS, [("the.u", Bucket(2)), ("n", Identity())], properties=properties)
    with pytest.raises(Invalid, match=r"column 'the\.u': a text is not a uuid"):
        write_dataframe(frame, metadata=replace(made, location=str(tmp_path / "t")), store=LocalStore())
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_rows_that_do_not_fit_are_named_and_leave_nothing(spark: SparkSession, tmp_path: Path) -> None:
    made = metadata(tmp_path, ("p", Identity()))
    bad = frame_of(spark).withColumn("x", F.when(F.col("id") < 990, 1).otherwise(123456).cast("decimal(9,2)"))
    with pytest.raises(Invalid, match="'x' does not fit"):
        write_dataframe(bad, metadata=made, store=LocalStore())
    with pytest.raises(Invalid, match="'more' is not in the table"):
        write_dataframe(frame_of(spark).withColumn("more", F.lit(1)), metadata=made, store=LocalStore())
    with pytest.raises(Invalid, match="'id' is required"):
        write_dataframe(frame_of(spark).withColumn("id", F.lit(None).cast("long")), metadata=made, store=LocalStore())
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_storage_that_refuses_an_executor_is_named_here(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    made = replace(metadata(tmp_path), location=str(tmp_path / "file" / "t"))
    with pytest.raises(StorageFailed, match=f"cannot write {tmp_path}/file/t/data/"):
        write_dataframe(frame_of(spark), metadata=made, store=LocalStore())


def test_no_rows_give_no_files(spark: SparkSession, tmp_path: Path) -> None:
    assert not write_dataframe(frame_of(spark).where("id < 0"), metadata=metadata(tmp_path), store=LocalStore())


def test_a_wrong_mode_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    made = metadata(tmp_path, write_distribution_mode="random")
    with pytest.raises(Invalid, match="distribution-mode"):
        write_dataframe(frame_of(spark), metadata=made, store=LocalStore())


@pytest.mark.parametrize("mode", ["none", "hash", "range"])
def test_zeros_of_both_signs_are_two_partitions(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    schema = Schema((NestedField(field_id=1, name="f", type=DOUBLE), NestedField(field_id=2, name="n", type=LONG)))
    spec = [("f", Identity()), ("n", Identity())]
    made = metadata_of(schema, spec, properties={"write.distribution-mode": mode})
    values = [-0.0, 0.0, float("nan"), None] * 6
    frame = spark.createDataFrame([(f, i // 4 % 2) for i, f in enumerate(values)], "f double, n bigint").coalesce(1)
    files = write_dataframe(frame, metadata=replace(made, location=str(tmp_path / "t")), store=LocalStore())
    found = sorted((str(f.partition), f.record_count) for f in files)
    assert found == sorted((f"({f}, {n})", 3) for f in ("-0.0", "0.0", "nan", "None") for n in (0, 1))


def test_sources_are_found_by_names_with_dots(spark: SparkSession, tmp_path: Path) -> None:
    inner = StructType((NestedField(field_id=2, name="in.ner", type=LONG),))
    schema = Schema((NestedField(field_id=1, name="s.t", type=inner),))
    spec = [("s.t.in.ner", Bucket(4))]
    made = metadata_of(schema, spec, properties={"write.distribution-mode": "hash"})
    frame = spark.createDataFrame([((n,),) for n in range(20)], "`s.t` struct<`in.ner`: bigint>")
    files = write_dataframe(frame, metadata=replace(made, location=str(tmp_path / "t")), store=LocalStore())
    assert sorted(f.partition for f in files) == [(0,), (1,), (2,), (3,)]
    assert sum(f.record_count for f in files) == 20


@pytest.mark.parametrize("mode", ["none", "hash", "range"])
def test_a_void_field_needs_no_source(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    properties = {"format-version": "1", "write.distribution-mode": mode}
    catalog = icebench.load_catalog(f"{tmp_path}/wh")
    data = pa.table({"id": [1, 2], "gone": ["a", "b"]})
    table = catalog.create_table("db.t", data.schema, partition_spec=[("gone", "identity")], properties=properties)
    table.append(data)
    table.update_spec(lambda spec: spec.drop_field("gone"))
    table.update_schema(lambda schema: schema.drop_column("gone"))
    table.append(spark.createDataFrame([(3,)], "id bigint"))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_a_transform_of_several_columns_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    order = SortOrder((SortField(source_ids=(1, 2), transform=Bucket(3)),), 1)
    made = metadata(tmp_path, order=order, write_distribution_mode="range")
    with pytest.raises(Unsupported, match=r"bucket\[3\] of several columns"):
        write_dataframe(frame_of(spark), metadata=made, store=LocalStore())
