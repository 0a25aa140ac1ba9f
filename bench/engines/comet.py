"""Iceberg Java on Spark with DataFusion Comet, which scans Iceberg tables and computes in Rust."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession

from icebench.bench.engines.checksum import Checksum
from icebench.bench.engines.engine import Ability, EngineMissing
from icebench.bench.engines.iceberg_java import IcebergJava, JavaFilter, JavaTable
from icebench.bench.engines.own_process import OwnProcess
from icebench.bench.engines.registry import EngineContext
from icebench.bench.engines.script import ON_SPARK
from icebench.bench.setup_jars import IVY_HOME, JarMissing, cached_jar, fetch, is_cached
from icebench.bench.spark_session import SparkSettings

COMET = "org.apache.datafusion:comet-spark-spark4.1_2.13:1.2.0"
"""Maven coordinates."""

_CLASS_PATH = "spark.driver.extraClassPath"
_NATIVE = "CometIcebergNativeScan"


def comet(context: EngineContext) -> OwnProcess:
    """Iceberg Java with Comet, in a process of its own: a plugin is part of a session from its start.

    Raises:
        EngineMissing: A jar cannot be fetched, or Spark does not run in one process on this machine.
    """
    settings = context.spark_settings()
    if not settings.is_local:
        raise EngineMissing(f"comet is set up for Spark on this machine only, not for {settings.master}")
    try:
        if not is_cached(COMET):
            sys.stderr.write(f"Fetching {COMET} into {IVY_HOME} (99 MB, once)\n")
            fetch(COMET)
        settings = with_comet(settings)
    except JarMissing as error:
        raise EngineMissing(str(error)) from error
    return OwnProcess("icebench.bench.engines.comet:Comet", context, settings)


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


SCRIPTS = {"scan": ON_SPARK}


class Comet(IcebergJava):
    """Iceberg Java's tables in a session with Comet.

    Planning is Iceberg Java's own, which `iceberg-java` measures. So would be a scan that Comet leaves to Spark: it is
    skipped when its rows are checked, before anything is timed.
    """

    name = "comet"
    abilities = frozenset({Ability.SCAN, Ability.QUERY})

    def __init__(self, context: EngineContext) -> None:
        # In a process of its own; otherwise the version is written amid the progress of a run.
        os.environ.setdefault("COMET_LOG_LEVEL", "warn")
        super().__init__(context)
        self._seen: set[str] = set()
        self.version = f"{COMET.rpartition(':')[2]} (Iceberg {self.version})"

    def checksum(self, handle: JavaTable, columns: Sequence[str], filter: JavaFilter) -> Checksum:
        _refuse_without_comet(self.frame(handle, columns, filter), "this scan")
        return super().checksum(handle, columns, filter)

    def answer(
        self, tables: SparkSession, query: str, names: Sequence[str], seconds: float | None = None
    ) -> list[tuple[Any, ...]]:
        if query not in self._seen:
            _refuse_without_comet(tables.sql(query), "all scans of this query")
            self._seen.add(query)
        return super().answer(tables, query, names, seconds)


def _refuse_without_comet(frame: DataFrame, what: str) -> None:
    plan = cast("Any", frame)._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001
    if _NATIVE not in plan:
        raise EngineMissing(f"comet leaves {what} to Spark, which iceberg-java measures")
