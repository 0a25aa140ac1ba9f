"""Iceberg Java: planning inside the JVM without Spark jobs, scans by its vectorized Parquet reader on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, cast, get_args
from zlib import crc32

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

import icebench
from icebench.bench.engines.engine import COMPRESSION_LEVEL, Ability, EngineMissing, MergeMode, Plan, normalised
from icebench.bench.engines.java_functions import JavaFunctions
from icebench.bench.engines.registry import EngineContext
from icebench.bench.engines.script import ON_SPARK, SPARK, Script, literal
from icebench.bench.engines.spark_queries import spark_rows, views_session
from icebench.bench.engines.spark_scan import SparkScans
from icebench.bench.engines.spark_storage import give_access
from icebench.bench.engines.sql_text import with_backticks
from icebench.bench.layouts.actions import KEYS, Action

Java = Any
"""An object in the JVM, as py4j shows it."""

_RUNTIME = "org.apache.iceberg.spark.source.IcebergSource"

# Iceberg's scan metrics, by the names that this project counts the same work under.
_COUNTERS = {
    "manifests_in_list": "totalDataManifests",
    "manifests_skipped_by_summary": "skippedDataManifests",
    "manifests_decoded": "scannedDataManifests",
    "entries_skipped": "skippedDataFiles",
    "files_planned": "resultDataFiles",
    "delete_files_planned": "resultDeleteFiles",
    # Iceberg Java counts a delete file once for each data file that it concerns.
    "delete_pairs": "resultDeleteFiles",
}


_FORGET = """cache = spark.sparkContext._jvm.org.apache.iceberg.spark.SparkExecutorCache.get()
if cache is not None:
    cache.invalidate("")  # delete files that tasks have read"""

SCRIPTS = {
    "scan": replace(ON_SPARK, forget=_FORGET),
    "plan": Script(
        setup=f"""{SPARK}
jvm = spark.sparkContext._jvm
iceberg = jvm.org.apache.iceberg
files = iceberg.hadoop.HadoopFileIO(spark.sparkContext._jsc.hadoopConfiguration())


def opened(location):
    operations = iceberg.StaticTableOperations(location, files)
    operations.current()  # reads metadata.json, which the first plan would do otherwise
    return iceberg.BaseTable(operations, location)
""",
        after="""
FILTER = iceberg.expressions.Expressions.alwaysTrue()
if {filter} is not None:  # Iceberg's converter resolves text against a table that Spark finds by name
    spark.read.format("iceberg").load(TABLE).createOrReplaceTempView("named")
    converter = jvm.org.apache.spark.sql.execution.datasources.SparkExpressionConverter
    resolved = converter.collectResolvedSparkExpression(spark._jsparkSession, "named", {filter})
    FILTER = converter.convertToIcebergExpression(resolved)
""",
        filter=with_backticks,
        open="opened(TABLE)",
        run="rows = iceberg.relocated.com.google.common.collect.Lists.newArrayList({query}).size()",
    ),
}
"""The program of a plan is Python, which calls Iceberg Java as this module does."""


@dataclass(frozen=True)
class JavaTable:
    """An open table: Spark's relation for scans, and Iceberg's object over the same metadata for planning."""

    frame: DataFrame
    table: Java
    reports: Java


@dataclass(frozen=True)
class JavaFilter:
    """A filter as Iceberg's expression, for planning, and as text for Spark, whose own parser it came through."""

    expression: Java
    text: str | None


@dataclass(frozen=True)
class ChangedTable:
    """A table to be changed: Iceberg's own object, and its name in Spark's SQL."""

    table: Java
    name: str


class IcebergJava(SparkScans[JavaTable, JavaFilter]):
    """Iceberg's Java library in Spark's JVM, driven over py4j.

    Planning is four calls over py4j's local socket (about 0.2 ms together, included) around work that is all done in
    the JVM: the tasks are collected in a Java list there. Manifests are read by Iceberg's own worker pool, whose
    default is one thread a core. Iceberg's manifest content cache is off, as it is by default. The cache of delete
    files that executors have is on, likewise; `forget` empties that of this JVM, not those of a cluster.
    """

    name = "iceberg-java"
    abilities = frozenset(
        {
            Ability.PLAN,
            Ability.SCAN,
            Ability.COMMIT,
            Ability.MAINTAIN,
            Ability.WRITE,
            Ability.CHANGE,
            Ability.QUERY,
            Ability.CONCURRENT_QUERIES,
        }
    )
    writes_tables = sorts_rows = True
    merge_modes: frozenset[MergeMode] = frozenset(get_args(MergeMode))
    dialect = "spark"
    maintains = frozenset(get_args(Action))

    def __init__(self, context: EngineContext) -> None:
        self._spark = context.spark()
        self._access = context.access
        # pyspark offers no public way into the JVM.
        self._jvm = cast("Java", self._spark.sparkContext._jvm)  # noqa: SLF001
        self._session = cast("Java", self._spark._jsparkSession)  # noqa: SLF001
        self._configuration = cast("Java", self._spark.sparkContext._jsc).hadoopConfiguration()  # noqa: SLF001
        if not self._jvm.org.apache.spark.util.Utils.classIsLoadable(_RUNTIME):
            raise EngineMissing(
                "Spark runs without Iceberg's runtime jar: 'python -m icebench.bench.setup_jars' fetches it"
            )
        self._iceberg = self._jvm.org.apache.iceberg
        self._functions = JavaFunctions(self._spark)
        self._views = count()
        self.version: str = self._iceberg.IcebergBuild.version()

    def forget(self) -> None:
        cache = self._iceberg.spark.SparkExecutorCache.get()
        if cache is not None:
            cache.invalidate("")  # the keys that begin with this: all

    def open(self, metadata_location: str) -> JavaTable:
        give_access(self._spark, self._access(metadata_location))
        frame = self._spark.read.format("iceberg").load(metadata_location)  # reads metadata.json only
        relation = cast("Java", frame)._jdf.queryExecution().analyzed()  # noqa: SLF001
        reports = self._iceberg.metrics.InMemoryMetricsReporter()
        table = self._iceberg.BaseTable(relation.table().table().operations(), metadata_location, reports)
        return JavaTable(frame, table, reports)

    def compile(self, handle: JavaTable, filter: str | None) -> JavaFilter:
        if filter is None:
            return JavaFilter(self._iceberg.expressions.Expressions.alwaysTrue(), None)
        filter = with_backticks(filter)
        # Iceberg's converter resolves the text against a table that Spark can find by name.
        view = f"icebench_filter_{next(self._views)}"
        handle.frame.createOrReplaceTempView(view)
        converter = self._jvm.org.apache.spark.sql.execution.datasources.SparkExpressionConverter
        try:
            resolved = converter.collectResolvedSparkExpression(self._session, view, filter)
            return JavaFilter(converter.convertToIcebergExpression(resolved), filter)
        finally:
            self._spark.catalog.dropTempView(view)

    def plan(self, handle: JavaTable, filter: JavaFilter) -> Plan:
        found = handle.table.newScan().filter(filter.expression).planFiles()
        tasks = self._iceberg.relocated.com.google.common.collect.Lists.newArrayList(found)
        return Plan(lambda: self._paths(tasks), lambda: _counters(found, handle.reports))

    def open_tables(self, locations: Mapping[str, str]) -> SparkSession:
        """A session with a view of each table, which is planned in every query."""
        session = views_session(self._spark)
        for name, location in locations.items():
            give_access(self._spark, self._access(location))
            session.read.format("iceberg").load(location).createOrReplaceTempView(name)
        return session

    def new_session(self, tables: SparkSession) -> SparkSession:
        """The same session: Spark's may be shared by threads, and no query changes the views."""
        return tables

    def answer(
        self, tables: SparkSession, query: str, names: Sequence[str], seconds: float | None = None
    ) -> list[tuple[Any, ...]]:
        return spark_rows(tables, query, seconds)

    def rewrite_manifests(self, location: str) -> str:
        """Write every data manifest of a directory catalog's table again, with the same files in the same order, and
        commit. Not timed.

        Args:
            location: The table's directory.

        Returns:
            The new metadata file.
        """
        table = self._iceberg.hadoop.HadoopTables(self._configuration).load(location)
        manifest = self._functions.getter("org.apache.iceberg.ContentFile", "manifestLocation")
        table.rewriteManifests().clusterBy(manifest).commit()
        made: str = table.operations().current().metadataFileLocation()
        return made

    def take_files(self, files: Sequence[icebench.DataFile], metadata_location: str) -> Java:
        """A Java list of Iceberg's own objects, planned with all statistics."""
        found = self.open(metadata_location).table.newScan().includeColumnStats().planFiles()
        tasks = self._iceberg.relocated.com.google.common.collect.Lists.newArrayList(found)
        return self._functions.listed(tasks, [self._functions.getter("org.apache.iceberg.ContentScanTask", "file")])

    def new_table(self, metadata_location: str, folder: Path) -> Java:
        source = self.open(metadata_location).table
        properties = self._jvm.java.util.HashMap()
        properties.put("format-version", "2")
        tables = self._iceberg.hadoop.HadoopTables(self._configuration)
        return tables.create(source.schema(), source.spec(), properties, str(folder / "sales"))

    def opened_again(self, table: Java) -> Java:
        return self._iceberg.hadoop.HadoopTables(self._configuration).load(table.location())

    def commit_files(self, table: Java, files: Java) -> None:
        append = table.newFastAppend()
        taking = self._functions.consumer(
            append, "org.apache.iceberg.AppendFiles", "appendFile", "org.apache.iceberg.DataFile"
        )
        files.forEach(taking)
        append.commit()

    def location_of(self, table: Java) -> str:
        return normalised(table.operations().current().metadataFileLocation())

    def take_rows(self, rows: pa.Table, kept: ExitStack) -> DataFrame:
        """A DataFrame that executors keep in memory, in a part for each core: each part becomes a file."""
        cores = self._spark.sparkContext.defaultParallelism
        frame = self._spark.createDataFrame(rows).coalesce(cores).persist(StorageLevel.MEMORY_ONLY)
        kept.callback(frame.unpersist, blocking=True)
        frame.count()
        return frame

    def new_target(self, metadata_location: str, folder: Path, level: int | None) -> Java:
        source = self.open(metadata_location).table
        properties = self._jvm.java.util.HashMap()
        properties.put("format-version", "2")
        if level is not None:
            properties.put(COMPRESSION_LEVEL, str(level))
        tables = self._iceberg.hadoop.HadoopTables(self._configuration)
        return tables.create(source.schema(), source.spec(), source.sortOrder(), properties, str(folder / "sales"))

    def append_rows(self, target: Java, rows: DataFrame) -> None:
        rows.write.format("iceberg").mode("append").save(target.location())

    def written_to(self, target: Java | ChangedTable) -> str:
        table = target.table if isinstance(target, ChangedTable) else target
        table.refresh()
        return self.location_of(table)

    def open_target(self, warehouse: Path, name: str) -> ChangedTable:
        location = str(warehouse.joinpath(*name.split(".")))
        table = self._iceberg.hadoop.HadoopTables(self._configuration).load(location)
        return ChangedTable(table, f"{self._catalog(warehouse)}.{name}")

    def upsert_rows(self, target: ChangedTable, rows: DataFrame, key: Sequence[str]) -> None:
        matched = " AND ".join(f"kept.`{name}` = given.`{name}`" for name in key)
        self._spark.sql(
            f"MERGE INTO {target.name} AS kept USING {{given}} AS given ON {matched} "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            given=rows,
        )

    def overwrite_partition(self, target: ChangedTable, rows: DataFrame, filter: str) -> None:
        rows.writeTo(target.name).overwritePartitions()

    def _catalog(self, warehouse: Path) -> str:
        """The name of a catalog of type hadoop at a directory."""
        # Spark keeps the catalog that it once made under a name.
        catalog = f"kept_{crc32(str(warehouse).encode()):08x}"
        conf = {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".type": "hadoop",
            ".warehouse": str(warehouse),
            ".cache-enabled": "false",
        }
        for key, value in conf.items():
            self._spark.conf.set(f"spark.sql.catalog.{catalog}{key}", value)
        return catalog

    def maintain(self, warehouse: Path, name: str, action: Action, target_bytes: int) -> None:
        catalog = self._catalog(warehouse)
        keys = ", ".join(KEYS.get(action, ()))
        procedure, arguments = {
            "binpack": ("rewrite_data_files", "strategy => 'binpack'"),
            "sort": ("rewrite_data_files", f"strategy => 'sort', sort_order => '{keys}'"),
            "zorder": ("rewrite_data_files", f"strategy => 'sort', sort_order => 'zorder({keys})'"),
            "rewrite_manifests": ("rewrite_manifests", ""),
            "expire_snapshots": ("expire_snapshots", "older_than => timestamp '2999-01-01 00:00:00', retain_last => 1"),
            "remove_orphan_files": ("remove_orphan_files", ""),
        }[action]
        if procedure == "rewrite_data_files":
            arguments += f", options => map('rewrite-all', 'true', 'target-file-size-bytes', '{target_bytes}')"
        more = f", {arguments}" if arguments else ""
        self._spark.sql(f"call {catalog}.system.{procedure}(table => '{name}'{more})").collect()

    def _paths(self, tasks: Java) -> list[str]:
        file = self._functions.getter("org.apache.iceberg.ContentScanTask", "file")
        location = self._functions.getter("org.apache.iceberg.ContentFile", "location")
        return self._functions.joined(tasks, [file, location])

    def query(self, handle: JavaTable, columns: Sequence[str] | None, filter: str | None) -> str:
        if columns is None:
            return "table.newScan().filter(FILTER).planFiles()"
        kept = "table" if filter is None else f"table.where({literal(with_backticks(filter))})"
        return f"{kept}.select({', '.join(map(literal, columns))})"

    def frame(self, handle: JavaTable, columns: Sequence[str], filter: JavaFilter) -> DataFrame:
        chosen = handle.frame if filter.text is None else handle.frame.where(filter.text)
        return chosen.select(*columns)


def _counters(found: Java, reports: Java) -> dict[str, int]:
    """What the scan's report says; the report is made when the iteration is closed."""
    found.close()
    metrics = reports.scanReport().scanMetrics()
    values = {name: getattr(metrics, metric)() for name, metric in _COUNTERS.items()}
    return {name: int(value.value()) for name, value in values.items() if value is not None}
