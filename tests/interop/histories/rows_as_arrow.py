"""Rows of the model as Arrow tables that each engine takes."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icebench.engine.columnar.scalars import from_arrow_array
from icebench.engine.columnar.schemas import to_arrow_schema, to_arrow_type
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import PrimitiveType, Type
from tests.interop.histories.filters import Row


def arrow_rows(rows: Sequence[Row], schema: Schema) -> pa.Table:
    """The rows, with those columns of the table that any of them has."""
    names = {name for row in rows for name in row}
    fields = [without_metadata(f) for f in to_arrow_schema(schema) if f.name in names]
    arrays = [pa.array([row.get(f.name) for row in rows], f.type) for f in fields]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def imported_file(rows: Sequence[Row], schema: Schema, table_location: str) -> Path:
    """A Parquet file of its own directory beside the table's, without field ids."""
    directory = Path(tempfile.mkdtemp(dir=Path(table_location.removeprefix("file://").removeprefix("file:")).parent))
    pq.write_table(arrow_rows(rows, schema), directory / "imported.parquet")
    return directory / "imported.parquet"


def without_metadata(field: pa.Field) -> pa.Field:
    """The field without field ids, at every depth: as a user has it."""
    return pa.field(field.name, _without_metadata(field.type), field.nullable)


def _without_metadata(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([without_metadata(f) for f in type_])
    if pa.types.is_large_list(type_) or pa.types.is_list(type_):
        return pa.list_(without_metadata(type_.value_field))
    if pa.types.is_map(type_):
        return pa.map_(_without_metadata(type_.key_type), without_metadata(type_.item_field))
    return type_


def for_spark(table: pa.Table) -> pa.Table:
    """The same with uuid as text, as Spark has it."""
    for place, own in enumerate(table.schema):
        if own.type == pa.uuid():
            texts = [None if v is None else str(v) for v in table.column(place).to_pylist()]
            table = table.set_column(place, pa.field(own.name, pa.string(), own.nullable), pa.array(texts, pa.string()))
    return table


def internal_value(type_: Type, value: Any) -> Any:
    """A value of the model as Iceberg's specification represents it: a date as days, a time as microseconds."""
    assert isinstance(type_, PrimitiveType)
    return from_arrow_array(type_, pa.array([value], to_arrow_type(type_)))[0]
