"""Writes new deletion vectors (spec: "Deletion Vectors"; Puffin spec): the position deletes of version 3 tables.

A data file has at most one vector, so a vector has all deleted positions; the commit must also remove the delete files
that it replaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count

from icebench.engine.codec.puffin.file import DELETION_VECTOR, NewBlob, write_puffin
from icebench.engine.deletes.vectors import vector_blob
from icebench.engine.errors import Invalid
from icebench.engine.runtime.counters import FILES_WRITTEN, Counters
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.metadata_columns import POS_ID
from icebench.engine.spec.properties import DELETE_TARGET_FILE_SIZE_BYTES
from icebench.engine.storage.store import Store
from icebench.engine.write.data_files import WriteTarget, remove_files
from icebench.engine.write.delete_files import DeletedRows, merged_rows
from icebench.engine.write.locations import FileNames

CREATED_BY = "icebench"


def write_deletion_vectors(
    deleted: Iterable[DeletedRows],
    *,
    metadata: TableMetadata,
    store: Store,
    names: FileNames | None = None,
    properties: Mapping[str, str] | None = None,
    counters: Counters | None = None,
) -> list[DataFile]:
    """Write a deletion vector for each data file, many to a Puffin file.

    Args:
        deleted: All deleted positions of each data file, including those deleted before.
        metadata: The table.
        store: Its storage.
        names: Unique names for the files.
        properties: Override those of the table, for this write.
        counters: Count the files.

    Returns:
        One entry per data file with deleted rows, ordered by data file.

    Raises:
        Invalid: The format version is below 3, or a data file comes twice with different partitions.
        StorageFailed: The storage failed; written files are removed if possible.
    """
    if metadata.format_version < 3:
        raise Invalid(f"format version {metadata.format_version} takes no deletion vectors; write position deletes")
    target = WriteTarget.of(metadata, store, names=names, properties=properties, counters=counters)
    limit = DELETE_TARGET_FILE_SIZE_BYTES.of(target.properties)
    number = count(1)
    files: list[DataFile] = []
    try:
        waiting: list[tuple[DeletedRows, bytes]] = []
        waiting_bytes = 0
        for rows in merged_rows(deleted):
            blob = vector_blob(rows.positions)
            if waiting and waiting_bytes + len(blob) > limit:
                files.extend(_write_file(waiting, target, next(number)))
                waiting, waiting_bytes = [], 0
            waiting.append((rows, blob))
            waiting_bytes += len(blob)
        if waiting:
            files.extend(_write_file(waiting, target, next(number)))
    except BaseException:
        remove_files(store, files)
        raise
    target.counters.add(FILES_WRITTEN, len({file.file_path for file in files}))
    return files


def _write_file(vectors: list[tuple[DeletedRows, bytes]], target: WriteTarget, number: int) -> list[DataFile]:
    """Write one Puffin file. Vectors of all partitions share it, so it lies beside the partitions' directories."""
    encoded = write_puffin(
        (
            NewBlob(
                type=DELETION_VECTOR,
                data=blob,
                fields=(POS_ID,),
                properties={"referenced-data-file": rows.file_path, "cardinality": str(len(rows.positions))},
            )
            for rows, blob in vectors
        ),
        properties={"created-by": CREATED_BY},
    )
    location = target.unpartitioned_location(number, "puffin", suffix="-deletes")
    target.store.write(location, encoded.data)
    return [
        DataFile(
            content=FileContent.POSITION_DELETES,
            file_path=location,
            file_format="puffin",
            spec_id=rows.spec_id,
            partition=rows.partition,
            record_count=len(rows.positions),
            file_size_in_bytes=len(encoded.data),
            referenced_data_file=rows.file_path,
            content_offset=blob.offset,
            content_size_in_bytes=blob.length,
        )
        for (rows, _), blob in zip(vectors, encoded.footer.blobs, strict=True)
    ]
