"""Resolves how a catalog is opened: by an address, or by a name with properties as in PyIceberg's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.storage.resolve import STORAGE_SCHEMES, scheme_of

Kind = Literal["rest", "sql", "directory", "hive", "glue"]

_TYPES: dict[str, Kind] = {
    "rest": "rest",
    "sql": "sql",
    "jdbc": "sql",
    "hadoop": "directory",
    "hive": "hive",
    "glue": "glue",
}
_BY_SCHEME: dict[str, Kind] = {"http": "rest", "https": "rest", "thrift": "hive"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogAddress:
    """Everything that opens a catalog.

    Args:
        kind: Which implementation.
        uri: The URL of the server or database, or the directory; empty for AWS Glue.
        warehouse: As `icebench.load_catalog`; None for a directory.
        name: The catalog's name.
        properties: All others.
    """

    kind: Kind
    uri: str = field(repr=False)
    warehouse: str | None
    name: str
    properties: Mapping[str, str] = field(repr=False)


def is_name(address: str) -> bool:
    """Whether an address may be the name of a configured catalog: not a URL, and not a path."""
    return bool(address) and not scheme_of(address) and not any(c in address for c in "/\\") and address[0] not in ".~"


def catalog_address(
    address: str, *, warehouse: str | None, name: str | None, properties: Mapping[str, str]
) -> CatalogAddress:
    """Resolve an address; one that `is_name` with a ``uri`` or ``type`` among its properties stands for these.

    Raises:
        Invalid: The properties of a name lack its address, or contradict it.
        Unsupported: The ``type`` of catalog.
    """
    if not is_name(address) or not {"uri", "type"} & properties.keys():
        scheme = scheme_of(address)
        kind = _BY_SCHEME.get(scheme) or ("directory" if scheme in STORAGE_SCHEMES else "sql")
        if kind == "directory" and warehouse is not None:
            raise Invalid("a directory catalog is its own warehouse; give one of the two")
        return CatalogAddress(
            kind=kind, uri=address, warehouse=warehouse, name=name or "default", properties=properties
        )
    own = dict(properties)
    uri, root = own.pop("uri", None), warehouse or own.pop("warehouse", None)
    own.pop("warehouse", None)
    said = own.pop("type", "").lower()
    if said and said not in _TYPES:
        raise Unsupported(f"catalog {address!r}: type {said!r}; there are {', '.join(sorted(_TYPES))}")
    scheme = scheme_of(uri or "")
    found: Kind = _TYPES[said] if said else _BY_SCHEME.get(scheme, "sql")
    if found == "directory":
        uri, root = root, None
    if not uri and found != "glue":
        raise Invalid(f"catalog {address!r} has no {'warehouse' if found == 'directory' else 'uri'}")
    return CatalogAddress(kind=found, uri=uri or "", warehouse=root, name=name or address, properties=own)
