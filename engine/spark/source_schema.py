"""Columns and batches of the engine as Spark takes them from a Python data source."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pat
from pyspark.sql import types as st

from engine.errors import Invalid
from engine.spark.types import shown_type
from engine.spec.schema import Schema
from engine.spec.types import UUID


def source_schema(schema: Schema) -> st.StructType:
    """The columns as Spark has them: uuid as text, no column required; Unsupported for types that Spark lacks."""
    return st.StructType([st.StructField(f.name, shown_type(f.type, column=f.name)) for f in schema.fields])


def check_schema(given: st.StructType, own: Schema) -> None:
    """Raise Invalid where a user asks for other columns than the table's: Spark would take rows by position."""
    if [(f.name, f.dataType.simpleString()) for f in given.fields] != [
        (f.name, f.dataType.simpleString()) for f in source_schema(own).fields
    ]:
        raise Invalid(
            f"schema({given.simpleString()}) is not what is read, {source_schema(own).simpleString()}; choose columns "
            "with the option columns, and cast afterwards"
        )


def spark_batch(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """A batch of the reader without the types that Spark does not take: uuid becomes text, fixed becomes binary."""
    columns = [
        _uuid_texts(column) if f.type == UUID else _without_fixed(column)
        for f, column in zip(schema.fields, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=[f.name for f in schema.fields])


def _uuid_texts(column: pa.Array) -> pa.Array:
    return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())


def _without_fixed(column: pa.Array) -> pa.Array:
    wanted = _plain_type(column.type)
    return column if wanted == column.type else column.cast(wanted)


def _plain_type(type_: pa.DataType) -> pa.DataType:
    """The type with binary for fixed-size binary, at every depth."""
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
