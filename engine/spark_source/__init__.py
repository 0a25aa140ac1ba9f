"""``format("icebench")``: tables as a Spark data source, for batch and streaming queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icebench.engine.lazy_module import LazyModule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icebench.engine.spark_source import datasource
else:  # PySpark is loaded when a session is at hand
    datasource = LazyModule("icebench.engine.spark_source.datasource")


def register(spark: SparkSession) -> None:
    """Register ``format("icebench")`` with a session, for batch and streaming reads and writes.

    For example::

        icebench.spark.register(spark)
        rows = spark.read.format("icebench").option("catalog", "sqlite:///wh/catalog.db").load("db.events")

    See `icebench.engine.spark_source.options` for the options.
    """
    datasource.register(spark)
