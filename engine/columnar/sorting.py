"""Sorts rows in a table's sort order (spec: "Sorting")."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from icebench.engine.columnar.batch_columns import column_by_id
from icebench.engine.columnar.partitions import partition_columns
from icebench.engine.columnar.schemas import storage_of
from icebench.engine.columnar.transforms import transform_array
from icebench.engine.errors import Unsupported
from icebench.engine.spec.partitioning import PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import SortOrder

SortKeys: TypeAlias = list[tuple[str, str, str]]
"""Column, ``ascending`` or ``descending``, and ``at_start`` or ``at_end`` for nulls, as Arrow sorts by them."""


def sorted_table(table: pa.Table, spec: PartitionSpec, order: SortOrder, schema: Schema) -> pa.Table:
    """Sort rows by partition and then by the sort order, so that each file of a clustered write is sorted.

    `table` has the columns of `schema`, with field ids.

    Raises:
        Unsupported: A transform of several columns.
    """
    found = sort_indices(table, spec, order, schema)
    return table if found is None else table.take(found)


def sort_indices(table: pa.Table, spec: PartitionSpec, order: SortOrder, schema: Schema) -> pa.Array | None:
    """The numbers of the rows as `sorted_table` has them; equal keys keep their order. None if nothing is sorted by."""
    keys = [storage_of(column) for column in partition_columns(table, spec, schema)]
    return _sort_indices(table, keys, order, schema)


def sort_keys(table: pa.Table, spec: PartitionSpec, order: SortOrder, schema: Schema) -> tuple[pa.Table, SortKeys]:
    """What `sort_indices` compares, and how: a column for each key, partitions first. Arguments and errors are those of
    `sorted_table`."""
    return _sort_keys(table, [storage_of(column) for column in partition_columns(table, spec, schema)], order, schema)


def order_of(columns: pa.Table, keys: SortKeys) -> pa.Array:
    """The numbers of the rows in the order of some keys; equal ones keep theirs."""
    return pc.sort_indices(columns, options=pc.SortOptions(keys))


def is_sorted(table: pa.Table, order: SortOrder, schema: Schema) -> bool:
    """Whether rows are in a sort order already; arguments and errors as `sorted_table`. Zeros of either sign are equal
    here, as some writers sort them so."""
    found = _sort_indices(table, [], order, schema, zeros_differ=False)
    # Arrow's sort is stable: rows that are in order stay where they are.
    return found is None or bool((np.diff(found.to_numpy().astype(np.int64)) == 1).all())


def _sort_indices(
    table: pa.Table, keys: list[pa.Array], order: SortOrder, schema: Schema, *, zeros_differ: bool = True
) -> pa.Array | None:
    """The rows by some keys and then by the order; None if there is nothing to sort by."""
    columns, options = _sort_keys(table, keys, order, schema, zeros_differ=zeros_differ)
    return order_of(columns, options) if options else None


def _sort_keys(
    table: pa.Table, keys: list[pa.Array], order: SortOrder, schema: Schema, *, zeros_differ: bool = True
) -> tuple[pa.Table, SortKeys]:
    keys = list(keys)
    options: SortKeys = [(str(i), "ascending", "at_start") for i in range(len(keys))]
    for sort_field in order.fields:
        if len(sort_field.source_ids) > 1:
            raise Unsupported(f"sorting by {sort_field.transform} of several columns")
        source = schema.primitive(sort_field.source_id)
        column = column_by_id(table, schema, sort_field.source_id)
        direction = "descending" if sort_field.direction == "desc" else "ascending"
        nulls = "at_start" if sort_field.null_order == "nulls-first" else "at_end"
        options.append((str(len(keys)), direction, nulls))
        key = storage_of(transform_array(source, sort_field.transform, column))
        keys.append(_in_total_order(key, zeros_differ=zeros_differ) if pat.is_floating(key.type) else key)
    return pa.Table.from_arrays(keys, names=[name for name, _, _ in options]), options


def _in_total_order(column: pa.Array | pa.ChunkedArray, *, zeros_differ: bool) -> pa.Array | pa.ChunkedArray:
    """Floating-point numbers as whole numbers in the order of the spec ("Sorting"): Arrow puts NaN beside nulls, and
    takes zeros for equal."""
    whole = pa.int64() if column.type.bit_width == 64 else pa.int32()
    most = (1 << (whole.bit_width - 1)) - 1

    def ordered(chunk: pa.Array) -> pa.Array:
        bits = (chunk if zeros_differ else pc.add(chunk, pa.scalar(0.0, chunk.type))).view(whole)
        # The bits of a negative number grow with its size, but for the sign.
        is_negative = pc.less(bits, pa.scalar(0, whole))
        return pc.if_else(is_negative, pc.bit_wise_xor(bits, pa.scalar(most, whole)), bits)

    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([ordered(chunk) for chunk in column.chunks], whole)
    return ordered(column)
