"""The harness on Spark: Iceberg Java as an engine, and whole measurements of tables that Java wrote."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import icebench
from icebench.bench.cli.run import of_tables
from icebench.bench.engines.access import Access
from icebench.bench.engines.comet import COMET
from icebench.bench.engines.engine import AnyEngine, Writing, normalised
from icebench.bench.engines.registry import EngineContext, make_engine
from icebench.bench.engines.spark_storage import give_access, s3a_settings
from icebench.bench.errors import EngineFailed
from icebench.bench.execution.opened import Opened
from icebench.bench.experiment import parse_values
from icebench.bench.runs.run import Finished, Surroundings, run_experiment
from icebench.bench.setup_jars import is_cached
from icebench.bench.spark_session import SparkSettings
from icebench.bench.truth.metadata import metadata_file
from tests.services.s3_server import S3Server
from tests.unit.bench.engines.uuids import check_uuids, table_of_uuids

JAVA_FILTERS = ("day >= '2000-03-05' and day < '2000-03-07'", "label = 's3' and price > 100.50", "id is null")
ENGINES = ("icebench", "pyiceberg", "iceberg-java", "duckdb", "polars")


@pytest.fixture(scope="module", params=[2, 3], ids=["v2-positions", "v3-vectors"])
def java_table(request: pytest.FixtureRequest, spark: SparkSession) -> str:
    """A table that Iceberg Java partitioned, filled and deleted from, merge-on-read: 450 of 500 rows live."""
    name = f"iceberg_java.measure.deleting_v{request.param}"
    spark.sql(
        f"CREATE OR REPLACE TABLE {name} (id BIGINT, day DATE, price DECIMAL(9,2), big DECIMAL(20,4), label STRING,"
        " ts TIMESTAMP_NTZ) USING iceberg PARTITIONED BY (months(day)) TBLPROPERTIES ("
        f"'format-version'='{request.param}', 'write.delete.mode'='merge-on-read', 'write.delete.granularity'='file')"
    )
    spark.sql(
        f"INSERT INTO {name} SELECT id, date_add(DATE'2000-01-01', CAST(id % 200 AS INT)), CAST(id * 1.25 AS"
        " DECIMAL(9,2)), CAST(id * -123456789.5 AS DECIMAL(20,4)), concat('s', id % 17),"
        " CAST(timestamp_micros(id * 1000003) AS TIMESTAMP_NTZ) FROM range(500)"
    )
    spark.sql(f"DELETE FROM {name} WHERE id % 10 = 3")
    location = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").where("col_name = 'Location'").collect()[0]["data_type"]
    return str(location)


@pytest.fixture
def where(spark: SparkSession, tmp_path: Path) -> Surroundings:
    return Surroundings(cache=tmp_path / "cache", results=tmp_path / "runs", session=lambda: spark)


def measured(path: str, where: Surroundings, filters: Sequence[str] = JAVA_FILTERS) -> Finished:
    chosen = {"engines": list(ENGINES), "measurements": ["pruning", "decimals", "deletes"], "repetitions": 1}
    values = {**of_tables([{"path": path}], filters).values, **chosen, "warmups": 0, "warm_seconds": 0}
    return run_experiment(parse_values(values), where=where)


def check(found: Finished) -> None:
    """All engines deliver the same rows, none plans too little, and the deletes are applied."""
    assert found.run.failures == ()
    by_case = {(r.measurement, r.case, r.metric, r.engine): r for r in found.records}
    for name in ENGINES:
        assert by_case["decimals", "all", "scan_time_cold", name].counters["rows_returned"] == 450
        assert by_case["deletes", "none", "scan_time_cold", name].counters["rows_returned"] == 500
        assert by_case["deletes", "deletes", "scan_time_cold", name].counters["rows_deleted"] == 50
    recalls = {r.samples for r in found.records if r.metric == "recall"}
    assert recalls == {(1.0,)}


def test_every_engine_measures_a_table_of_java(java_table: str, where: Surroundings) -> None:
    found = measured(java_table, where)
    check(found)
    pruned = {r.engine: r.counters for r in found.records if (r.metric, r.case) == ("recall", JAVA_FILTERS[0])}
    assert {counters["files_planned"] for counters in pruned.values()} == {1}
    assert pruned["iceberg-java"]["manifests_in_list"] == 1
    assert pruned["iceberg-java"]["entries_skipped"] == 6


def test_and_when_it_was_moved(java_table: str, where: Surroundings, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    shutil.copytree(java_table.removeprefix("file:"), tmp_path / "moved")
    shutil.move(java_table.removeprefix("file:"), kept)
    try:
        check(measured(str(tmp_path / "moved"), where, JAVA_FILTERS[:1]))
    finally:
        shutil.move(kept, java_table.removeprefix("file:"))


@pytest.fixture(scope="module")
def java(spark: SparkSession) -> AnyEngine:
    return make_engine("iceberg-java", EngineContext(spark=lambda: spark))


def test_java_plans_in_the_jvm_and_forgets_between_handles(
    java: AnyEngine, java_table: str, spark: SparkSession
) -> None:
    location = metadata_file(java_table.removeprefix("file:"))
    handle = java.open(location)
    compiled = java.compile(handle, JAVA_FILTERS[0])
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup(None)
    plan = java.plan(handle, compiled)
    assert len(plan.files) == plan.counters["files_planned"] == 1
    assert plan.counters["delete_files_planned"] == 1
    assert spark.sparkContext.statusTracker().getJobIdsForGroup(None) == jobs
    # The filter's view does not stay behind.
    assert not [table.name for table in spark.catalog.listTables() if table.name.startswith("icebench_filter")]
    assert java.plan(java.open(location), compiled).files == plan.files


@contextmanager
def missing(*files: Path) -> Iterator[None]:
    """Files that are not where they were."""
    for file in files:
        file.rename(file.with_name(f"{file.name}.gone"))
    try:
        yield
    finally:
        for file in files:
            file.with_name(f"{file.name}.gone").rename(file)


def test_an_open_table_of_java_has_its_metadata(java: AnyEngine, java_table: str) -> None:
    location = metadata_file(java_table.removeprefix("file:"))
    compiled = java.compile(java.open(location), None)
    handle = java.open(location)
    with missing(Path(location)):
        assert java.plan(handle, compiled).counters["files_planned"] > 1


def test_opening_a_table_of_java_reads_its_metadata_once(java: AnyEngine, java_table: str, spark: SparkSession) -> None:
    location = metadata_file(java_table.removeprefix("file:"))
    statistics = cast("Any", spark.sparkContext)._jvm.org.apache.hadoop.fs.FileSystem.getGlobalStorageStatistics()

    def bytes_read(opening: Callable[[str], object]) -> int:
        before = statistics.get("file").getLong("bytesRead")
        opening(location)
        return int(statistics.get("file").getLong("bytesRead") - before)

    once = bytes_read(spark.read.format("iceberg").load)
    assert bytes_read(lambda location: java.open(location).frame) == once >= Path(location).stat().st_size


def test_a_cold_scan_of_java_reads_delete_files_again(java: AnyEngine, java_table: str) -> None:
    folder = java_table.removeprefix("file:")
    opened = Opened.of(java, metadata_file(folder), None)
    java.scan(opened.handle, ["id"], opened.filter)
    deletes = set(icebench.load_table(folder).inspect.delete_files()["file_path"].to_pylist())
    cold = opened.afresh()
    with missing(*(Path(normalised(path)) for path in deletes)), pytest.raises(Exception, match="does not exist"):
        java.scan(cold.handle, ["id"], cold.filter)
    java.scan(cold.handle, ["id"], cold.filter)


@pytest.mark.parametrize("filter", ["nothing = 1", "id = = 1"])
def test_java_refuses_wrong_filters(java: AnyEngine, java_table: str, filter: str) -> None:
    handle = java.open(metadata_file(java_table.removeprefix("file:")))
    with pytest.raises(Exception, match=r"(?i)nothing|syntax"):
        java.compile(handle, filter)


def test_maintenance_by_every_engine(where: Surroundings) -> None:
    """Each engine's result is checked against what was asked for; none is trusted."""
    sizes = {"rows": 2_000, "files": 8, "target_bytes": 100_000, "snapshots": 4, "listed_files": 120, "orphans": 5}
    values = {
        "name": "tiny",
        "engines": ["icebench", "icebench-spark", "iceberg-java"],
        "repetitions": 1,
        "warmups": 0,
        "warm_seconds": 0,
        "workload": {"kind": "maintenance", **sizes},
    }
    found = run_experiment(parse_values(values), where=where)
    assert found.run.failures == ()
    timed = {(r.case, r.engine) for r in found.records if r.metric == "maintenance_time"}
    assert len(timed) == 3 * 3 + 3 * 2
    deleted = {
        r.engine: r.samples for r in found.records if (r.case, r.metric) == ("remove_orphan_files", "files_deleted")
    }
    assert deleted == {"icebench": (5.0,), "iceberg-java": (5.0,)}


def test_a_store_that_spark_does_not_reach(
    where: Surroundings, s3_server: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = f"s3://{bucket}/wh"
    made = icebench.load_catalog(root, properties=s3_server.properties)
    made.create_table("db.own", pa.schema([("id", pa.int64())])).append(pa.table({"id": range(10)}))
    for name, value in {"type": "hadoop", "warehouse": root, **s3_server.properties}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name.upper().replace('.', '__').replace('-', '_')}", value)
    values = {
        "name": "lake",
        "engines": ["icebench", "icebench-spark", "iceberg-java"],
        "measurements": ["filtered"],
        "filters": {"few": "id < 3"},
        "repetitions": 1,
        "warmups": 0,
        "warm_seconds": 0,
        "workload": {"kind": "table", "catalog": "lake", "table": "db.own"},
    }
    found = run_experiment(parse_values(values), where=where)
    assert found.run.failures == ()
    assert {each.case.engine for each in found.run.measured} == {"icebench"}
    skipped = {each.engine: each.reason for each in found.run.skipped}
    for name in ("icebench-spark", "iceberg-java"):
        assert skipped[name].startswith("Spark's session reads no s3:// locations")


def test_a_store_that_spark_reaches(spark: SparkSession) -> None:
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    configuration.set("fs.s3n.impl", "org.apache.hadoop.fs.RawLocalFileSystem")
    try:
        give_access(spark, Access("s3n", {"s3.endpoint": "http://127.0.0.1:1", "client.access-key-id": "key"}))
        assert configuration.get("fs.s3a.endpoint") == "http://127.0.0.1:1"
        assert configuration.get("fs.s3a.access.key") == "key"
        assert configuration.get("fs.s3a.path.style.access") == "true"
    finally:
        for name in ("fs.s3n.impl", *s3a_settings({"s3.endpoint": "http://127.0.0.1:1", "s3.access-key-id": "key"})):
            configuration.unset(name)


@pytest.fixture(scope="module")
def comet(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> AnyEngine:
    settings = SparkSettings.from_environment(iceberg_warehouse=str(tmp_path_factory.mktemp("comet")))
    return make_engine("comet", EngineContext(spark=lambda: spark, spark_settings=lambda: settings))


@pytest.mark.skipif(not is_cached(COMET), reason=f"no Comet: python -m icebench.bench.setup_jars {COMET} fetches it")
def test_comet_delivers_the_rows_of_java(java_table: str, java: AnyEngine, comet: AnyEngine) -> None:
    """In a session of its own, with deletes, and filters that it hands to its scan."""
    location = metadata_file(java_table.removeprefix("file:"))
    for filter in (None, JAVA_FILTERS[1]):
        sums = []
        for engine in (comet, java):
            handle = engine.open(location)
            compiled = engine.compile(handle, filter)
            engine.scan(handle, ["id", "price"], compiled)
            sums.append(engine.checksum(handle, ["id", "price"], compiled))
        assert sums[0] == sums[1]
    with pytest.raises(EngineFailed, match="AnalysisException"):
        comet.scan(comet.open(location), ["no_such_column"], comet.compile(comet.open(location), None))


def test_java_writes_the_rows_that_it_is_given(java: AnyEngine, tmp_path: Path) -> None:
    schema = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), ("day", pa.date32()), ("price", pa.decimal128(7, 2))]
    )
    days = pa.array([n % 70 for n in range(500)], pa.int32()).cast(pa.date32())
    prices = pa.array([None if n % 9 == 0 else Decimal(n) / 4 for n in range(500)], pa.decimal128(7, 2))
    rows = pa.table([pa.array(range(500)), days, prices], schema)
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", schema, partition_spec=[("day", "month")])
    own = cast("Writing", java)
    for number in (1, 2):
        given = rows.slice(0, 500 // number)
        (tmp_path / f"{number}").mkdir()
        target = own.new_target(table.metadata_location, tmp_path / f"{number}", None)
        with ExitStack() as kept:
            taken = own.take_rows(given, kept)
            assert taken.is_cached
            own.append_rows(target, taken)
        assert not taken.is_cached
        found = icebench.load_table(own.written_to(target))
        assert found.scan().to_arrow().sort_by("id").cast(schema).equals(given)
        assert sorted(f["day_month"] for f in found.inspect.data_files()["partition"].to_pylist()) == [0, 1, 2]


WRITING_LAYOUTS = ["unpartitioned", "by year"]
WRITING = {
    "name": "small writing",
    "engines": ["icebench", "pyiceberg", "iceberg-java", "duckdb", "polars"],
    "measurements": ["writing"],
    "layouts": WRITING_LAYOUTS,
    "layout": [{"name": "by year", "partition": ["year(ss_sold_date)"]}],
    "workload": {"kind": "tpcds", "scale": 0.001},
    "build": {"repetitions": 0},
    "writing": {
        "levels": [1, 9],
        "narrow": ["ss_item_sk", "ss_net_paid", "ss_sold_date"],
        "sort": ["ss_item_sk", "ss_ticket_number"],
        "upserts": [0.01],
        "overwrite": True,
    },
    "repetitions": 1,
    "warmups": 0,
    "warm_seconds": 0,
}


def test_engines_write_and_change_the_same_rows(where: Surroundings) -> None:
    found = run_experiment(parse_values(WRITING), where=where)
    assert found.run.failures == ()
    timed = {(r.layout, r.case, r.engine): r.counters for r in found.records if r.metric == "write_time"}
    plain = ("append", "append, zstd level 1", "append, zstd level 9", "append, 3 columns")
    java, python = ("icebench", "iceberg-java"), ("icebench", "iceberg-java", "pyiceberg")
    by_case: dict[str, Sequence[str]] = {
        **dict.fromkeys(plain, python),
        "append, sorted": java,
        "upsert 1 %, copy-on-write": python,
        "upsert 1 %, merge-on-read": java,
    }
    expected = {(layout, case, name) for case, names in by_case.items() for layout in WRITING_LAYOUTS for name in names}
    expected |= {("unpartitioned", case, name) for case in plain for name in ("duckdb", "polars")}
    expected |= {("by year", "overwrite a partition", name) for name in python}
    assert timed.keys() == expected
    for (_, case, _), counters in timed.items():
        assert ("delete_files" in counters) == (not case.startswith("append"))
        assert (counters.get("delete_files", 0) > 0) == (case == "upsert 1 %, merge-on-read")
    for name in java:
        sizes = [timed["unpartitioned", f"append, zstd level {level}", name]["bytes_written"] for level in (1, 9)]
        assert sizes[0] > sizes[1]


@pytest.mark.parametrize("name", ["icebench-spark", "iceberg-java"])
def test_uuids_are_the_same_to_all(name: str, spark: SparkSession, tmp_path: Path) -> None:
    check_uuids(make_engine(name, EngineContext(spark=lambda: spark)), table_of_uuids(tmp_path))
