"""Schema types (spec: "Schemas and Data Types").

A type is a frozen value. Parameterless primitives are module constants (``LONG``, ``DATE``, ...); compare with ``==``.
Nested types hold their children as `NestedField`, so one walk serves structs, lists and maps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MAX_DECIMAL_PRECISION = 38
DEFAULT_CRS = "OGC:CRS84"
MAX_DEPTH = 64
"""Deepest nesting of a type: code that walks types is recursive, and no table was ever seen that needs ten levels."""

_SIMPLE = (
    "boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "timestamp_ns",
    "timestamptz_ns", "string", "uuid", "binary", "variant", "unknown",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Type:
    """Base of all types."""


@dataclass(frozen=True, slots=True)
class PrimitiveType(Type):
    """A type without children. `name` is the spec's name without parameters, e.g. ``"decimal"``.

    Raises ValueError for a name that the spec does not have, or has with parameters.
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in _SIMPLE:
            raise ValueError(f"{self.name!r} is not a type, or one with parameters; there are: {', '.join(_SIMPLE)}")

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, init=False)
class DecimalType(PrimitiveType):
    """``decimal(P, S)``: P in 1..38 digits, S of them after the point."""

    precision: int
    scale: int

    def __init__(self, precision: int, scale: int) -> None:
        if not 1 <= precision <= MAX_DECIMAL_PRECISION or not 0 <= scale <= precision:
            raise ValueError(f"decimal({precision}, {scale}) is not in decimal(1..38, 0..precision)")
        object.__setattr__(self, "name", "decimal")
        object.__setattr__(self, "precision", precision)
        object.__setattr__(self, "scale", scale)

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True, init=False)
class FixedType(PrimitiveType):
    """``fixed[L]``: byte strings of exactly L bytes."""

    length: int

    def __init__(self, length: int) -> None:
        if length < 0:
            raise ValueError(f"fixed[{length}] has a negative length")
        object.__setattr__(self, "name", "fixed")
        object.__setattr__(self, "length", length)

    def __str__(self) -> str:
        return f"fixed[{self.length}]"


@dataclass(frozen=True, slots=True, init=False)
class GeospatialType(PrimitiveType):
    """``geometry(C)`` or ``geography(C, A)`` (v3), carried as WKB. None means the spec's default."""

    crs: str | None
    algorithm: str | None

    def __init__(self, name: str, crs: str | None = None, algorithm: str | None = None) -> None:
        if name not in ("geometry", "geography"):
            raise ValueError(f"{name} is not a geospatial type")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "crs", crs)
        object.__setattr__(self, "algorithm", algorithm)

    def __str__(self) -> str:
        if self.algorithm:
            return f"{self.name}({self.crs or DEFAULT_CRS}, {self.algorithm})"
        return f"{self.name}({self.crs})" if self.crs else self.name

    @property
    def with_defaults(self) -> GeospatialType:
        """The type with the spec's defaults written out: equal for two ways to write one type."""
        edges = (self.algorithm or "spherical") if self.name == "geography" else None
        return GeospatialType(self.name, self.crs or DEFAULT_CRS, edges)


SIMPLE_PRIMITIVES = {name: PrimitiveType(name) for name in _SIMPLE}
"""The primitive types without parameters, by name."""

BOOLEAN = SIMPLE_PRIMITIVES["boolean"]
INT = SIMPLE_PRIMITIVES["int"]
LONG = SIMPLE_PRIMITIVES["long"]
FLOAT = SIMPLE_PRIMITIVES["float"]
DOUBLE = SIMPLE_PRIMITIVES["double"]
DATE = SIMPLE_PRIMITIVES["date"]
TIME = SIMPLE_PRIMITIVES["time"]
TIMESTAMP = SIMPLE_PRIMITIVES["timestamp"]
TIMESTAMPTZ = SIMPLE_PRIMITIVES["timestamptz"]
TIMESTAMP_NS = SIMPLE_PRIMITIVES["timestamp_ns"]
TIMESTAMPTZ_NS = SIMPLE_PRIMITIVES["timestamptz_ns"]
STRING = SIMPLE_PRIMITIVES["string"]
UUID = SIMPLE_PRIMITIVES["uuid"]
BINARY = SIMPLE_PRIMITIVES["binary"]
VARIANT = SIMPLE_PRIMITIVES["variant"]
UNKNOWN = SIMPLE_PRIMITIVES["unknown"]

V3_ONLY = frozenset({"timestamp_ns", "timestamptz_ns", "variant", "unknown", "geometry", "geography"})
"""Names of the primitive types that need format version 3."""

INCOMPARABLE = frozenset({"variant", "geometry", "geography"})
"""Names of the types whose values have neither an order nor an equality here: not in filters, sort orders, keys."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NestedField:
    """A named, numbered child of a struct, or the element, key or value of a list or map.

    Defaults (v3) are in the internal representation of `icebench.engine.spec.values`; None means null or absent. Fields
    with the defaults 0.0 and -0.0 are not equal.
    """

    field_id: int
    name: str
    type: Type
    required: bool = False
    doc: str | None = None
    initial_default: Any = None
    write_default: Any = None

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, NestedField) and self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[object, ...]:
        # Python takes 0.0 and -0.0 for equal, and NaN for unequal to itself: a change from one default to the other
        # would be taken for none. Their texts differ exactly where rows do.
        initial, write = self.initial_default, self.write_default
        if isinstance(initial, float):
            initial = float.__repr__(initial)
        if isinstance(write, float):
            write = float.__repr__(write)
        return self.field_id, self.name, self.type, self.required, self.doc, initial, write


@dataclass(frozen=True, slots=True)
class StructType(Type):
    """A tuple of named fields, in order."""

    fields: tuple[NestedField, ...]

    def __str__(self) -> str:
        inner = ", ".join(f"{f.field_id}: {f.name}: {'' if f.required else 'optional '}{f.type}" for f in self.fields)
        return f"struct<{inner}>"


@dataclass(frozen=True, slots=True)
class ListType(Type):
    """A list; `element.name` is always ``"element"``."""

    element: NestedField

    def __str__(self) -> str:
        return f"list<{self.element.type}>"


@dataclass(frozen=True, slots=True)
class MapType(Type):
    """A map; `key.name` is ``"key"`` (always required), `value.name` is ``"value"``."""

    key: NestedField
    value: NestedField

    def __str__(self) -> str:
        return f"map<{self.key.type}, {self.value.type}>"


def children(type_: Type) -> tuple[NestedField, ...]:
    """The child fields of a type, in spec order; empty for a primitive."""
    match type_:
        case StructType(fields):
            return fields
        case ListType(element):
            return (element,)
        case MapType(key, value):
            return (key, value)
        case _:
            return ()


def with_children(type_: Type, inner: tuple[NestedField, ...]) -> Type:
    """A type with other child fields, in the order of `children`; the type itself where it has none."""
    match type_:
        case StructType():
            return StructType(inner)
        case ListType():
            return ListType(*inner)
        case MapType():
            return MapType(*inner)
    return type_


def list_type(element_id: int, element: Type, *, required: bool = False) -> ListType:
    """A list type with the spec's child name."""
    return ListType(NestedField(field_id=element_id, name="element", type=element, required=required))


def map_type(key_id: int, key: Type, value_id: int, value: Type, *, value_required: bool = False) -> MapType:
    """A map type with the spec's child names."""
    return MapType(
        NestedField(field_id=key_id, name="key", type=key, required=True),
        NestedField(field_id=value_id, name="value", type=value, required=value_required),
    )


def can_promote(old: Type, new: Type, *, format_version: int) -> bool:
    """Whether the spec's schema evolution lets a column of type `old` become `new` (equal types: yes)."""
    if old == new:
        return True
    if isinstance(old, GeospatialType) and isinstance(new, GeospatialType):
        return old.with_defaults == new.with_defaults
    if isinstance(old, DecimalType) and isinstance(new, DecimalType):
        return old.scale == new.scale and new.precision >= old.precision
    allowed = {(INT, LONG), (FLOAT, DOUBLE)}
    if format_version >= 3:
        allowed |= {(DATE, TIMESTAMP), (DATE, TIMESTAMP_NS)}
        if old == UNKNOWN and isinstance(new, PrimitiveType):
            return True
    return (old, new) in allowed
