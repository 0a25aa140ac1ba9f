"""Loads all deletes of a plan once, and finds those of each data file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from icebench.engine.deletes.cache import DeleteCache
from icebench.engine.deletes.equality import EqualityDeletes, EqualityGroup, load_equality, scopes
from icebench.engine.deletes.files import DeleteFile, FileRead
from icebench.engine.deletes.positions import PositionDeletes, Positions, load_positions
from icebench.engine.deletes.vectors import load_vectors
from icebench.engine.errors import CorruptTable
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.name_mapping import NameMapping
from icebench.engine.spec.schema import Schema
from icebench.engine.storage.store import Store


@dataclass(frozen=True, slots=True)
class FileDeletes:
    """The deletes of one data file: positions, and keys to test its rows against."""

    positions: Positions | None = None
    equality: Sequence[EqualityGroup] = ()


NO_DELETES = FileDeletes()


@dataclass(frozen=True)
class LoadedDeletes:
    """The loaded deletes of a plan."""

    positions: PositionDeletes
    vectors: Mapping[DeleteFile, Positions]
    equality: EqualityDeletes

    def of(self, file: FileRead) -> FileDeletes:
        """The deletes of a data file. A deletion vector replaces position-delete files (spec: "Scan Planning").

        Raises:
            CorruptTable: More than one deletion vector for the file.
        """
        if not file.deletes:
            return NO_DELETES
        vectors = [d for d in file.deletes if d.is_vector]
        if len(vectors) > 1:
            raise CorruptTable(f"{len(vectors)} deletion vectors for one data file", location=file.file_path)
        if vectors:
            return FileDeletes(self.vectors[vectors[0]], self.equality.of(_equality(file)))
        positions = self.positions.of(file.file_path, _positional(file))
        return FileDeletes(_within(positions, file.record_count), self.equality.of(_equality(file)))


def _within(positions: Positions | None, rows: int) -> Positions | None:
    """Sorted positions without those behind the last row, which no row has: where small files are read as one, a row of
    the next file would have them, and where rows are counted they would count as deleted ones."""
    if positions is None or not len(positions) or positions[-1] < rows:
        return positions
    return positions[: np.searchsorted(positions, rows)]


def _positional(file: FileRead) -> list[DeleteFile]:
    return [d for d in file.deletes if d.content is FileContent.POSITION_DELETES and not d.is_vector]


def _equality(file: FileRead) -> list[DeleteFile]:
    return [d for d in file.deletes if d.content is FileContent.EQUALITY_DELETES]


def load_deletes(
    planned: Iterable[FileRead],
    schemas: Sequence[Schema],
    *,
    store: Store,
    runner: Runner,
    counters: Counters,
    needed_by: str | None = None,
    name_mapping: NameMapping | None = None,
    cache: DeleteCache | None = None,
) -> LoadedDeletes:
    """Load each delete file of a plan once, however many data files it concerns.

    Args:
        planned: The data files of the plan that have deletes; others may be left out.
        schemas: The table's schemas, the current one first, then the newest first.
        store: Where the files are.
        runner: Loads files in parallel.
        counters: Count files and keys.
        needed_by: For errors, e.g. ``"table db.t, snapshot 17"``.
        name_mapping: For files without field ids.
        cache: Keeps decoded deletes, for plans that share delete files.
    """
    files = [file for file in planned if file.deletes]
    with_vector = {file.file_path for file in files if any(d.is_vector for d in file.deletes)}
    by_position = [file for file in files if file.file_path not in with_vector and _positional(file)]
    return LoadedDeletes(
        positions=load_positions(
            dict.fromkeys(d for file in by_position for d in _positional(file)),
            [file.file_path for file in by_position],
            store=store,
            runner=runner,
            counters=counters,
            needed_by=needed_by,
            cache=cache,
        ),
        vectors=load_vectors(
            dict.fromkeys(d for file in files for d in file.deletes if d.is_vector),
            store=store,
            runner=runner,
            counters=counters,
            rows={d: file.record_count for file in files for d in file.deletes},
            needed_by=needed_by,
            cache=cache,
        ),
        equality=load_equality(
            scopes((file.scope, _equality(file)) for file in files),
            schemas,
            store=store,
            runner=runner,
            counters=counters,
            needed_by=needed_by,
            name_mapping=name_mapping,
            cache=cache,
        ),
    )
