"""Writes manifests (spec: "Manifests"): 64 KiB blocks of many entries, metric maps that a reader can step over.

Entries are taken from an iterator a batch at a time, so memory is bounded by a batch and the compressed manifest.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from engine.codec.avro_columns import MapFunction
from engine.codec.avro_file import encode_container
from engine.codec.avro_schema import record_schema
from engine.codec.block_codecs import AVRO_NAMES, Buffer, Compression, compress_block
from engine.codec.json_object import write_json
from engine.codec.manifest_rows import encode_rows
from engine.codec.manifest_schema import entry_type
from engine.codec.partition_summaries import PartitionSummaries
from engine.codec.partitioning_json import partition_fields_to_json
from engine.codec.schema_json import encode_schema
from engine.errors import Invalid
from engine.spec.data_file import FileContent
from engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry, ManifestFile, PartitionFieldSummary
from engine.spec.partitioning import PartitionSpec
from engine.spec.schema import Schema
from engine.spec.transforms import UnknownTransform

__all__ = ["DEFAULT_TARGET_SIZE_BYTES", "Compression", "EncodedManifest", "encode_manifest", "encode_manifests"]

DEFAULT_TARGET_SIZE_BYTES = 8 * 1024 * 1024
"""Default of the table property ``commit.manifest.target-size-bytes``."""

_BLOCK_BYTES = 64 * 1024
_BATCH_ENTRIES = 4096
_BATCH_METRICS = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedManifest:
    """A manifest's bytes and what its manifest-list entry says of them.

    `min_sequence_number` is the least data sequence number of the live entries, None when every live entry inherits it.
    """

    data: bytes
    spec_id: int
    content: ManifestContent
    snapshot_id: int
    added_files_count: int
    existing_files_count: int
    deleted_files_count: int
    added_rows_count: int
    existing_rows_count: int
    deleted_rows_count: int
    min_sequence_number: int | None
    partitions: tuple[PartitionFieldSummary, ...]

    def manifest_file(
        self, path: str, *, sequence_number: int, first_row_id: int | None = None, key_metadata: bytes | None = None
    ) -> ManifestFile:
        """The manifest-list entry once the manifest is at `path` and its snapshot has this sequence number."""
        least = sequence_number if self.min_sequence_number is None else self.min_sequence_number
        return ManifestFile(
            manifest_path=path,
            manifest_length=len(self.data),
            partition_spec_id=self.spec_id,
            content=self.content,
            sequence_number=sequence_number,
            min_sequence_number=min(least, sequence_number),
            added_snapshot_id=self.snapshot_id,
            added_files_count=self.added_files_count,
            existing_files_count=self.existing_files_count,
            deleted_files_count=self.deleted_files_count,
            added_rows_count=self.added_rows_count,
            existing_rows_count=self.existing_rows_count,
            deleted_rows_count=self.deleted_rows_count,
            partitions=self.partitions,
            key_metadata=key_metadata,
            first_row_id=first_row_id,
        )


def encode_manifest(
    entries: Iterable[ManifestEntry],
    *,
    schema: Schema,
    spec: PartitionSpec,
    format_version: int,
    content: ManifestContent,
    snapshot_id: int,
    compression: Compression = "gzip",
    map_blocks: MapFunction = map,
) -> EncodedManifest:
    """One manifest of these entries, in their order, whatever its size.

    Args:
        entries: All of partition spec `spec` and of the kind that `content` says. In v1 every snapshot id is set; from
            v2 on only added entries may have null sequence numbers.
        schema: The table schema; gives the partition types and goes into the header.
        spec: The partition spec of every entry.
        format_version: 1, 2 or 3.
        content: Data files or delete files; v1 has no delete manifests.
        snapshot_id: The snapshot that adds the manifest.
        compression: Of the Avro blocks.
        map_blocks: Compresses blocks, in order; a thread pool's `map` makes use of several cores.

    Raises:
        Invalid: An entry cannot be written in this format version, or its partition does not fit the spec.
    """
    layout = _Layout(schema, spec, format_version, content, snapshot_id, compression, map_blocks)
    manifest = _Manifest(layout)
    for batch in _batches(entries):
        manifest.add(batch)
    return manifest.finish()


def encode_manifests(
    entries: Iterable[ManifestEntry],
    *,
    schema: Schema,
    spec: PartitionSpec,
    format_version: int,
    content: ManifestContent,
    snapshot_id: int,
    compression: Compression = "gzip",
    map_blocks: MapFunction = map,
    target_size_bytes: int = DEFAULT_TARGET_SIZE_BYTES,
) -> Iterator[EncodedManifest]:
    """Manifests of about the target size, made while the entries come in; none for no entries.

    Arguments and errors as `encode_manifest`. A manifest is closed by the batch that takes it past the target.
    """
    layout = _Layout(schema, spec, format_version, content, snapshot_id, compression, map_blocks)
    manifest: _Manifest | None = None
    for batch in _batches(entries):
        manifest = manifest or _Manifest(layout)
        manifest.add(batch)
        if manifest.size_bytes >= target_size_bytes:
            yield manifest.finish()
            manifest = None
    if manifest is not None:
        yield manifest.finish()


def _batches(entries: Iterable[ManifestEntry]) -> Iterator[list[ManifestEntry]]:
    """Batches small enough to bound memory however many columns have metrics."""
    batch: list[ManifestEntry] = []
    metrics = 0
    for entry in entries:
        batch.append(entry)
        metrics += len(entry.data_file.value_counts) + len(entry.data_file.lower_bounds)
        if len(batch) >= _BATCH_ENTRIES or metrics >= _BATCH_METRICS:
            yield batch
            batch, metrics = [], 0
    if batch:
        yield batch


@dataclass(frozen=True)
class _Layout:
    """What all entries of a manifest have in common."""

    schema: Schema
    spec: PartitionSpec
    format_version: int
    content: ManifestContent
    snapshot_id: int
    compression: Compression
    map_blocks: MapFunction

    def __post_init__(self) -> None:
        if self.format_version not in (1, 2, 3):
            raise Invalid(f"format version {self.format_version} is not 1, 2 or 3")
        if self.format_version == 1 and self.content is not ManifestContent.DATA:
            raise Invalid("format version 1 has no delete manifests")
        for f in self.spec.fields:
            if isinstance(f.transform, UnknownTransform):
                raise Invalid(f"the partition field {f.name!r} has the unknown transform {f.transform}")

    def header(self) -> dict[str, str]:
        """The key-value metadata."""
        made = {
            "schema": encode_schema(self.schema).decode("utf-8"),
            "schema-id": str(self.schema.schema_id),
            "partition-spec": write_json(partition_fields_to_json(self.spec)).decode("utf-8"),
            "partition-spec-id": str(self.spec.spec_id),
            "format-version": str(self.format_version),
        }
        if self.format_version > 1:
            made["content"] = "deletes" if self.content is ManifestContent.DELETES else "data"
        return made

    def check(self, entry: ManifestEntry) -> None:
        """Raises Invalid for an entry that the format version forbids."""
        file = entry.data_file
        if len(file.partition) != len(self.spec.fields):
            raise Invalid(f"the partition of {file.file_path} does not fit partition spec {self.spec.spec_id}")
        if (file.content is FileContent.DATA) != (self.content is ManifestContent.DATA):
            raise Invalid(f"{file.file_path} holds {file.content.name}, the manifest is one of {self.content.name}")
        if self.format_version == 1:
            if entry.snapshot_id is None:
                raise Invalid(f"{file.file_path} has no snapshot id, which format version 1 requires")
        elif entry.sequence_number is None and entry.status is not EntryStatus.ADDED:
            raise Invalid(f"{file.file_path} is {entry.status.name} and has no sequence number")
        if file.content_offset is not None and self.format_version < 3:
            raise Invalid(f"{file.file_path} is a deletion vector, which needs format version 3")


@dataclass
class _Manifest:
    """A manifest in the making."""

    layout: _Layout
    size_bytes: int = 0
    _blocks: list[tuple[int, Buffer]] = field(default_factory=list)
    _rest: bytes = b""
    _rest_count: int = 0
    _counts: dict[EntryStatus, list[int]] = field(default_factory=lambda: {status: [0, 0] for status in EntryStatus})
    _min_sequence_number: int | None = None

    def __post_init__(self) -> None:
        partition = self.layout.spec.partition_type(self.layout.schema)
        self._entry_type = entry_type(partition, self.layout.format_version)
        self._summaries = PartitionSummaries(partition)

    def add(self, batch: list[ManifestEntry]) -> None:
        """Takes a batch of at least one entry; raises Invalid."""
        for entry in batch:
            self.layout.check(entry)
        try:
            self._summaries.add([entry.data_file.partition for entry in batch])
            data, ends = encode_rows(batch, self._entry_type)
        except (ValueError, TypeError, OverflowError, struct.error) as error:
            raise Invalid(f"an entry does not fit the manifest's schema: {error}") from error
        for entry in batch:
            self._count(entry)
        self._cut(data, ends)

    def _count(self, entry: ManifestEntry) -> None:
        counts = self._counts[entry.status]
        counts[0] += 1
        counts[1] += entry.data_file.record_count
        number = entry.sequence_number
        if number is not None and entry.status is not EntryStatus.DELETED:
            least = self._min_sequence_number
            self._min_sequence_number = number if least is None else min(least, number)

    def _cut(self, data: bytes, ends: list[int]) -> None:
        raw: list[tuple[int, bytes]] = []
        begin = first = 0
        for row, end in enumerate(ends):
            if len(self._rest) + end - begin >= _BLOCK_BYTES:
                raw.append((self._rest_count + row + 1 - first, self._rest + data[begin:end]))
                self._rest, self._rest_count = b"", 0
                begin, first = end, row + 1
        self._rest += data[begin:]
        self._rest_count += len(ends) - first
        self._compress(raw)

    def _compress(self, raw: list[tuple[int, bytes]]) -> None:
        codec = AVRO_NAMES[self.layout.compression]
        bodies = self.layout.map_blocks(lambda block: compress_block(codec, block[1]), raw)
        for (count, _), body in zip(raw, bodies, strict=True):
            self._blocks.append((count, body))
            self.size_bytes += len(body)

    def finish(self) -> EncodedManifest:
        """The manifest; nothing may be added after."""
        if self._rest_count:
            self._compress([(self._rest_count, self._rest)])
        layout = self.layout
        schema = record_schema(self._entry_type, "manifest_entry")
        existing, added, deleted = (self._counts[status] for status in EntryStatus)
        return EncodedManifest(
            data=encode_container(schema, layout.header(), AVRO_NAMES[layout.compression], self._blocks),
            spec_id=layout.spec.spec_id,
            content=layout.content,
            snapshot_id=layout.snapshot_id,
            added_files_count=added[0],
            existing_files_count=existing[0],
            deleted_files_count=deleted[0],
            added_rows_count=added[1],
            existing_rows_count=existing[1],
            deleted_rows_count=deleted[1],
            min_sequence_number=self._min_sequence_number,
            partitions=self._summaries.finish(),
        )
