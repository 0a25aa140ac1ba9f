"""The engine on Spark: executor writes, the native scan, ``format("icebench")``. The only home of PySpark."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make ``format("icebench")`` known to a session, for reading, writing and streams.

    For example::

        engine.spark.register(spark)
        rows = spark.read.format("icebench").option("catalog", "sqlite:///wh/catalog.db").load("db.events")

    See `engine.spark.source_options` for the options.
    """
    # Executors load modules of this package for a scan or a write; they need not load the data source for that.
    import_module("engine.spark.datasource").register(spark)
