"""Jobs on executors: independent items, one task each; errors keep their type and attributes."""

from __future__ import annotations

import base64
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import types as st

from icebench.engine.errors import EngineError, Unsupported

T = TypeVar("T")

Work = Callable[[T, int], bytes]
"""Turns an item into bytes; the number tells the attempts of all tasks of an application apart."""

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
    try:
        task = _Task(pickle.dumps(work), [pickle.dumps(item) for item in items])
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise Unsupported(f"work on executors with storage of this process alone: {error}") from error
    numbers = spark.range(0, len(items), 1, len(items))
    with errors_of_executors():
        answers = numbers.mapInArrow(task, _ANSWER).toArrow()
    made = dict(zip(answers["number"].to_pylist(), answers["made"], strict=True))
    return [made[number].as_buffer() for number in range(len(items))]


@dataclass(frozen=True)
class _Task:
    """The function that executors run."""

    work: bytes
    items: Sequence[bytes]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        work = pickle.loads(self.work)  # noqa: S301 - the driver's own, as the next
        context = TaskContext.get()
        assert context is not None
        for batch in batches:
            for number in batch.column(0).to_pylist():
                with carried_errors():
                    made = work(pickle.loads(self.items[number]), context.taskAttemptId())  # noqa: S301
                columns = [pa.array([number], pa.int64()), pa.array([made], pa.binary())]
                yield pa.RecordBatch.from_arrays(columns, ["number", "made"])


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
