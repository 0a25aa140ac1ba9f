"""Spark with DataFusion Comet, which reads and computes in Rust: over Iceberg Java's tables, which it scans by itself,
and over this project's scans, whose files it reads."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession

import icebench
from icebench.bench.engines.checksum import Checksum
from icebench.bench.engines.engine import Ability, EngineMissing
from icebench.bench.engines.icebench_spark import SCRIPTS as SCRIPTS_ON_SPARK
from icebench.bench.engines.icebench_spark import IcebenchSpark, OpenTables
from icebench.bench.engines.iceberg_java import IcebergJava, JavaFilter, JavaTable
from icebench.bench.engines.own_process import OwnProcess
from icebench.bench.engines.registry import EngineContext
from icebench.bench.engines.script import ON_SPARK
from icebench.bench.setup_jars import IVY_HOME, JarMissing, cached_jar, fetch, is_cached
from icebench.bench.spark_session import SparkSettings

COMET = "org.apache.datafusion:comet-spark-spark4.1_2.13:1.2.0"
"""Maven coordinates."""
_VERSION = COMET.rpartition(":")[2]

_CLASS_PATH = "spark.driver.extraClassPath"
_NATIVE, _NATIVE_FILES = "CometIcebergNativeScan", "CometNativeScan"
"""Scans of Iceberg tables, and of files."""


def comet(context: EngineContext) -> OwnProcess:
    """Iceberg Java with Comet, in a process of its own: a plugin is part of a session from its start.

    Raises:
        EngineMissing: A jar cannot be fetched, or Spark does not run in one process on this machine.
    """
    return _own_process("Comet", context)


def icebench_comet(context: EngineContext) -> OwnProcess:
    """This project's engine with Comet, likewise."""
    return _own_process("IcebenchComet", context)


def _own_process(engine: str, context: EngineContext) -> OwnProcess:
    settings = context.spark_settings()
    if not settings.is_local:
        raise EngineMissing(f"Comet is set up for Spark on this machine only, not for {settings.master}")
    try:
        if not is_cached(COMET):
            sys.stderr.write(f"Fetching {COMET} into {IVY_HOME} (99 MB, once)\n")
            fetch(COMET)
        settings = with_comet(settings)
    except JarMissing as error:
        raise EngineMissing(str(error)) from error
    return OwnProcess(f"icebench.bench.engines.comet:{engine}", context, settings)


def with_comet(settings: SparkSettings) -> SparkSettings:
    """Settings of a session with Comet: its plugin and shuffle, and as much memory outside the heap as its guide asks
    for; all else is Comet's default, which reads Iceberg tables by its own scan. Raises JarMissing, as `conf` does."""
    known = settings.conf().get(_CLASS_PATH)
    own = {
        _CLASS_PATH: os.pathsep.join([*([known] if known else []), str(cached_jar(COMET))]),
        "spark.plugins": "org.apache.spark.CometPlugin",
        "spark.shuffle.manager": "org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager",
        "spark.memory.offHeap.enabled": "true",
        "spark.memory.offHeap.size": "2g",
    }
    return replace(settings, extra=tuple(sorted({**dict(settings.extra), **own}.items())))


SCRIPTS, ICEBENCH_SCRIPTS = {"scan": ON_SPARK}, SCRIPTS_ON_SPARK


class Comet(IcebergJava):
    """Iceberg Java's tables in a session with Comet.

    Planning is Iceberg Java's own, which `iceberg-java` measures. So would be a scan that Comet leaves to Spark: it is
    skipped when its rows are checked, before anything is timed.
    """

    name = "comet"
    abilities = frozenset({Ability.SCAN, Ability.QUERY})

    def __init__(self, context: EngineContext) -> None:
        _be_quiet()
        super().__init__(context)
        self._seen: set[str] = set()
        self.version = f"{_VERSION} (Iceberg {self.version})"

    def checksum(self, handle: JavaTable, columns: Sequence[str], filter: JavaFilter) -> Checksum:
        _refuse_without(_NATIVE, self.frame(handle, columns, filter), "this scan", IcebergJava.name)
        return super().checksum(handle, columns, filter)

    def answer(
        self, tables: SparkSession, query: str, names: Sequence[str], seconds: float | None = None
    ) -> list[tuple[Any, ...]]:
        if query not in self._seen:
            _refuse_without(_NATIVE, tables.sql(query), "all scans of this query", IcebergJava.name)
            self._seen.add(query)
        return super().answer(tables, query, names, seconds)


class IcebenchComet(IcebenchSpark):
    """This project's engine in a session with Comet. A scan that Comet leaves to Spark is skipped, likewise."""

    name = "icebench-comet"
    abilities = frozenset({Ability.SCAN, Ability.QUERY})

    def __init__(self, context: EngineContext) -> None:
        _be_quiet()
        super().__init__(context)
        self._seen: set[str] = set()
        self.version = f"{_VERSION} (icebench {self.version})"

    def checksum(self, handle: icebench.Table, columns: Sequence[str], filter: str | None) -> Checksum:
        _refuse_without(_NATIVE_FILES, self.frame(handle, columns, filter), "this scan", IcebenchSpark.name)
        return super().checksum(handle, columns, filter)

    def answer(
        self, tables: OpenTables, query: str, names: Sequence[str], seconds: float | None = None
    ) -> list[tuple[Any, ...]]:
        if query not in self._seen:
            frame = tables.session.sql(query)
            _refuse_without(_NATIVE_FILES, frame, "all scans of this query", IcebenchSpark.name)
            self._seen.add(query)
        return super().answer(tables, query, names, seconds)


def _be_quiet() -> None:
    """Comet writes its version amid the progress of a run otherwise. Takes a process of one's own."""
    os.environ.setdefault("COMET_LOG_LEVEL", "warn")


def _refuse_without(scan: str, frame: DataFrame, what: str, measured_by: str) -> None:
    plan = cast("Any", frame)._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001
    if scan not in plan:
        raise EngineMissing(f"comet leaves {what} to Spark, which {measured_by} measures")
