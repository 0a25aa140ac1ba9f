"""Bodies of requests and responses of the REST catalog protocol (``rest-catalog-open-api.yaml``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.codec.metadata_json.objects import JsonObject
from engine.codec.metadata_json.partitioning import partition_spec_to_json, sort_order_to_json
from engine.codec.metadata_json.requirements import requirement_to_json
from engine.codec.metadata_json.schema import schema_to_json
from engine.codec.metadata_json.table import metadata_from_json
from engine.codec.metadata_json.updates import update_to_json
from engine.codec.metadata_json.views import version_to_json, view_from_json
from engine.spec.metadata import TableMetadata
from engine.spec.properties import FORMAT_VERSION
from engine.spec.requirements import TableRequirement
from engine.spec.schema import Schema
from engine.spec.updates import TableUpdate
from engine.spec.views import ViewMetadata, ViewVersion

LAST_ADDED = -1
"""The id of the schema or version that a view commit added last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestConfig:
    """Response of ``GET /v1/config``.

    `endpoints` is None if the server lists none; `idempotency_key_lifetime` is None if it takes no idempotency keys.
    """

    defaults: Mapping[str, str] = field(repr=False)
    overrides: Mapping[str, str] = field(repr=False)
    endpoints: frozenset[str] | None
    idempotency_key_lifetime: str | None


@dataclass(frozen=True, slots=True)
class StorageCredential:
    """Storage options for locations below a prefix. They are secrets, which `repr` leaves out."""

    prefix: str
    config: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class RemoteSigning:
    """``RemoteSigningConfig``: what goes with each request for a signature, unchanged."""

    headers: Mapping[str, str] = field(repr=False)
    properties: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """``RemoteSignResult``: where a request is to be sent, and its headers by their names in lower case."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTable:
    """``LoadTableResult`` and ``CommitTableResponse``. `metadata_location` is empty if the server names no file."""

    metadata: TableMetadata
    metadata_location: str
    config: Mapping[str, str] = field(repr=False)
    credentials: tuple[StorageCredential, ...]
    signing: RemoteSigning


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedView:
    """``LoadViewResult``."""

    metadata: ViewMetadata
    metadata_location: str


@dataclass(frozen=True, slots=True)
class ServerError:
    """``ErrorModel``: a server's description of a failed request."""

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing: names, and the token of the next page."""

    names: tuple[tuple[str, ...], ...]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class Token:
    """``OAuthTokenResponse``. `repr` leaves the token out."""

    access_token: str = field(repr=False)
    token_type: str
    expires_in_seconds: int | None


def config_from_json(node: JsonObject) -> RestConfig:
    """Decode the response of ``GET /v1/config``; raises CorruptTable."""
    return RestConfig(
        defaults=node.text_map("defaults"),
        overrides=node.text_map("overrides"),
        endpoints=frozenset(node.texts("endpoints")) if node.has("endpoints") else None,
        idempotency_key_lifetime=node.text_or_none("idempotency-key-lifetime"),
    )


def error_from_json(node: JsonObject) -> ServerError:
    """Decode an error response, of the catalog or (RFC 6749) of an OAuth2 server; raises CorruptTable."""
    if isinstance(node.members.get("error"), str):
        return ServerError(node.text("error"), node.text_or_none("error_description") or node.text("error"))
    error = node.child("error")
    return ServerError(error.text_or_none("type") or "", error.text_or_none("message") or "")


def token_from_json(node: JsonObject) -> Token:
    """Decode an OAuth2 token; raises CorruptTable."""
    return Token(node.text("access_token"), node.text("token_type"), node.int32_or_none("expires_in"))


def namespaces_from_json(node: JsonObject) -> Page:
    """A page of namespaces; raises CorruptTable."""
    listed = node.members.get("namespaces")
    rows = listed if isinstance(listed, list) else []
    # JsonObject reads arrays that are members of an object.
    names = [JsonObject({"namespace": row}, path="namespaces", location=node.location) for row in rows]
    return Page(tuple(name.texts("namespace") for name in names), node.text_or_none("next-page-token") or None)


def identifiers_from_json(node: JsonObject) -> Page:
    """A page of tables or views; raises CorruptTable."""
    names = tuple((*row.texts("namespace"), row.text("name")) for row in node.children_or_empty("identifiers"))
    return Page(names, node.text_or_none("next-page-token") or None)


def table_from_json(node: JsonObject) -> LoadedTable:
    """Decode a loaded, created or committed table.

    Raises:
        CorruptTable: The answer contradicts the specification.
        Unsupported: The table's format version or a type of it.
    """
    location = node.text_or_none("metadata-location")
    return LoadedTable(
        metadata=metadata_from_json(node.value("metadata"), location=location or node.location),
        # Nessie answers a commit with an address at which it shows the metadata.
        metadata_location="" if location is None or location.startswith(("http://", "https://")) else location,
        config=node.text_map("config"),
        credentials=credentials_from_json(node),
        signing=_signing_from_json(node.child_or_empty("remote-signing-config")),
    )


def _signing_from_json(node: JsonObject) -> RemoteSigning:
    return RemoteSigning(_headers(node.child_or_empty("headers")), node.text_map("properties"))


def signed_request_from_json(node: JsonObject) -> SignedRequest:
    """Decode a ``RemoteSignResult``; raises CorruptTable."""
    headers = {name.lower(): value for name, value in _headers(node.child("headers")).items()}
    return SignedRequest(node.text("uri"), headers)


def _headers(node: JsonObject) -> dict[str, str]:
    """``MultiValuedMap``, as HTTP joins the values of a header."""
    return {name: ", ".join(node.texts(name)) for name in node.members}


def credentials_from_json(node: JsonObject) -> tuple[StorageCredential, ...]:
    """The ``storage-credentials`` of a ``LoadCredentialsResponse`` or ``LoadTableResult``; raises CorruptTable."""
    rows = node.children_or_empty("storage-credentials")
    return tuple(StorageCredential(row.text("prefix"), row.text_map("config")) for row in rows)


def view_result_from_json(node: JsonObject) -> LoadedView:
    """A loaded, created or replaced view; raises as `table_from_json`."""
    location = node.text("metadata-location")
    return LoadedView(metadata=view_from_json(node.value("metadata"), location=location), metadata_location=location)


def namespace_to_json(namespace: Sequence[str], properties: Mapping[str, str]) -> dict[str, Any]:
    """``CreateNamespaceRequest``."""
    return {"namespace": list(namespace), "properties": dict(properties)}


def properties_to_json(updates: Mapping[str, str], removals: Iterable[str]) -> dict[str, Any]:
    """``UpdateNamespacePropertiesRequest``."""
    return {"removals": sorted(removals), "updates": dict(updates)}


def create_table_to_json(name: str, metadata: TableMetadata, *, is_staged: bool = False) -> dict[str, Any]:
    """``CreateTableRequest``, without a location if the metadata has none, so that the server chooses one."""
    made: dict[str, Any] = {
        "name": name,
        "schema": schema_to_json(metadata.schema),
        "partition-spec": partition_spec_to_json(metadata.spec),
        "write-order": sort_order_to_json(metadata.sort_order),
        "stage-create": is_staged,
        # The request has no member for the format version: servers take it from the properties.
        "properties": {**metadata.properties, FORMAT_VERSION.name: str(metadata.format_version)},
    }
    if metadata.location:
        made["location"] = metadata.location
    return made


def register_to_json(name: str, metadata_location: str) -> dict[str, Any]:
    """``RegisterTableRequest``."""
    return {"name": name, "metadata-location": metadata_location}


def rename_to_json(old: Sequence[str], new: Sequence[str]) -> dict[str, Any]:
    """``RenameTableRequest``, for tables and views."""
    return {"source": _identifier_to_json(old), "destination": _identifier_to_json(new)}


def commit_to_json(
    identifier: Sequence[str], requirements: Iterable[TableRequirement], updates: Iterable[TableUpdate]
) -> dict[str, Any]:
    """``CommitTableRequest``; raises Unsupported."""
    return {
        "identifier": _identifier_to_json(identifier),
        "requirements": [requirement_to_json(requirement) for requirement in requirements],
        "updates": [update_to_json(update) for update in updates],
    }


def create_view_to_json(
    name: str, definition: ViewVersion, schema: Schema, location: str | None, properties: Mapping[str, str]
) -> dict[str, Any]:
    """``CreateViewRequest``."""
    made: dict[str, Any] = {
        "name": name,
        "schema": schema_to_json(schema),
        "view-version": version_to_json(definition),
        "properties": dict(properties),
    }
    if location is not None:
        made["location"] = location
    return made


def replace_view_to_json(identifier: Sequence[str], base: ViewMetadata, wanted: ViewMetadata) -> dict[str, Any]:
    """``CommitViewRequest`` that replaces the current version of `base` by that of `wanted`.

    Only new schemas and versions are sent: a server that already has an equal one cannot resolve "the one added last".
    """
    version = wanted.current_version
    updates: list[dict[str, Any]] = []
    current = version.version_id
    if current not in base.version_by_id:
        sent = version_to_json(version)
        if version.schema_id not in {schema.schema_id for schema in base.schemas}:
            # Servers before 1.8 require the highest column id.
            added = {"schema": schema_to_json(wanted.schema), "last-column-id": wanted.schema.highest_field_id}
            updates.append({"action": "add-schema", **added})
            sent["schema-id"] = LAST_ADDED
        updates.append({"action": "add-view-version", "view-version": sent})
        current = LAST_ADDED
    updates.append({"action": "set-current-view-version", "view-version-id": current})
    return {
        "identifier": _identifier_to_json(identifier),
        "requirements": [{"type": "assert-view-uuid", "uuid": base.view_uuid}],
        "updates": updates,
    }


def _identifier_to_json(identifier: Sequence[str]) -> dict[str, Any]:
    *namespace, name = identifier
    return {"namespace": namespace, "name": name}
