"""Converts Iceberg schemas to Arrow schemas and back (spec: "Schemas and Data Types", appendix A: "Parquet").

Field ids travel in the Arrow field metadata key ``PARQUET:field_id``, which pyarrow reads from and writes to Parquet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import pyarrow as pa
import pyarrow.types as pat

from icebench.engine.columnar.extensions import extension_metadata, extension_type
from icebench.engine.errors import Unsupported
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    MAX_DEPTH,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    GeospatialType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
)

FIELD_ID_KEY = b"PARQUET:field_id"

VARIANT_TYPE = pa.struct(
    [pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)]
)
"""Variants, as `icebench.engine.columnar.variants` describes them."""

_SIMPLE: dict[PrimitiveType, pa.DataType] = {
    BOOLEAN: pa.bool_(),
    INT: pa.int32(),
    LONG: pa.int64(),
    FLOAT: pa.float32(),
    DOUBLE: pa.float64(),
    DATE: pa.date32(),
    TIME: pa.time64("us"),
    TIMESTAMP: pa.timestamp("us"),
    TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    TIMESTAMP_NS: pa.timestamp("ns"),
    TIMESTAMPTZ_NS: pa.timestamp("ns", "UTC"),
    STRING: pa.string(),
    UUID: pa.uuid(),
    BINARY: pa.binary(),
    UNKNOWN: pa.null(),
    VARIANT: VARIANT_TYPE,
}


def to_arrow_type(type_: Type, *, narrow: bool = False) -> pa.DataType:
    """The Arrow type of a column in the engine.

    Decimals are decimal128, uuid is Arrow's uuid extension type, timestamps with zone are in UTC, a variant is a struct
    of its metadata and value, geometry and geography are WKB.

    Args:
        type_: An Iceberg type.
        narrow: Decimals of up to 9 digits are decimal32, of up to 18 decimal64.
    """
    match type_:
        case DecimalType():
            return (narrow_decimal if narrow else pa.decimal128)(type_.precision, type_.scale)
        case FixedType():
            return pa.binary(type_.length)
        case GeospatialType():
            return pa.binary()
        case StructType(fields):
            return pa.struct([to_arrow_field(f, narrow=narrow) for f in fields])
        case ListType(element):
            return pa.list_(to_arrow_field(element, narrow=narrow))
        case MapType(key, value):
            return pa.map_(to_arrow_field(key, narrow=narrow), to_arrow_field(value, narrow=narrow))
        case PrimitiveType() if type_ in _SIMPLE:
            return _SIMPLE[type_]
    raise Unsupported(f"columns of type {type_} have no Arrow form here")


def narrow_decimal(precision: int, scale: int) -> pa.DataType:
    """The decimal type with the fewest bytes that holds the precision."""
    if precision <= 9:
        return pa.decimal32(precision, scale)
    return pa.decimal64(precision, scale) if precision <= 18 else pa.decimal128(precision, scale)


def to_arrow_field(field: NestedField, *, narrow: bool = False) -> pa.Field:
    """The Arrow field of a column: name, type (see `to_arrow_type`), nullability, field id, and what its extension type
    is."""
    metadata = {FIELD_ID_KEY: str(field.field_id).encode()}
    type_ = to_arrow_type(field.type, narrow=narrow)
    if type_ is VARIANT_TYPE or type(field.type) is GeospatialType:
        metadata |= extension_metadata(field.type)
    return pa.field(field.name, type_, nullable=not field.required, metadata=metadata)


def to_arrow_schema(schema: Schema, *, narrow: bool = False) -> pa.Schema:
    """The Arrow schema of a table schema; see `to_arrow_type` for the types."""
    return pa.schema([to_arrow_field(f, narrow=narrow) for f in schema.fields])


def field_id_of(field: pa.Field) -> int | None:
    """The field id that an Arrow field carries, or None."""
    metadata = field.metadata
    text = metadata.get(FIELD_ID_KEY) if metadata else None
    return None if text is None else int(text)


def child_fields(type_: pa.DataType) -> tuple[pa.Field, ...]:
    """The child fields of a nested Arrow type (a map's are key and value); empty for a leaf."""
    if pat.is_struct(type_):
        return tuple(type_.field(i) for i in range(type_.num_fields))
    if pat.is_map(type_):
        return type_.key_field, type_.item_field
    if is_list(type_):
        return (type_.value_field,)
    return ()


def stored_type(type_: pa.DataType) -> pa.DataType:
    """What an extension type stores; other types as they are."""
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_


def leaf_children(type_: pa.DataType) -> tuple[pa.Field, ...] | None:
    """The child fields of a type that Parquet stores as a group, of which a struct may have none; None for a leaf.
    Extension types are what they store."""
    stored = stored_type(type_)
    return child_fields(stored) if stored.num_fields or pat.is_struct(stored) else None


def is_list(type_: pa.DataType) -> bool:
    """Whether it is any of Arrow's list types, without maps."""
    return (
        pat.is_list(type_)
        or pat.is_large_list(type_)
        or pat.is_fixed_size_list(type_)
        or pat.is_list_view(type_)
        or pat.is_large_list_view(type_)
    )


def with_element(type_: pa.DataType, element: pa.Field) -> pa.DataType:
    """The list type of the same kind with other elements."""
    if pat.is_fixed_size_list(type_):
        return pa.list_(element, type_.list_size)
    if pat.is_large_list(type_):
        return pa.large_list(element)
    if pat.is_list_view(type_):
        return pa.list_view(element)
    return pa.large_list_view(element) if pat.is_large_list_view(type_) else pa.list_(element)


def with_fields(type_: pa.DataType, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    """A nested type with the change made to all fields in it, at every depth; any other type as it is."""
    fields = [change(f.with_type(with_fields(f.type, change))) for f in child_fields(type_)]
    if pat.is_struct(type_):
        return pa.struct(fields)
    if pat.is_map(type_):
        return pa.map_(*fields)
    return with_element(type_, *fields) if fields else type_


def storage_field(field: pa.Field) -> pa.Field:
    """The field with extension types, such as uuid, as what they store, inside nested types, too."""
    return field.with_type(with_fields(stored_type(field.type), storage_field))


def pandas_field(field: pa.Field) -> pa.Field:
    """The field as Arrow can convert it to pandas: in nested types, extension types are what they store, and byte
    strings of a fixed length are plain ones."""
    inner = with_fields(field.type, storage_field)
    return field.with_type(with_fields(inner, _with_any_length))


def _with_any_length(field: pa.Field) -> pa.Field:
    return field.with_type(pa.binary()) if pat.is_fixed_size_binary(field.type) else field


def storage_of(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The array without its extension type (uuid becomes fixed-size binary), which compute functions refuse."""
    if isinstance(array, pa.ChunkedArray):
        if not isinstance(array.type, pa.BaseExtensionType):
            return array
        return pa.chunked_array([chunk.storage for chunk in array.chunks], array.type.storage_type)
    return array.storage if isinstance(array.type, pa.BaseExtensionType) else array


def from_arrow_schema(schema: pa.Schema) -> Schema:
    """A table schema with fresh ids, given level by level from 1; ids in the Arrow metadata are not kept.

    Narrow and unsigned integers widen to the next Iceberg type, dictionaries become their values, timestamps coarser
    than microseconds become microseconds.

    Raises:
        Unsupported: A type that Iceberg cannot hold without loss; the message names the column.
    """
    ids = count(1)
    try:
        return Schema(_fresh_fields(tuple(schema), lambda: next(ids), ""))
    except RecursionError as error:
        raise Unsupported(f"columns nested over {MAX_DEPTH} deep") from error


def from_arrow_type(type_: pa.DataType, *, column: str = "value") -> PrimitiveType:
    """The Iceberg type that holds every value of an Arrow leaf type; raises Unsupported naming `column`."""
    if pat.is_dictionary(type_):
        return from_arrow_type(type_.value_type, column=column)
    if pat.is_run_end_encoded(type_):
        return from_arrow_type(type_.value_type, column=column)
    for applies, made in _FROM_ARROW:
        if applies(type_):
            return made(type_) if callable(made) else made
    raise Unsupported(f"column {column!r}: Iceberg has no type that holds Arrow's {type_}")


def _fresh_fields(fields: tuple[pa.Field, ...], next_id: Callable[[], int], prefix: str) -> tuple[NestedField, ...]:
    """Ids for all fields of this level first, then for what is inside each."""
    ids = [next_id() for _ in fields]
    return tuple(
        NestedField(
            field_id=field_id,
            name=f.name,
            type=extension_type(f) or _fresh_type(f.type, next_id, prefix + f.name),
            required=not f.nullable,
        )
        for field_id, f in zip(ids, fields, strict=True)
    )


def _fresh_type(type_: pa.DataType, next_id: Callable[[], int], column: str) -> Type:
    if pat.is_struct(type_):
        return StructType(_fresh_fields(child_fields(type_), next_id, f"{column}."))
    if pat.is_map(type_):
        entry = pa.field("key", type_.key_type, nullable=False), type_.item_field.with_name("value")
        key, value = _fresh_fields(entry, next_id, f"{column}.")
        return MapType(key, value)
    if is_list(type_):
        (element,) = _fresh_fields((type_.value_field.with_name("element"),), next_id, f"{column}.")
        return ListType(element)
    return from_arrow_type(type_, column=column)


def _decimal(type_: pa.DataType) -> PrimitiveType:
    if type_.scale < 0 or type_.precision > 38 or type_.scale > type_.precision:
        raise Unsupported(f"Iceberg has no decimal({type_.precision}, {type_.scale})")
    return DecimalType(type_.precision, type_.scale)


def _timestamp(type_: pa.DataType) -> PrimitiveType:
    if type_.unit == "ns":
        return TIMESTAMPTZ_NS if type_.tz else TIMESTAMP_NS
    return TIMESTAMPTZ if type_.tz else TIMESTAMP


def _time(type_: pa.DataType) -> PrimitiveType:
    if type_.unit == "ns":
        raise Unsupported("Iceberg has no time with nanoseconds")
    return TIME


_FROM_ARROW: tuple[tuple[Callable[[pa.DataType], bool], PrimitiveType | Callable[[pa.DataType], PrimitiveType]], ...]
_FROM_ARROW = (
    (pat.is_boolean, BOOLEAN),
    (lambda t: t in {pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()}, INT),
    (lambda t: t in {pa.int64(), pa.uint32()}, LONG),
    (lambda t: pat.is_float16(t) or pat.is_float32(t), FLOAT),
    (pat.is_float64, DOUBLE),
    (pat.is_decimal, _decimal),
    (pat.is_date, DATE),
    (pat.is_timestamp, _timestamp),
    (pat.is_time, _time),
    (lambda t: pat.is_string(t) or pat.is_large_string(t) or pat.is_string_view(t), STRING),
    (pat.is_fixed_size_binary, lambda t: FixedType(t.byte_width)),
    (lambda t: pat.is_binary(t) or pat.is_large_binary(t) or pat.is_binary_view(t), BINARY),
    (pat.is_null, UNKNOWN),
    (lambda t: t == pa.uuid(), UUID),
)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column that Parquet stores: its place among all leaves, its field, and whether a list or map is above it.

    `path` is the dotted name of the column in the schema, not in Parquet.
    """

    index: int
    field: pa.Field
    path: str
    repeated: bool


def leaves(schema: pa.Schema) -> tuple[Leaf, ...]:
    """The leaves of a schema in Parquet's order, depth first."""
    found: list[Leaf] = []

    def visit(field: pa.Field, prefix: str, repeated: bool) -> None:  # noqa: FBT001 - a local walk
        inner = leaf_children(field.type)
        path = prefix + field.name
        if inner is None:
            found.append(Leaf(len(found), field, path, repeated))
            return
        repeats = repeated or not pat.is_struct(stored_type(field.type))
        for child in inner:
            visit(child, f"{path}.", repeats)

    for field in schema:
        visit(field, "", False)
    return tuple(found)
