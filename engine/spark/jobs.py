"""Jobs on executors: independent items, one task each; errors keep their type and attributes."""

from __future__ import annotations

import base64
import pickle
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from icebench.engine.columnar.batch_columns import combined
from icebench.engine.errors import EngineError, Unsupported
from icebench.engine.spark.workers import prepare_worker

T = TypeVar("T")

Work = Callable[[T, int], bytes]
"""Turns an item into bytes; the number identifies the attempt among those of all tasks of an application."""
RowsWork = Callable[[Sequence[tuple[T, pa.Table]], int, int], bytes]
"""The same for items with rows, the number of the task, and that of the attempt."""
_POLL_SECONDS = 0.2
_POLLS = 50

_ANSWER = st.StructType([st.StructField("number", st.LongType()), st.StructField("made", st.BinaryType())])
_CARRIED = re.compile(r"<engine-error:([A-Za-z0-9+/=]+)>")


def run_job(spark: SparkSession, work: Work[T], items: Sequence[T]) -> list[pa.Buffer]:
    """Run `work` for each item on the executors of a session, whose settings are left unchanged.

    Args:
        spark: The user's session.
        work: A picklable function.
        items: Picklable values; each is one task and is unpickled by that task alone.

    Returns:
        The result for each item, in the order of the items.

    Raises:
        EngineError: As `work` raised it, after Spark retried the task as often as it is configured to; other errors are
            Spark's PythonException.
        Unsupported: `work` cannot be sent: the storage exists in this process only.
    """
    if not items:
        return []
    answers = _answers(spark.range(0, len(items), 1, len(items)), _Task(_sent(work), list(map(_sent, items))))
    made = dict(zip(answers["number"].to_pylist(), answers["made"], strict=True))
    return [made[number].as_buffer() for number in range(len(items))]


def run_job_on_rows(rows: DataFrame, work: RowsWork[T], items: Mapping[str, T]) -> list[pa.Buffer]:
    """Run `work` in each task of a DataFrame that has rows, as `run_job`.

    Args:
        rows: The first column is the name of an item; the rows of an item are in one task, which holds all its rows in
            memory.
        work: A picklable function of the items of a task, each with its rows, and of the task's number and attempt.
        items: Picklable values; each is unpickled where there are rows of it.

    Returns:
        The results, in any order.
    """
    task = _RowsTask(_sent(work), {name: _sent(item) for name, item in items.items()})
    return [answer.as_buffer() for answer in _answers(rows, task)["made"]]


def _sent(value: object) -> bytes:
    try:
        # What no module has goes along: functions of notebooks and consoles.
        sent: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise Unsupported(f"work on executors with what this process alone has: {error}") from error
    return sent


def _answers(rows: DataFrame, task: _Task | _RowsTask) -> pa.Table:
    try:
        with errors_of_executors():
            return rows.mapInArrow(task, _ANSWER).toArrow()
    except BaseException:
        wait_for_tasks(rows.sparkSession)
        raise


@dataclass(frozen=True)
class _Task:
    """The function that executors run."""

    work: bytes
    items: Sequence[bytes]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        work = pickle.loads(self.work)  # noqa: S301 - the driver's own, as the next
        context = TaskContext.get()
        assert context is not None
        for batch in batches:
            for number in batch.column(0).to_pylist():
                with carried_errors():
                    made = work(pickle.loads(self.items[number]), context.taskAttemptId())  # noqa: S301
                columns = [pa.array([number], pa.int64()), pa.array([made], pa.binary())]
                yield pa.RecordBatch.from_arrays(columns, ["number", "made"])


@dataclass(frozen=True)
class _RowsTask:
    """The same with rows."""

    work: bytes
    items: Mapping[str, bytes]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        # Names repeat: as a dictionary they take four bytes a row.
        given = [
            batch.set_column(0, "name", batch.column(0).dictionary_encode()) for batch in batches if batch.num_rows
        ]
        if not given:
            return
        context = TaskContext.get()
        assert context is not None
        rows = pa.Table.from_batches(given).unify_dictionaries().combine_chunks()
        names = combined(rows.column(0))
        places = names.indices.to_numpy()
        with carried_errors():
            order = np.argsort(places, kind="stable")
            parts = np.split(order, np.flatnonzero(np.diff(places[order])) + 1)
            own = [
                (pickle.loads(self.items[name]), rows.take(pa.array(part)))  # noqa: S301 - the driver's own, as the next
                for name, part in zip(names.dictionary.to_pylist(), parts, strict=True)
            ]
            made = pickle.loads(self.work)(own, context.partitionId(), context.taskAttemptId())  # noqa: S301
        columns = [pa.array([context.partitionId()], pa.int64()), pa.array([made], pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, ["number", "made"])


def wait_for_tasks(spark: SparkSession, sleep: Callable[[float], object] = time.sleep) -> None:
    """Wait until no task runs, or for ten seconds: Spark gives up a job before its other tasks have stopped, and those
    may still complete files."""
    session = getattr(spark, "_jsparkSession", None)
    if session is None:  # Spark Connect does not have it
        return
    tracker = session.sparkContext().statusTracker()
    for _ in range(_POLLS):
        # First a pause: Spark's counts lag by a tenth of a second, but for a count of none.
        sleep(_POLL_SECONDS)
        if not any(executor.numRunningTasks() for executor in tracker.getExecutorInfos()):
            return


class ExecutorError(Exception):
    """An EngineError in a form that survives Spark's conversion of executors' errors to text."""

    def __init__(self, error: EngineError) -> None:
        super().__init__(carried_text(error))


def carried_text(error: EngineError) -> str:
    """The text of an error in a job, also one that Spark itself raises (``raise_error``), that is raised again on the
    driver by `errors_of_executors`."""
    carried = base64.b64encode(pickle.dumps(error)).decode()
    return f"{type(error).__name__}: {error}\n<engine-error:{carried}>"


@contextmanager
def carried_errors() -> Iterator[None]:
    """Context manager on an executor: an EngineError raised in it is raised again on the driver by
    `errors_of_executors`."""
    try:
        yield
    except EngineError as error:
        raise ExecutorError(error) from error


@contextmanager
def errors_of_executors() -> Iterator[None]:
    """Context manager on the driver around a job: raises the EngineError of a failed task with its own type."""
    try:
        yield
    except PySparkException as error:
        carried = _CARRIED.search(str(error))
        if carried is None:
            raise
        raise pickle.loads(base64.b64decode(carried[1])) from error  # noqa: S301 - of the driver's own executors
