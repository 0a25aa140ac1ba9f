"""Conversion of the engine's schemas and Arrow batches to types that Spark accepts."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pat
from pyspark.sql import types as st

from icebench.engine.columnar.schemas import child_fields
from icebench.engine.errors import Invalid
from icebench.engine.spark.types import shown_type
from icebench.engine.spec.schema import Schema


def spark_schema(schema: Schema) -> st.StructType:
    """The columns as a Spark schema: uuid as string, every column nullable.

    Raises:
        Unsupported: A type that Spark does not have.
    """
    return st.StructType([st.StructField(f.name, shown_type(f.type, column=f.name)) for f in schema.fields])


def check_schema(given: st.StructType, own: Schema) -> None:
    """Raise Invalid where a user gives a schema other than the table's: Spark would assign columns by position."""
    if [(f.name, f.dataType.simpleString()) for f in given.fields] != [
        (f.name, f.dataType.simpleString()) for f in spark_schema(own).fields
    ]:
        raise Invalid(
            f"schema({given.simpleString()}) is not what is read, {spark_schema(own).simpleString()}; choose columns "
            "with the option columns, and cast afterwards"
        )


def spark_batch(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """A batch of the reader in types that Spark accepts: uuid as string and fixed as binary, at every depth."""
    return pa.RecordBatch.from_arrays(
        [_plain(column) for column in batch.columns], names=[f.name for f in schema.fields]
    )


def _plain(column: pa.Array) -> pa.Array:
    wanted = _plain_type(column.type)
    if wanted == column.type:
        return column
    if isinstance(column.type, pa.UuidType):
        return pa.array([None if value is None else str(value) for value in column.to_pylist()], wanted)
    if not _has_uuid(column.type):
        return column.cast(wanted)
    nulls = column.is_null() if column.null_count else None
    if pat.is_struct(wanted):
        parts = [_plain(column.field(place)) for place in range(wanted.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(child_fields(wanted)), mask=nulls)
    given = column.offsets.to_numpy()
    first, end = int(given[0]), int(given[-1])
    offsets = pa.array(given - first)
    if pat.is_map(wanted):
        keys, items = (_plain(each.slice(first, end - first)) for each in (column.keys, column.items))
        return pa.MapArray.from_arrays(offsets, keys, items, type=wanted, mask=nulls)
    return pa.ListArray.from_arrays(offsets, _plain(column.values.slice(first, end - first)), type=wanted, mask=nulls)


def _has_uuid(type_: pa.DataType) -> bool:
    return isinstance(type_, pa.UuidType) or any(_has_uuid(child.type) for child in child_fields(type_))


def _plain_type(type_: pa.DataType) -> pa.DataType:
    """The type with string for uuid and binary for fixed-size binary, at every depth."""
    if isinstance(type_, pa.UuidType):
        return pa.string()
    if pat.is_fixed_size_binary(type_):
        return pa.binary()
    if pat.is_struct(type_):
        return pa.struct([f.with_type(_plain_type(f.type)) for f in type_])
    if pat.is_list(type_):
        return pa.list_(type_.value_field.with_type(_plain_type(type_.value_type)))
    if pat.is_map(type_):
        key, item = type_.key_field, type_.item_field
        return pa.map_(key.with_type(_plain_type(key.type)), item.with_type(_plain_type(item.type)))
    return type_
