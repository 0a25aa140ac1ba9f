"""The engines by name, made only when they are asked for.

An engine's module is imported on demand: the harness must run, and say why, where a peer's package is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, cast

from pyspark.sql import SparkSession

from bench.engines.engine import Engine, EngineMissing


@dataclass(frozen=True)
class EngineContext:
    """What engines share. `spark` starts the session at its first call, so only a run that needs Spark pays for it."""

    spark: Callable[[], SparkSession]


class EngineModule(Protocol):
    """A module of this package that holds an engine."""

    def make(self, context: EngineContext) -> Engine[Any]:
        """The engine; raises EngineMissing, or ImportError for a package that is not installed."""
        ...


@dataclass(frozen=True, kw_only=True)
class EngineEntry:
    """A known engine. `needs_spark` tells whether making it starts the shared session."""

    name: str
    module: str
    description: str
    needs_spark: bool = False


ENGINES: dict[str, EngineEntry] = {
    entry.name: entry
    for entry in (
        EngineEntry(
            name="icebench",
            module="bench.engines.icebench",
            description="this project's engine: planning, and scans as Arrow batches",
        ),
        EngineEntry(
            name="icebench-spark",
            module="bench.engines.icebench_spark",
            description="this project's engine on Spark: its plan, Spark's own Parquet reader",
            needs_spark=True,
        ),
        EngineEntry(
            name="pyiceberg",
            module="bench.engines.pyiceberg_engine",
            description="PyIceberg: planning, and scans as Arrow batches",
        ),
        EngineEntry(
            name="iceberg-java",
            module="bench.engines.iceberg_java",
            description="Iceberg Java: planning without Spark jobs, scans by its vectorized reader on Spark",
            needs_spark=True,
        ),
        EngineEntry(
            name="duckdb", module="bench.engines.duckdb_engine", description="DuckDB's Iceberg extension: scans"
        ),
        EngineEntry(name="polars", module="bench.engines.polars_engine", description="Polars' Rust reader: scans"),
    )
}


def make_engine(name: str, context: EngineContext) -> Engine[Any]:
    """The engine of that name.

    Raises:
        EngineMissing: It is not installed or cannot work here; the message is the reason.
        KeyError: No such engine.
    """
    entry = ENGINES[name]
    try:
        module = cast("EngineModule", import_module(entry.module))
        return module.make(context)
    except ImportError as error:
        raise EngineMissing(f"{error.name or error} is not installed: pip install 'icebench[peers]'") from error
