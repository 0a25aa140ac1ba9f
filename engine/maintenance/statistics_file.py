"""Statistics files of snapshots: Puffin files of indexes and sketches of columns (spec: "Table Statistics").

A snapshot has one, so whoever adds blobs writes the others again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from icebench.engine.codec.puffin.file import EncodedPuffin, NewBlob, PuffinBlob, decode_blob, read_footer, write_puffin
from icebench.engine.codec.puffin.theta import THETA_SKETCH
from icebench.engine.commit.changes.change import Change
from icebench.engine.commit.changes.evolution import UpdateProperties
from icebench.engine.commit.changes.statistics import UpdateStatistics
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.staging_context import Staging, metadata_file_location
from icebench.engine.commit.target import Target
from icebench.engine.errors import CorruptTable, FileNotFound, Invalid, Unsupported, ValidationFailed
from icebench.engine.file_indexes.blob import FILE_INDEX, decode_index, encode_index, moved_index
from icebench.engine.spec.encryption import check_not_encrypted
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.spec.statistics import BlobMetadata, StatisticsFile
from icebench.engine.storage.store import Store

_NO_PROPERTIES: Mapping[str, str] = MappingProxyType({})
CREATED_BY = "icebench"
"""The property ``created-by`` of files that are written here."""


def row_field_id(schema: Schema, column: str) -> int:
    """The id of a column with one value per row; raises Invalid for a column inside a list or map."""
    field_id = schema.find(column).field_id
    above = schema.parent_of.get(field_id)
    while above is not None:
        if not hasattr(schema.by_id[above].type, "fields"):
            raise Invalid(f"column {column!r} is inside a list or map")
        above = schema.parent_of.get(above)
    return field_id


def commit_blobs(
    table: Target,
    metadata: TableMetadata,
    snapshot: Snapshot,
    blobs: Sequence[NewBlob],
    properties: Mapping[str, str] = _NO_PROPERTIES,
) -> tuple[TableState, str]:
    """Write the statistics file of a snapshot with these blobs and the others of the one it has in `metadata`, and set
    it, and table properties, in the metadata. A blob replaces that of the same type and columns.

    Raises:
        ValidationFailed: Another commit has set another file meanwhile.
    """
    check_not_encrypted(metadata)
    staging = table.staging()
    old = next((s for s in metadata.statistics if s.snapshot_id == snapshot.snapshot_id), None)
    replaced = {(blob.type, blob.fields) for blob in blobs}
    others, writer = ([], None) if old is None else _other_blobs(old, replaced, table.store)
    encoded = write_puffin([*others, *blobs], properties=_created_by(others, writer))
    location = metadata_file_location(metadata, f"{snapshot.snapshot_id}-{staging.commit_id}.stats")
    table.store.write(location, encoded.data)
    change = UpdateStatistics(
        table=[_statistics_file(snapshot, location, encoded)],
        made_from={snapshot.snapshot_id: None if old is None else old.statistics_path},
    )
    changes: list[Change] = [change, UpdateProperties(properties)] if properties else [change]
    return commit_statistics(table, staging, changes, snapshot, location), location


def commit_statistics(
    table: Target, staging: Staging, changes: Sequence[Change], snapshot: Snapshot, location: str
) -> TableState:
    """Set a new statistics file of a snapshot in the metadata by these changes.

    A REST catalog knows no requirement that there is a snapshot, so an expiry may come before the commit: then the
    entry is removed again.

    Raises:
        ValidationFailed: The snapshot was expired meanwhile.
    """
    state = table.commit_staged(staging, changes, [location])
    snapshot_id = snapshot.snapshot_id
    if snapshot_id in state.metadata.snapshot_by_id:
        return state
    own = [change for change in changes if isinstance(change, UpdateStatistics)]
    removal = UpdateStatistics(
        removed_table=[file.snapshot_id for change in own for file in change.table],
        removed_partition=[file.snapshot_id for change in own for file in change.partition],
    )
    table.commit([removal])
    table.discard([location])
    raise ValidationFailed(f"snapshot {snapshot_id} was expired while its statistics were computed")


def with_moved_indexes(file: StatisticsFile, moved: Callable[[str], str | None], store: Store) -> EncodedPuffin | None:
    """A statistics file in which the file indexes name data files by other locations.

    Args:
        file: The file.
        moved: The new location of a data file; None leaves it as it is.
        store: Where the file is.

    Returns:
        The file's new content; None if there is no index in it, or if it is gone or damaged.
    """
    location = file.statistics_path
    try:
        data = store.read(location)
        footer = read_footer(data, location=location)
    except (FileNotFound, CorruptTable, Unsupported):
        return None
    if not any(blob.type == FILE_INDEX for blob in footer.blobs):
        return None
    blobs = [_copied(blob, data, location) for blob in footer.blobs]
    for number, blob in enumerate(blobs):
        if blob.type == FILE_INDEX:
            index = moved_index(decode_index(blob.data, location=location), moved)
            blobs[number] = replace(blob, data=encode_index(index))
    return write_puffin(blobs, properties=_created_by(blobs, footer.properties.get("created-by")))


def _created_by(copied: Sequence[NewBlob], writer: str | None) -> dict[str, str]:
    """The properties of a file. One with another writer's sketches names that writer: `compute_table_stats` continues
    its own sketches alone, as others hash values of some types in other forms."""
    is_own = writer == CREATED_BY or all(blob.type != THETA_SKETCH for blob in copied)
    return {"created-by": CREATED_BY} if is_own else {"created-by": writer} if writer else {}


def _other_blobs(
    file: StatisticsFile, replaced: Collection[tuple[str, tuple[int, ...]]], store: Store
) -> tuple[list[NewBlob], str | None]:
    """The blobs of a statistics file but for those of these types and columns, none if the file is gone; and the writer
    that the file names."""
    location = file.statistics_path
    try:
        data = store.read(location)
    except FileNotFound:
        return [], None

    footer = read_footer(data, location=location)
    kept = [_copied(blob, data, location) for blob in footer.blobs if (blob.type, blob.fields) not in replaced]
    return kept, footer.properties.get("created-by")


def _copied(blob: PuffinBlob, data: bytes, location: str) -> NewBlob:
    """A blob of a file with these bytes, to be written again."""
    return NewBlob(
        type=blob.type,
        data=decode_blob(data[blob.offset : blob.offset + blob.length], blob, location=location),
        fields=blob.fields,
        snapshot_id=blob.snapshot_id,
        sequence_number=blob.sequence_number,
        properties=blob.properties,
        compression=None if blob.compression_codec is None else "zstd",
    )


def _statistics_file(snapshot: Snapshot, location: str, encoded: EncodedPuffin) -> StatisticsFile:
    return StatisticsFile(
        snapshot_id=snapshot.snapshot_id,
        statistics_path=location,
        file_size_in_bytes=len(encoded.data),
        file_footer_size_in_bytes=encoded.footer.size_bytes,
        blob_metadata=tuple(
            BlobMetadata(
                type=blob.type,
                snapshot_id=blob.snapshot_id,
                sequence_number=blob.sequence_number,
                fields=blob.fields,
                properties=blob.properties,
            )
            for blob in encoded.footer.blobs
            if blob.type != FILE_INDEX
        ),
    )
