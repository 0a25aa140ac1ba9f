"""The engines by name, created only on demand.

An engine's module is imported on demand: where a peer's package is missing, the harness must run, and say why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from icebench.bench.engines.access import Access, TableAccess
from icebench.bench.engines.engine import AnyEngine, EngineMissing
from icebench.bench.plugins import Registry
from icebench.bench.spark_session import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_OWN_HANDLE = "the table has its metadata.json and decoded manifests"
_SPARK_RELATION = "Spark's relation has metadata.json; each scan reads the manifests, as their cache is off by default"
_ALL_DELETES = ("vectors", "positions", "equality")


@dataclass(frozen=True)
class EngineContext:
    """What engines share. `spark` starts the session at its first call, so only a run that needs Spark pays for it;
    `spark_settings` returns its settings, for sessions elsewhere; `access` returns what opens the files of a table,
    given its metadata file."""

    spark: Callable[[], SparkSession]
    access: Callable[[str], Access] = field(default_factory=TableAccess)
    spark_settings: Callable[[], SparkSettings] = SparkSettings.from_environment


@dataclass(frozen=True, kw_only=True)
class EngineEntry:
    """A known engine.

    Args:
        name: In definitions and records.
        factory: ``module:class``; the class takes an `EngineContext` and may raise EngineMissing.
        description: One line, for lists.
        keeps: What it keeps of a table between the scans of one handle; or that it has no handle, if its queries name
            the metadata file.
        scripts: ``module:SCRIPTS``: its `icebench.bench.engines.script.Script` for a ``scan`` and for a ``plan``.
        spark_conf: ``module:function``: what it changes in the settings of a Spark session of its own.
        needs_spark: Whether it starts a session.
        own_process: Whether it works in a process of its own (`icebench.bench.engines.own_process`).
        plans: Whether it shows which files it plans.
        deletes: Which kinds of deletes it reads, from `icebench.bench.workloads.reading_files.DELETE_KINDS`.
    """

    name: str
    factory: str
    description: str
    keeps: str = ""
    scripts: str = ""
    spark_conf: str = ""
    needs_spark: bool = False
    own_process: bool = False
    plans: bool = False
    deletes: tuple[str, ...] = _ALL_DELETES


_OWN = (
    EngineEntry(
        name="icebench",
        factory="icebench.bench.engines.icebench:Icebench",
        scripts="icebench.bench.engines.icebench:SCRIPTS",
        description="this project's engine: planning, and scans as Arrow batches",
        keeps=_OWN_HANDLE,
        plans=True,
    ),
    EngineEntry(
        name="icebench-spark",
        factory="icebench.bench.engines.icebench_spark:IcebenchSpark",
        scripts="icebench.bench.engines.icebench_spark:SCRIPTS",
        description="this project's engine on Spark: its plan, Spark's own Parquet reader",
        keeps=_OWN_HANDLE,
        needs_spark=True,
    ),
    EngineEntry(
        name="pyiceberg",
        factory="icebench.bench.engines.pyiceberg_engine:PyIceberg",
        scripts="icebench.bench.engines.pyiceberg_engine:SCRIPTS",
        description="PyIceberg: planning, and scans as Arrow batches",
        keeps="the table has its metadata.json; manifest list and manifests are read in each scan",
        plans=True,
        deletes=("vectors", "positions"),
    ),
    EngineEntry(
        name="iceberg-java",
        factory="icebench.bench.engines.iceberg_java:IcebergJava",
        scripts="icebench.bench.engines.iceberg_java:SCRIPTS",
        description="Iceberg Java: planning without Spark jobs, scans by its vectorized reader on Spark",
        keeps=f"{_SPARK_RELATION}; executors keep delete files",
        needs_spark=True,
        plans=True,
    ),
    EngineEntry(
        name="duckdb",
        factory="icebench.bench.engines.duckdb_engine:DuckDb",
        scripts="icebench.bench.engines.duckdb_engine:SCRIPTS",
        description="DuckDB's Iceberg extension: scans",
        keeps="no handle, as each query reads the metadata tree; the database keeps what was read of data files",
        # Version 1.5 takes minutes for two million rows with a hundred files of equality deletes.
        deletes=("vectors", "positions"),
    ),
    EngineEntry(
        name="polars",
        factory="icebench.bench.engines.polars_engine:Polars",
        scripts="icebench.bench.engines.polars_engine:SCRIPTS",
        description="Polars' Rust reader: scans",
        keeps="the lazy frame has the files that its last query planned; the process keeps metadata files",
        deletes=("positions",),
    ),
    EngineEntry(
        name="clickhouse",
        factory="icebench.bench.engines.clickhouse:clickhouse",
        scripts="icebench.bench.engines.clickhouse:SCRIPTS",
        description="ClickHouse's Iceberg reader, through chDB: scans",
        keeps="no handle, as each query names the metadata file; the session keeps metadata files and Parquet footers",
        deletes=("positions", "equality"),  # 26.9 refuses deletion vectors
        own_process=True,
    ),
    EngineEntry(
        name="comet",
        factory="icebench.bench.engines.comet:comet",
        scripts="icebench.bench.engines.comet:SCRIPTS",
        spark_conf="icebench.bench.engines.comet:with_comet",
        description="Iceberg Java on Spark with DataFusion Comet, which scans in Rust",
        keeps=_SPARK_RELATION,
        needs_spark=True,
        own_process=True,
    ),
    EngineEntry(
        name="icebench-comet",
        factory="icebench.bench.engines.comet:icebench_comet",
        scripts="icebench.bench.engines.comet:ICEBENCH_SCRIPTS",
        spark_conf="icebench.bench.engines.comet:with_comet",
        description="this project's engine on Spark with DataFusion Comet, which reads the files in Rust",
        keeps=_OWN_HANDLE,
        needs_spark=True,
        own_process=True,
    ),
)

ENGINES: Registry[EngineEntry] = Registry(
    "icebench.engines", "engine", {entry.name: entry for entry in _OWN}, EngineEntry
)
"""The engines that can be measured, in the order of reports."""


def readers_of(kind: str, names: Sequence[str]) -> list[str]:
    """Those of the named engines that read a kind of deletes."""
    return [name for name in names if kind in ENGINES[name].deletes]


def make_engine(name: str, context: EngineContext) -> AnyEngine:
    """The engine of that name.

    Raises:
        EngineMissing: It is not installed or cannot work here; the message is the reason.
        KeyError: No such engine.
    """
    factory = ENGINES[name].factory
    try:
        make: Callable[[EngineContext], AnyEngine] = resolve_name(factory)
        return make(context)
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "icebench":
            raise  # this project's own mistake, not a missing peer
        advice = ": pip install 'icebench[peers]'" if factory.startswith("icebench.") else ""
        raise EngineMissing(f"{error.name or error} is not installed{advice}") from error
