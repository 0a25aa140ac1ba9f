"""Peak memory of driver and executors while a cluster of two small executors writes, rewrites and changes a table:
``python -m tests.memory_on_a_cluster [GIGABYTES]`` of rows, as Arrow has them in memory (3).

Prints a row of a table for each operation: seconds, and the most megabytes that the driver's Python, its Java virtual
machine, an executor's Java virtual machine and an executor's Python workers had at a time. The rows are counted and
summed after each. A worker has 600 MB for its executor's heap, to which Spark adds 384 MiB for everything else.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Event, Thread

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import icebench
from icebench.bench.java_home import use_java_home
from icebench.bench.spark_session import SparkSettings, spark_session
from tests.spark.test_cluster import ROOT, start_cluster

ROW_BYTES = 84
EXECUTOR = {
    "spark.executor.memory": "600m",
    "spark.executor.cores": "1",
    "spark.driver.host": "127.0.0.1",
    "spark.executorEnv.PYTHONPATH": str(ROOT),
}
COLUMNS = ("driver's Python", "driver's Java", "an executor's Java", "an executor's Python")


def rows_of(spark: SparkSession, first: int, end: int, step: int = 1) -> DataFrame:
    """Rows with these keys, which executors make: numbers, decimals, texts and times."""
    random = [F.abs(F.xxhash64("id", F.lit(salt))) for salt in range(5)]
    return spark.range(first, end, step, max(2, (end - first) // step // 500_000)).select(
        "id",
        F.timestamp_micros(F.col("id") * 1_000_000).alias("at"),
        (random[0] % 100_000).alias("user"),
        F.element_at(F.array(*map(F.lit, ("view", "click", "order"))), (random[1] % 3 + 1).cast("int")).alias("kind"),
        F.concat(F.lit("/page/"), (random[2] % 5_000).cast("string")).alias("url"),
        (random[3] % 10_000_000).cast("decimal(12, 2)").alias("price"),
        (random[4] / 2.0**63).alias("ratio"),
        F.concat(F.lit("n"), (random[3] % (1 << 40)).cast("string")).alias("note"),
    )


class Peaks(Thread):
    """The most memory, in bytes, that the processes of each kind had since `begin`. Pages that several Python workers
    share count in parts."""

    def __init__(self, mark: str) -> None:
        super().__init__(daemon=True)
        self._mark, self._over = mark, Event()
        self.most = [0, 0, 0, 0]

    def begin(self) -> None:
        self.most = [0, 0, 0, 0]

    def run(self) -> None:
        while not self._over.wait(0.3):
            with suppress(psutil.Error):
                self.most = list(map(max, self.most, self._now()))

    def _now(self) -> list[int]:
        own = psutil.Process()
        driver = sum(each.memory_info().rss for each in own.children() if each.name() == "java")
        executors = [each for each in psutil.process_iter() if any(self._mark in word for word in _words(each))]
        java = max((each.memory_info().rss for each in executors), default=0)
        workers = [each.children(recursive=True) for each in executors]
        python = max((sum(each.memory_full_info().pss for each in own) for own in workers), default=0)
        return [own.memory_info().rss, driver, java, python]


def _words(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return process.cmdline()
    return []


def operations(spark: SparkSession, table: icebench.Table, rows: int) -> dict[str, Callable[[], object]]:
    """What is measured, in this order, on one table. Each leaves another number of rows or the same."""
    rewrite = table.maintenance.rewrite_data_files
    return {
        "append": lambda: table.append(rows_of(spark, 0, rows)),
        "bin-pack": lambda: rewrite(rewrite_all=True, spark=spark),
        "sort": lambda: rewrite("sort", sort_order=["user"], rewrite_all=True, spark=spark),
        "Z-order": lambda: rewrite("zorder", zorder_by=["user", "price"], rewrite_all=True, spark=spark),
        "upsert of 2 %, half of them new": lambda: table.upsert(rows_of(spark, 0, rows * 2, 100), ["id"]),
        "delete of 1 %, merge-on-read": lambda: table.delete("id % 100 = 7", "merge-on-read", spark=spark),
        "delete of 1 %, copy-on-write": lambda: table.delete("id % 100 = 8", "copy-on-write", spark=spark),
    }


def expected(rows: int) -> dict[str, int]:
    """How many rows there are after each operation that changes it."""
    hundredth = len(range(7, rows, 100)) + len(range(7, 0, 100))
    upserted = rows + len(range(0, rows * 2, 100)) - len(range(0, rows, 100))
    return {"append": rows, "upsert": upserted, "merge-on-read": upserted - hundredth}


def main() -> None:
    rows = int(float(sys.argv[1] if len(sys.argv) > 1 else "3") * 1e9) // ROW_BYTES
    use_java_home()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        master = stack.enter_context(start_cluster(folder))
        settings = SparkSettings(master=master, driver_memory="1g", shuffle_partitions=16, extra=(*EXECUTOR.items(),))
        spark = stack.enter_context(spark_session(settings))
        peaks = Peaks(f"@{spark.conf.get('spark.driver.host')}:{spark.conf.get('spark.driver.port')}")
        peaks.start()
        catalog = icebench.load_catalog(str(folder / "warehouse"))
        schema = rows_of(spark, 0, 1).toArrow().schema
        table = catalog.create_table("db.t", schema, properties={"format-version": "3"})
        sys.stdout.write(f"| {rows:,} rows | seconds | {' | '.join(COLUMNS)} |\n|---|---|---|---|---|---|\n")
        count = 0
        for name, operation in operations(spark, table, rows).items():
            peaks.begin()
            began = time.perf_counter()
            operation()
            seconds, most = time.perf_counter() - began, peaks.most
            count = next((known for part, known in expected(rows).items() if part in name), count)
            if name.endswith("copy-on-write"):
                count -= len(range(8, rows, 100))
            found = table.refresh().scan(columns=["id"]).to_spark(spark).count()
            if found != count:
                raise AssertionError(f"{found} rows after {name}, not {count}")
            size = sum(file["file_size_in_bytes"] for file in table.inspect.files().to_pylist()) / 1e9
            cells = " | ".join(f"{each / 1e6:.0f} MB" for each in most)
            sys.stdout.write(f"| {name} ({size:.1f} GB) | {seconds:.0f} | {cells} |\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
