"""Deletes, updates and upserts of this engine and of Iceberg Java on one Spark session: runs each on equal copies of a
table, interleaved, compares the rows that are left, and prints how many times ours Java takes.

python -m tests.row_changes_on_spark [ROWS [ROUNDS]]
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import icebench
from icebench.bench.processes.process_tree import ProcessTree
from icebench.bench.spark_session import SparkSettings, spark_session

FILES = 12
MODES = ("copy-on-write", "merge-on-read")
CATALOG = "java"
VERSIONS = {"copy-on-write": "2", "merge-on-read": "3"}


def rows_of(ids: Any) -> pa.Table:
    """Rows with these keys: numbers, decimals, texts and times."""
    random = np.random.default_rng(1)
    count = len(ids)
    columns = {
        "id": pa.array(ids),
        "at": pa.array(np.asarray(ids) * 1_000_000, pa.timestamp("us", tz="UTC")),
        "user": pa.array(random.integers(0, 100_000, count)),
        "kind": pa.array(np.array(["view", "click", "order", "return"])[random.integers(0, 4, count)]),
        "url": pa.array(np.char.add("/page/", random.integers(0, 5_000, count).astype(str))),
        "price": pa.array(random.integers(0, 10_000_000, count), pa.int32()).cast(pa.decimal128(12, 2)),
        "ratio": pa.array(random.random(count)),
        "note": pa.array(np.char.add("n", random.integers(0, 1 << 40, count).astype(str))),
    }
    return pa.table(columns)


class Copies:
    """A table that is put back before each change."""

    def __init__(self, folder: Path, rows: int, mode: str) -> None:
        self.place, self._aside = folder / "warehouse", folder / f"aside-{mode}"
        shutil.rmtree(self.place, ignore_errors=True)
        kinds = {f"write.{kind}.mode": mode for kind in ("delete", "update", "merge")}
        properties = {"format-version": VERSIONS[mode], **kinds}
        schema = rows_of(np.arange(1)).schema
        table = icebench.load_catalog(str(self.place)).create_table("db.t", schema, properties=properties)
        for part in np.array_split(np.arange(rows), FILES):
            table.append(rows_of(part))
        shutil.copytree(self.place, self._aside)

    def restore(self) -> icebench.Table:
        shutil.rmtree(self.place)
        shutil.copytree(self._aside, self.place)
        return icebench.load_catalog(str(self.place)).load_table("db.t")

    def found(self) -> tuple[Any, ...] | None:
        """What identifies the rows that the table has now."""
        rows = icebench.load_catalog(str(self.place)).load_table("db.t").scan().to_arrow()  # noqa: F841 - DuckDB's source
        return duckdb.sql("SELECT count(*), sum(hash(columns(*))) FROM rows").fetchone()


def changes(spark: SparkSession, source: DataFrame) -> dict[str, tuple[Callable[[icebench.Table], object], str]]:
    """Each change as ours and as SQL of Iceberg Java."""
    source.createOrReplaceTempView("source")
    name = f"{CATALOG}.db.t"
    merge = (
        f"MERGE INTO {name} t USING source s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    return {
        "DELETE of 1 row in 100": (
            lambda table: table.delete("id % 100 = 7", spark=spark),
            f"DELETE FROM {name} WHERE id % 100 = 7",
        ),
        "UPDATE of 1 row in 100": (
            lambda table: table.update(
                "id % 100 = 7", {"kind": "gone", "ratio": icebench.sql("ratio * 2")}, spark=spark
            ),
            f"UPDATE {name} SET kind = 'gone', ratio = ratio * 2 WHERE id % 100 = 7",
        ),
        "MERGE of 1 row in 50, half of them new": (lambda table: table.upsert(source, ["id"]), merge),
    }


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    tree = ProcessTree()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        extra = ((f"spark.sql.catalog.{CATALOG}.cache-enabled", "false"),)
        settings = SparkSettings(
            iceberg_warehouse=str(place / "warehouse"), iceberg_catalog=CATALOG, shuffle_partitions=4, extra=extra
        )
        spark = spark_session(settings)
        source = spark.createDataFrame(rows_of(np.arange(0, rows * 2, 100))).repartition(4)
        for mode in MODES:
            copies = Copies(place, rows, mode)
            for what, (ours, java) in changes(spark, source).items():
                times: dict[str, list[tuple[float, float]]] = {"ours": [], "java": []}
                seen = []
                for turn in range(rounds + 1):
                    for who, seconds in times.items():
                        table = copies.restore()
                        tree.start(in_children=True)
                        began = time.perf_counter()
                        if who == "ours":
                            ours(table)
                        else:
                            spark.sql(java).collect()
                        clock, (cpu, _) = time.perf_counter() - began, tree.stop()
                        if turn:  # the first one warms both
                            seconds.append((clock, cpu))
                        seen.append(copies.found())
                if len(set(seen)) > 1:
                    raise AssertionError(f"{what} ({mode}) leaves different rows: {set(seen)}")
                text = [
                    f"{unit} {statistics.median(o[at] for o in times['ours']):.2f} s to "
                    f"{statistics.median(j[at] for j in times['java']):.2f} s, "
                    f"{statistics.median(j[at] / o[at] for o, j in zip(*times.values(), strict=True)):.2f}x"
                    for at, unit in enumerate(("clock", "processor"))
                ]
                sys.stdout.write(f"{mode}, {what}: {'; '.join(text)}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
