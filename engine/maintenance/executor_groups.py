"""Rewrites groups of data files on executors."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar, cast

import pyarrow as pa

from icebench.engine.codec.manifests.encoded_files import EncodedFiles, encode_files
from icebench.engine.maintenance.file_groups import FileGroup
from icebench.engine.maintenance.rewrite_group import GroupRewrite, RewrittenGroup
from icebench.engine.write.data_files import remove_files_of
from icebench.engine.write.locations import FileNames

T = TypeVar("T")
R = TypeVar("R")

RunJob = Callable[["_EncodedRewrite", Sequence[FileGroup]], Sequence[pa.Buffer]]
"""`icebench.engine.spark.jobs.run_job` with a session."""

_WAVES = 4
"""Tasks of a job per core, so that one slow group keeps few cores waiting and results arrive in between."""


@dataclass(frozen=True)
class ExecutorGroups:
    """Runs the groups of a rewrite on executors, as a `icebench.engine.runtime.runner.Runner`.

    Args:
        run_job: Runs one job.
        cores: The number of tasks that run at a time.
    """

    run_job: RunJob
    cores: int

    def map(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """See `Runner.map`: some tasks per core at a time. A failed job leaves no files.

        Args:
            fn: A `GroupRewrite`; nothing else runs here.
            items: Its `FileGroup`s.

        Raises:
            Unsupported: The table's store is of this process alone.
        """
        assert isinstance(fn, GroupRewrite)
        work: GroupRewrite = replace(fn, metadata=fn.metadata.without_history(), counters=None)
        rest = iter(cast("Iterable[FileGroup]", items))
        while groups := list(islice(rest, max(self.cores * _WAVES, 1))):
            try:
                answers = self.run_job(_EncodedRewrite(work), groups)
            except BaseException:
                # Files of earlier jobs may be committed already.
                numbers = {group.number for group in groups}
                names = FileNames(operation_id=work.operation_id)
                remove_files_of(work.store, work.metadata, names, partitions=numbers)
                raise
            for group, answer in zip(groups, answers, strict=True):
                error, manifest = pickle.loads(answer)  # noqa: S301 - of the driver's own executors
                yield cast("R", RewrittenGroup(group=group, files=EncodedFiles([manifest]), error=error))


@dataclass(frozen=True)
class _EncodedRewrite:
    """The task of an executor: rewrite a group, and return its new files encoded as a manifest."""

    work: GroupRewrite

    def __call__(self, group: FileGroup, attempt: int) -> bytes:
        made = replace(self.work, task_id=attempt)(group)
        schema, spec = self.work.request.projection, self.work.spec
        return pickle.dumps((made.error, encode_files(made.files, schema=schema, spec=spec) if made.files else b""))
