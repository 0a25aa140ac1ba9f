"""All files of a snapshot that cannot be read, and all that contradict the table's metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from icebench.engine.deletes.files import DeleteFile, FileRead
from icebench.engine.errors import Contradiction, EngineError
from icebench.engine.maintenance.profile.table_profile import Subject
from icebench.engine.plan.scan import table_scan
from icebench.engine.read.plans import planned_files, request_for
from icebench.engine.read.reader import read_files
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.schema import Schema
from icebench.engine.storage.contradictions import CollectingStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ExaminedFiles:
    """What `examine_files` found.

    Args:
        contradictions: Files whose length or counts differ from the metadata although their rows are certain, by
            location.
        unreadable: For each data or delete file that cannot be read, the error that a scan raises, which names it.
    """

    contradictions: tuple[Contradiction, ...]
    unreadable: tuple[EngineError, ...]


def examine_files(table: Subject) -> ExaminedFiles:
    """Open every file of the current snapshot: manifests, delete files and the footers of data files; no rows are read.

    Raises:
        CorruptTable, FileNotFound, Unsupported: From the metadata, the manifest list or a manifest, without which the
            files are not known.
    """
    store = CollectingStore(table.store)
    plan = table_scan(table.metadata, store, runner=table.runner, table_name=table.name).plan()
    request = request_for(plan, store, projection=Schema(()), table_name=table.name)
    files = list(planned_files(plan))
    # Each delete file once, with one of the data files that it applies to.
    concerned: dict[DeleteFile, FileRead] = {delete: file for file in files for delete in file.deletes}
    own, counters = LocalRunner(1), Counters()

    def read_data(file: FileRead) -> None:
        for _ in read_files([replace(file, deletes=())], request, runner=own, counters=counters):
            pass

    def read_deletes(delete: DeleteFile) -> None:
        with request.naming():
            request.load_deletes([replace(concerned[delete], deletes=(delete,))], runner=own, counters=counters)

    def errors(read: Callable[[T], None], items: Iterable[T]) -> list[EngineError]:
        def error_of(item: T) -> EngineError | None:
            try:
                read(item)
            except EngineError as error:
                return error
            return None

        return [error for error in table.runner.map(error_of, items) if error is not None]

    unreadable = errors(read_data, files) + errors(read_deletes, concerned)
    # Threads find them in any order.
    found = sorted(set(store.found), key=lambda each: (each.location, each.cause, each.reason))
    return ExaminedFiles(tuple(found), tuple(unreadable))
