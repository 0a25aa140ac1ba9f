"""Finds the rows of a plan that match its filter, by position, for deletes, updates and merges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from engine.deletes.files import DeleteFile, FileRead
from engine.errors import Unsupported
from engine.read.reader import read_files
from engine.read.request import ReadRequest
from engine.runtime.counters import Counters
from engine.runtime.runner import Runner
from engine.spec.data_file import FileContent
from engine.spec.metadata_columns import FILE, POS
from engine.spec.partitioning import Partition
from engine.spec.schema import Schema


@dataclass(frozen=True, kw_only=True)
class MatchedRows:
    """The live rows of one data file that match.

    Args:
        file: The data file.
        partition: Its partition tuple.
        positions: Row positions, ascending.
        deleted_before: Positions that a deletion vector or position-delete files already delete, ascending.
        superseded: Those of these delete files that refer to this data file only: a deletion vector with `positions`
            and `deleted_before` replaces them.
    """

    file: FileRead
    partition: Partition
    positions: npt.NDArray[np.int64]
    deleted_before: npt.NDArray[np.int64]
    superseded: tuple[DeleteFile, ...]


def matched_rows(
    files: Iterable[FileRead], request: ReadRequest, *, runner: Runner, counters: Counters | None = None
) -> Iterator[MatchedRows]:
    """The rows of each file that match its residual, for files that have any, in their order. Raises as
    `engine.read.reader.read_files`.

    Args:
        files: Files of one plan.
        request: That of the plan; its columns are ignored.
        runner: Reads in parallel.
        counters: Count the work.

    Raises:
        Unsupported: A match in a file whose partition is unknown.
    """
    places = replace(request, projection=Schema((FILE, POS)))
    by_path = {file.file_path: file for file in files}
    counted = counters or Counters()
    found: dict[str, list[npt.NDArray[np.int64]]] = {}
    for batch in read_files(by_path.values(), places, runner=runner, counters=counted):
        # A batch never crosses a row group, so all its rows are of one file.
        path = batch.column(0)[0].as_py()
        found.setdefault(path, []).append(batch.column(1).to_numpy())
    positions = {path: np.concatenate(parts) for path, parts in found.items()}
    yield from rows_at([by_path[path] for path in found], positions, request, runner=runner, counters=counted)


def rows_at(
    files: Sequence[FileRead],
    positions: Mapping[str, npt.NDArray[np.int64]],
    request: ReadRequest,
    *,
    runner: Runner,
    counters: Counters | None = None,
) -> Iterator[MatchedRows]:
    """The same for rows that were already found, by path of the data file; positions ascending.

    Raises:
        Unsupported: A file whose partition is unknown.
    """
    before = request.load_deletes(map(_without_keys, files), runner=runner, counters=counters or Counters())
    for file in files:
        path = file.file_path
        if file.partition is None:
            raise Unsupported(f"{path}: a column of its partition spec was dropped, so its deletes can not be written")
        deleted = before.of(_without_keys(file)).positions
        yield MatchedRows(
            file=file,
            partition=file.partition,
            positions=positions[path],
            deleted_before=np.empty(0, np.int64) if deleted is None else deleted,
            superseded=superseded_by_rewrite(file),
        )


def superseded_by_rewrite(file: FileRead) -> tuple[DeleteFile, ...]:
    """The delete files that refer to this data file alone, which are removed with it."""
    return tuple(d for d in _without_keys(file).deletes if d.is_vector or d.referenced_data_file == file.file_path)


def _without_keys(file: FileRead) -> FileRead:
    positional = tuple(d for d in file.deletes if d.content is FileContent.POSITION_DELETES)
    return replace(file, deletes=positional)
