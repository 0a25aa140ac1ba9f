"""Scans on Spark's own Parquet reader: the rows that the Arrow reader gives, and nothing left behind in the session."""

from __future__ import annotations

import datetime as dt
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import icebench
from icebench.engine.expressions.bound import BoundPredicate
from icebench.engine.expressions.predicate import equal
from icebench.engine.plan.scan import ScanPlan, table_scan
from icebench.engine.read.plans import read_plan
from icebench.engine.spark import deletes
from icebench.engine.spark.file_chunks import xxhash64
from icebench.engine.spark.native_scan import plan_to_dataframe
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.schema import Schema
from icebench.engine.storage.local import LocalStore
from icebench.engine.table import Table
from icebench.errors import Unsupported
from tests.property import table_model as model
from tests.property.test_read import filters

STORE = LocalStore(durable=False)


def key(row: model.Row) -> str:
    return repr(sorted(row.items()))


def same_bag(left: list[model.Row], right: list[model.Row]) -> bool:
    return model.same_rows(sorted(left, key=key), sorted(right, key=key))


@settings(max_examples=8)
@given(data=st.data(), residual=st.none() | filters())
def test_gives_the_rows_of_the_model(spark: SparkSession, data: st.DataObject, residual: BoundPredicate | None) -> None:
    with tempfile.TemporaryDirectory() as directory:
        new: Callable[[], model.ModelTable] = lambda: model.ModelTable(store=STORE, location=directory)  # noqa: E731
        table = data.draw(model.tables(new=new))
        fields = data.draw(st.lists(st.sampled_from(model.NEW.fields), unique=True, min_size=1))
        projection = model.with_fields(model.NEW, fields)
        frame = plan_to_dataframe(spark, table.plan(projection, residual), STORE)
        found = model.given(projection, frame.toArrow().to_batches())
        assert same_bag(found, model.narrowed(table.expected(residual), projection))


@pytest.fixture
def make_table(tmp_path: Path) -> Callable[..., Table]:
    catalog = icebench.load_catalog(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")

    def make(rows: pa.Table, **options: object) -> Table:
        table = catalog.create_table("db.t", rows.schema, **options)  # type: ignore[arg-type]
        table.append(rows)
        return table

    return make


def plan_of(table: Table, filter: str | None = None, metadata: TableMetadata | None = None) -> ScanPlan:
    return table_scan(metadata or table.metadata, table.store, filter=filter).plan()


def arrow_rows(table: Table, plan: ScanPlan) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = read_plan(plan, table.store).read_all().to_pylist()
    return sorted(rows, key=repr)


def spark_rows(frame: DataFrame) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = frame.toArrow().to_pylist()
    return sorted(rows, key=repr)


ROWS = pa.table({"id": range(1000), "v": [i * 2 for i in range(1000)], "p": [f"a/{i % 3} b%" for i in range(1000)]})
SMALL_GROUPS = {"write.parquet.row-group-size-bytes": "2000"}


def test_the_session_stays_as_it_is_and_the_scan_does_not_hang_on_it(
    spark: SparkSession, make_table: Callable[..., Table]
) -> None:
    table = make_table(ROWS, properties=SMALL_GROUPS)
    table.delete("id = 3", mode="merge-on-read")
    spark.createDataFrame([], "id int")  # makes the session the active one
    before, views = dict(spark.conf.getAll), spark.catalog.listTables("global_temp")
    frame = plan_to_dataframe(spark, plan_of(table, "id >= 990"), table.store)
    assert dict(spark.conf.getAll) == before
    assert spark.catalog.listTables("global_temp") == views
    assert frame.sparkSession is spark
    assert SparkSession.getActiveSession() is spark
    frame.createOrReplaceTempView("scan")
    # Settings that Spark reads when a DataFrame runs are the scan's own, whatever the user's are by then.
    for setting in ("true", "false"):
        spark.conf.set("spark.sql.parquet.fieldId.read.enabled", setting)
        assert spark.sql("select sum(v) from scan").collect() == [(sum(range(1980, 2000, 2)),)]
    spark.conf.unset("spark.sql.parquet.fieldId.read.enabled")
    spark.catalog.dropTempView("scan")


@contextmanager
def counted_calls(spark: SparkSession) -> Iterator[Callable[[], int]]:
    """How many calls PySpark makes into the Java virtual machine within, but for those that only forget objects."""
    client, calls = spark._jvm._gateway_client, 0  # type: ignore[union-attr]
    known = client.send_command

    def send(command: str, *options: object, **more: object) -> object:
        nonlocal calls
        calls += not command.startswith("m\n")
        return known(command, *options, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "send_command", send)
        yield lambda: calls


def test_making_a_scan_takes_few_calls_whatever_its_size(spark: SparkSession, make_table: Callable[..., Table]) -> None:
    wide = pa.table({f"c{i}": range(1000) for i in range(30)})
    table = make_table(wide, properties={"write.target-file-size-bytes": "3000", **SMALL_GROUPS})
    plan = plan_of(table, "c0 >= 0 and c1 < 10000")
    assert plan.files.num_rows > 32
    plan_to_dataframe(spark, plan, table.store)  # derives a session
    with counted_calls(spark) as calls:
        plan_to_dataframe(spark, plan, table.store)
        assert 5 < calls() <= 20
    table.delete("c0 < 900", mode="merge-on-read")
    with_deletes = plan_of(table, "c0 <= 950")
    with counted_calls(spark) as calls:
        frame = plan_to_dataframe(spark, with_deletes, table.store)
        assert 20 < calls() <= 80  # two groups of files, one of them with deletes, and some for each file of that
    assert frame.count() == 51


def test_the_users_ways_to_write_sql_do_not_matter(spark: SparkSession, make_table: Callable[..., Table]) -> None:
    texts = ["it's", "back\\slash", "\\t", "nul\0", "`", '"', "a+", "", "${version}", "${env:HOME}", "$"]
    rows = pa.table({"a.b": texts, **dict.fromkeys(("a+", "``", "${x}"), range(len(texts)))})
    table = make_table(rows)
    settings = {
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.parser.quotedRegexColumnNames": "true",
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.sql.caseSensitive": "true",
    }
    for setting, value in settings.items():
        spark.conf.set(setting, value)
    try:
        for place, text in enumerate(texts):
            plan = table_scan(table.metadata, table.store, filter=equal("a.b", text)).plan()
            expected = {"a.b": text, **dict.fromkeys(("a+", "``", "${x}"), place)}
            assert spark_rows(plan_to_dataframe(spark, plan, table.store)) == [expected]
        assert spark_rows(plan_to_dataframe(spark, plan_of(table), table.store)) == arrow_rows(table, plan_of(table))
    finally:
        for setting in settings:
            spark.conf.unset(setting)


def test_many_files_are_not_listed_by_a_job(spark: SparkSession, make_table: Callable[..., Table]) -> None:
    table = make_table(ROWS, properties={"write.target-file-size-bytes": "300", **SMALL_GROUPS})
    plan = plan_of(table)
    assert plan.files.num_rows > 32
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("icebench-listing", "listing")
    frame = plan_to_dataframe(spark, plan, table.store)
    assert list(tracker.getJobIdsForGroup("icebench-listing")) == []
    assert frame.count() == 1000
    assert list(tracker.getJobIdsForGroup("icebench-listing"))


def test_a_name_that_was_given_anew_does_not_prune_row_groups(
    spark: SparkSession, make_table: Callable[..., Table]
) -> None:
    table = make_table(ROWS, properties=SMALL_GROUPS)
    id_, v, p = table.schema().fields
    swapped = Schema(
        (
            icebench.NestedField(field_id=v.field_id, name="id", type=v.type),
            icebench.NestedField(field_id=id_.field_id, name="v", type=id_.type),
            p,
        ),
        schema_id=1,
    )
    metadata = with_schema(table.metadata, swapped)
    # 1990 is no value of the old column `id`, which Spark would look for by name.
    plan = plan_of(table, "id = 1990", metadata)
    rows = arrow_rows(table, plan)
    assert [row["v"] for row in rows] == [995]
    frame = plan_to_dataframe(spark, plan, table.store)
    assert spark_rows(frame) == rows
    assert spark_rows(plan_to_dataframe(spark, plan_of(table, None, metadata), table.store).where("id = 1990")) == rows


def with_schema(metadata: TableMetadata, schema: Schema) -> TableMetadata:
    return replace(metadata, schemas=(*metadata.schemas, schema), current_schema_id=schema.schema_id)


def test_row_groups_are_pruned_by_spark_where_names_are_safe(
    spark: SparkSession, make_table: Callable[..., Table]
) -> None:
    table = make_table(ROWS, properties=SMALL_GROUPS)
    frame = plan_to_dataframe(spark, plan_of(table, "id = 5"), table.store)
    assert "PushedFilters: [IsNotNull(id), EqualTo(id,5)]" in explained(frame)
    assert frame.count() == 1


def explained(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().toString())


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_apply_across_row_groups_chunks_and_odd_paths(
    spark: SparkSession, make_table: Callable[..., Table], version: int
) -> None:
    count = 70_000
    rows = pa.table({"id": range(count), "p": [f"a/{i % 2} b%#" for i in range(count)]})
    table = make_table(rows, partition_spec=[("p", "identity")], properties={"format-version": str(version)})
    table.append(rows.slice(0, 10))
    table.delete("id in (0, 1, 32767, 65535, 65537, 69999) or id between 100 and 40000", mode="merge-on-read")
    plan = plan_of(table)
    assert sum(len(deletes) for deletes in plan.files.column("deletes").to_pylist()) >= 2
    frame = plan_to_dataframe(spark, plan, table.store)
    expected = sorted(arrow_rows(table, plan), key=lambda row: row["id"])  # type: ignore[arg-type,return-value]
    assert frame.count() == len(expected)
    found = frame.select("id").orderBy("id").toArrow().column("id").to_pylist()
    assert found == [row["id"] for row in expected]
    # With a filter that prunes row groups, positions still mean the rows of the file.
    pruned = plan_of(table, "id >= 65530 and id < 65540")
    assert spark_rows(plan_to_dataframe(spark, pruned, table.store)) == arrow_rows(table, pruned)


def test_positions_apply_to_files_of_one_name(
    spark: SparkSession, make_table: Callable[..., Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletes, "bits_of", lambda *_: None)  # else sizes distinguish the files
    table = make_table(ROWS.slice(0, 1))
    for part, start in (("a b%#", 100), ("ä", 200)):
        (tmp_path / part).mkdir()
        path = tmp_path / part / "same.parquet"
        ids = [f.with_metadata({"PARQUET:field_id": str(i)}) for i, f in enumerate(ROWS.schema, 1)]
        pq.write_table(ROWS.slice(start, 50).cast(pa.schema(ids)), path)
        size = path.stat().st_size
        file = icebench.DataFile(file_path=str(path), file_format="parquet", record_count=50, file_size_in_bytes=size)
        table.add_files([file])
    table.delete("id in (100, 202, 203, 249)", mode="merge-on-read")
    frame = plan_to_dataframe(spark, plan_of(table), table.store)
    assert "file_path" in explained(frame)
    assert "file_name" not in explained(frame)
    found = spark_rows(frame)
    assert found == arrow_rows(table, plan_of(table))
    assert len(found) == 97


def test_a_scan_with_deletes_starts_no_job_before_it_runs(
    spark: SparkSession, make_table: Callable[..., Table]
) -> None:
    table = make_table(ROWS)
    table.delete("id in (1, 500)", mode="merge-on-read")
    stream = table.keyed_stream(["id"])
    stream.delete(pa.table({"id": [7, 999]}))
    stream.commit()
    spark.sparkContext.setJobGroup("icebench-deletes", "making a scan with deletes")
    frame = plan_to_dataframe(spark, plan_of(table), table.store)
    assert list(spark.sparkContext.statusTracker().getJobIdsForGroup("icebench-deletes")) == []
    assert frame.count() == 996


def test_keys_that_concern_every_row_need_no_places(spark: SparkSession, make_table: Callable[..., Table]) -> None:
    table = make_table(ROWS)
    stream = table.keyed_stream(["id", "p"])
    stream.delete(pa.table({"id": [7, 8, 999, None], "p": ["a/1 b%", "no such row", "a/0 b%", "x"]}))
    stream.commit()
    frame = plan_to_dataframe(spark, plan_of(table), table.store)
    assert "row_index" not in explained(frame)
    assert spark_rows(frame) == arrow_rows(table, plan_of(table))
    assert frame.count() == 998
    # The key comes back in a newer file: that row lives, the old one does not.
    table.append(ROWS.slice(7, 1))
    again = plan_to_dataframe(spark, plan_of(table), table.store)
    assert spark_rows(again) == arrow_rows(table, plan_of(table))
    assert again.where("id = 7").count() == 1


@settings(max_examples=3)
@given(texts=st.lists(st.text(max_size=100), min_size=50, max_size=50))
def test_hashes_are_those_of_spark(spark: SparkSession, texts: list[str]) -> None:
    frame = spark.createDataFrame(pa.table({"t": texts})).selectExpr("t", "xxhash64(t) as h")
    assert all(xxhash64(row.t) == row.h for row in frame.collect())


def test_rows_that_the_plan_does_not_have_stop_the_query(spark: SparkSession, make_table: Callable[..., Table]) -> None:
    table = make_table(pa.table({"id": range(40_000)}))
    table.delete("id = 3", mode="merge-on-read")
    plan = plan_of(table)
    place = plan.files.schema.get_field_index("record_count")
    short = plan.files.set_column(place, plan.files.schema.field(place), pa.array([100]))
    frame = plan_to_dataframe(spark, replace(plan, files=short), table.store)
    with pytest.raises(PySparkException, match="rows of a file that the plan does not have"):
        frame.toArrow()


def test_all_types_that_spark_has(spark: SparkSession, make_table: Callable[..., Table]) -> None:
    moment = dt.datetime(1582, 10, 4, 12, 30, 0, 5, tzinfo=dt.UTC)
    rows = pa.table(
        {
            "b": [True, None],
            "i": pa.array([1, None], pa.int32()),
            "f": pa.array([float("inf"), -0.0], pa.float32()),
            "d": pa.array([Decimal("1.25"), None], pa.decimal128(7, 2)),
            "wide": pa.array([Decimal("-1.25"), None], pa.decimal128(38, 2)),
            "day": [dt.date(1, 1, 1), None],
            "at": pa.array([moment.replace(tzinfo=None), None], pa.timestamp("us")),
            "utc": pa.array([moment, None], pa.timestamp("us", "UTC")),
            "u": pa.array([uuid.UUID(int=2**127 + 5).bytes, None], pa.uuid()),
            "x": pa.array([b"ab", None], pa.binary(2)),
            "raw": pa.array([b"", None], pa.binary()),
            "l": [[{"a": 1}], None],
            "m": pa.array([[("k", [1])], None], pa.map_(pa.string(), pa.list_(pa.int32()))),
        }
    )
    table = make_table(rows)
    found = plan_to_dataframe(spark, plan_of(table), table.store).toArrow().to_pylist()
    expected = [{**row, "u": None if row["u"] is None else str(row["u"])} for row in rows.to_pylist()]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    for text in (
        "u = '80000000-0000-0000-0000-000000000005'",
        "x = 0x6162",
        "day < '0002-01-01'",
        "at <= '1582-10-04T12:30:00.000005'",
        "utc = '1582-10-04T12:30:00.000005+00:00'",
        "d = 1.25 and wide < 0 and f > 3",
    ):
        plan = plan_of(table, text)
        assert (
            plan_to_dataframe(spark, plan, table.store).count() == read_plan(plan, table.store).read_all().num_rows == 1
        )


def test_files_without_field_ids_are_read_by_the_name_mapping(
    spark: SparkSession, make_table: Callable[..., Table], tmp_path: Path
) -> None:
    rows = pa.table({"id": [1, 2], "s": [{"a": 1, "b": "x"}, None], "p": ["x", "y"]})
    table = make_table(rows, partition_spec=[("p", "identity")])
    imported = pa.table({"s": [{"b": "z", "more": 0}, {"b": None, "more": 1}], "id": pa.array([3, 4], pa.int32())})
    (tmp_path / "hive").mkdir()
    pq.write_table(imported, tmp_path / "hive" / "imported.parquet")
    plan = plan_of(table)
    added = plan.files.slice(0, 1)
    for name, value in {
        "file_path": str(tmp_path / "hive" / "imported.parquet"),
        "file_size_in_bytes": (tmp_path / "hive" / "imported.parquet").stat().st_size,
        "record_count": 2,
        "partition": {"p": "imported"},
        "split_offsets": None,
    }.items():
        field = added.schema.field(name)
        added = added.set_column(added.schema.get_field_index(name), field, pa.array([value], field.type))
    mapping = """[{"field-id": 1, "names": ["id"]}, {"field-id": 3, "names": ["p"]},
                  {"field-id": 2, "names": ["s"], "fields": [{"field-id": 4, "names": ["a"]},
                                                              {"field-id": 5, "names": ["b"]}]}]"""
    metadata = replace(plan.metadata, properties={"schema.name-mapping.default": mapping})
    files = pa.concat_tables([plan.files, added])
    codes = np.append(plan.residual_codes, plan.residual_codes[0])
    mixed = replace(plan, files=files, metadata=metadata, residual_codes=codes)
    rows_found = spark_rows(plan_to_dataframe(spark, mixed, table.store))
    assert rows_found == arrow_rows(table, mixed)
    assert {"id": 3, "s": {"a": None, "b": "z"}, "p": "imported"} in rows_found


def test_uuid_is_text_at_any_depth(spark: SparkSession, make_table: Callable[..., Table]) -> None:
    one, two = uuid.UUID(int=2**127 + 5), uuid.UUID(int=7)
    keys, values = pa.array([one, two], pa.uuid()), pa.array([two, None], pa.uuid())
    fields = [pa.array([one, None, None], pa.uuid()), pa.array([1, 2, None])]
    rows = pa.table(
        {
            "s": pa.StructArray.from_arrays(fields, ["u", "n"], mask=pa.array([False, False, True])),
            "l": pa.ListArray.from_arrays(pa.array([0, 2, None, 2], pa.int32()), pa.array([one, None], pa.uuid())),
            "m": pa.MapArray.from_arrays(pa.array([0, 1, None, 2], pa.int32()), keys, values),
        }
    )
    table = make_table(rows)
    found = spark_rows(plan_to_dataframe(spark, plan_of(table), table.store))
    expected = [
        {"s": {"u": str(one), "n": 1}, "l": [str(one), None], "m": [(str(one), str(two))]},
        {"s": {"u": None, "n": 2}, "l": [], "m": [(str(two), None)]},
        {"s": None, "l": None, "m": None},
    ]
    assert found == sorted(expected, key=repr)
    nothing = plan_to_dataframe(spark, plan_of(table, "s.n < 0"), table.store)
    assert nothing.dtypes == [("s", "struct<u:string,n:bigint>"), ("l", "array<string>"), ("m", "map<string,string>")]
    assert plan_to_dataframe(spark, plan_of(table, f"s.u = '{one}'"), table.store).count() == 1


def test_what_spark_can_not_do_is_refused_by_name(spark: SparkSession, make_table: Callable[..., Table]) -> None:
    table = make_table(pa.table({"clock": pa.array([1], pa.time64("us"))}))
    with pytest.raises(Unsupported, match="'clock'"):
        plan_to_dataframe(spark, plan_of(table), table.store)


def test_no_files_give_no_rows_and_the_right_columns(spark: SparkSession, make_table: Callable[..., Table]) -> None:
    table = make_table(ROWS)
    frame = plan_to_dataframe(spark, plan_of(table, "id < 0"), table.store)
    assert frame.count() == 0
    assert frame.dtypes == [("id", "bigint"), ("v", "bigint"), ("p", "string")]
