"""Processor time of a task of Spark in a Python worker that does nothing, without and with what our tasks do first:
``python -m tests.python_workers_on_spark``."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable, Iterator

import psutil
import pyarrow as pa

from icebench.bench.spark_session import SparkSettings, spark_session
from icebench.engine.spark.workers import prepare_worker

JOBS, TASKS = 15, 4


def _plain(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _prepared(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    prepare_worker()
    yield from batches


def _worker_seconds() -> float:
    """Processor time of the Python processes below this one."""
    times = [p.cpu_times() for p in psutil.Process().children(recursive=True) if "python" in p.name()]
    return sum(each.user + each.system for each in times)


def _measure(name: str) -> None:
    with spark_session(SparkSettings(master="local[2]")) as spark:
        task = {"plain": _plain, "prepared": _prepared}[name]
        frame = spark.range(0, TASKS, 1, TASKS)
        for job in range(JOBS + 2):
            if job == 2:  # workers are started, and have imported what they need
                begun, before = time.perf_counter(), _worker_seconds()
            frame.mapInArrow(task, "id long").collect()
        wall, cpu = time.perf_counter() - begun, _worker_seconds() - before
        ms = cpu / JOBS / TASKS * 1000
        sys.stdout.write(f"{name}: {ms:.0f} ms of processor time a task, {wall / JOBS:.2f} s a job\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _measure(sys.argv[1])
    else:
        for _ in range(2):
            for name in ("plain", "prepared"):
                subprocess.run([sys.executable, "-m", "tests.python_workers_on_spark", name], check=True)
