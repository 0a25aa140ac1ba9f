"""View metadata files (the Iceberg view spec)."""

from __future__ import annotations

from typing import Any

from icebench.engine.codec.metadata_json.files import gzip_text, parse_json_file
from icebench.engine.codec.metadata_json.objects import JsonObject, write_json
from icebench.engine.codec.metadata_json.schema import schema_from_json, schema_to_json
from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.spec.views import (
    VIEW_FORMAT_VERSION,
    SqlRepresentation,
    ViewHistoryEntry,
    ViewMetadata,
    ViewVersion,
)


def decode_view(data: bytes, *, location: str | None = None) -> ViewMetadata:
    """Decode a view metadata file; gzip, as Iceberg Java writes, is recognised by its first bytes.

    Raises:
        CorruptTable: The bytes contradict the view spec; `path` is the member, such as ``versions[1].schema-id``.
        Unsupported: A format version above 1, or a version without any SQL representation.
    """
    return view_from_json(parse_json_file(data, location=location), location=location)


def view_from_json(document: object, *, location: str | None = None) -> ViewMetadata:
    """Decode a parsed document; raises as `decode_view`."""
    node = JsonObject(document, location=location)
    version = node.int32("format-version")
    if version != VIEW_FORMAT_VERSION:
        raise Unsupported(f"view format version {version} at {location or 'an unnamed place'}")
    metadata = ViewMetadata(
        view_uuid=node.text("view-uuid"),
        location=node.text("location"),
        format_version=version,
        current_version_id=node.int32("current-version-id"),
        versions=tuple(map(_version, node.children("versions"))),
        version_log=tuple(
            ViewHistoryEntry(timestamp_ms=entry.int64("timestamp-ms"), version_id=entry.int32("version-id"))
            for entry in node.children("version-log")
        ),
        schemas=tuple(
            schema_from_json(child.members, path=child.path, location=location) for child in node.children("schemas")
        ),
        properties=node.text_map("properties"),
    )
    _check(node, metadata)
    return metadata


def encode_view(metadata: ViewMetadata, *, compress: bool = False) -> bytes:
    """Encode a view metadata file, by gzip if `compress`; the same metadata gives the same bytes."""
    text = write_json(view_to_json(metadata))
    return gzip_text(text) if compress else text


def view_to_json(metadata: ViewMetadata) -> dict[str, Any]:
    """The JSON-ready form of view metadata."""
    made: dict[str, Any] = {
        "view-uuid": metadata.view_uuid,
        "format-version": metadata.format_version,
        "location": metadata.location,
        "schemas": [schema_to_json(schema) for schema in metadata.schemas],
        "current-version-id": metadata.current_version_id,
        "versions": [version_to_json(version) for version in metadata.versions],
        "version-log": [
            {"timestamp-ms": entry.timestamp_ms, "version-id": entry.version_id} for entry in metadata.version_log
        ],
    }
    if metadata.properties:
        made["properties"] = dict(metadata.properties)
    return made


def version_to_json(version: ViewVersion) -> dict[str, Any]:
    """The JSON-ready form of one view version."""
    made: dict[str, Any] = {
        "version-id": version.version_id,
        "timestamp-ms": version.timestamp_ms,
        "schema-id": version.schema_id,
        "summary": dict(version.summary),
        "representations": [{"type": "sql", "sql": r.sql, "dialect": r.dialect} for r in version.representations],
        "default-namespace": list(version.default_namespace),
    }
    if version.default_catalog is not None:
        made["default-catalog"] = version.default_catalog
    return made


def _version(node: JsonObject) -> ViewVersion:
    # The spec lets readers ignore representations of a type they do not know.
    representations = tuple(
        SqlRepresentation(sql=child.text("sql"), dialect=child.text("dialect"))
        for child in node.children("representations")
        if child.text("type") == "sql"
    )
    if not representations:
        raise Unsupported(f"view version {node.int32('version-id')} without an SQL representation, at {node.path}")
    try:
        return ViewVersion(
            version_id=node.int32("version-id"),
            schema_id=node.int32("schema-id"),
            timestamp_ms=node.int64("timestamp-ms"),
            summary=node.text_map("summary"),
            representations=representations,
            default_catalog=node.text_or_none("default-catalog"),
            default_namespace=node.texts("default-namespace"),
        )
    except Invalid as error:
        raise node.error("representations", str(error)) from error


def _check(node: JsonObject, metadata: ViewMetadata) -> None:
    if metadata.current_version_id not in metadata.version_by_id:
        raise node.error("current-version-id", f"{metadata.current_version_id} is not among the versions")
    known = {schema.schema_id for schema in metadata.schemas}
    for index, version in enumerate(metadata.versions):
        if version.schema_id not in known:
            raise node.error(f"versions[{index}].schema-id", f"{version.schema_id} is not among the schemas")
