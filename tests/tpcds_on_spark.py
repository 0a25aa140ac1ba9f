"""Queries of TPC-DS on one Spark session over the same tables: by `Scan.to_spark`, by it without its estimate of sizes,
and by Iceberg Java, interleaved. Answers are checked; times, and their ratios to Iceberg Java's, are printed.

python -m tests.tpcds_on_spark [SCALE [ROUNDS [QUERY ...]]]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

import icebench
from icebench.bench.spark_session import SparkSettings, spark_session
from tests.interop.tpcds.queries import TABLES, Reference

CATALOG = "java"
FACTOR = "spark.sql.sources.fileCompressionFactor"
OURS, PLAIN, JAVA = "icebench", "icebench, compressed sizes", "iceberg-java"


def write_tables(reference: Reference, warehouse: Path) -> None:
    """All tables, in a few files each."""
    catalog = icebench.load_catalog(str(warehouse))
    catalog.create_namespace("db")
    for name in TABLES:
        rows = reference.rows(name)
        table = catalog.create_table(f"db.{name}", rows.schema)
        size = max(rows.num_rows // 4, 100_000)
        for start in range(0, rows.num_rows, size):
            table.append(rows.slice(start, size))


def view(spark: SparkSession, catalog: icebench.Catalog, name: str, engine: str) -> None:
    """Let queries read a table by an engine."""
    # A factor of the user's own is respected: near 1, sizes are those of the files.
    spark.conf.set(FACTOR, "1.0001" if engine == PLAIN else "1.0")
    if engine != JAVA:
        frame = catalog.load_table(f"db.{name}").scan().to_spark(spark)
    else:
        frame = spark.table(f"{CATALOG}.db.{name}")
    frame.createOrReplaceTempView(name)


def main() -> None:
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory() as folder:
        reference = Reference(scale)
        warehouse = Path(folder) / "warehouse"
        write_tables(reference, warehouse)
        spark = spark_session(
            SparkSettings(iceberg_warehouse=str(warehouse), iceberg_catalog=CATALOG, shuffle_partitions=4)
        )
        catalog = icebench.load_catalog(str(warehouse))
        for number in [int(text) for text in sys.argv[3:]] or sorted(reference.queries):
            query = reference.queries[number]
            times: dict[str, list[float]] = {OURS: [], PLAIN: [], JAVA: []}
            for turn in range(rounds + 1):
                for engine, seconds in times.items():
                    for name in query.tables:
                        view(spark, catalog, name, engine)
                    began = time.perf_counter()
                    rows = [tuple(row) for row in spark.sql(query.spark).collect()]
                    if turn:  # the first one warms both
                        seconds.append(time.perf_counter() - began)
                    elif fault := reference.answer(number).difference(rows):
                        raise AssertionError(f"query {number} by {engine}: {fault}")
            medians = {engine: statistics.median(seconds) for engine, seconds in times.items()}
            texts = [f"{engine} {found:.2f} s ({found / medians[JAVA]:.2f})" for engine, found in medians.items()]
            sys.stdout.write(f"query {number}: {', '.join(texts)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
