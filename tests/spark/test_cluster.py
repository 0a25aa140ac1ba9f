"""A standalone cluster of a master and two workers does what one process does, and counts the same."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from socket import gethostname
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

from icebench.bench.java_home import use_java_home
from tests.services.quick_spark import JAVA_OPTIONS
from tests.spark import cluster_work

ROOT = Path(__file__).resolve().parents[2]
SPARK = Path(pyspark.__file__).parent
HOST = "127.0.0.1"
SECONDS = 120

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@contextmanager
def start_cluster(folder: Path) -> Iterator[str]:
    """The address of a master with two workers of one core and 600 MB each."""
    use_java_home()
    with ExitStack() as running:
        log = _start(running, folder, "master", "--port", "0", "--webui-port", "0")
        address = _said(log, r"(spark://[^ ]+:\d+)")
        for number in range(2):
            name = f"worker-{number}"
            options = ("--cores", "1", "--memory", "600m", "--webui-port", "0", "--work-dir", str(folder / name))
            _said(_start(running, folder, "worker", *options, address, name=name), "Successfully registered")
        yield address


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The address of a cluster."""
    with start_cluster(tmp_path) as address:
        yield address


def _start(running: ExitStack, folder: Path, kind: str, *arguments: str, name: str = "master") -> Path:
    """Start one of Spark's daemons, which the end of the test ends; its log."""
    log = folder / f"{name}.log"
    java = Path(os.environ["JAVA_HOME"]) / "bin/java"
    main = f"org.apache.spark.deploy.{kind}.{kind.capitalize()}"
    # Executors that are killed are no reason to give up an application.
    options = ("-Xmx256m", *JAVA_OPTIONS, "-Dspark.deploy.maxExecutorRetries=-1")
    command = [str(java), *options, "-cp", f"{SPARK}/jars/*", main, "--host", HOST, *arguments]
    environment = {**os.environ, "SPARK_HOME": str(SPARK), "SPARK_SCALA_VERSION": "2.13", "PYTHONPATH": str(ROOT)}
    output = running.enter_context(log.open("wb"))
    process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=folder, env=environment)
    running.callback(process.wait)
    running.callback(process.terminate)
    return log


def _said(log: Path, pattern: str) -> str:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if found := re.search(pattern, log.read_text(errors="replace")):
            return found[0]
        time.sleep(0.1)
    raise AssertionError(f"{log.name} never said {pattern}: {log.read_text(errors='replace')[-500:]}")


def work_there(master: str, folder: Path) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-m", "tests.spark.cluster_work", master, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=ROOT, timeout=280)
    assert done.returncode == 0, done.stderr[:2_000]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_cluster_counts_what_one_process_counts(master: str, spark: SparkSession, tmp_path: Path) -> None:
    there, here = work_there(master, tmp_path / "cluster"), cluster_work.work(spark, tmp_path / "local")
    assert (there.pop("workers"), here.pop("workers")) == (2, 0)
    assert there == here
    assert here["one_request"][2] == 1
    assert here["without"][0] == []
    assert here["without"][1] == [gethostname()]
