"""Changes on a cluster whose executors, workers and shuffled files are removed meanwhile:
``python -m tests.spark.killed_work MASTER FOLDER SEED KILLS``.

Prints a line of JSON: how often what was removed, and what came of the changes. Raises where rows differ.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random
from threading import Thread

import numpy as np
import psutil
import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import icebench
from icebench.engine.operations import executor_changes
from icebench.engine.operations.row_changes import Mode
from icebench.errors import EngineError
from tests.spark.cluster_work import session_on

ROWS = pa.schema([pa.field("id", pa.int64()), pa.field("n", pa.int64()), pa.field("text", pa.string())])
PARTS = 6
ROWS_EACH = 12_000
LARGEST = 60_000
"""Rows: a larger table is made anew."""


class Killer(Thread):
    """Removes something of an executor again and again, until there were as many kills as asked for.

    Args:
        spark: The session; only executors of its driver are touched.
        random: Where chance comes from.
        kills: How many.
    """

    def __init__(self, spark: SparkSession, random: Random, kills: int) -> None:
        super().__init__(daemon=True)
        self.mark = f"@{spark.conf.get('spark.driver.host')}:{spark.conf.get('spark.driver.port')}"
        self.random, self.left, self.counts = random, kills, Counter[str]()

    def run(self) -> None:
        hits: dict[str, Callable[[psutil.Process], bool]] = {
            "executors": self._executor,
            "workers": self._worker,
            "shuffles": self._shuffle,
        }
        while self.left:
            time.sleep(self.random.uniform(0.3, 8))
            kind = self.random.choice(list(hits))
            with suppress(psutil.Error, IndexError):
                found = self._executors()
                # Where none has begun to work since the last kill, no change would ever come to an end.
                if all(each.children() for each in found) and found and hits[kind](self.random.choice(found)):
                    self.counts[kind] += 1
                    self.left -= 1

    def _executors(self) -> list[psutil.Process]:
        found = psutil.process_iter(["cmdline"])
        return [each for each in found if any(self.mark in word for word in each.info["cmdline"] or ())]

    def _executor(self, process: psutil.Process) -> bool:
        process.kill()
        return True

    def _worker(self, process: psutil.Process) -> bool:
        self.random.choice(process.children(recursive=True)).kill()
        return True

    def _shuffle(self, process: psutil.Process) -> bool:
        """Remove what was shuffled there, so that it cannot be fetched."""
        files = [file for place in process.environ()["SPARK_EXECUTOR_DIRS"].split(":") for file in _shuffled(place)]
        for file in files:
            file.unlink(missing_ok=True)
        return bool(files)


def _shuffled(place: str) -> list[Path]:
    return list(Path(place).rglob("shuffle_*"))


def fail_first(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A third of the tasks fail when they are tried for the first time, after their first rows."""
    context = TaskContext.get()
    assert context is not None
    for batch in batches:
        yield batch
        if context.attemptNumber() == 0 and context.partitionId() % 3 == 1:
            raise RuntimeError("fails first")


class Changes:
    """A table, and the rows that it must hold: id -> n.

    Args:
        spark: The session.
        catalog: Where the table is.
        random: Where chance comes from.
    """

    def __init__(self, spark: SparkSession, catalog: icebench.Catalog, random: Random) -> None:
        self.spark, self.catalog, self.random = spark, catalog, random
        self.done, self.given_up = Counter[str](), Counter[str]()
        self.tables = count()
        self.begin()

    def begin(self) -> None:
        self.next = 0
        self.rows: dict[int, int] = {}
        version = self.random.choice(["2", "3"])
        properties = {"format-version": version, "write.target-file-size-bytes": "100000"}
        self.table = self.catalog.create_table(f"db.t{next(self.tables)}", ROWS, properties=properties)

    def make_one(self, number: int) -> None:
        """Make a change. One that fails leaves the table as it was."""
        if len(self.rows) > LARGEST:
            self.begin()
        kinds = ["append", "upsert", "update", "delete", "sort", "zorder"]
        kind = self.random.choice(kinds) if self.rows else "append"
        after = dict(self.rows)
        mode: Mode = self.random.choice(["copy-on-write", "merge-on-read"])
        least = self.random.randrange(self.next + 1)
        most = least + self.random.randrange(1, ROWS_EACH)
        where = f"id >= {least} and id < {most} and id % 3 = 0"
        meant = [id for id in self.rows if least <= id < most and id % 3 == 0]
        try:
            if kind in {"append", "upsert"}:
                first = self.next if kind == "append" else max(0, self.next - ROWS_EACH // 2)
                self.next = first + ROWS_EACH
                after |= dict.fromkeys(range(first, self.next), number)
                frame = self._frame(first, self.next, number)
                if kind == "append":
                    self.table.append(frame)
                else:
                    self.table.upsert(frame, ["id"], mode)
            elif kind == "update":
                after |= dict.fromkeys(meant, -number)
                self.table.update(where, {"n": -number}, mode, spark=self.spark)
            elif kind == "delete":
                after = {id: n for id, n in after.items() if id not in set(meant)}
                self.table.delete(where, mode, spark=self.spark)
            elif kind == "sort":
                self.table.maintenance.rewrite_data_files(
                    "sort", sort_order=["text"], rewrite_all=True, spark=self.spark
                )
            else:
                self.table.maintenance.rewrite_data_files(
                    "zorder", zorder_by=["id", "n"], rewrite_all=True, spark=self.spark
                )
        except Exception as error:
            # What the virtual machine raises is py4j's, which this project does not depend on.
            if not isinstance(error, EngineError | PySparkException) and type(error).__name__ != "Py4JJavaError":
                raise
            self.given_up[kind] += 1
        else:
            self.rows = after
            self.done[kind] += 1
        self.check(f"change {number}, {kind}, {mode}")

    def _frame(self, first: int, end: int, number: int) -> DataFrame:
        text = F.concat(F.lit("row "), F.hash("id").cast("string"))
        rows = self.spark.range(first, end, 1, PARTS).select(
            "id", F.lit(number).cast("long").alias("n"), text.alias("text")
        )
        return rows.mapInArrow(fail_first, "id long, n long, text string")

    def check(self, what: str) -> None:
        found = self.table.refresh().scan(columns=["id", "n"]).to_arrow().sort_by("id")
        ids = sorted(self.rows)
        assert np.array_equal(found["id"].to_numpy(), ids), what
        assert np.array_equal(found["n"].to_numpy(), [self.rows[id] for id in ids]), what


def main(arguments: list[str]) -> None:
    master, folder, seed, kills = arguments[0], Path(arguments[1]), arguments[2], int(arguments[3])
    conf = {
        "spark.speculation": "true",
        "spark.speculation.multiplier": "1.2",
        "spark.speculation.minTaskRuntime": "200ms",
        "spark.task.maxFailures": "20",
        "spark.stage.maxConsecutiveAttempts": "20",
    }
    spark = session_on(master, conf, shuffle_partitions=4)
    executor_changes.LEAST_GROUP_BYTES = 1
    changes = Changes(spark, icebench.load_catalog(str(folder / "warehouse")), Random(f"{seed} changes"))
    killer = Killer(spark, Random(f"{seed} kills"), kills)
    killer.start()
    for number in count(1):
        changes.make_one(number)
        if not killer.is_alive():
            break
    spark.stop()
    sys.stdout.write(json.dumps({"killed": killer.counts, "done": changes.done, "given up": changes.given_up}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
