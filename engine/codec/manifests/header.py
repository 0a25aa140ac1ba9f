"""The key-value metadata of manifests (spec: "Manifests")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from icebench.engine.codec.avro.file import AvroHeader, read_header
from icebench.engine.codec.metadata_json.objects import JsonObject, parse_json
from icebench.engine.codec.metadata_json.partitioning import partition_fields_from_json
from icebench.engine.codec.metadata_json.schema import schema_from_json
from icebench.engine.errors import CorruptTable, Unsupported
from icebench.engine.spec.manifest import ManifestContent
from icebench.engine.spec.metadata import LATEST_FORMAT_VERSION
from icebench.engine.spec.partitioning import PartitionSpec
from icebench.engine.spec.schema import Schema

_CONTENTS = {"data": ManifestContent.DATA, "deletes": ManifestContent.DELETES}


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestHeader:
    """The metadata in the header of a manifest. `schema` is the table schema at the time of writing."""

    schema: Schema
    spec: PartitionSpec
    format_version: int
    content: ManifestContent


def decode_header(data: bytes, *, location: str | None = None) -> ManifestHeader:
    """Decode the header of a manifest; `data` may be just the beginning of the file.

    Raises:
        CorruptTable: The bytes are not an Avro file, or a required key is missing or malformed.
        Unsupported: A format version above 3, or a type of such a version.
    """
    header = read_header(data, location=location)
    version = _number(header, "format-version", 1)
    if version > LATEST_FORMAT_VERSION:
        raise Unsupported(f"format version {version} of the manifest {location or ''}")
    content = header.text("content") or "data"
    if content not in _CONTENTS:
        raise CorruptTable(f"{content!r} is not data or deletes", location=location, path="header.content")
    schema = parse_json(_required(header, "schema"), location=location)
    return ManifestHeader(
        schema=schema_from_json(schema, path="header.schema", location=location),
        spec=spec_of(header),
        format_version=version,
        content=_CONTENTS[content],
    )


def highest_field_id(header: AvroHeader) -> int | None:
    """The highest id of a column, at any depth, of the schema in the header of a manifest; None if it has no such
    schema, which planning does not need."""
    text = header.metadata.get("schema")
    return None if text is None else _highest_id(text)


@lru_cache(maxsize=64)
def _highest_id(text: bytes) -> int | None:
    """Manifests of a table mostly have one schema, which takes longer to parse than a few entries to decode; to make a
    Schema of it takes six times as long again."""
    try:
        highest = max(_ids(parse_json(text)), default=None)
    except (CorruptTable, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return highest if isinstance(highest, int) else None


def _ids(type_: Any) -> Iterator[int]:  # noqa: ANN401 - JSON
    if isinstance(type_, str):
        return
    for each in type_.get("fields", ()):
        yield each["id"]
        yield from _ids(each["type"])
    for part in ("element", "key", "value"):
        if part in type_:
            yield type_[f"{part}-id"]
            yield from _ids(type_[part])


def spec_of(header: AvroHeader) -> PartitionSpec:
    """The partition spec in the header of a manifest; raises CorruptTable."""
    fields = parse_json(_required(header, "partition-spec"), location=header.location)
    node = JsonObject({"partition-spec": fields}, path="header", location=header.location)
    return PartitionSpec(
        partition_fields_from_json(node.children("partition-spec")), _number(header, "partition-spec-id", 0)
    )


def _required(header: AvroHeader, key: str) -> bytes:
    value = header.metadata.get(key)
    if value is None:
        raise CorruptTable("is required and missing", location=header.location, path=f"header.{key}")
    return value


def _number(header: AvroHeader, key: str, default: int) -> int:
    text = header.text(key)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise CorruptTable(f"{text!r} is not a number", location=header.location, path=f"header.{key}")
    return int(text)
