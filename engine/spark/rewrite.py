"""Groups of data files that executors write again (`engine.maintenance.rewrite_data_files`).

Each group is a task. It does what a thread of the driver would do, and sends back the entries of its new files as one
small manifest, or what went wrong.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar, cast

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import types as st

from engine import errors
from engine.codec.manifest_writer import encode_manifest
from engine.errors import EngineError, FileNotFound, Unsupported
from engine.maintenance.file_groups import FileGroup
from engine.maintenance.rewrite_group import GroupRewrite, RewrittenGroup
from engine.spark.writer import files_of, remove_leftovers, small_metadata
from engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry
from engine.write.locations import FileNames

T = TypeVar("T")
R = TypeVar("R")

_ANSWER = st.StructType(
    [
        st.StructField("number", st.LongType()),
        st.StructField("manifest", st.BinaryType()),
        st.StructField("error", st.StringType()),
        st.StructField("said", st.StringType()),
    ]
)
_ARROW = pa.schema(
    [
        pa.field("number", pa.int64()),
        pa.field("manifest", pa.binary()),
        pa.field("error", pa.string()),
        pa.field("said", pa.string()),
    ]
)
_MANIFEST_VERSION = 3
_NO_SNAPSHOT = 0
_WAVES = 4
"""Jobs have so many tasks for each core: one slow group keeps few cores waiting, and results come in between."""


class GroupRunner:
    """Runs the groups of a rewrite on the executors of a session, as `engine.runtime.runner.Runner` runs anything.

    Args:
        spark: The user's session; its settings stay as they are.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def map(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """See `Runner.map`: some tasks for each core at a time.

        Args:
            fn: A `GroupRewrite`; nothing else runs here.
            items: Its `FileGroup`s.

        Raises:
            Unsupported: The table's store is of this process alone.
        """
        assert isinstance(fn, GroupRewrite)
        work: GroupRewrite = replace(fn, metadata=small_metadata(fn.metadata), counters=None)
        rest = iter(cast("Iterable[FileGroup]", items))
        together = max(self._spark.sparkContext.defaultParallelism * _WAVES, 1)
        while groups := list(islice(rest, together)):
            for made in self._rewritten(work, groups):
                yield cast("R", made)

    def _rewritten(self, work: GroupRewrite, groups: Sequence[FileGroup]) -> list[RewrittenGroup]:
        """The groups of one job, in order. Where the job fails, nothing of it stays."""
        try:
            task = _Task(pickle.dumps(work), [pickle.dumps(group) for group in groups])
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            raise Unsupported(f"rewriting on executors in storage of this process alone: {error}") from error
        numbers = self._spark.range(0, len(groups), 1, len(groups))
        try:
            rows = numbers.mapInArrow(task, _ANSWER).collect()
        except BaseException:
            remove_leftovers(work.store, work.metadata, FileNames(operation_id=work.operation_id))
            raise
        by_number = {row["number"]: row for row in rows}
        made = []
        for number, group in enumerate(groups):
            row = by_number[number]
            failure = None if row["error"] is None else _own_error(row["error"], row["said"])
            files = () if row["manifest"] is None else files_of([bytes(row["manifest"])])
            made.append(RewrittenGroup(group=group, files=files, error=failure))
        return made


@dataclass(frozen=True)
class _Task:
    """What an executor runs. Each group is a task, which unpickles no other."""

    work: bytes
    groups: Sequence[bytes]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        work: GroupRewrite = pickle.loads(self.work)  # noqa: S301 - the driver's own, as the next
        context = TaskContext.get()
        assert context is not None
        own = replace(work, task_id=context.taskAttemptId())
        for batch in batches:
            for number in batch.column(0).to_pylist():
                made = own(pickle.loads(self.groups[number]))  # noqa: S301
                error = made.error
                row = {
                    "number": number,
                    "manifest": _manifest(own, made) if made.files else None,
                    "error": None if error is None else type(error).__name__,
                    "said": error.location
                    if isinstance(error, FileNotFound)
                    else None
                    if error is None
                    else str(error),
                }
                yield pa.RecordBatch.from_pylist([row], schema=_ARROW)


def _manifest(work: GroupRewrite, made: RewrittenGroup) -> bytes:
    """The entries of new files."""
    return encode_manifest(
        (ManifestEntry(status=EntryStatus.ADDED, snapshot_id=_NO_SNAPSHOT, data_file=file) for file in made.files),
        schema=work.request.projection,
        spec=work.spec,
        format_version=_MANIFEST_VERSION,
        content=ManifestContent.DATA,
        snapshot_id=_NO_SNAPSHOT,
        compression="zstd",
    ).data


def _own_error(name: str, said: str) -> EngineError:
    """The error of an executor as what it was."""
    kind = getattr(errors, name, EngineError)
    with suppress(TypeError):
        made = kind(said)
        if isinstance(made, EngineError):
            return made
    return EngineError(said)
