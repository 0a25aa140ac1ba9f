"""What the harness does on Spark, on the master that is named: ``python -m tests.spark.cluster_work MASTER FOLDER``.

Prints a line of JSON: what was counted, and checksums of what was read, which no master may change.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import icebench
from icebench.bench.engines.checksum import checksum_of
from icebench.bench.engines.spark_scan import frame_checksum
from icebench.bench.execution.spark_use import hosts_without
from icebench.bench.spark_session import SparkSettings, spark_session
from icebench.bench.tables.cache import DatasetCache
from icebench.bench.tables.raw_files import find_or_write
from icebench.bench.workloads.log import Log
from tests.services.quick_spark import quick_spark

COLUMNS = ("log_offset", "logged_at", "url", "status", "bytes")


def session_on(master: str, conf: Mapping[str, str], *, shuffle_partitions: int) -> SparkSession:
    """A session of small executors on the cluster of tests."""
    small = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.driver.host": "127.0.0.1"}
    extra = (*quick_spark(), *small.items(), *conf.items())
    settings = SparkSettings(master=master, driver_memory="1g", shuffle_partitions=shuffle_partitions, extra=extra)
    return spark_session(settings)


def main(arguments: list[str]) -> None:
    master, folder = arguments[0], Path(arguments[1])
    spark = session_on(master, {"spark.cores.max": "2"}, shuffle_partitions=2)
    found = work(spark, folder)
    spark.stop()
    sys.stdout.write(json.dumps(found) + "\n")


def work(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Generate, write, delete and read, and how many Java virtual machines worked, besides the driver."""
    folder.mkdir()
    log = Log(rows=6_000, files=3)
    raw = find_or_write(log, DatasetCache(folder / "cache"), lambda: spark)
    table = icebench.load_catalog(str(folder / "warehouse")).create_table("bench.log", log.schema)
    table.append(spark.read.parquet(*map(str, raw.paths)))
    table.delete(log.delete_keys(0.05, "random").filter, mode="merge-on-read")
    found: dict[str, Any] = {"raw": checksum_of(raw.reader(), COLUMNS).text, "workers": _workers(spark)}
    found["without"] = [hosts_without(spark, path) for path in (raw.paths[0], folder / "nowhere")]
    for name in ("all", "one_hour", "one_request"):
        text = log.filters.get(name)
        scan = table.scan(filter=text, columns=COLUMNS)
        plan = scan.plan(spark, mode="distributed")
        rows = frame_checksum(scan.to_spark(spark), COLUMNS)
        # Names of files are random, and so how far they can be compressed.
        counters = {name: count for name, count in plan.counters.items() if "bytes" not in name}
        found[name] = [counters, len(plan.files), rows.rows, rows.text]
    return found


def _workers(spark: SparkSession) -> int:
    context = spark.sparkContext._jsc
    assert context is not None
    return int(context.sc().getExecutorMemoryStatus().size()) - 1


if __name__ == "__main__":
    main(sys.argv[1:])
