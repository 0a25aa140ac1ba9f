"""Sorts rows in a table's sort order (spec: "Sorting")."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from engine.columnar.columns import column_by_id
from engine.columnar.partitions import partition_columns
from engine.columnar.schemas import storage_of
from engine.columnar.transforms import transform_array
from engine.errors import Unsupported
from engine.spec.partitioning import PartitionSpec
from engine.spec.schema import Schema
from engine.spec.sorting import SortOrder


def sorted_table(table: pa.Table, spec: PartitionSpec, order: SortOrder, schema: Schema) -> pa.Table:
    """Sort rows by partition and then by the sort order, so that each file of a clustered write is sorted.

    Equal keys keep no particular order. `table` has the columns of `schema`, with field ids.

    Raises:
        Unsupported: A transform of several columns.
    """
    keys = [storage_of(column) for column in partition_columns(table, spec, schema)]
    options = [(str(i), "ascending", "at_start") for i in range(len(keys))]
    for sort_field in order.fields:
        if len(sort_field.source_ids) > 1:
            raise Unsupported(f"sorting by {sort_field.transform} of several columns")
        source = schema.primitive(sort_field.source_id)
        column = column_by_id(table, schema, sort_field.source_id)
        direction = "descending" if sort_field.direction == "desc" else "ascending"
        nulls = "at_start" if sort_field.null_order == "nulls-first" else "at_end"
        options.append((str(len(keys)), direction, nulls))
        keys.append(storage_of(transform_array(source, sort_field.transform, column)))
    if not keys:
        return table
    columns = pa.Table.from_arrays(keys, names=[name for name, _, _ in options])
    return table.take(pc.sort_indices(columns, options=pc.SortOptions(options)))
