"""The rows and queries of TPC-DS, both of DuckDB's extension `tpcds`.

`write_store_sales` gives them in an Iceberg table that Iceberg Java wrote: the input for judging a table nobody here
made. DuckDB's dsdgen makes the rows, Spark with Iceberg's Java runtime writes and deletes them (merge-on-read, format
version 2, so that deletes are position-delete files). Nothing of this package's engine takes part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icebench.bench.errors import ConfigError
from icebench.bench.workloads.sales_calendar import date_key
from icebench.bench.workloads.tpcds import Tpcds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "tpcds.store_sales"
DSDGEN_TABLES = (
    "call_center", "catalog_page", "catalog_returns", "catalog_sales", "customer", "customer_address",
    "customer_demographics", "date_dim", "household_demographics", "income_band", "inventory", "item", "promotion",
    "reason", "ship_mode", "store", "store_returns", "store_sales", "time_dim", "warehouse", "web_page", "web_returns",
    "web_sales", "web_site",
)  # fmt: skip
FACTS: Mapping[str, str] = {
    "catalog_returns": "cr_returned_date_sk",
    "catalog_sales": "cs_sold_date_sk",
    "inventory": "inv_date_sk",
    "store_returns": "sr_returned_date_sk",
    "store_sales": "ss_sold_date_sk",
    "web_returns": "wr_returned_date_sk",
    "web_sales": "ws_sold_date_sk",
}
"""Tables of facts, and the column with the key of their day."""
SORTING_MEMORY = "2GB"
"""Of DuckDB."""
TPCDS_QUERIES = range(1, 100)
"""Their numbers."""
GENERATE, WRITE, DELETE = "generating with dsdgen", "writing with Iceberg Java", "deleting with Iceberg Java"
"""The steps, in order, as they are passed to `progress`."""


@dataclass(frozen=True, kw_only=True)
class DsdgenTable:
    """What was written: where, how many rows live and how many deleted."""

    path: Path
    rows: int
    deleted_rows: int


def write_store_sales(
    spark: SparkSession,
    warehouse: Path,
    *,
    catalog: str,
    scale: float,
    seed: int = 42,
    progress: Callable[[str], None] = lambda _: None,
) -> DsdgenTable:
    """Generate store_sales at `scale` and write it as ``<warehouse>/tpcds/store_sales``.

    Args:
        spark: A session whose `catalog` is an Iceberg catalog of type hadoop at `warehouse`.
        warehouse: A local directory; dsdgen's rows pass through a file in it, which is removed.
        catalog: The catalog's name in SQL.
        scale: TPC-DS scale factor; 1 is 2,880,404 rows.
        seed: Chooses the date ranges to delete, as TPC-DS's data maintenance does (about 0.43 % of the rows).
        progress: Called at each step.

    Raises:
        ConfigError: There is something of one of these names, which may be somebody's table.
    """
    path = warehouse.joinpath(*TABLE.split("."))
    staged = warehouse / "dsdgen-store_sales.parquet"  # Spark would not see a name that begins with a dot
    for each in (path, staged):
        if each.exists():
            raise ConfigError("exists; remove it, or choose another directory", path=str(each))
    warehouse.mkdir(parents=True, exist_ok=True)
    try:
        progress(GENERATE)
        _generate(staged, scale)
        progress(WRITE)
        name = f"{catalog}.{TABLE}"
        source = spark.read.parquet(str(staged))
        source.writeTo(name).using("iceberg").tableProperty("format-version", "2").tableProperty(
            "write.delete.mode", "merge-on-read"
        ).create()
        rows = spark.table(name).count()
        progress(DELETE)
        for first, last in Tpcds(scale=scale, seed=seed).delete_ranges():
            days = f"ss_sold_date_sk BETWEEN {date_key(first)} AND {date_key(last)}"
            spark.sql(f"DELETE FROM {name} WHERE {days}")  # noqa: S608 - from our own names and numbers
        live = spark.table(name).count()
    finally:
        staged.unlink(missing_ok=True)
    return DsdgenTable(path=path, rows=live, deleted_rows=rows - live)


def tpcds_queries() -> dict[int, str]:
    """The queries by number, in DuckDB's SQL. Raises as `tpcds_database`."""
    with tpcds_database() as connection:
        return dict(connection.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall())


def tpcds_database(path: Path | None = None) -> Any:  # noqa: ANN401 - DuckDB's connection, of a package that need not be
    """A database of DuckDB with its extension `tpcds`, which comes from its package: nothing is downloaded.

    Args:
        path: Its file; None for one in memory.

    Raises:
        ConfigError: DuckDB or the extension is not installed.
    """
    try:
        import duckdb  # local import: the command line must work where it is missing

        folder = files("duckdb_extension_tpcds")
    except ImportError as error:
        raise ConfigError("dsdgen is DuckDB's: pip install 'icebench[peers]'") from error
    connection = duckdb.connect() if path is None else duckdb.connect(str(path))
    extension = folder / "extensions" / f"v{duckdb.__version__}" / "tpcds.duckdb_extension"
    connection.execute(f"LOAD '{extension}'")
    connection.execute("SET enable_progress_bar = false")
    return connection


def write_parquet(connection: Any, table: str, target: Path) -> None:  # noqa: ANN401 - as above
    """Write a table of a database to a Parquet file."""
    quoted = str(target).replace("'", "''")
    connection.execute(f"COPY {table} TO '{quoted}' (FORMAT parquet, COMPRESSION zstd)")


def sort_parquet(source: Path, column: str, target: Path) -> None:
    """Write the rows of a Parquet file in the order of a column, nulls last. What DuckDB cannot hold in memory it keeps
    beside the target meanwhile."""
    import duckdb  # local import: the package can be left out where nothing is generated

    read, written, spilled = (str(path).replace("'", "''") for path in (source, target, target.parent))
    with duckdb.connect(config={"memory_limit": SORTING_MEMORY, "temp_directory": spilled}) as connection:
        connection.execute(
            f"COPY (FROM '{read}' ORDER BY {column} NULLS LAST) TO '{written}' (FORMAT parquet, COMPRESSION zstd)"
        )


def _generate(target: Path, scale: float) -> None:
    with tpcds_database() as connection:
        connection.execute(f"CALL dsdgen(sf = {float(scale)})")
        write_parquet(connection, "store_sales", target)
