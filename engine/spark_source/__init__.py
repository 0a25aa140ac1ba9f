"""``format("icebench")``: tables as a Spark data source, for batch and streaming queries; and tables as views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icebench.engine.lazy_module import LazyModule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from icebench.engine.opening.catalog import Catalog, Name
    from icebench.engine.scan import Scan
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
    columns of identity partitions; `prune_files` does by all others.

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


def register_view(spark: SparkSession, name: str, scan: Scan) -> None:
    """Make a scan a temporary view of a session, as `register_views` does for the tables of a namespace.

    For example::

        icebench.spark.register_view(spark, "returns", table.scan("returned", snapshot_id=17))

    Args:
        spark: The session. A view of the same name is replaced.
        name: The view's name.
        scan: The rows.

    Raises:
        As `Scan.to_spark`.
    """
    views.register_view(spark, name, scan)


def prune_files(frame: DataFrame) -> DataFrame:
    """The same query, which does not open files of registered views in which its own filters leave no row.

    For example::

        icebench.spark.register_views(spark, catalog, "db")
        icebench.spark.prune_files(spark.sql("select count(*) from events where ts >= '2024-02-29'")).show()

    Spark knows neither hidden partitions nor the bounds of columns in manifests. So its optimizer is asked what the
    query demands of each view's rows, and the view's scan is planned again with that, as `Table.scan` would be with the
    filter: by partitions of any transform, bounds, null counts, and Bloom filters where the table has them. It takes a
    second analysis of the query by Spark, and no job; where no file is left out, the frame itself is returned.

    Used are comparisons of columns with constants, ``in``, ``is null``, ``like 'prefix%'``, and what Spark's optimizer
    turns into those (``cast(ts as date) = ...``); not those on fields of structs, nor on columns of files without field
    ids. Where registered views are joined by equality, a filter on one of them (a calendar, say) leaves out files of
    the others, too: its keys are read here, if they are in files of less than 16 MB. A view that a query reads several
    times is read with the files of all of them.

    Args:
        frame: A query over views of `register_views` or `register_view` in its session.

    Returns:
        A DataFrame with the same rows.
    """
    return views.prune_files(frame)
