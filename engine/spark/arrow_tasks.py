"""Scan tasks that executors read with the Arrow reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from icebench.engine.deletes.cache import DeleteCache
from icebench.engine.deletes.files import FileRead
from icebench.engine.plan.scan import ScanPlan
from icebench.engine.plan.tasks import combined_tasks
from icebench.engine.read.plans import planned_files
from icebench.engine.read.reader import read_files
from icebench.engine.read.request import ReadRequest
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spark.arrow_batches import spark_batch
from icebench.engine.spark.workers import prepare_worker

_DELETES = DeleteCache()
"""One for a Python worker, which serves one task after another: delete files that two tasks need are loaded once."""
_THREADS = 1
"""Of a task: Spark runs as many tasks at once as it has cores."""


def task_files(
    plan: ScanPlan, split_bytes: int | None, *, begin: int = 0, end: int | None = None
) -> Iterator[tuple[FileRead, ...]]:
    """The file ranges of each task: of all files of a plan, or of the files from `begin` to `end`; `split_bytes` as in
    `ScanPlan.tasks`."""
    files = list(planned_files(plan))[begin:end]
    chosen = plan.files.slice(begin, len(files))
    for task in combined_tasks(chosen, plan.packing(split_bytes)):
        pieces = zip(task.file_index.tolist(), task.start.tolist(), task.length_bytes.tolist(), strict=True)
        yield tuple(replace(files[index], byte_range=(start, length)) for index, start, length in pieces)


def read_task(files: Sequence[FileRead], request: ReadRequest) -> Iterator[pa.RecordBatch]:
    """The live rows of a task's files, in types that Spark accepts."""
    prepare_worker()
    counters = Counters()
    batches = read_files(files, request, runner=LocalRunner(_THREADS), counters=counters, delete_cache=_DELETES)
    for batch in batches:
        yield spark_batch(batch, request.projection)
