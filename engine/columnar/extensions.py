"""Types of Iceberg that have an Arrow extension type: how fields name it, and how it is read from them.

The extension types are not registered with pyarrow, so that columns have plain storage that all of Arrow works on; the
field's metadata name the extension, from which other libraries, and new tables, take it.
"""

from __future__ import annotations

import json

import pyarrow as pa

from engine.errors import Unsupported
from engine.spec.types import DEFAULT_CRS, VARIANT, GeospatialType, PrimitiveType, Type

_NAME, _METADATA = b"ARROW:extension:name", b"ARROW:extension:metadata"
_VARIANT_NAMES = ("arrow.parquet.variant", "parquet.variant")
"""The canonical name, and the one that Arrow C++ has."""
_WKB = "geoarrow.wkb"
_SRID = "srid:"


def extension_metadata(type_: Type) -> dict[bytes, bytes]:
    """The field metadata that name the extension type of a column; empty for all but variant, geometry, geography."""
    if type_ == VARIANT:
        return {_NAME: _VARIANT_NAMES[0].encode(), _METADATA: b""}
    if not isinstance(type_, GeospatialType):
        return {}
    crs = type_.crs or DEFAULT_CRS
    stated = {"crs": crs.removeprefix(_SRID), "crs_type": "srid"} if crs.startswith(_SRID) else {"crs": crs}
    if type_.name == "geography":
        stated["edges"] = type_.algorithm or "spherical"
    return {_NAME: _WKB.encode(), _METADATA: json.dumps(stated).encode()}


def extension_type(field: pa.Field) -> PrimitiveType | None:
    """The type that a field's extension stands for: variant, geometry or geography; None for any other field.

    Raises:
        Unsupported: A coordinate reference system that Iceberg's types cannot name.
    """
    if isinstance(field.type, pa.BaseExtensionType):
        name = field.type.extension_name
        raw = field.type.__arrow_ext_serialize__() if name == _WKB else b""
    else:
        name = (field.metadata or {}).get(_NAME, b"").decode()
        raw = (field.metadata or {}).get(_METADATA, b"")
    if name in _VARIANT_NAMES:
        return VARIANT
    if name != _WKB:
        return None
    stated = json.loads(raw or b"{}")
    edges = stated.get("edges", "planar")
    crs = _crs(stated, field.name)
    return GeospatialType("geometry", crs) if edges == "planar" else GeospatialType("geography", crs, edges)


def _crs(stated: dict[str, object], column: str) -> str | None:
    """The CRS as Iceberg names it; None for the default, which is also that of a column that states none."""
    crs = stated.get("crs")
    if isinstance(crs, dict) and isinstance(known := crs.get("id"), dict):
        crs = f"{known.get('authority')}:{known.get('code')}"
    if crs is None or crs == DEFAULT_CRS:
        return None
    if not isinstance(crs, str) or set(crs) & set("(),"):
        raise Unsupported(f"column {column!r}: a coordinate reference system without an authority and a code")
    return _SRID + crs if stated.get("crs_type") == "srid" else crs
