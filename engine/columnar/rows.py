"""Converts a caller's rows to rows of the table: matched by name, cast without loss, required columns checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from icebench.engine.columnar.batch_columns import list_elements, map_entries
from icebench.engine.columnar.projection import Projector
from icebench.engine.columnar.scalars import repeat
from icebench.engine.columnar.schemas import (
    FIELD_ID_KEY,
    child_fields,
    is_list,
    to_arrow_schema,
    to_arrow_type,
    with_element,
)
from icebench.engine.columnar.variants import check_metadata, plain_variants
from icebench.engine.errors import CorruptTable, Invalid
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import VARIANT, ListType, MapType, NestedField, PrimitiveType, StructType


def table_rows(data: pa.Table | pa.RecordBatchReader, schema: Schema) -> Iterator[pa.RecordBatch]:
    """Convert to batches of `to_arrow_schema(schema)`.

    Columns, nested ones too, are matched by name in any order. A column that is missing takes its write default, or
    null. Types are cast where every value keeps its meaning: integers to other widths, decimals to another scale,
    coarser timestamps, dictionaries, large and view layouts.

    Raises:
        Invalid: Naming the column: it is not in the table, is required and missing or null, or a value does not fit.
    """
    matcher = RowMatcher(data.schema, schema)
    for batch in data.to_batches() if isinstance(data, pa.Table) else data:
        yield from matcher.batches(batch)


class RowMatcher:
    """Converts batches of one Arrow schema to batches of a table schema; see `table_rows`."""

    def __init__(self, given: pa.Schema, schema: Schema) -> None:
        self._schema = schema
        self._arrow = to_arrow_schema(schema)
        self._given = pa.schema(_name_fields(tuple(given), schema.fields, ""))
        self._projector = Projector(missing=_write_default, cast=exact_cast)

    def batches(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Convert a batch; returns more than one only where Arrow split a column."""
        table = self._projector.table(pa.Table.from_batches([batch]), self._schema, self._given)
        for made in table.to_batches():
            for target, column in zip(self._schema.fields, made.columns, strict=True):
                _check_required(target, column, None, target.name)
            yield made


def _name_fields(fields: Sequence[pa.Field], targets: Sequence[NestedField], prefix: str) -> list[pa.Field]:
    """The given fields, with the ids of the table's fields of the same names."""
    by_name = {f.name: f for f in targets}
    made: list[pa.Field] = []
    seen: set[str] = set()
    for f in fields:
        target = by_name.get(f.name)
        if target is None:
            raise Invalid(f"column {prefix + f.name!r} is not in the table; the columns are {', '.join(by_name)}")
        if f.name in seen:
            raise Invalid(f"column {prefix + f.name!r} is given twice")
        seen.add(f.name)
        typed = f.with_type(_named_type(f.type, target, prefix + f.name))
        made.append(typed.with_metadata({FIELD_ID_KEY: str(target.field_id)}))
    return made


def _named_type(type_: pa.DataType, target: NestedField, column: str) -> pa.DataType:
    match target.type:
        case StructType(fields) if pat.is_struct(type_):
            return pa.struct(_name_fields(child_fields(type_), fields, f"{column}."))
        case ListType(element) if is_list(type_):
            (inner,) = _name_fields((type_.value_field.with_name("element"),), (element,), f"{column}.")
            return with_element(type_, inner)
        case MapType(key, value) if pat.is_map(type_):
            given = type_.key_field.with_name("key"), type_.item_field.with_name("value")
            return pa.map_(*_name_fields(given, (key, value), f"{column}."), keys_sorted=type_.keys_sorted)
        case PrimitiveType() if target.type == VARIANT or not child_fields(type_):
            return type_
    if pat.is_null(type_):
        return type_
    raise Invalid(f"column {column!r} is {type_}; the table has {target.type}")


def _write_default(field: NestedField, name: str, length: int) -> pa.Array:
    if field.write_default is not None and isinstance(field.type, PrimitiveType):
        return repeat(field.type, field.write_default, length)
    if field.required and length:
        raise Invalid(f"column {name!r} is required and is not given")
    return pa.nulls(length, to_arrow_type(field.type))


def exact_cast(array: pa.Array, target: pa.DataType, name: str) -> pa.Array:
    """Cast values to the target type if none changes; raises Invalid naming the column."""
    source = array.type
    if source == target:
        return array
    if pat.is_dictionary(source) or pat.is_run_end_encoded(source):
        return exact_cast(_decoded(array, name), target, name)
    if isinstance(source, pa.BaseExtensionType) and source.extension_name == "geoarrow.wkb":
        return exact_cast(array.storage, target, name)
    if pat.is_struct(source) and pat.is_struct(target):
        try:
            made = plain_variants(array, name)
            check_metadata(made)
        except CorruptTable as error:
            raise Invalid(f"column {name!r}: {error}") from error
        return made
    if not _castable(source, target):
        raise Invalid(f"column {name!r} is {source}; the table needs {target}")
    try:
        if isinstance(target, pa.BaseExtensionType):
            return pa.ExtensionArray.from_storage(target, array.cast(target.storage_type))
        if pat.is_decimal(target) and pat.is_integer(source):
            # Arrow first requires room for any integer, whatever the values are.
            array = array.cast(pa.decimal256(20 + target.scale, target.scale))
        return array.cast(target)
    except pa.ArrowInvalid as error:
        raise Invalid(f"column {name!r} does not fit {target}: {error}") from error


def _decoded(array: pa.Array, name: str) -> pa.Array:
    """The values of a dictionary or of run ends, one by one."""
    if pat.is_dictionary(array.type):
        values, places = array.dictionary, array.indices
    else:
        # Arrow's own decoder of run ends gives invalid offsets where the text exceeds 2 GiB.
        ends, rows = array.run_ends.to_numpy(), array.offset + np.arange(len(array))
        values, places = array.values, pa.array(np.searchsorted(ends, rows, side="right"))
    try:
        return values.take(places)
    except pa.ArrowInvalid as error:
        raise Invalid(f"column {name!r} is too large ({error}); give the rows in smaller batches") from error


def _castable(source: pa.DataType, target: pa.DataType) -> bool:
    if pat.is_null(source):
        return True
    if isinstance(target, pa.BaseExtensionType):
        return source == target.storage_type or _is_binary(source)
    if pat.is_floating(target):
        return pat.is_floating(source) and source.bit_width <= target.bit_width
    if pat.is_decimal(target):
        return pat.is_decimal(source) or pat.is_integer(source)
    if pat.is_timestamp(target):
        return pat.is_timestamp(source) and bool(source.tz) == bool(target.tz)
    if pat.is_fixed_size_binary(target):
        return _is_binary(source) or pat.is_fixed_size_binary(source)
    if _is_binary(target):
        return _is_binary(source) or pat.is_fixed_size_binary(source)
    return any(kind(source) and kind(target) for kind in _SAME_KIND)


def _is_text(type_: pa.DataType) -> bool:
    return pat.is_string(type_) or pat.is_large_string(type_) or pat.is_string_view(type_)


def _is_binary(type_: pa.DataType) -> bool:
    return pat.is_binary(type_) or pat.is_large_binary(type_) or pat.is_binary_view(type_)


_SAME_KIND = (pat.is_integer, pat.is_boolean, pat.is_date, pat.is_time, _is_text)


def _check_required(field: NestedField, array: pa.Array, parent_valid: pa.Array | None, name: str) -> None:
    """Raise Invalid where a required field is null inside a value that is not."""
    if (
        field.required
        and array.null_count
        and (parent_valid is None or pc.any(pc.and_(parent_valid, array.is_null())).as_py())
    ):
        raise Invalid(f"column {name!r} is required and holds a null")
    match field.type:
        case StructType(fields):
            valid = array.is_valid()
            for place, child in enumerate(fields):
                _check_required(child, array.field(place), valid, f"{name}.{child.name}")
        case ListType(element) if _requires(element):
            _check_required(element, list_elements(array), None, f"{name}.element")
        case MapType(_, value) if _requires(value):
            _check_required(value, map_entries(array)[1], None, f"{name}.value")


def _requires(field: NestedField) -> bool:
    """Whether the field, or one inside it, is required."""
    match field.type:
        case StructType(fields):
            return field.required or any(_requires(f) for f in fields)
        case ListType(element):
            return field.required or _requires(element)
        case MapType(_, value):
            return field.required or _requires(value)
    return field.required
