"""Metadata table ``position_deletes``: the rows that position-delete files and deletion vectors delete."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from icebench.engine.columnar.schemas import to_arrow_schema
from icebench.engine.deletes.files import DeleteFile
from icebench.engine.deletes.positions import Positions, positions_by_path
from icebench.engine.deletes.vectors import load_vectors
from icebench.engine.inspect.contents import Contents, live
from icebench.engine.inspect.files import partitions_of
from icebench.engine.runtime.counters import Counters
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.storage.resolve import default_runner


def position_deletes(contents: Contents, snapshot: Snapshot | None) -> pa.Table:
    """One row per deleted position of a live delete file: file_path and pos of the row, partition, spec_id and
    delete_file_path of the delete file; in format version 3 also content_offset and content_size_in_bytes of a vector.

    ``row``, a copy of the deleted row, is null: the specification has withdrawn it, and it is not read from files that
    have it. A position that a delete file has twice is one row.

    Raises:
        FileNotFound: A delete file is missing.
        CorruptTable: A delete file is damaged, or contradicts its manifest entry.
        Unsupported: A delete file that is not Parquet or Puffin.
    """
    entries = [
        entry
        for entry in live(contents.snapshot_entries(snapshot))
        if entry.data_file.content is FileContent.POSITION_DELETES
    ]
    needed_by = None if snapshot is None else f"snapshot {snapshot.snapshot_id}"
    found = _positions([DeleteFile.of(entry) for entry in entries], contents, needed_by)
    files: list[DataFile] = [entry.data_file for entry in entries]
    owners: list[int] = []
    paths: list[pa.Array] = []
    positions: list[pa.Array] = []
    for place, by_path in enumerate(found):
        for path, own in by_path.items():
            owners += [place] * len(own)
            paths.append(pa.repeat(pa.scalar(path), len(own)))
            positions.append(pa.array(own, pa.int64()))
    of_files = {
        "partition": partitions_of(contents.metadata, files),
        "spec_id": pa.array([f.spec_id for f in files], pa.int32()),
        "delete_file_path": pa.array([f.file_path for f in files], pa.string()),
    }
    if contents.metadata.format_version >= 3:
        of_files["content_offset"] = pa.array([f.content_offset for f in files], pa.int64())
        of_files["content_size_in_bytes"] = pa.array([f.content_size_in_bytes for f in files], pa.int64())
    taken = pa.array(owners, pa.int64())
    return pa.table(
        {
            "file_path": pa.chunked_array(paths, pa.string()),
            "pos": pa.chunked_array(positions, pa.int64()),
            "row": pa.nulls(len(owners), pa.struct(list(to_arrow_schema(contents.metadata.schema)))),
            **{name: array.take(taken) for name, array in of_files.items()},
        }
    )


def _positions(files: list[DeleteFile], contents: Contents, needed_by: str | None) -> list[Mapping[str, Positions]]:
    """Positions by data file, for each delete file."""
    runner = default_runner(contents.store, contents.metadata.location)
    vectors = load_vectors(
        [file for file in files if file.is_vector],
        store=contents.store,
        runner=runner,
        counters=Counters(),
        rows={},
        needed_by=needed_by,
    )

    def load(file: DeleteFile) -> Mapping[str, Positions]:
        if file.is_vector:
            return {file.referenced_data_file or "": vectors[file]}
        return positions_by_path(file, contents.store, needed_by)

    return list(runner.map(load, files))
