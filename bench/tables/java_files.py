"""A table as Iceberg Java writes it by default: ``python -m icebench.bench.tables.java_files ROWS SEED DIRECTORY``.

In a process of its own, since a virtual machine takes most settings only when it starts. Spark writes one data file,
whose row groups are as large as the writer makes them (128 MB compressed: millions of rows).
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.parquet as pq

from icebench.bench.spark_session import SparkSettings, spark_session
from icebench.bench.workloads.reading_files import integers_and_decimals

CATALOG = "iceberg_java"
TABLE = "db.prices"
_STEP_ROWS = 500_000


def main(arguments: list[str]) -> None:
    """Write ``DIR/db/prices``: twelve columns of decimal(7,2)."""
    rows, seed, folder = int(arguments[0]), int(arguments[1]), Path(arguments[2])
    staged = folder / "staged.parquet"
    writer: pq.ParquetWriter | None = None
    for start in range(0, rows, _STEP_ROWS):
        table = integers_and_decimals(min(_STEP_ROWS, rows - start), seed + start)[1]
        writer = writer or pq.ParquetWriter(staged, table.schema, store_decimal_as_integer=True)
        writer.write_table(table)
    if writer is not None:
        writer.close()
    settings = SparkSettings(
        master="local[2]",
        iceberg_warehouse=str(folder),
        iceberg_catalog=CATALOG,
        extra=(("spark.sql.files.maxPartitionBytes", "64g"),),
    )
    spark = spark_session(settings)
    spark.read.parquet(str(staged)).coalesce(1).writeTo(f"{CATALOG}.{TABLE}").using("iceberg").create()
    spark.stop()
    staged.unlink()


if __name__ == "__main__":
    main(sys.argv[1:])
