"""Scans in one Spark session with DataFusion Comet: by Comet's own scan of Iceberg tables, and by `Scan.to_spark` with
and without `native_deletes`. Ways are interleaved, answers are compared; medians are printed, in
seconds by the clock with the making of the DataFrame, which is in brackets, too.

python -m tests.comet_deletes_on_spark [ROWS [ROUNDS]]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import icebench
from icebench.bench.engines.comet import COMET, with_comet
from icebench.bench.setup_jars import main as fetch_jars
from icebench.bench.spark_session import SparkSettings, spark_session

FILES = 8
COLUMNS = [f"d{n}" for n in range(12)]
WARMUPS = 2


def rows_of(start: int, count: int) -> pa.Table:
    random = np.random.default_rng(start)
    price = pa.decimal128(7, 2)
    drawn = {name: pa.array(random.integers(0, 90_000, count), pa.int32()) for name in COLUMNS}
    columns = {name: each.cast(pa.decimal128(12, 2)).cast(price) for name, each in drawn.items()}
    return pa.table({"id": pa.array(np.arange(start, start + count)), **columns})


def write_table(catalog: icebench.Catalog, name: str, rows: int) -> icebench.Table:
    table = catalog.create_table(name, rows_of(0, 1).schema, properties={"format-version": "3"})
    for number in range(FILES):
        table.append(rows_of(number * (rows // FILES), rows // FILES))
    return table


def ways(spark: SparkSession, table: icebench.Table, filter: str | None) -> dict[str, Callable[[], DataFrame]]:
    def comet() -> DataFrame:
        frame = spark.read.format("iceberg").load(table.metadata_location)
        return frame if filter is None else frame.where(filter)

    return {
        "comet": comet,
        "native deletes": lambda: table.scan(filter).to_spark(spark, native_deletes=True),
        "icebench": lambda: table.scan(filter).to_spark(spark),
    }


def largest(frame: DataFrame) -> object:
    return frame.selectExpr(*(f"max({name})" for name in COLUMNS)).collect()


def written(frame: DataFrame) -> None:
    frame.select(*COLUMNS).write.format("noop").mode("overwrite").save()


def cases(rows: int) -> dict[str, tuple[str | None, Callable[[DataFrame], object]]]:
    """Name -> the filter of the scan, and what is done with its rows."""
    return {
        "max of twelve decimals": (None, largest),
        "noop write of them": (None, written),
        "count": (None, lambda frame: frame.count()),
        "a range of ids, max": (f"id between {rows // 3} and {rows // 3 + rows // 50}", largest),
        "one price in ten, max": ("d0 < 90", largest),
        "one id, by Spark's filter": (None, lambda frame: frame.where(f"id = {rows // 2 + 1}").collect()),
    }


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    fetch_jars([COMET])
    with tempfile.TemporaryDirectory() as folder:
        warehouse = Path(folder) / "warehouse"
        catalog = icebench.load_catalog(str(warehouse))
        tables = {name: write_table(catalog, f"db.t{n}", rows) for n, name in enumerate(("1 % vectors", "no deletes"))}
        tables["1 % vectors"].delete("id % 100 = 7", "merge-on-read")
        # All are to read rows, where Iceberg would answer by statistics.
        extra = (("spark.sql.iceberg.aggregate-push-down.enabled", "false"),)
        spark = spark_session(with_comet(SparkSettings(iceberg_warehouse=str(warehouse), extra=extra)))
        for what, table in tables.items():
            for work, (filter, run) in cases(rows).items():
                seconds: dict[str, list[tuple[float, float]]] = {}
                answers = set()
                for turn in range(WARMUPS + rounds):
                    for way, make in ways(spark, table, filter).items():
                        began = time.perf_counter()
                        frame = make()
                        made = time.perf_counter() - began
                        answers.add(repr(run(frame)))
                        if turn >= WARMUPS:
                            seconds.setdefault(way, []).append((time.perf_counter() - began, made))
                if len(answers) > 1:
                    raise AssertionError(f"{work} of {what}: {answers}")
                medians = {
                    way: [statistics.median(part) for part in zip(*found, strict=True)]
                    for way, found in seconds.items()
                }
                texts = [f"{way} {whole:.2f} ({made:.2f})" for way, (whole, made) in medians.items()]
                sys.stdout.write(f"{what}, {work}: {', '.join(texts)}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
