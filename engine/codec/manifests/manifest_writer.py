"""Writes manifests (spec: "Manifests"): 64 KiB blocks of many entries, with metric maps that readers can skip.

Parts of a manifest (encoded and compressed entries) are independent of each other, so several threads can encode them;
memory is bounded by the parts in progress and the compressed manifest.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from icebench.engine.codec.array_views import Int64Array, has_values, valid_of, values_of
from icebench.engine.codec.avro.file import encode_container
from icebench.engine.codec.avro.schema import record_schema
from icebench.engine.codec.block_codecs import AVRO_NAMES, Buffer, Compression, compress_block
from icebench.engine.codec.manifests import schema as ids
from icebench.engine.codec.manifests.data_file_columns import DataFileColumns
from icebench.engine.codec.manifests.entry_columns import EntryColumns, encode_columns
from icebench.engine.codec.manifests.entry_rows import NO_NUMBER, EntryRows, encode_entry_rows
from icebench.engine.codec.manifests.partition_summaries import PartitionSummaries
from icebench.engine.codec.manifests.rows import encode_rows
from icebench.engine.codec.manifests.schema import entry_type
from icebench.engine.codec.metadata_json.objects import write_json
from icebench.engine.codec.metadata_json.partitioning import partition_fields_to_json
from icebench.engine.codec.metadata_json.schema import encode_schema
from icebench.engine.errors import Invalid
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.manifest import (
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    PartitionFieldSummary,
)
from icebench.engine.spec.partitioning import PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import UnknownTransform
from icebench.engine.spec.types import StructType

__all__ = [
    "Compression",
    "EncodedManifest",
    "ManifestBuilder",
    "ManifestLayout",
    "ManifestPart",
    "encode_added_part",
    "encode_manifest",
    "encode_part",
    "encode_row_part",
    "encode_rows_again",
    "entry_batches",
]

_BLOCK_BYTES = 64 * 1024
BATCH_ENTRIES = 1024
"""The most entries of a part: enough for several blocks."""
BATCH_METRICS = 64 * 1024
"""A part gets no more entries once it has this many value counts and lower bounds, which bounds its memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedManifest:
    """A manifest's bytes and the fields of its manifest-list entry.

    `min_sequence_number` is the least data sequence number of the live entries, None when every live entry inherits it.
    `length` is that of the bytes, even after they are dropped because they are in storage.
    """

    data: bytes
    length: int
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

    def manifest_file(self, path: str, *, sequence_number: int, first_row_id: int | None = None) -> ManifestFile:
        """The manifest-list entry once the manifest is at `path` and its snapshot has this sequence number."""
        least = sequence_number if self.min_sequence_number is None else self.min_sequence_number
        return ManifestFile(
            manifest_path=path,
            manifest_length=self.length,
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
            first_row_id=first_row_id,
        )


@dataclass(frozen=True, kw_only=True)
class ManifestLayout:
    """The properties that all entries of a manifest share.

    Args:
        schema: The table schema; gives the partition types and goes into the header.
        spec: The partition spec of every entry.
        format_version: 1, 2 or 3.
        content: Data files or delete files; v1 has no delete manifests.
        snapshot_id: The snapshot that adds the manifest.
        compression: Of the Avro blocks.
        former_schemas: All schemas of the table, oldest first, for the types of partition fields whose source column
            was dropped.

    Raises:
        Invalid: The format version has no such manifests, or the spec cannot be written.
    """

    schema: Schema
    spec: PartitionSpec
    format_version: int
    content: ManifestContent
    snapshot_id: int
    compression: Compression = "gzip"
    former_schemas: Sequence[Schema] = ()

    def __post_init__(self) -> None:
        if self.format_version not in (1, 2, 3):
            raise Invalid(f"format version {self.format_version} is not 1, 2 or 3")
        if self.format_version == 1 and self.content is not ManifestContent.DATA:
            raise Invalid("format version 1 has no delete manifests")
        for f in self.spec.fields:
            if isinstance(f.transform, UnknownTransform):
                raise Invalid(f"the partition field {f.name!r} has the unknown transform {f.transform}")

    @cached_property
    def partition_type(self) -> StructType:
        """The struct of the spec's values."""
        return self.spec.partition_type(self.schema, self.former_schemas)

    @cached_property
    def entry_type(self) -> StructType:
        """The struct of an entry."""
        return entry_type(self.partition_type, self.format_version)

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
        """Raise Invalid for an entry that the format version forbids."""
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

    def check_files(self, files: DataFileColumns) -> None:
        """Raise Invalid for files that the format version forbids."""
        if len(files.partition) != len(self.spec.fields):
            raise Invalid(f"the partition of the files does not fit partition spec {self.spec.spec_id}")
        if (files.content is FileContent.DATA) != (self.content is ManifestContent.DATA):
            raise Invalid(f"the files hold {files.content.name}, the manifest is one of {self.content.name}")
        if self.format_version < 3 and files.has_values(ids.CONTENT_OFFSET):
            raise Invalid("deletion vectors need format version 3")

    def check_columns(self, entries: EntryColumns) -> None:
        """Raise Invalid for entries that the format version forbids."""
        columns = entries.columns
        if len(entries.partition) != len(self.spec.fields):
            raise Invalid(f"the partition of the files does not fit partition spec {self.spec.spec_id}")
        if ((values_of(columns[ids.CONTENT]) == FileContent.DATA) != (self.content is ManifestContent.DATA)).any():
            raise Invalid(f"the manifest is one of {self.content.name}, and has other files")
        if self.format_version > 1:
            valid = valid_of(columns[ids.SEQUENCE_NUMBER])
            if valid is not None and (~valid & (values_of(columns[ids.STATUS]) != EntryStatus.ADDED)).any():
                raise Invalid("an entry that is not ADDED has no sequence number")
        if self.format_version < 3 and has_values(columns[ids.CONTENT_OFFSET]):
            raise Invalid("deletion vectors need format version 3")


@dataclass(frozen=True, kw_only=True)
class ManifestPart:
    """Encoded and compressed entries, to be put into a manifest.

    Args:
        blocks: Entries and bytes of each block.
        counts: Files and rows by status.
        min_sequence_number: The least data sequence number of live entries; None where all inherit it.
        summaries: Of the entries' partitions.
    """

    blocks: Sequence[tuple[int, Buffer]]
    counts: Mapping[EntryStatus, tuple[int, int]]
    min_sequence_number: int | None
    summaries: PartitionSummaries

    @property
    def size_bytes(self) -> int:
        """The compressed bytes."""
        return sum(len(block) for _, block in self.blocks)


def encode_part(layout: ManifestLayout, entries: Sequence[ManifestEntry]) -> ManifestPart:
    """Encode a part of a manifest. A pure function, so that several threads can encode parts.

    Args:
        layout: All entries are of its spec and content. In v1 every snapshot id is set; from v2 on only added entries
            may have null sequence numbers.
        entries: At least one.

    Raises:
        Invalid: An entry cannot be written in this format version, or its partition does not fit the spec.
    """
    counts = {status: [0, 0] for status in EntryStatus}
    least: int | None = None
    for entry in entries:
        layout.check(entry)
    summaries = PartitionSummaries(layout.partition_type)
    with _values_that_fit():
        summaries.add([entry.data_file.partition for entry in entries])
        data, ends = encode_rows(entries, layout.entry_type)
    for entry in entries:
        count = counts[entry.status]
        count[0] += 1
        count[1] += entry.data_file.record_count
        number = entry.sequence_number
        if number is not None and entry.status is not EntryStatus.DELETED:
            least = number if least is None else min(least, number)
    return ManifestPart(
        blocks=_blocks(data, ends, layout.compression),
        counts={status: (files, rows) for status, (files, rows) in counts.items()},
        min_sequence_number=least,
        summaries=summaries,
    )


def encode_added_part(
    layout: ManifestLayout, files: DataFileColumns, *, sequence_number: int | None = None
) -> ManifestPart:
    """Encode a part of a manifest from files described by columns, as ADDED entries.

    Args:
        layout: The files are of its spec and content.
        files: At least one.
        sequence_number: The data sequence number of all; None leaves it to be inherited.

    Raises:
        Invalid: As `encode_part`.
    """
    layout.check_files(files)
    summaries = PartitionSummaries(layout.partition_type)
    with _values_that_fit():
        summaries.add_fields([column.values for column in files.partition])
        entries = EntryColumns(count=files.count, columns=files.columns, partition=files.partition)
        constants = {
            ids.STATUS: int(EntryStatus.ADDED),
            ids.SNAPSHOT_ID: layout.snapshot_id,
            ids.SEQUENCE_NUMBER: sequence_number,
            ids.FILE_SEQUENCE_NUMBER: None,
            ids.FIRST_ROW_ID: None,
            ids.CONTENT: int(files.content),
        }
        data, ends = encode_columns(entries, layout.entry_type, constants)
    return ManifestPart(
        blocks=_blocks(data, ends, layout.compression),
        counts={EntryStatus.ADDED: (files.count, files.row_count)},
        min_sequence_number=sequence_number,
        summaries=summaries,
    )


def encode_rows_again(layout: ManifestLayout, entries: EntryColumns) -> EntryRows:
    """Encode entries of another manifest, for `encode_row_part`.

    Args:
        layout: The entries are of its spec and content.
        entries: From v2 on only added ones may have null sequence numbers.

    Raises:
        Invalid: As `encode_part`.
    """
    layout.check_columns(entries)
    with _values_that_fit():
        return encode_entry_rows(entries, layout.entry_type)


def encode_row_part(layout: ManifestLayout, entries: EntryRows, *, is_reproducible: bool = False) -> ManifestPart:
    """Encode a part of a manifest from entries that were encoded with the same layout, at least one.

    `is_reproducible` compresses to the same bytes on every processor, see `compress_block`.
    """
    rows = entries.rows
    counts = dict.fromkeys(EntryStatus, (0, 0))
    for status in EntryStatus:
        own = rows["record_count"][rows["status"] == status]
        counts[status] = (len(own), int(own.sum()))
    least = int(rows["sequence_number"][rows["status"] != EntryStatus.DELETED].min(initial=NO_NUMBER))
    summaries = PartitionSummaries(layout.partition_type)
    with _values_that_fit():
        summaries.add([entries.partitions[code] for code in np.unique(rows["partition"]).tolist()])
    return ManifestPart(
        blocks=_blocks(
            memoryview(b"".join(entries.pieces())),
            np.cumsum(rows["end"] - rows["begin"]),
            layout.compression,
            is_reproducible=is_reproducible,
        ),
        counts=counts,
        min_sequence_number=None if least == NO_NUMBER else least,
        summaries=summaries,
    )


class ManifestBuilder:
    """Builds a manifest from parts, in the order of its entries.

    Args:
        layout: The layout that the parts were made with.
    """

    def __init__(self, layout: ManifestLayout) -> None:
        self._layout = layout
        self._blocks: list[tuple[int, Buffer]] = []
        self._counts = {status: [0, 0] for status in EntryStatus}
        self._min_sequence_number: int | None = None
        self._summaries = PartitionSummaries(layout.partition_type)
        self.size_bytes = 0

    def add(self, part: ManifestPart) -> None:
        """Add a part."""
        self._blocks += part.blocks
        self.size_bytes += part.size_bytes
        for status, (files, rows) in part.counts.items():
            self._counts[status][0] += files
            self._counts[status][1] += rows
        if part.min_sequence_number is not None:
            least = self._min_sequence_number
            self._min_sequence_number = (
                part.min_sequence_number if least is None else min(least, part.min_sequence_number)
            )
        self._summaries.merge(part.summaries)

    def finish(self) -> EncodedManifest:
        """Finish the manifest; nothing may be added afterwards."""
        layout = self._layout
        schema = record_schema(layout.entry_type, "manifest_entry")
        existing, added, deleted = (self._counts[status] for status in EntryStatus)
        data = encode_container(schema, layout.header(), AVRO_NAMES[layout.compression], self._blocks)
        return EncodedManifest(
            data=data,
            length=len(data),
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


def encode_manifest(
    entries: Iterable[ManifestEntry],
    *,
    schema: Schema,
    spec: PartitionSpec,
    format_version: int,
    content: ManifestContent,
    snapshot_id: int,
    compression: Compression = "gzip",
) -> EncodedManifest:
    """Encode one manifest of these entries, in order, whatever its size; see `ManifestLayout` and `encode_part`."""
    layout = ManifestLayout(
        schema=schema,
        spec=spec,
        format_version=format_version,
        content=content,
        snapshot_id=snapshot_id,
        compression=compression,
    )
    builder = ManifestBuilder(layout)
    for batch in entry_batches(entries):
        builder.add(encode_part(layout, batch))
    return builder.finish()


def entry_batches(entries: Iterable[ManifestEntry]) -> Iterator[list[ManifestEntry]]:
    """Group entries by partition spec, in batches small enough to bound memory however many columns have metrics.

    The order is kept within each spec.
    """
    waiting: dict[int, tuple[list[ManifestEntry], list[int]]] = {}
    for entry in entries:
        file = entry.data_file
        batch, metrics = waiting.setdefault(file.spec_id, ([], [0]))
        batch.append(entry)
        metrics[0] += len(file.value_counts) + len(file.lower_bounds)
        if len(batch) >= BATCH_ENTRIES or metrics[0] >= BATCH_METRICS:
            del waiting[file.spec_id]
            yield batch
    for batch, _ in waiting.values():
        yield batch


@contextmanager
def _values_that_fit() -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, OverflowError, struct.error) as error:
        raise Invalid(f"an entry does not fit the manifest's schema: {error}") from error


def _blocks(
    data: memoryview, ends: Int64Array, compression: Compression, *, is_reproducible: bool = False
) -> list[tuple[int, Buffer]]:
    """Split objects into compressed blocks of about equal size; each block ends with the object that fills it."""
    codec = AVRO_NAMES[compression]
    size = len(data)
    wanted = -(-size // max(1, round(size / _BLOCK_BYTES)))
    made: list[tuple[int, Buffer]] = []
    begin = first = 0
    while first < len(ends):
        after = min(int(np.searchsorted(ends, begin + wanted)) + 1, len(ends))
        end = int(ends[after - 1])
        made.append((after - first, compress_block(codec, data[begin:end], is_reproducible=is_reproducible)))
        begin, first = end, after
    return made
