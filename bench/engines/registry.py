"""The engines by name, made only when they are asked for.

An engine's module is imported on demand: the harness must run, and say why, where a peer's package is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, cast

from bench.engines.access import Access, TableAccess
from bench.engines.engine import AnyEngine, EngineMissing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class EngineContext:
    """What engines share. `spark` starts the session at its first call, so only a run that needs Spark pays for it;
    `access` gives what opens the files of the table of a metadata file."""

    spark: Callable[[], SparkSession]
    access: Callable[[str], Access] = field(default_factory=TableAccess)


@dataclass(frozen=True, kw_only=True)
class EngineEntry:
    """A known engine. `factory` is ``module:class``; the class takes an `EngineContext` and may raise EngineMissing.
    `needs_spark` tells whether making it starts the shared session, `plans` whether it tells which files it plans."""

    name: str
    factory: str
    description: str
    needs_spark: bool = False
    plans: bool = False


ENGINES: dict[str, EngineEntry] = {
    entry.name: entry
    for entry in (
        EngineEntry(
            name="icebench",
            factory="bench.engines.icebench:Icebench",
            description="this project's engine: planning, and scans as Arrow batches",
            plans=True,
        ),
        EngineEntry(
            name="icebench-spark",
            factory="bench.engines.icebench_spark:IcebenchSpark",
            description="this project's engine on Spark: its plan, Spark's own Parquet reader",
            needs_spark=True,
        ),
        EngineEntry(
            name="pyiceberg",
            factory="bench.engines.pyiceberg_engine:PyIceberg",
            description="PyIceberg: planning, and scans as Arrow batches",
            plans=True,
        ),
        EngineEntry(
            name="iceberg-java",
            factory="bench.engines.iceberg_java:IcebergJava",
            description="Iceberg Java: planning without Spark jobs, scans by its vectorized reader on Spark",
            needs_spark=True,
            plans=True,
        ),
        EngineEntry(
            name="duckdb", factory="bench.engines.duckdb_engine:DuckDb", description="DuckDB's Iceberg extension: scans"
        ),
        EngineEntry(
            name="polars", factory="bench.engines.polars_engine:Polars", description="Polars' Rust reader: scans"
        ),
    )
}


def make_engine(name: str, context: EngineContext) -> AnyEngine:
    """The engine of that name.

    Raises:
        EngineMissing: It is not installed or cannot work here; the message is the reason.
        KeyError: No such engine.
    """
    module, _, factory = ENGINES[name].factory.partition(":")
    try:
        make = cast("Callable[[EngineContext], AnyEngine]", getattr(import_module(module), factory))
        return make(context)
    except ImportError as error:
        if (error.name or "").partition(".")[0] in ("bench", "engine", "icebench"):
            raise  # this project's own mistake, not a missing peer
        raise EngineMissing(f"{error.name or error} is not installed: pip install 'icebench[peers]'") from error
