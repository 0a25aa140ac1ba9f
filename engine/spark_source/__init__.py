"""``format("icebench")``: tables as a Spark data source, for batch and streaming queries; and tables as views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icebench.engine.lazy_module import LazyModule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icebench.engine.opening.catalog import Catalog, Name
    from icebench.engine.spark_source import datasource, views
else:  # PySpark is loaded when a session is at hand
    datasource = LazyModule("icebench.engine.spark_source.datasource")
    views = LazyModule("icebench.engine.spark_source.views")


def register(spark: SparkSession) -> None:
    """Register ``format("icebench")`` with a session, for batch and streaming reads and writes.

    For example::

        icebench.spark.register(spark)
        rows = spark.read.format("icebench").option("catalog", "sqlite:///wh/catalog.db").load("db.events")

    See `icebench.engine.spark_source.options` for the options.
    """
    datasource.register(spark)


def register_views(
    spark: SparkSession, catalog: Catalog, namespace: Name, *, tables: Sequence[str] | None = None
) -> list[str]:
    """Make tables of a namespace temporary views of a session, for queries in SQL that join them.

    For example::

        icebench.spark.register_views(spark, catalog, "db")
        spark.sql("select count(*) from events join users using (user_id)")

    Each view is `Scan.to_spark` of the table's current snapshot, planned now: a later snapshot is seen by calling this
    again. Spark's optimizer leaves columns out of the scan, pushes filters into its Parquet reader, which skips row
    groups by them, and chooses joins by the rows and columns of the plan. Filters and joins of a query prune files by
    columns of identity partitions; to prune by others, give `Scan.to_spark` the filter.

    Args:
        spark: The session. Views of the same names are replaced.
        catalog: The catalog.
        namespace: The namespace.
        tables: The last parts of names; by default all tables of the namespace.

    Returns:
        The names of the views: the last parts of the tables' names.

    Raises:
        NotFound: No such namespace.
        Invalid: No such table, or two whose names differ in case only.
        Unsupported: As `Scan.to_spark`: a table has files that are not Parquet, for example. No view is made then.
    """
    return views.register_views(spark, catalog, namespace, tables)
