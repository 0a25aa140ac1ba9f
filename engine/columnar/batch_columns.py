"""Columns of a batch by field id, columns in one piece, and the content of maps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from icebench.engine.columnar.schemas import child_fields, field_id_of
from icebench.engine.errors import Invalid
from icebench.engine.lazy_module import LazyModule
from icebench.engine.spec.schema import Schema

pc = LazyModule("pyarrow.compute")
"""Planning a scan needs `combined` alone."""


def column_by_id(batch: pa.RecordBatch | pa.Table, schema: Schema, column_id: int) -> pa.Array:
    """The values of a column; inside structs, null where a struct above is null.

    Args:
        batch: Some or all columns of `schema`, with field ids.
        schema: What the ids refer to.
        column_id: A column that is not inside a list or map.

    Raises:
        Invalid: The batch does not hold the column.
    """
    path = [column_id]
    while path[-1] in schema.parent_of:
        path.append(schema.parent_of[path[-1]])
    place = next((i for i, f in enumerate(batch.schema) if field_id_of(f) == path[-1]), None)
    if place is None:
        raise Invalid(f"the rows have no column {schema.name_of[column_id]!r}")
    column, type_ = batch.column(place), batch.schema.field(place).type
    for inner in reversed(path[:-1]):
        # By id: a struct of several schemas' fields may use a name twice. The type of the schema: arrays can lack ids.
        fields = child_fields(type_)
        at = next((i for i, f in enumerate(fields) if field_id_of(f) == inner), None)
        if at is None:
            raise Invalid(f"the rows have no column {schema.name_of[column_id]!r}")
        column, type_ = pc.struct_field(column, [at]), fields[at].type
    return combined(column) if isinstance(column, pa.ChunkedArray) else column


def combined(column: pa.ChunkedArray) -> pa.Array:
    """The values of a column as one array, also where it has no chunk: `combine_chunks` then raises for types that
    hold an extension type, such as a uuid in a struct."""
    return column.combine_chunks() if column.num_chunks else pa.nulls(0, column.type)


def no_rows(schema: pa.Schema) -> pa.Table:
    """A table without rows; `empty_table` raises for the same types as above."""
    return pa.Table.from_batches([], schema)


def list_elements(array: pa.Array) -> pa.Array:
    """The elements of all lists of an array, in order, without those that null lists cover; `flatten` raises where all
    are null, for the same types as above."""
    return array.flatten() if array.null_count < len(array) else pa.nulls(0, array.type.value_type)


def map_entries(array: pa.MapArray) -> tuple[pa.Array, pa.Array]:
    """Keys and values of all map entries of an array, in order, without those that null maps cover."""
    offsets = array.offsets.to_numpy()
    if not array.null_count:
        start, length = int(offsets[0]), int(offsets[-1] - offsets[0])
        return array.keys.slice(start, length), array.items.slice(start, length)
    lengths = np.where(array.is_valid().to_numpy(zero_copy_only=False), np.diff(offsets), 0)
    before = np.cumsum(lengths) - lengths
    entries = pa.array(np.repeat(offsets[:-1] - before, lengths) + np.arange(lengths.sum()))
    return array.keys.take(entries), array.items.take(entries)


def value_range(array: pa.Array) -> tuple[Any, Any]:
    """The least and the greatest value, as Python objects; (None, None) if there is none."""
    ends = pc.min_max(array).as_py()
    return ends["min"], ends["max"]
