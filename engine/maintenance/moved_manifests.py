"""Encodes manifests again with their files in another place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa

from icebench.engine.codec.array_views import BoolArray, bytes_array_of, number_array, values_of
from icebench.engine.codec.avro.file import read_header
from icebench.engine.codec.block_codecs import AVRO_NAMES
from icebench.engine.codec.manifests import schema as ids
from icebench.engine.codec.manifests.entry_columns import EntryColumns, MetricPairs
from icebench.engine.codec.manifests.manifest_writer import (
    ManifestBuilder,
    ManifestLayout,
    encode_row_part,
    encode_rows_again,
)
from icebench.engine.codec.manifests.reader import decode_entry_columns, decode_header
from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.spec.locations import moved_location
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.metadata_columns import DELETE_FILE_PATH_ID
from icebench.engine.storage.store import Store

_COMPRESSION_OF = {codec: compression for compression, codec in AVRO_NAMES.items()}
_NAMED = 5
"""How many locations an error names."""


@dataclass(frozen=True)
class Move:
    """A prefix of locations and what replaces it, both by whole path segments."""

    source: str
    target: str

    def find(self, location: str) -> str | None:
        """The new location of what is below the source; None for other places."""
        if location.startswith(f"{self.source}/"):
            return self.target + location[len(self.source) :]
        return moved_location(location, self.source, self.target)

    def __call__(self, location: str) -> str:
        """The new location; raises Invalid for other places."""
        moved = self.find(location)
        if moved is None:
            raise Invalid(f"{location} is not below the source prefix {self.source}")
        return moved

    def texts(self, column: pa.Array, named_by: str) -> pa.Array:
        """The new locations of a column of bytes, nulls included; Invalid names those of other places."""
        old = [None if value is None else value.decode() for value in column.to_pylist()]
        new = [None if value is None else self.find(value) for value in old]
        outside = [value for value, moved in zip(old, new, strict=True) if value is not None and moved is None]
        if outside:
            named = ", ".join(outside[:_NAMED]) + (f" and {len(outside) - _NAMED} more" if outside[_NAMED:] else "")
            raise Invalid(f"{named_by} has files that are not below the source prefix {self.source}: {named}")
        return bytes_array_of([None if value is None else value.encode() for value in new])


@dataclass(frozen=True)
class MovedManifest:
    """A manifest whose files are elsewhere: its bytes, and the former locations of its live files but for deletes by
    position."""

    data: bytes
    files: tuple[str, ...]


def move_manifest(
    manifest: ManifestFile, move: Move, delete_sizes: Mapping[str, int], *, metadata: TableMetadata, store: Store
) -> MovedManifest:
    """Encode a manifest with other locations, and all else as it is: what entries inherit they go on inheriting.

    Args:
        manifest: The manifest.
        move: Gives locations.
        delete_sizes: Former location -> new size of deletes by position that were written again.
        metadata: The table, for its former schemas.
        store: Its storage.

    Raises:
        Invalid: A file, live or deleted, is not below the source.
        Unsupported: The manifest is encrypted.
        FileNotFound, CorruptTable: It cannot be read.
    """
    path = manifest.manifest_path
    if manifest.key_metadata is not None:
        raise Unsupported(f"the encrypted manifest {path}")
    data = store.read(path)
    header = decode_header(data, location=path)
    plain, entries = decode_entry_columns(data, location=path, listed=manifest, report=store.report)
    builder = ManifestBuilder(
        layout := ManifestLayout(
            schema=header.schema,
            spec=header.spec,
            format_version=header.format_version,
            content=header.content,
            snapshot_id=manifest.added_snapshot_id,
            compression=_COMPRESSION_OF[read_header(data, location=path).codec],
            former_schemas=metadata.schemas,
        )
    )
    columns = {
        ids.FILE_PATH: move.texts(plain["file_path"], path),
        ids.REFERENCED_DATA_FILE: move.texts(plain["referenced_data_file"], path),
    }
    former = [value.decode() for value in plain["file_path"].to_pylist()]
    live = (values_of(plain["status"]) != EntryStatus.DELETED).tolist()
    if header.content is ManifestContent.DELETES:
        columns |= _sizes(entries, former, live, delete_sizes)
        entries = _with_moved_bounds(entries, move)
    if entries.count:
        # A later rewrite states the length of this manifest, which it finds by encoding it again, maybe elsewhere.
        rows = encode_rows_again(layout, entries.with_columns(columns))
        builder.add(encode_row_part(layout, rows, is_reproducible=True))
    files = tuple(name for name, own in zip(former, live, strict=True) if own and name not in delete_sizes)
    return MovedManifest(builder.finish().data, files)


def _sizes(
    entries: EntryColumns, former: list[str], live: list[bool], delete_sizes: Mapping[str, int]
) -> dict[int, pa.Array]:
    """Sizes of delete files, and their split offsets: none where a file was written again.

    Entries of deleted files keep both. Whether such a file was written again depends on other manifests, and the same
    manifest must always become the same bytes.
    """
    new_sizes = [delete_sizes.get(name) if own else None for name, own in zip(former, live, strict=True)]
    sizes = values_of(cast("pa.Array", entries.columns[ids.FILE_SIZE_IN_BYTES])).tolist()
    splits = cast("pa.Array", entries.columns[ids.SPLIT_OFFSETS])
    kept = [own if new is None else None for new, own in zip(new_sizes, splits.to_pylist(), strict=True)]
    moved = [own if new is None else new for new, own in zip(new_sizes, sizes, strict=True)]
    return {
        ids.FILE_SIZE_IN_BYTES: number_array(np.array(moved, np.int64)),
        ids.SPLIT_OFFSETS: pa.array(kept, splits.type),
    }


def _with_moved_bounds(entries: EntryColumns, move: Move) -> EntryColumns:
    """With other bounds of the paths in position deletes.

    Bounds that begin with the same spelling of the source keep their order, and so does all between them. Others are
    left out: a bound may have been cut within the source.
    """
    bounds = [entries.columns.get(field_id) for field_id in (ids.LOWER_BOUNDS, ids.UPPER_BOUNDS)]
    if not all(isinstance(each, MetricPairs) for each in bounds):
        return entries
    lower, upper = (_PathBounds.of(cast("MetricPairs", each)) for each in bounds)
    moved: dict[int, tuple[bytes, bytes]] = {}
    for row in lower.by_row.keys() & upper.by_row.keys():
        old = lower.by_row[row], upper.by_row[row]
        new = [move.find(each.decode(errors="replace")) for each in old]
        if new[0] is None or new[1] is None:
            continue
        low, high = (each.encode() for each in cast("list[str]", new))
        rests = [len(each) - len(move.target.encode()) for each in (low, high)]
        if old[0][: len(old[0]) - rests[0]] == old[1][: len(old[1]) - rests[1]]:
            moved[row] = low, high
    columns = {
        ids.LOWER_BOUNDS: lower.replaced({row: each[0] for row, each in moved.items()}),
        ids.UPPER_BOUNDS: upper.replaced({row: each[1] for row, each in moved.items()}),
    }
    return EntryColumns(count=entries.count, columns={**entries.columns, **columns}, partition=entries.partition)


@dataclass(frozen=True)
class _PathBounds:
    """Bounds of columns, of which those of the column ``file_path`` are known by row."""

    pairs: MetricPairs
    is_path: BoolArray
    rows: list[int]
    by_row: dict[int, bytes]

    @classmethod
    def of(cls, pairs: MetricPairs) -> _PathBounds:
        is_path = pairs.keys == DELETE_FILE_PATH_ID
        rows = np.repeat(np.arange(len(pairs.offsets) - 1), np.diff(pairs.offsets)).tolist()
        values = pairs.values.to_pylist()
        return cls(pairs, is_path, rows, {rows[at]: values[at] for at in np.flatnonzero(is_path).tolist()})

    def replaced(self, moved: Mapping[int, bytes]) -> MetricPairs:
        """With these bounds of paths by row, and no others."""
        kept = ~self.is_path | np.isin(self.rows, list(moved))
        values = [
            moved[row] if is_path else value
            for row, value, is_path, own in zip(
                self.rows, self.pairs.values.to_pylist(), self.is_path.tolist(), kept.tolist(), strict=True
            )
            if own
        ]
        ends = np.concatenate([[0], np.cumsum(kept, dtype=np.int64)])
        return MetricPairs(ends[self.pairs.offsets], self.pairs.keys[kept], bytes_array_of(values))
