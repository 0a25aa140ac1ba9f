"""Builds a secondary index: which values of one column each data file may hold (see
`icebench.engine.file_indexes.blob`).

The index is added to the statistics file of the current snapshot. Files in the newest index of the column are not read
again; files that are no longer in the table are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from icebench.engine.codec.array_views import BoolArray, bytes_array_of
from icebench.engine.codec.puffin.file import NewBlob
from icebench.engine.columnar.batch_columns import column_by_id
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.target import Target
from icebench.engine.deletes.files import FileRead
from icebench.engine.errors import CorruptTable, FileNotFound, Invalid, Unsupported
from icebench.engine.file_indexes.blob import (
    FILE_INDEX,
    FileIndex,
    Hashes,
    IndexKind,
    build_index,
    encode_index,
    joined_index,
)
from icebench.engine.file_indexes.lookup import Hashing, LoadedIndex, index_of, listed_index, load_index
from icebench.engine.file_indexes.value_hashes import value_hashes
from icebench.engine.maintenance.statistics_file import commit_blobs, row_field_id
from icebench.engine.plan.scan import table_scan
from icebench.engine.read.plans import planned_files, request_for
from icebench.engine.read.reader import read_files
from icebench.engine.read.request import ReadRequest
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.storage.store import Store


@dataclass(frozen=True, kw_only=True)
class BuiltIndex:
    """The result of building an index.

    Args:
        snapshot_id: The snapshot whose statistics file has it.
        statistics_path: Location of that file.
        files: Data files in the index.
        files_read: Those of them that had to be read.
        size_bytes: Size of the blob.
    """

    snapshot_id: int
    statistics_path: str
    files: int
    files_read: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _Kept:
    """The reusable part of an earlier index: the index, and a mask of its files."""

    index: FileIndex
    files: BoolArray


def build_file_index(table: Target, column: str, *, kind: IndexKind, fpp: float) -> tuple[TableState, BuiltIndex]:
    """Index a column of the current snapshot's data files; see `Maintenance.build_index`."""
    if kind not in ("bloom", "values"):
        raise Invalid(f"an index is of kind 'bloom' or 'values', not {kind!r}")
    if not 0 < fpp < 1:
        raise Invalid(f"a share of false positives is between 0 and 1, not {fpp}")
    state = table.load()
    metadata = state.metadata
    snapshot = metadata.current_snapshot
    if snapshot is None:
        raise Invalid("a table without a snapshot has no files to index")
    field_id = row_field_id(metadata.schema, column)
    hashing = Hashing.now(metadata, metadata.schema, field_id)
    if hashing is None:
        raise Unsupported(f"an index of column {column!r} of type {metadata.schema.by_id[field_id].type}")
    plan = table_scan(metadata, table.store, runner=table.runner, cache=table.cache).plan()
    files = list(planned_files(plan))
    sizes = dict(zip(*(plan.files.column(n).to_pylist() for n in ("file_path", "file_size_in_bytes")), strict=True))
    kept, rest = _load_known(metadata, table.store, field_id=field_id, kind=kind, files=files, sizes=sizes)
    request = request_for(plan, table.store, projection=metadata.schema.select([field_id]))
    hashes = list(table.runner.map(lambda file: _hashes_of(file, request, field_id, table.counters), rest))
    paths = [file.file_path for file in rest]
    index = build_index(kind, paths, [sizes[path] for path in paths], hashes, fpp)
    if kept is not None:
        index = joined_index(kept.index, kept.files, index)
    blob = NewBlob(
        type=FILE_INDEX,
        data=encode_index(index),
        fields=(field_id,),
        snapshot_id=snapshot.snapshot_id,
        sequence_number=snapshot.sequence_number,
        properties=hashing.as_properties(),
    )
    listed = listed_index(field_id, snapshot.snapshot_id, kind, hashing)
    state, location = commit_blobs(table, metadata, snapshot, [blob], listed)
    return state, BuiltIndex(
        snapshot_id=snapshot.snapshot_id,
        statistics_path=location,
        files=index.count,
        files_read=len(rest),
        size_bytes=len(blob.data),
    )


def _load_known(
    metadata: TableMetadata,
    store: Store,
    *,
    field_id: int,
    kind: IndexKind,
    files: Sequence[FileRead],
    sizes: dict[str, int],
) -> tuple[_Kept | None, list[FileRead]]:
    """The reusable part of the newest index of this kind, and the files that it lacks."""
    try:
        old = index_of(metadata, metadata.schema, field_id, kind)
        if old is None:
            return None, list(files)
        file, hashing = old
        index = load_index(file, field_id, hashing, store)
    except (FileNotFound, CorruptTable, Invalid):
        return None, list(files)  # it is built anew
    paths = bytes_array_of([file.file_path.encode() for file in files])
    found = LoadedIndex.of(index).files(paths, np.array([sizes[file.file_path] for file in files], np.int64))
    kept = np.zeros(index.count, np.bool_)
    kept[found[found >= 0]] = True
    return _Kept(index, kept), [file for file, place in zip(files, found.tolist(), strict=True) if place < 0]


def _hashes_of(file: FileRead, request: ReadRequest, field_id: int, counters: Counters) -> Hashes:
    """The distinct hashes of all values in a file, including those of deleted rows, since deletes may be undone."""
    whole = replace(file, deletes=(), residual=None)
    found = np.zeros(0, np.uint64)
    for batch in read_files([whole], request, runner=LocalRunner(1), counters=counters):
        own = value_hashes(column_by_id(batch, request.schema, field_id))
        found = np.unique(np.concatenate([found, own]))
    return found
