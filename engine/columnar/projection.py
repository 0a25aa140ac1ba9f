"""Projects columns of a file to columns of a schema, matched by field id (spec: "Column Projection", "Schema
Evolution").

Fields are found by id at every depth; names and order do not matter. `MissingValues` supplies fields that the file
lacks; values of an older type, or of another writer's type, are cast without loss.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.types as pat

from icebench.engine.columnar.batch_columns import Elements
from icebench.engine.columnar.decimals import is_narrow, widen
from icebench.engine.columnar.scalars import repeat
from icebench.engine.columnar.schemas import (
    child_fields,
    field_id_of,
    is_list,
    storage_of,
    to_arrow_field,
    to_arrow_type,
)
from icebench.engine.columnar.variants import plain_variants
from icebench.engine.errors import CorruptTable
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import VARIANT, ListType, MapType, NestedField, PrimitiveType, StructType
from icebench.engine.spec.values import Value

Cast = Callable[[pa.Array, pa.DataType, str], pa.Array]
"""Casts (values, target type, column name) to the target type; raises instead of losing anything."""

Missing = Callable[[NestedField, str, int], pa.Array]
"""Values of a missing field, given the field, its full name and the length."""


@dataclass(frozen=True, kw_only=True)
class MissingValues:
    """Values of a column that a data file lacks (spec: "Column Projection").

    In this order: the identity-partition value of the file, the field's initial default, null.

    Args:
        constants: Field id -> value for the whole file, in the internal representation; None is null.
        location: The data file, for errors.
    """

    constants: Mapping[int, Value | None] = field(default_factory=dict)
    location: str | None = None

    def __call__(self, field_: NestedField, name: str, length: int) -> pa.Array:
        if isinstance(field_.type, PrimitiveType):
            if field_.field_id in self.constants:
                return repeat(field_.type, self.constants[field_.field_id], length)
            if field_.initial_default is not None:
                return repeat(field_.type, field_.initial_default, length)
        if field_.required and length:
            raise CorruptTable(f"required column {name!r} is missing and has no default", location=self.location)
        return pa.nulls(length, to_arrow_type(field_.type))


def promote(array: pa.Array, target: pa.DataType, name: str) -> pa.Array:
    """Cast values to a newer type of the column (spec: "Schema Evolution"), or to this engine's Arrow type.

    Raises:
        CorruptTable: The file's type can not have become the table's.
    """
    source = array.type
    if source == target:
        return array
    if pat.is_dictionary(source):
        return promote(array.dictionary_decode(), target, name)
    if is_narrow(source) and pat.is_decimal128(target) and source.scale == target.scale:
        return widen(array, target)
    if pat.is_struct(source) and pat.is_struct(target):  # of the types that are cast, only variant is a struct
        return plain_variants(array, name)
    if not _promotable(source, target):
        raise CorruptTable(f"column {name!r} is stored as {source} and can not be read as {target}")
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, array.cast(target.storage_type))
    try:
        return array.cast(target)
    except pa.ArrowInvalid as error:
        raise CorruptTable(f"column {name!r} can not be read as {target}: {error}") from error


def _promotable(source: pa.DataType, target: pa.DataType) -> bool:
    if pat.is_null(source):
        return True
    if pat.is_integer(target):
        return pat.is_integer(source) and source.bit_width <= target.bit_width
    if pat.is_floating(target):
        return pat.is_floating(source) and source.bit_width <= target.bit_width
    if pat.is_decimal(target):
        return pat.is_decimal(source) and source.scale == target.scale and source.precision <= target.precision
    if pat.is_timestamp(target):
        return pat.is_timestamp(source) or pat.is_date(source)
    if pat.is_fixed_size_binary(target):
        return pat.is_fixed_size_binary(source) and source.byte_width == target.byte_width
    for kind in _SAME_KIND:
        if kind(target):
            return kind(source)
    return isinstance(target, pa.BaseExtensionType) and source == target.storage_type


def depends_on_values(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether `promote` refuses some values of a type that it takes: greater numbers, finer or later times, and bytes
    that are not UTF-8."""
    if source == target:
        return False
    if pat.is_dictionary(source):
        return depends_on_values(source.value_type, target)
    if pat.is_integer(target):
        return pat.is_unsigned_integer(source) and source.bit_width >= target.bit_width
    if pat.is_timestamp(target) and not pat.is_null(source):
        unit = source.unit if pat.is_timestamp(source) else None
        # Microseconds reach 290,000 years, nanoseconds end in 2262.
        return unit != target.unit and "ns" in {unit, target.unit}
    if pat.is_time(target):
        return pat.is_time64(source) and source.unit != target.unit
    return pat.is_string(target) and not pat.is_null(source) and _is_bytes(source) and not _is_text(source)


def _is_text(type_: pa.DataType) -> bool:
    return pat.is_string(type_) or pat.is_large_string(type_) or pat.is_string_view(type_)


def _is_bytes(type_: pa.DataType) -> bool:
    """Text and binary: a Parquet byte array without annotation is binary whatever the column is."""
    return _is_text(type_) or pat.is_binary(type_) or pat.is_large_binary(type_) or pat.is_binary_view(type_)


_SAME_KIND = (pat.is_boolean, pat.is_date, pat.is_time, _is_bytes)


@dataclass(frozen=True, kw_only=True)
class Projector:
    """Converts arrays of a source to arrays of wanted fields.

    Args:
        missing: Returns the values of fields that the source lacks.
        cast: Casts leaf values to the wanted type.
    """

    missing: Missing
    cast: Cast = promote

    def table(
        self,
        source: pa.Table,
        wanted: Schema,
        fields_of_source: pa.Schema | None = None,
        *,
        narrow: Collection[int] = (),
    ) -> pa.Table:
        """The wanted columns, as `to_arrow_schema(wanted)`.

        Args:
            source: Columns in any order; may include others.
            wanted: The columns to return.
            fields_of_source: The schema of `source` with field ids, where its own does not carry them.
            narrow: The ids of columns to return with narrow decimals; see
                `icebench.engine.columnar.schemas.to_arrow_type`.
        """
        known = source.schema if fields_of_source is None else fields_of_source
        places = {field_id_of(f): i for i, f in enumerate(known)}
        columns, fields = [], []
        for target in wanted.fields:
            arrow_field = to_arrow_field(target, narrow=target.field_id in narrow)
            place = places.get(target.field_id)
            if place is None:
                absent = self._absent(target, target.name, source.num_rows, arrow_field.type)
                column = pa.chunked_array([absent], arrow_field.type)
            else:
                column = self.column(source.column(place), known.field(place), target, arrow_field.type)
            columns.append(column)
            fields.append(arrow_field)
        if not columns:
            return source.select([])
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))

    def _absent(self, target: NestedField, name: str, length: int, type_: pa.DataType) -> pa.Array:
        made = self.missing(target, name, length)
        return made if made.type == type_ else made.cast(type_)

    def column(
        self, column: pa.ChunkedArray, source: pa.Field, target: NestedField, type_: pa.DataType
    ) -> pa.ChunkedArray:
        """Convert a column to the wanted field; arguments as for `array`."""
        if source.type.equals(type_, check_metadata=True):
            return column
        made = [self.array(chunk, source, target, target.name, type_) for chunk in column.chunks]
        return pa.chunked_array(made, type_)

    def array(
        self, array: pa.Array, source: pa.Field, target: NestedField, name: str, wanted: pa.DataType | None = None
    ) -> pa.Array:
        """Convert one array to the wanted field; `name` is the field's full name, for errors.

        `wanted` is one of the field's Arrow types, the usual one by default.
        """
        type_ = to_arrow_type(target.type) if wanted is None else wanted
        if source.type.equals(type_, check_metadata=True):
            return array
        match target.type:
            case StructType(fields) if pat.is_struct(source.type):
                return self._struct(array, source, fields, name, type_)
            case ListType(element) if is_list(source.type):
                return self._list(array, source, element, name, type_)
            case MapType() if pat.is_map(source.type):
                return self._map(array, source, target.type, name, type_)
            case PrimitiveType() if not child_fields(source.type) or target.type == VARIANT:
                return self.cast(array, type_, name)
        if pat.is_null(source.type):
            return pa.nulls(len(array), type_)
        raise CorruptTable(f"column {name!r} is stored as {source.type} and can not be read as {type_}")

    def _struct(
        self, array: pa.Array, source: pa.Field, fields: tuple[NestedField, ...], name: str, type_: pa.DataType
    ) -> pa.Array:
        inner = child_fields(source.type)
        places = {field_id_of(f): i for i, f in enumerate(inner)}
        wanted = child_fields(type_)
        # What is under a null struct is no value of the column.
        flat = array.flatten() if array.null_count else [array.field(place) for place in range(len(inner))]
        children = []
        for f, own in zip(fields, wanted, strict=True):
            place = places.get(f.field_id)
            full = f"{name}.{f.name}"
            if place is None:
                children.append(self._absent(f, full, len(array), own.type))
            else:
                # Arrow flattens to run ends with nulls of their own, which are invalid.
                child = array.field(place) if pat.is_run_end_encoded(inner[place].type) else flat[place]
                children.append(self.array(child, inner[place], f, full, own.type))
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)

    def _list(self, array: pa.Array, source: pa.Field, element: NestedField, name: str, type_: pa.DataType) -> pa.Array:
        (inner,), (own,) = child_fields(source.type), child_fields(type_)
        elements = Elements.of(array)

        def convert(values: pa.Array) -> pa.Array:
            return self.array(values, inner, element, f"{name}.element", own.type)

        mask = array.is_null() if array.null_count else None
        made = _converted(elements, array.values, convert)
        return pa.ListArray.from_arrays(_offsets(elements), made, type=pa.list_(own), mask=mask)

    def _map(self, array: pa.Array, source: pa.Field, target: MapType, name: str, type_: pa.DataType) -> pa.Array:
        key, value = child_fields(source.type)
        own_key, own_value = child_fields(type_)
        elements = Elements.of(array)

        def convert_keys(keys: pa.Array) -> pa.Array:
            return self.array(keys, key, target.key, f"{name}.key", own_key.type)

        def convert_values(values: pa.Array) -> pa.Array:
            return self.array(values, value, target.value, f"{name}.value", own_value.type)

        keys = _converted(elements, array.keys, convert_keys)
        items = _converted(elements, array.items, convert_values)
        mask = array.is_null() if array.null_count else None
        return pa.MapArray.from_arrays(_offsets(elements), keys, items, type=type_, mask=mask)


def cast_leaves(rows: pa.Table, schema: Schema, wanted: pa.Schema) -> pa.Table:
    """The columns of `schema` as `wanted`, which differs from their types in leaves alone: storage for extension types,
    or what that can be cast to. Arrow's own cast of a nested column makes invalid arrays of nulls in lists and maps."""
    projector = Projector(missing=MissingValues(), cast=lambda array, type_, _: storage_of(array).cast(type_))
    return pa.Table.from_arrays(
        [
            projector.column(rows.column(place), rows.schema.field(place), target, wanted.field(place).type)
            for place, target in enumerate(schema.fields)
        ],
        schema=wanted,
    )


def _converted(elements: Elements, children: pa.Array, convert: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """The elements of lists, converted."""
    try:
        selected = elements.select(children)
    except pa.ArrowNotImplementedError:
        return elements.select(convert(children))
    return convert(selected)


def _offsets(elements: Elements) -> pa.Array:
    return pa.array(elements.offsets, pa.int32())
