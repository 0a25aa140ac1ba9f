"""Changes of rows on executors: tasks write files by the functions that write them here, and describe them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from engine.codec.manifests.encoded_files import EncodedFiles, encode_files
from engine.deletes.files import FileRead
from engine.operations.row_writer import ChangedFiles, Coming, RowWriter
from engine.runtime.counters import FILES_WRITTEN
from engine.runtime.local import LocalRunner
from engine.write.data_files import remove_files_of, written_schema

Group: TypeAlias = tuple[int, tuple[FileRead, ...]]
"""The number of a task, and its data files."""
RunJob: TypeAlias = Callable[["FilterTask", Sequence[Group]], Sequence[pa.Buffer]]
"""`engine.spark.jobs.run_job` with a session."""

_WAVES = 4
"""Tasks per core, so that one slow group keeps few cores waiting."""
LEAST_GROUP_BYTES = 32 << 20
"""Data files of a task: reading them takes about as long as Spark needs for any task of Python."""
MOST_GROUP_BYTES = 1 << 30
"""So much is done again if a task fails."""


@dataclass(frozen=True)
class ExecutorChanges:
    """Changes rows on executors.

    Args:
        run_job: Runs one job.
        cores: The number of tasks that run at a time.
        memory_bytes: Of rows that a task may hold; None for a usual number.
    """

    run_job: RunJob
    cores: int
    memory_bytes: int | None = None

    def changed_by_filter(self, writer: RowWriter, files: Sequence[FileRead], coming: Coming | None) -> ChangedFiles:
        """As `RowWriter.changed_by_filter`.

        Raises:
            Unsupported: The table's store, or a function that makes new values, is of this process alone.
        """
        try:
            task = FilterTask(writer.portable(self.memory_bytes), coming)
            answers = self.run_job(task, list(enumerate(grouped(files, self.cores))))
        except BaseException:
            remove_files_of(writer.store, writer.metadata, writer.names)
            raise
        return changed_there(answers, files, writer)


@dataclass(frozen=True)
class FilterTask:
    """The task of an executor: changes the rows of a group of files that match the plan's filter."""

    writer: RowWriter
    coming: Coming | None

    def __call__(self, group: Group, attempt: int) -> bytes:
        number, files = group
        own = writer_of_task(self.writer, number, attempt)
        return described(own.changed_by_filter(files, self.coming), own)


def grouped(files: Sequence[FileRead], cores: int) -> Iterator[tuple[FileRead, ...]]:
    """The files of each task, in order."""
    size = sum(file.file_size_in_bytes or 0 for file in files)
    limit = min(max(size / max(cores * _WAVES, 1), LEAST_GROUP_BYTES), MOST_GROUP_BYTES)
    group: list[FileRead] = []
    held = 0
    for file in files:
        own = file.file_size_in_bytes or 0
        if group and held + own > limit:
            yield tuple(group)
            group, held = [], 0
        group.append(file)
        held += own
    if group:
        yield tuple(group)


def writer_of_task(writer: RowWriter, number: int, attempt: int) -> RowWriter:
    """The writer of one attempt at a task; Spark runs as many tasks at once as it has cores."""
    names = replace(writer.names, partition_id=number, task_id=attempt)
    return replace(writer, names=names, runner=LocalRunner(1))


def described(changed: ChangedFiles, writer: RowWriter) -> bytes:
    """What a task sends back: entries of new data files as compressed Avro, so that wide tables do not fill the
    driver's memory, and locations of the old ones, which the driver has."""
    metadata = writer.metadata
    encoded = b""
    if changed.data_files:
        encoded = encode_files(changed.data_files, schema=written_schema(metadata), spec=metadata.spec)
    gone, partial = ([file.file_path for file in files] for files in (changed.gone, changed.partial))
    return pickle.dumps((gone, partial, encoded, list(changed.delete_files)))


def changed_there(answers: Sequence[pa.Buffer | bytes], files: Sequence[FileRead], writer: RowWriter) -> ChangedFiles:
    """What tasks have changed of these files, together."""
    by_path = {file.file_path: file for file in files}
    sent = [pickle.loads(answer) for answer in answers]  # noqa: S301 - of the driver's own executors
    changed = ChangedFiles(
        gone=[by_path[path] for gone, _, _, _ in sent for path in gone],
        partial=[by_path[path] for _, partial, _, _ in sent for path in partial],
        data_files=EncodedFiles(encoded for _, _, encoded, _ in sent),
        delete_files=[file for _, _, _, deletes in sent for file in deletes],
    )
    if writer.counters is not None:
        locations = {file.file_path for file in changed.delete_files}  # vectors share files
        writer.counters.add(FILES_WRITTEN, len(changed.data_files) + len(locations))
    return changed
