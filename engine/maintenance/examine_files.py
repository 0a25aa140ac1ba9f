"""All files of a snapshot that cannot be read, and all that contradict the table's metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from icebench.engine.deletes.files import DeleteFile, FileRead
from icebench.engine.errors import Contradiction, EngineError
from icebench.engine.maintenance.dangling_deletes import live_deletes
from icebench.engine.maintenance.profile.table_profile import Subject
from icebench.engine.plan.scan import table_scan
from icebench.engine.read.plans import planned_files, request_for
from icebench.engine.read.reader import read_files
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.schema import Schema
from icebench.engine.storage.contradictions import CollectingStore

_ANY_LENGTH = (1 << 63) - 1


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
    # Each delete file once, with one of the data files that it applies to; if there is none, with one of any length.
    owners = {d: file for file in files for d in file.deletes}
    concerned = {(d.file_path, d.content_offset): replace(file, deletes=(d,)) for d, file in owners.items()}
    for d in map(DeleteFile.of, live_deletes(store, table.runner, plan.snapshot)):
        unknown = FileRead(file_path=d.referenced_data_file or "", record_count=_ANY_LENGTH, deletes=(d,))
        concerned.setdefault((d.file_path, d.content_offset), unknown)
    own, counters = LocalRunner(1), Counters()

    def read_data(file: FileRead) -> None:
        for _ in read_files([replace(file, deletes=())], request, runner=own, counters=counters):
            pass

    def read_deletes(file: FileRead) -> None:
        with request.naming():
            request.load_deletes([file], runner=own, counters=counters)

    def errors(read: Callable[[FileRead], None], items: Iterable[FileRead]) -> list[EngineError]:
        def error_of(item: FileRead) -> EngineError | None:
            try:
                read(item)
            except EngineError as error:
                return error
            return None

        return [error for error in table.runner.map(error_of, items) if error is not None]

    unreadable = errors(read_data, files) + errors(read_deletes, concerned.values())
    # Threads find them in any order.
    found = sorted(set(store.found), key=lambda each: (each.location, each.cause, each.reason))
    return ExaminedFiles(tuple(found), tuple(unreadable))
