"""This project's engine on Spark: its plan decides the files and deletes, Spark's own Parquet reader reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import icebench
from icebench.bench.engines.engine import Ability, Plan
from icebench.bench.engines.icebench import maintain
from icebench.bench.engines.registry import EngineContext
from icebench.bench.engines.script import ON_SPARK, SPARK, call
from icebench.bench.engines.spark_queries import spark_rows, views_session
from icebench.bench.engines.spark_scan import SparkScans
from icebench.bench.engines.spark_storage import give_access
from icebench.bench.layouts.actions import Action

SCRIPTS = {"scan": replace(ON_SPARK, setup=f"import icebench{SPARK}", open="icebench.load_table(TABLE)")}


@dataclass(frozen=True)
class OpenTables:
    """Tables by name, and a session with views of them."""

    session: SparkSession
    tables: Mapping[str, icebench.Table]


class IcebenchSpark(SparkScans[icebench.Table, str | None]):
    """`Scan.to_spark`. It plans exactly as the engine icebench does, so only its scans are measured, and
    rewrites of data files on executors."""

    name = "icebench-spark"
    abilities = frozenset({Ability.SCAN, Ability.MAINTAIN, Ability.QUERY, Ability.CONCURRENT_QUERIES})
    dialect = "spark"
    maintains: frozenset[Action] = frozenset({"binpack", "sort", "zorder"})

    def __init__(self, context: EngineContext) -> None:
        self._spark = context.spark()
        self._access = context.access
        self.version = f"{version('icebench')} (Spark {self._spark.version})"

    def open(self, metadata_location: str) -> icebench.Table:
        access = self._access(metadata_location)
        give_access(self._spark, access)
        return icebench.load_table(metadata_location, properties=access.options)

    def compile(self, handle: icebench.Table, filter: str | None) -> str | None:
        handle.scan(filter=filter)
        return filter

    def plan(self, handle: icebench.Table, filter: str | None) -> Plan:
        raise AssertionError("planning is not among the abilities")

    def open_tables(self, locations: Mapping[str, str]) -> OpenTables:
        return self._with_views({name: self.open(location) for name, location in locations.items()})

    def new_session(self, tables: OpenTables) -> OpenTables:
        """The same tables, and a session with views of them."""
        return self._with_views(tables.tables)

    def _with_views(self, tables: Mapping[str, icebench.Table]) -> OpenTables:
        session = views_session(self._spark)
        for name, table in tables.items():
            table.scan().to_spark(session).createOrReplaceTempView(name)
        return OpenTables(session, tables)

    def answer(
        self, tables: OpenTables, query: str, names: Sequence[str], seconds: float | None = None
    ) -> list[tuple[Any, ...]]:
        """A view has a finished plan. As other engines plan in every query, so are scans here."""
        for name in names:
            tables.tables[name].scan().plan()
        return spark_rows(tables.session, query, seconds)

    def query(self, handle: icebench.Table, columns: Sequence[str] | None, filter: str | None) -> str:
        assert columns is not None
        return f"{call('table.scan', filter=filter, columns=list(columns))}.to_spark(spark)"

    def maintain(self, warehouse: Path, name: str, action: Action, target_bytes: int) -> None:
        maintain(warehouse, name, action, target_bytes, self._spark)

    def frame(self, handle: icebench.Table, columns: Sequence[str], filter: str | None) -> DataFrame:
        return handle.scan(filter=filter, columns=columns).to_spark(self._spark)
