"""The rows of all tables of TPC-DS as Parquet files: ``python -m icebench.bench.tables.tpcds_files SCALE DIRECTORY``.

In a process of its own, whose memory ends with it, and with a database in a file: DuckDB keeps there what is beyond
its share of the memory.
"""

from __future__ import annotations

import sys
from pathlib import Path

from icebench.bench.workloads.dsdgen import DSDGEN_TABLES, tpcds_database, write_parquet

MEMORY = "2GB"
"""Of DuckDB."""


def main(arguments: list[str]) -> None:
    """Write ``DIRECTORY/TABLE.parquet`` for each table."""
    scale, folder = float(arguments[0]), Path(arguments[1])
    database = folder / "dsdgen.duckdb"
    with tpcds_database(database) as connection:
        connection.execute(f"SET memory_limit = '{MEMORY}'")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"CALL dsdgen(sf = {scale})")
        for table in DSDGEN_TABLES:
            write_parquet(connection, table, folder / f"{table}.parquet")
    database.unlink()


if __name__ == "__main__":
    main(sys.argv[1:])
