"""Loads all deletes of a plan once, and finds those of each data file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from icebench.engine.deletes.cache import DeleteCache
from icebench.engine.deletes.equality import EqualityDeletes, EqualityGroup, load_equality, scopes
from icebench.engine.deletes.files import DeleteFile, FileRead, PerList, distinct_deletes
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
_POSITIONS, _EQUALITY = FileContent.POSITION_DELETES, FileContent.EQUALITY_DELETES


class _Kinds(NamedTuple):
    """The delete files of a data file by kind."""

    vectors: tuple[DeleteFile, ...] = ()
    positions: tuple[DeleteFile, ...] = ()
    equality: tuple[DeleteFile, ...] = ()


def _kinds_of(deletes: tuple[DeleteFile, ...]) -> _Kinds:
    """Most data files have deletes of one kind; then the list itself serves, and no second one is held."""
    equality = tuple([d for d in deletes if d.content is _EQUALITY])
    if len(equality) == len(deletes):
        return _Kinds(equality=deletes)
    others = [d for d in deletes if d.content is not _EQUALITY]
    vectors = tuple([d for d in others if d.is_vector])
    positions = tuple([d for d in others if d.content is _POSITIONS and not d.is_vector])
    return _Kinds(vectors, deletes if len(positions) == len(deletes) else positions, equality)


@dataclass(frozen=True)
class LoadedDeletes:
    """The loaded deletes of a plan."""

    positions: PositionDeletes
    vectors: Mapping[DeleteFile, Positions]
    equality: EqualityDeletes
    kinds: PerList[_Kinds]

    def of(self, file: FileRead) -> FileDeletes:
        """The deletes of a data file. A deletion vector replaces position-delete files (spec: "Scan Planning").

        Raises:
            CorruptTable: More than one deletion vector for the file.
        """
        if not file.deletes:
            return NO_DELETES
        own = self.kinds.of(file.deletes)
        if len(own.vectors) > 1:
            raise CorruptTable(f"{len(own.vectors)} deletion vectors for one data file", location=file.file_path)
        if own.vectors:
            return FileDeletes(self.vectors[own.vectors[0]], self.equality.of(own.equality))
        positions = self.positions.of(file.file_path, own.positions)
        return FileDeletes(_within(positions, file.record_count), self.equality.of(own.equality))


def _within(positions: Positions | None, rows: int) -> Positions | None:
    """Sorted positions without those behind the last row, which no row has: where small files are read as one, a row of
    the next file would have them, and where rows are counted they would count as deleted ones."""
    if positions is None or not len(positions) or positions[-1] < rows:
        return positions
    return positions[: np.searchsorted(positions, rows)]


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
    kinds = PerList(_kinds_of)
    found = [(file, kinds.of(file.deletes)) for file in files]
    by_position = [(file, own) for file, own in found if own.positions and not own.vectors]
    rows = {vector: file.record_count for file, own in found for vector in own.vectors}
    return LoadedDeletes(
        positions=load_positions(
            distinct_deletes(own.positions for _, own in by_position),
            [file.file_path for file, _ in by_position],
            store=store,
            runner=runner,
            counters=counters,
            needed_by=needed_by,
            cache=cache,
        ),
        vectors=load_vectors(
            rows,
            store=store,
            runner=runner,
            counters=counters,
            rows=rows,
            needed_by=needed_by,
            cache=cache,
        ),
        equality=load_equality(
            scopes((file.scope, own.equality) for file, own in found if own.equality),
            schemas,
            store=store,
            runner=runner,
            counters=counters,
            needed_by=needed_by,
            name_mapping=name_mapping,
            cache=cache,
        ),
        kinds=kinds,
    )
