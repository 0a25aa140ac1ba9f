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
    """Register the tables of a namespace as temporary views of a session, for SQL queries that join them.

    For example::

        icebench.spark.register_views(spark, catalog, "db")
        spark.sql("select count(*) from events join users using (user_id)")

    Each view is `Scan.to_spark` of the table's current snapshot, planned now: call this again to see a later snapshot.
    Spark's optimizer prunes columns, pushes filters into its Parquet reader, which skips row groups by them, and
    chooses joins by the rows and columns of the plan. Filters and joins of a query prune files by columns of identity
    partitions; `prune_files` prunes by all others.

    Args:
        spark: The session. Views of the same names are replaced.
        catalog: The catalog.
        namespace: The namespace.
        tables: The last parts of the tables' names; by default all tables of the namespace.

    Returns:
        The names of the views: the last parts of the tables' names.

    Raises:
        NotFound: No such namespace.
        Invalid: No such table, or two whose names differ in case only.
        Unsupported: As `Scan.to_spark`: a table has files that are not Parquet, for example. Then no view is created.
    """
    return views.register_views(spark, catalog, namespace, tables)


def register_view(spark: SparkSession, name: str, scan: Scan) -> None:
    """Register a scan as a temporary view of a session, as `register_views` does for the tables of a namespace.

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
    """The same query, without opening files of registered views in which its own filters keep no row.

    For example::

        icebench.spark.register_views(spark, catalog, "db")
        icebench.spark.prune_files(spark.sql("select count(*) from events where ts >= '2024-02-29'")).show()

    Spark knows neither hidden partitions nor the bounds of columns in manifests. This function therefore asks Spark's
    optimizer which conditions the query sets on each view's rows, and plans the view's scan again with them, as
    `Table.scan` does with a filter: by partitions of any transform, bounds, null counts, and Bloom filters if the table
    has them. That takes a second analysis of the query by Spark, but no job; if no file can be skipped, the frame
    itself is returned.

    It uses comparisons of columns with constants, ``in``, ``is null``, ``like 'prefix%'``, and what Spark's optimizer
    turns into those (``cast(ts as date) = ...``), but no conditions on fields of structs, nor on columns of files
    without field ids. If registered views are joined by equality, a filter on one of them (such as a calendar) also
    skips files of the others: its keys are read in this process, if they are in files of less than 16 MB. A view that a
    query reads several times is read with the files that any of these reads needs, and one that is behind Spark's cache
    is read whole. ``current_timestamp()`` and its like are those of this call, however late the result is executed.

    Args:
        frame: A query over views of `register_views` or `register_view` in its session.

    Returns:
        A DataFrame with the same rows.
    """
    return views.prune_files(frame)
