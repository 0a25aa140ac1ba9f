"""Which part of a scan a Spark session runs in native code, and why not the rest."""

from __future__ import annotations

from collections import Counter

from pyspark.sql import DataFrame, SparkSession

from icebench.engine.display import count_text
from icebench.engine.plan.scan import ScanPlan
from icebench.engine.read.plans import request_for
from icebench.engine.spark.iceberg_tasks import comet_reasons
from icebench.engine.spark.native_scan import handed_over, plan_to_dataframe
from icebench.engine.spark.session import has_comet
from icebench.engine.spec.schema import Schema
from icebench.engine.storage.store import Store

_MEANING = {
    "CometIcebergNativeScan": "Comet reads scan tasks of Iceberg in native code",
    "CometNativeScan": "Comet reads files in native code",
    "FileScan": "Spark's own reader",
    "MapInArrow": "the Arrow reader in Python on executors",
}
"""Operator -> what it does."""
_TREE = " :+*()-0123456789"
"""What Spark draws before an operator in the lines of a plan."""


def readers_of(
    spark: SparkSession,
    plan: ScanPlan,
    store: Store,
    *,
    projection: Schema | None = None,
    table_name: str | None = None,
) -> tuple[str, ...]:
    """How a session reads a plan, in lines: its operators that read files, and why they are not all native.

    Arguments and errors are those of `icebench.engine.spark.native_scan.plan_to_dataframe`.
    """
    frame = plan_to_dataframe(spark, plan, store, projection=projection, table_name=table_name)
    lines = [f"{_MEANING[name]}: {count_text(n, 'scan')}" for name, n in _scans(frame).items()]
    if not has_comet(spark):
        return (*lines, "nothing is native: the session has no DataFusion Comet")
    said = comet_reasons(spark, frame._jdf)  # noqa: SLF001
    lines += [f"Comet leaves to Spark: {said}"] if said else []
    handed = handed_over(spark, plan, request_for(plan, store, projection=projection, table_name=table_name))
    if handed.files:
        lines.append(f"native_deletes=True: Comet reads {count_text(handed.files, 'file')} as scan tasks of Iceberg")
    lines += [f"native_deletes=True: not {count_text(n, 'file')}: {why}" for why, n in handed.reasons.items()]
    return tuple(lines)


def _scans(frame: DataFrame) -> Counter[str]:
    lines = frame._jdf.queryExecution().executedPlan().toString().splitlines()  # noqa: SLF001
    operators = (line.lstrip(_TREE).partition(" ")[0].partition("(")[0] for line in lines)
    return Counter(name for name in operators if name in _MEANING)
