"""Manifest lists (spec: "Manifest Lists")."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa

from icebench.engine.codec.array_views import fits_int32, offsets_of, valid_of, values_of
from icebench.engine.codec.avro.file import AvroHeader, encode_bytes, encode_container, encode_long, read_header
from icebench.engine.codec.avro.reading.block_columns import DecodedObjects, decode_objects
from icebench.engine.codec.avro.reading.program import Path, Selection
from icebench.engine.codec.avro.schema import record_schema
from icebench.engine.codec.block_codecs import AVRO_NAMES, Compression, compress_block
from icebench.engine.codec.manifests import schema as ids
from icebench.engine.errors import CorruptTable, Invalid
from icebench.engine.spec.manifest import ManifestContent, ManifestFile, PartitionFieldSummary
from icebench.engine.spec.types import INT, NestedField, PrimitiveType

_BLOCK_BYTES = 64 * 1024
_FRACTION = 8
"""Decoded columns may take this fraction (1 / 8) of the budget, as their values take the rest as Python objects."""
_ELEMENT: Path = (ids.PARTITIONS, "element")
_REQUIRED = frozenset({"manifest_path", "manifest_length", "partition_spec_id", "added_snapshot_id"})
_ZERO_IN_V1 = frozenset({"content", "sequence_number", "min_sequence_number"})

# Names of the nouns, which are the specification's names, by field id.
_MANIFEST_FIELDS = {f.field_id: f.name for f in ids.manifest_file_type(3).fields if f.field_id != ids.PARTITIONS}
_INTS = frozenset(f.name for f in ids.manifest_file_type(3).fields if f.type == INT)
_SUMMARY_FIELDS = {
    ids.CONTAINS_NULL: "contains_null",
    ids.CONTAINS_NAN: "contains_nan",
    ids.SUMMARY_LOWER_BOUND: "lower_bound",
    ids.SUMMARY_UPPER_BOUND: "upper_bound",
}
_SELECTION = Selection(frozenset({(ids.PARTITIONS,)}), frozenset({(), _ELEMENT}))


def decode_manifest_list(data: bytes, *, location: str | None = None) -> tuple[ManifestFile, ...]:
    """Decode the manifests of a snapshot, in the order of the file; fields that v1 lacks have the defaults of v2.

    Raises:
        CorruptTable: The bytes contradict the Avro or the Iceberg specification.
        TooLarge: See `icebench.engine.codec.budget`.
        Unsupported: An Avro codec or schema that Iceberg does not use.
    """
    header = read_header(data, location=location)
    return _Reader(header, decode_objects(data, header, _SELECTION, fraction=_FRACTION)).manifests()


class _Reader:
    def __init__(self, header: AvroHeader, found: DecodedObjects) -> None:
        self._header = header
        self._found = found

    def _corrupt(self, reason: str, path: str = "header.avro.schema") -> CorruptTable:
        return CorruptTable(reason, location=self._header.location, path=path)

    def manifests(self) -> tuple[ManifestFile, ...]:
        count = self._found.count
        columns = {name: self._values(name, (field_id,), count) for field_id, name in _MANIFEST_FIELDS.items()}
        columns["partitions"] = self._partitions()
        for name in _REQUIRED:
            if None in columns[name]:
                raise self._corrupt(f"has no {name}", f"entry {columns[name].index(None)}")
        for name in _ZERO_IN_V1:
            columns[name] = [value or 0 for value in columns[name]]
        columns["content"] = [self._content(index, code) for index, code in enumerate(columns["content"])]
        columns["manifest_path"] = [self._path(index, raw) for index, raw in enumerate(columns["manifest_path"])]
        names = list(columns)
        rows = zip(*columns.values(), strict=True)
        return tuple(ManifestFile(**dict(zip(names, row, strict=True))) for row in rows)

    def _values(self, name: str, path: Path, count: int) -> list[Any]:
        column = self._found.columns.get(path)
        if column is None:
            if name in _REQUIRED:
                raise self._corrupt(f"the schema of the entries has no field {name} ({path[-1]})")
            return [None] * count
        is_flag = name in _FLAG_FIELDS
        if column.type != (pa.large_binary() if name in _BYTES_FIELDS else pa.uint8() if is_flag else pa.int64()):
            raise self._corrupt(f"the field {name} ({path[-1]}) has another type")
        if name in _INTS and not fits_int32(values_of(column)):
            raise self._corrupt(f"the field {name} ({path[-1]}) has a value of more than 32 bits")
        values: list[Any] = column.to_pylist()
        return [None if value is None else bool(value) for value in values] if is_flag else values

    def _content(self, index: int, code: int) -> ManifestContent:
        if code not in (0, 1):
            raise self._corrupt(f"{code} is not a content", f"entry {index}")
        return ManifestContent(code)

    def _path(self, index: int, raw: bytes) -> str:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._corrupt("the manifest_path is not UTF-8", f"entry {index}") from error

    def _partitions(self) -> list[tuple[PartitionFieldSummary, ...] | None]:
        lists = self._found.columns.get((ids.PARTITIONS,))
        if lists is None:
            return [None] * self._found.count
        if not pa.types.is_large_list(lists.type):
            raise self._corrupt("the field partitions (507) is not a list")
        ends = offsets_of(lists).tolist()
        fields = {
            name: self._values(name, (*_ELEMENT, field_id), ends[-1]) for field_id, name in _SUMMARY_FIELDS.items()
        }
        if None in fields["contains_null"]:
            raise self._corrupt("a partition summary without contains_null", "partitions")
        summaries = [
            PartitionFieldSummary(contains_null=null, contains_nan=nan, lower_bound=lower, upper_bound=upper)
            for null, nan, lower, upper in zip(*fields.values(), strict=True)
        ]
        made = [tuple(summaries[begin:end]) for begin, end in pairwise(ends)]
        valid = valid_of(lists)
        return [one if valid is None or valid[index] else None for index, one in enumerate(made)]


_BYTES_FIELDS = frozenset({"manifest_path", "key_metadata", "lower_bound", "upper_bound"})
_FLAG_FIELDS = frozenset({"contains_null", "contains_nan"})


def encode_manifest_list(
    manifests: Iterable[ManifestFile],
    *,
    format_version: int,
    snapshot_id: int,
    parent_snapshot_id: int | None = None,
    sequence_number: int = 0,
    first_row_id: int | None = None,
    compression: Compression = "gzip",
) -> bytes:
    """Encode a manifest list of these manifests, in order, with all sequence numbers and (in v3) first row ids
    assigned.

    Raises:
        Invalid: A manifest cannot be listed in this format version.
    """
    if format_version not in (1, 2, 3):
        raise Invalid(f"format version {format_version} is not 1, 2 or 3")
    struct = ids.manifest_file_type(format_version)
    codec = AVRO_NAMES[compression]
    rows = (_encode_manifest_file(manifest, struct.fields, format_version) for manifest in manifests)
    blocks = [(count, compress_block(codec, body)) for count, body in _blocks(rows)]
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_snapshot_id is None else str(parent_snapshot_id),
        "format-version": str(format_version),
    }
    if format_version > 1:
        metadata["sequence-number"] = str(sequence_number)
    if format_version > 2:
        metadata["first-row-id"] = "null" if first_row_id is None else str(first_row_id)
    return encode_container(record_schema(struct, "manifest_file"), metadata, codec, blocks)


def _blocks(rows: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    parts: list[bytes] = []
    size = 0
    for row in rows:
        parts.append(row)
        size += len(row)
        if size >= _BLOCK_BYTES:
            yield len(parts), b"".join(parts)
            parts, size = [], 0
    if parts:
        yield len(parts), b"".join(parts)


def _encode_manifest_file(manifest: ManifestFile, fields: Iterable[NestedField], format_version: int) -> bytes:
    if format_version == 1 and manifest.content is not ManifestContent.DATA:
        raise Invalid(f"{manifest.manifest_path} lists delete files, which format version 1 has not")
    made = bytearray()
    for f in fields:
        value = getattr(manifest, f.name)
        if not f.required:
            made += b"\x00" if value is None else b"\x02"
        elif value is None:
            raise Invalid(f"{manifest.manifest_path} has no {f.name}, which format version {format_version} requires")
        if value is not None:
            made += _ENCODERS[f.type.name](value) if isinstance(f.type, PrimitiveType) else _encode_summaries(value)
    return bytes(made)


def _encode_summaries(summaries: tuple[PartitionFieldSummary, ...]) -> bytes:
    made = bytearray(encode_long(len(summaries)) if summaries else b"")
    for summary in summaries:
        made += b"\x01" if summary.contains_null else b"\x00"
        made += b"\x00" if summary.contains_nan is None else b"\x02" + bytes([summary.contains_nan])
        for bound in (summary.lower_bound, summary.upper_bound):
            made += b"\x00" if bound is None else b"\x02" + encode_bytes(bound)
    return bytes(made + b"\x00")


def _encode_text(value: str) -> bytes:
    return encode_bytes(value.encode("utf-8"))


_ENCODERS: dict[str, Callable[[Any], bytes]] = {
    "string": _encode_text,
    "binary": encode_bytes,
    "int": encode_long,
    "long": encode_long,
}
