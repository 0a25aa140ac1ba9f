"""Position-delete files, each decoded once for a whole plan (spec: "Position Delete Files").

A row of such a file names a data file and a position in it. Rows are sorted by both, so the decoded columns fall into
runs of one data file, which are kept as slices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebench.engine.codec.array_views import values_of
from icebench.engine.columnar.schemas import field_id_of
from icebench.engine.deletes.cache import DeleteCache
from icebench.engine.deletes.files import DeleteFile, check_file
from icebench.engine.errors import Contradiction, CorruptTable
from icebench.engine.formats.opening import open_source
from icebench.engine.runtime.counters import DELETE_FILES_LOADED, Counters
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.locations import parts, same_place
from icebench.engine.spec.metadata_columns import DELETE_FILE_PATH_ID, DELETE_POS_ID, POSITION_DELETES
from icebench.engine.spec.name_mapping import mapping_of
from icebench.engine.storage.store import Store

Positions = npt.NDArray[np.int64]
"""Row positions, ascending and distinct."""

_BY_NAME = mapping_of(POSITION_DELETES)
_COLUMN_OF: dict[int | None, str] = {DELETE_FILE_PATH_ID: "path", DELETE_POS_ID: "pos"}


@dataclass(frozen=True)
class PositionDeletes:
    """Positions by data file, each with the delete file that they are from."""

    by_data_file: Mapping[str, Sequence[tuple[DeleteFile, Positions]]]

    def of(self, data_file: str, deletes: Iterable[DeleteFile]) -> Positions | None:
        """The positions of a data file that any of these delete files deletes, or None."""
        known = self.by_data_file.get(data_file)
        if known is None:
            return None
        applied = frozenset(deletes)
        found = [positions for file, positions in known if file in applied]
        if len(found) > 1:
            return np.unique(np.concatenate(found))
        return found[0] if found else None


def load_positions(
    files: Collection[DeleteFile],
    data_files: Collection[str],
    *,
    store: Store,
    runner: Runner,
    counters: Counters,
    needed_by: str | None = None,
    cache: DeleteCache | None = None,
) -> PositionDeletes:
    """Decode position-delete files, keeping the positions in `data_files`.

    Another spelling of a data file's path (``file:/a`` and ``/a``, ``s3a`` and ``s3``) counts as that data file.

    Raises:
        FileNotFound: Naming the delete file and `needed_by`.
        CorruptTable: A path equals a data file's except for its authority, which is ambiguous.
        Unsupported: A delete file that is not Parquet.
    """
    places = DataFilePlaces(data_files)

    def load(file: DeleteFile) -> Mapping[str, Positions]:
        if cache is None:
            counters.add(DELETE_FILES_LOADED)
            return _load(file, places.find, store, needed_by)
        return _select_concerned(cache.of(("positions", file), lambda: everything(file), _size_bytes), file, places)

    def everything(file: DeleteFile) -> dict[str, Positions]:
        counters.add(DELETE_FILES_LOADED)
        return positions_by_path(file, store, needed_by)

    counters.add(DELETE_FILES_LOADED, 0)
    ordered = list(files)
    by_data_file: dict[str, list[tuple[DeleteFile, Positions]]] = {}
    for file, found in zip(ordered, runner.map(load, ordered), strict=True):
        for data_file, positions in found.items():
            by_data_file.setdefault(data_file, []).append((file, positions))
    return PositionDeletes(by_data_file)


def positions_by_path(file: DeleteFile, store: Store, needed_by: str | None = None) -> dict[str, Positions]:
    """All positions of a position-delete file by the data file's path, as spelled there; raises as `load_positions`."""
    return _load(file, lambda path, _: path, store, needed_by)


def _select_concerned(found: Mapping[str, Positions], file: DeleteFile, places: DataFilePlaces) -> dict[str, Positions]:
    """Select the positions in the given data files."""
    runs: dict[str, list[Positions]] = {}
    for path, positions in found.items():
        data_file = places.find(path, file.file_path)
        if data_file is not None:
            runs.setdefault(data_file, []).append(positions)
    return {data_file: _ascending(own) for data_file, own in runs.items()}


def _size_bytes(found: Mapping[str, Positions]) -> int:
    return sum(len(path) + positions.nbytes for path, positions in found.items())


def _load(
    file: DeleteFile, find: Callable[[str, str], str | None], store: Store, needed_by: str | None
) -> dict[str, Positions]:
    """Load a file's positions, by the result of `find` for each path."""
    runs: dict[str, list[Positions]] = {}
    for batch in position_batches(file, store, needed_by):
        for path, positions in _runs(batch):
            data_file = find(path, file.file_path)
            if data_file is not None:
                runs.setdefault(data_file, []).append(positions)
    return {path: _ascending(found) for path, found in runs.items()}


def position_batches(file: DeleteFile, store: Store, needed_by: str | None = None) -> Iterator[pa.RecordBatch]:
    """All rows of a position-delete file, in order: ``path`` (a dictionary) and ``pos`` (int64), neither null; raises
    as `load_positions`."""
    with open_source(
        store,
        file.file_path,
        file_format=file.file_format,
        name_mapping=_BY_NAME,
        needed_by=needed_by,
        dictionaries=["file_path"],
        size_bytes=file.file_size_in_bytes,
    ) as source:
        check_file(file, source, store)
        if any(source.columns.place_of(f.field_id, f.name) is None for f in POSITION_DELETES.fields):
            raise CorruptTable("a position-delete file without file_path and pos", location=file.file_path)
        for group in source.row_groups:
            table = source.read(group.index, POSITION_DELETES)
            ids = [field_id_of(f) for f in table.schema]
            named = table.rename_columns([_COLUMN_OF.get(i, f"other {at}") for at, i in enumerate(ids)])
            for batch in named.to_batches():
                paths, positions = batch.column("path"), batch.column("pos")
                if paths.null_count:
                    # They name no row, as in test data of Impala.
                    reason = (
                        f"a position-delete file with {paths.null_count} rows without file_path, which delete nothing"
                    )
                    store.report(Contradiction("delete without a path", file.file_path, reason))
                    names_row = paths.is_valid()
                    paths, positions = paths.filter(names_row), positions.filter(names_row)
                if positions.null_count:
                    reason = "a position-delete file with a path and no position"
                    raise CorruptTable(reason, location=file.file_path)
                encoded = paths if isinstance(paths, pa.DictionaryArray) else paths.dictionary_encode()
                yield pa.RecordBatch.from_arrays([encoded, positions.cast(pa.int64())], names=["path", "pos"])


def _runs(batch: pa.RecordBatch) -> Iterable[tuple[str, Positions]]:
    """Ranges of rows with one path."""
    if not batch.num_rows:
        return
    encoded = batch.column("path")
    codes = values_of(encoded.indices)
    positions = values_of(batch.column("pos"))
    starts = np.concatenate(([0], np.flatnonzero(codes[1:] != codes[:-1]) + 1, [len(codes)]))
    for start, end in pairwise(starts.tolist()):
        yield encoded.dictionary[codes[start]].as_py(), positions[start:end]


def _ascending(runs: list[Positions]) -> Positions:
    """Merge the positions of all runs, ascending and distinct; writers sort them, so usually there is nothing to do."""
    joined = runs[0] if len(runs) == 1 else np.concatenate(runs)
    return joined if bool(np.all(joined[1:] > joined[:-1])) else np.unique(joined)


class DataFilePlaces:
    """Finds the data file that a path in a delete file refers to.

    Args:
        data_files: The data files that matter, as their manifests spell them.
    """

    def __init__(self, data_files: Collection[str]) -> None:
        self._data_files = frozenset(data_files)
        self._by_path: dict[str, list[str]] | None = None

    def find(self, path: str, delete_file: str) -> str | None:
        """The data file, spelled as in its manifest; None if it is none of them."""
        if path in self._data_files:
            return path
        if self._by_path is None:
            by_path: dict[str, list[str]] = {}
            for data_file in self._data_files:
                by_path.setdefault(parts(data_file)[2], []).append(data_file)
            self._by_path = by_path
        candidates = self._by_path.get(parts(path)[2], ())
        for data_file in candidates:
            if same_place(path, data_file):
                return data_file
        if candidates:
            raise CorruptTable(
                f"it deletes rows of {path}, which the table knows as {candidates[0]}: are they the same file?",
                location=delete_file,
            )
        return None
