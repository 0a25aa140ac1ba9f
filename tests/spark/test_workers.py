"""What tasks of ours leave to those that follow in the same Python worker."""

from __future__ import annotations

import gc
import os
import pickle
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from zipimport import zipimporter

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icebench.engine.spark.jobs import run_job
from icebench.engine.spark.workers import prepare_worker

TASKS = 16


def _pid(number: int, attempt: int) -> bytes:
    return pickle.dumps(os.getpid())


def _seen(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a task that knows nothing of ours finds: the process, how many archives have a directory that is read again
    before the next task, and how many objects nobody searches for garbage."""
    archives = sum(isinstance(finder, zipimporter) for finder in sys.path_importer_cache.values())
    for _ in batches:
        yield pa.RecordBatch.from_pydict(
            {"pid": [os.getpid()], "archives": [archives], "frozen": [gc.get_freeze_count()]}
        )


def test_no_archive_of_spark_is_read_again_after_a_task(spark: SparkSession) -> None:
    for _ in range(3):  # what the first task in a worker imports while it works, the second sees
        ours = {pickle.loads(made) for made in run_job(spark, _pid, range(TASKS))}
    tasks = spark.range(0, TASKS, 1, TASKS)
    found = tasks.mapInArrow(_seen, "pid long, archives long, frozen long").toArrow().to_pylist()
    after = [each for each in found if each["pid"] in ours]
    assert after
    assert all(each["archives"] == 0 and each["frozen"] for each in after)


def test_archives_of_the_user_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places: dict[str, Any] = {}
    for name in ("own.zip", "own.jar", "spark-core.jar"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(f"module_of_{name[:3]}.py", "")
        places[name] = zipimporter(str(tmp_path / name))
    monkeypatch.setattr(sys, "path_importer_cache", {**sys.path_importer_cache, **places})
    monkeypatch.setattr(gc, "freeze", lambda: None)
    prepare_worker()
    assert places.keys() <= sys.path_importer_cache.keys()  # this is no worker
    daemon = type(sys)("__main__")
    daemon.__spec__ = type("Spec", (), {"name": "pyspark.daemon"})  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "__main__", daemon)
    prepare_worker()
    assert {"own.zip", "own.jar"} <= sys.path_importer_cache.keys()
    assert "spark-core.jar" not in sys.path_importer_cache
