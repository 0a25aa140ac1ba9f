"""A second Spark session of the same application beside the user's, with the settings that scans need.

Spark reads some settings when a DataFrame is created (how files are listed) and others when it runs (how Parquet
columns are matched), always from the session that created the file relation. Settings of a scan can therefore neither
be set and reset around a call, which would be too early for the second kind, nor be left set, which would change the
user's other queries. Instead the relation is created in a session derived from the user's and then moved to the user's.

Each PySpark operation (a setting, a path, a column) is a call over a socket, and each class that it needs takes one or
two more to look up. A scan of seven columns took 360 calls, as much time as everything that Spark did for it. So the
DataFrames of scans are built in the JVM (`JavaFrame`): columns are SQL text, and a list of strings is sent by one call.
Only this module knows about that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from icebench.engine.errors import Unsupported
from icebench.engine.spark.java_functions import JavaObject, java_functions

SCAN_SETTINGS: Mapping[str, str] = {
    # Columns are found by field id, wherever the read schema has one.
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    # Names of a schema may differ in case only.
    "spark.sql.caseSensitive": "true",
    # The plan names every file, so there is nothing to list: above this many paths Spark would start a job for it.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": str(2**31 - 1),
    # A file that the table refers to must be there and be whole.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    # A directory's text that is no value of its column's type is Iceberg's text for null.
    "spark.sql.sources.validatePartitionColumns": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # The texts of a scan mean the same whatever the user's texts do.
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.variable.substitute": "false",
    # Version 2 of Spark's file sources has no field ids, no columns of file metadata and no file index.
    "spark.sql.sources.useV1SourceList": "parquet",
}

READ_OPTIONS: Mapping[str, str] = {
    # Paths are files, whatever characters they have; directories mean nothing.
    "recursiveFileLookup": "true",
    "__globPaths__": "false",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    # Dates and times of Iceberg files are in the calendar of ISO 8601, however old.
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "mergeSchema": "false",
}

_S3 = (
    "spark.jars.packages=org.apache.hadoop:hadoop-aws:VERSION and "
    "spark.hadoop.fs.SCHEME.impl=org.apache.hadoop.fs.s3a.S3AFileSystem, and, where the environment does not say, "
    "spark.hadoop.fs.s3a.endpoint, .endpoint.region, .path.style.access, .access.key and .secret.key (or "
    ".aws.credentials.provider)"
)
_GCS = (
    "the jar of com.google.cloud.bigdataoss:gcs-connector, "
    "spark.hadoop.fs.SCHEME.impl=com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem, and its credentials "
    "(spark.hadoop.fs.gs.auth.*)"
)
_ADLS = (
    "spark.jars.packages=org.apache.hadoop:hadoop-azure:VERSION and credentials of the account "
    "(spark.hadoop.fs.azure.account.*)"
)
_NEEDED = {
    **dict.fromkeys(("s3", "s3a", "s3n"), _S3),
    **dict.fromkeys(("gs", "gcs"), _GCS),
    **dict.fromkeys(("abfs", "abfss"), _ADLS),
}
"""What a session needs for locations of a scheme that Hadoop by itself does not read."""

_MIN_TASKS = "spark.sql.files.minPartitionNum"
_EXPANSION = "spark.sql.sources.fileCompressionFactor"
_WAVES = 4
"""Tasks for each core: the last ones end close together, and a core that was late gets fewer of them."""

_KEPT = 128
"""Sessions for each of the user's: by the number of tasks, which changes as a cluster grows, and by expansion."""

_SEPARATOR = "\0"
"""No SQL text and no path has it."""


@dataclass(frozen=True, eq=False)
class ScanSession:
    """A session with the user's settings and those that a scan needs. It is not changed after it was created.

    Args:
        session: The JVM's session; it has no PySpark session, which would become the active one.
        settings: The user's settings when it was derived, as a map in the JVM.
        options: `READ_OPTIONS`, as a map in the JVM.
        splitter: Splits a string into an array in the JVM.
        functions: The JVM's class ``org.apache.spark.sql.functions``.
        datasets: The JVM's class that creates a DataFrame from a logical plan.
        projections: The JVM's class of logical projections.
        plain: A function of the JVM that gives an attribute without metadata.
    """

    session: JavaObject
    settings: JavaObject
    options: JavaObject
    splitter: JavaObject
    functions: JavaObject
    datasets: JavaObject
    projections: JavaObject
    plain: JavaObject

    def parquet(
        self, schema: st.StructType, locations: Sequence[str], *, partitions_below: str | None = None
    ) -> JavaFrame:
        """A DataFrame of these files by Spark's Parquet reader.

        Args:
            schema: The columns.
            locations: The files.
            partitions_below: All directories between this one and the files are ``name=value``. A column of the schema
                that has one of the names is taken from there, a partition column of the relation; for other names there
                are columns more.
        """
        reader = self.session.read().schema(self.session.parseDataType(schema.json())).options(self.options)
        if partitions_below is not None:
            reader = reader.option("basePath", partitions_below).option("recursiveFileLookup", "false")
        return JavaFrame(self, reader.parquet(self.array(locations)))

    def array(self, texts: Sequence[str]) -> JavaObject:
        """An array of strings in the JVM."""
        return self.splitter.split(_SEPARATOR.join(texts))


@dataclass(frozen=True, eq=False)
class JavaFrame:
    """A DataFrame in the JVM. Its methods take SQL text; each is one or two calls."""

    scan: ScanSession
    dataset: JavaObject

    def select(self, columns: Sequence[str]) -> JavaFrame:
        """These columns."""
        if not columns:
            return JavaFrame(self.scan, self.dataset.selectExpr(self.scan.array(["1"])).drop("1"))
        return JavaFrame(self.scan, self.dataset.selectExpr(self.scan.array(columns)))

    def where(self, condition: str) -> JavaFrame:
        """The rows for which the condition is true."""
        return JavaFrame(self.scan, self.dataset.filter(condition))

    def join(self, other: DataFrame, condition: str, how: str, *, is_small: bool = True) -> JavaFrame:
        """A join with a table of the user's session, which is broadcast if it is small."""
        functions, right = self.scan.functions, other._jdf  # noqa: SLF001
        small = functions.broadcast(right) if is_small else right
        return JavaFrame(self.scan, self.dataset.join(small, functions.expr(condition), how))

    def with_values(self, other: DataFrame, names: Sequence[str]) -> JavaFrame:
        """With the columns of a table of one row as constants of the plan, without a job or a join."""
        found = self.dataset
        for name in names:
            found = found.withColumn(name, other._jdf.selectExpr(self.scan.array([name])).scalar())  # noqa: SLF001
        return JavaFrame(self.scan, found)

    def union(self, other: JavaFrame) -> JavaFrame:
        """The union of both, with columns matched by position."""
        return JavaFrame(self.scan, self.dataset.union(other.dataset))

    def input_files(self) -> list[str]:
        """The locations of its files, as they are in Spark's file index."""
        return list(self.dataset.inputFiles())

    def listed_files(self) -> Counter[tuple[str, int]]:
        """The number of its files by name and size, by Spark's listing; only for a DataFrame of `ScanSession.parquet`.

        Takes four calls for each file.
        """
        files = self.dataset.queryExecution().analyzed().relation().location().allFiles()
        statuses = [files.apply(place) for place in range(files.size())]
        return Counter((status.getPath().getName(), status.getLen()) for status in statuses)

    def handed_over(self, spark: SparkSession) -> DataFrame:
        """The same rows as a DataFrame of the user's session, so that queries over it are the user's, and without the
        field ids by which Spark finds the columns.

        The columns stay the relation's own attributes. Aliases in their place would keep Spark from seeing that two
        parts of a UNION are alike, as it leaves those of the first part.
        """
        plan = self.dataset.logicalPlan()
        plain = self.scan.projections(plan.output().map(self.scan.plain), plan)
        return DataFrame(self.scan.datasets.ofRows(spark._jsparkSession, plain), spark)  # noqa: SLF001


@dataclass(frozen=True, eq=False)
class _Known:
    """The sessions derived while the user's settings were these, by least number of tasks and expansion."""

    settings: JavaObject
    own_tasks: int
    own_expansion: float
    sessions: dict[tuple[int, float], ScanSession] = field(default_factory=dict)


_KNOWN: MutableMapping[SparkSession, _Known] = WeakKeyDictionary()
"""The user's session -> what was last derived from it."""


def scan_session(spark: SparkSession, *, row_groups: int | None, expansion: float) -> ScanSession:
    """A session for scans. It is reused until the user changes a setting, since deriving one takes many calls.

    Spark divides the files of a scan so that each core gets one task, of at most 128 MB: 400 MB on two cores become
    three tasks of 128 MB and a small one, and one core is idle for a third of the time. Here a core gets several tasks,
    if there are row groups for them: a task whose part of a file contains the middle of no row group has no rows.

    Args:
        spark: The user's session. Its setting for the least number of partitions is respected, and its setting for the
            most bytes of a partition, too.
        row_groups: The number of row groups of the files to read; None where it is not known.
        expansion: How many bytes in memory a byte of the files is taken for; a setting of the user's own is respected.

    Raises:
        Unsupported: The session is of Spark Connect, which has no JVM here.
    """
    if not hasattr(spark, "_jsparkSession"):
        raise Unsupported("scans on Spark Connect; use a session of this process, or to_arrow")
    settings = spark.conf._jconf.getAllAsJava()  # noqa: SLF001
    known = _KNOWN.get(spark)
    if known is None or not known.settings.equals(settings):
        own_tasks, own_expansion = spark.conf.get(_MIN_TASKS, None), spark.conf.get(_EXPANSION, None)
        known = _KNOWN[spark] = _Known(settings, int(own_tasks or 0), float(own_expansion or 1))
    # Not kept: the cores of a cluster come and go.
    tasks = least_tasks(spark._jsparkSession.leafNodeDefaultParallelism(), known.own_tasks, row_groups)  # noqa: SLF001
    key = (tasks, expansion if known.own_expansion == 1 else known.own_expansion)
    if key not in known.sessions:
        if len(known.sessions) >= _KEPT:
            known.sessions.clear()
        known.sessions[key] = _derived(spark, settings, *key)
    return known.sessions[key]


def has_comet(spark: SparkSession) -> bool:
    """Whether DataFusion Comet may read Parquet files in place of Spark's own reader."""
    return "CometPlugin" in (spark.conf.get("spark.plugins", "") or "")


def refuse_unknown_schemes(spark: SparkSession, locations: Iterable[str]) -> None:
    """Raise Unsupported where a session's Hadoop has no file system for a location, and say what it takes."""
    jvm = spark._jvm  # noqa: SLF001
    assert jvm is not None
    conf = spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
    first = {location.partition(":")[0]: location for location in locations}
    for scheme in first.keys() - {"file"}:
        try:
            jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, conf)
        except Exception as error:
            raised = getattr(error, "java_exception", None)  # as py4j has it
            if raised is None:
                raise
            version = jvm.org.apache.hadoop.util.VersionInfo.getVersion()
            needed = _NEEDED.get(scheme, "a file system for it among its jars, as spark.hadoop.fs.SCHEME.impl")
            raise Unsupported(
                f"reading {scheme}:// with Spark's own reader: {raised.getMessage()}. Start the session with "
                f"{needed.replace('VERSION', version).replace('SCHEME', scheme)}; or read with to_arrow"
            ) from error


def least_tasks(cores: int, own: int, row_groups: int | None) -> int:
    """The least number of tasks to divide a scan into, if its files are large enough; 0 leaves it to Spark.

    Args:
        cores: The number of cores, as Spark reports it.
        own: The user's setting; 0 for none.
        row_groups: The number of row groups of all files; None where it is not known.
    """
    waves = _WAVES
    # Of few numbers one: each is a session.
    while waves > 1 and row_groups is not None and row_groups <= cores * waves // 2:
        waves //= 2
    return cores * waves if waves > 1 and cores * waves > own else 0


def _derived(spark: SparkSession, settings: JavaObject, tasks: int, expansion: float) -> ScanSession:
    jvm = spark._jvm  # noqa: SLF001
    assert jvm is not None
    session = spark._jsparkSession.cloneSession()  # noqa: SLF001 - with the user's settings
    for name, value in SCAN_SETTINGS.items():
        session.conf().set(name, value)
    if tasks:
        session.conf().set(_MIN_TASKS, str(tasks))
    session.conf().set(_EXPANSION, str(expansion))
    options = jvm.java.util.HashMap()
    for name, value in READ_OPTIONS.items():
        options.put(name, value)
    return ScanSession(
        session=session,
        settings=settings,
        options=options,
        splitter=jvm.java.util.regex.Pattern.compile(_SEPARATOR),
        functions=getattr(jvm, "org.apache.spark.sql.functions"),
        datasets=getattr(jvm, "org.apache.spark.sql.classic.Dataset"),
        projections=getattr(jvm, "org.apache.spark.sql.catalyst.plans.logical.Project"),
        plain=java_functions(spark).without_metadata,
    )
