"""Jobs on executors: independent items, one task each; errors keep their type and attributes."""

from __future__ import annotations

import base64
import pickle
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as st

from engine.errors import EngineError, Unsupported
from engine.spark.types import quoted

T = TypeVar("T")

Work = Callable[[T, int], bytes]
"""Turns an item into bytes; the number tells the attempts of all tasks of an application apart."""
RowsWork = Callable[[pa.Table, T, int], bytes]
"""The same with rows."""
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
    task = _Task.of(work, items)
    return _answers(spark.range(0, len(items), 1, len(items)), task)


def run_job_on_rows(rows: DataFrame, work: RowsWork[T], items: Sequence[T]) -> list[pa.Buffer]:
    """Run `work` for each item and the rows that belong to it, as `run_job`.

    Args:
        rows: The first column is the number of the item, a long; each item has rows. One of them fit into memory.
        work: A picklable function.
        items: Picklable values.
    """
    if not items:
        return []
    task = _Task.of(work, items, takes_rows=True)
    return _answers(rows.repartitionById(len(items), F.col(quoted(rows.columns[0])).cast("int")), task)


def _answers(rows: DataFrame, task: _Task) -> list[pa.Buffer]:
    try:
        with errors_of_executors():
            answers = rows.mapInArrow(task, _ANSWER).toArrow()
    except BaseException:
        wait_for_tasks(rows.sparkSession)
        raise
    made = dict(zip(answers["number"].to_pylist(), answers["made"], strict=True))
    return [made[number].as_buffer() for number in range(len(task.items))]


@dataclass(frozen=True)
class _Task:
    """The function that executors run."""

    work: bytes
    items: Sequence[bytes]
    takes_rows: bool = False

    @classmethod
    def of(cls, work: Callable[..., bytes], items: Sequence[object], *, takes_rows: bool = False) -> _Task:
        try:
            # Functions of notebooks and consoles go along.
            sent: bytes = cloudpickle.dumps(work)  # type: ignore[no-untyped-call]
            return cls(sent, [pickle.dumps(item) for item in items], takes_rows)
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            raise Unsupported(f"work on executors with what this process alone has: {error}") from error

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        work = pickle.loads(self.work)  # noqa: S301 - the driver's own, as the next
        context = TaskContext.get()
        assert context is not None
        if self.takes_rows:
            # A task has the rows of one item, or none.
            given = [batch for batch in batches if batch.num_rows]
            numbers = [given[0].column(0)[0].as_py()] if given else []
            work = partial(work, pa.Table.from_batches(given) if given else None)
        else:
            numbers = [number for batch in batches for number in batch.column(0).to_pylist()]
        for number in numbers:
            with carried_errors():
                made = work(pickle.loads(self.items[number]), context.taskAttemptId())  # noqa: S301
            columns = [pa.array([number], pa.int64()), pa.array([made], pa.binary())]
            yield pa.RecordBatch.from_arrays(columns, ["number", "made"])


def wait_for_tasks(spark: SparkSession, sleep: Callable[[float], object] = time.sleep) -> None:
    """Wait until no task runs, or for ten seconds: Spark gives up a job before its other tasks have stopped, and those
    may still complete files."""
    session = getattr(spark, "_jsparkSession", None)
    if session is None:  # Spark Connect does not tell
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
        carried = base64.b64encode(pickle.dumps(error)).decode()
        super().__init__(f"{type(error).__name__}: {error}\n<engine-error:{carried}>")


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
    except PythonException as error:
        carried = _CARRIED.search(str(error))
        if carried is None:
            raise
        raise pickle.loads(base64.b64decode(carried[1])) from error  # noqa: S301 - of the driver's own executors
