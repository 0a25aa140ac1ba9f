"""Sorts rows in a table's sort order (spec: "Sorting")."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
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


_MOST_BYTES = (1 << 31) - 1
"""Of the text of one array, whose offsets have 32 bits."""
_PIECES = 4
"""Of as much: each of them is copied twice."""


def sorted_table(table: pa.Table, spec: PartitionSpec, order: SortOrder, schema: Schema) -> pa.Table:
    """Sort rows by partition and then by the sort order, so that each file of a clustered write is sorted.

    `table` has the columns of `schema`, with field ids; columns of more than 2 GiB come out in several chunks.

    Raises:
        Unsupported: A transform of several columns.
    """
    found = sort_indices(table, spec, order, schema)
    return table if found is None else take_rows(table, found)


def sort_indices(table: pa.Table, spec: PartitionSpec, order: SortOrder, schema: Schema) -> pa.Array | None:
    """The numbers of the rows as `sorted_table` has them; equal keys keep their order. None if nothing is sorted by."""
    columns, options = sort_keys(table, spec, order, schema)
    return order_of(columns, options) if options else None


def sort_keys(
    table: pa.Table, spec: PartitionSpec, order: SortOrder, schema: Schema, *, zeros_differ: bool = True
) -> tuple[pa.Table, SortKeys]:
    """What `sort_indices` compares, and how: a column for each key, partitions first. Arguments and errors are those of
    `sorted_table`."""
    pieces = [table] if _fits(table) else table.to_batches()
    keys = [_keys_of(piece, spec, order, schema, zeros_differ=zeros_differ) for piece in pieces]
    return pa.concat_tables([columns for columns, _ in keys]), keys[0][1]


def order_of(columns: pa.Table, keys: SortKeys) -> pa.Array:
    """The numbers of the rows in the order of some keys; equal ones keep theirs."""
    return pc.sort_indices(columns, options=pc.SortOptions(keys))


def is_sorted(table: pa.Table, order: SortOrder, schema: Schema) -> bool:
    """Whether rows are in a sort order already; arguments and errors as `sorted_table`. Zeros of either sign are equal
    here, as some writers sort them so."""
    columns, options = sort_keys(table, PartitionSpec(), order, schema, zeros_differ=False)
    # Arrow's sort is stable: rows that are in order stay where they are.
    return not options or bool((np.diff(order_of(columns, options).to_numpy().astype(np.int64)) == 1).all())


def take_rows(table: pa.Table, order: pa.Array) -> pa.Table:
    """The rows of a table with these numbers, in their order."""
    if _fits(table):
        return table.take(order)
    # `Table.take` would join all chunks of a column, here those of one piece.
    size = max(column.nbytes for column in table.columns)
    pieces = np.array_split(order.to_numpy().astype(np.int64), size * _PIECES // _MOST_BYTES)[::-1]
    batches, taken = table.to_batches(), []
    while pieces:
        rows = pieces.pop()
        by_number = np.sort(rows)
        own = _rows_of_batches(batches, by_number)
        if _fits(own) or len(rows) == 1:
            taken.append(own.take(pa.array(np.searchsorted(by_number, rows))))
        else:
            pieces += np.array_split(rows, 2)[::-1]
    return pa.concat_tables(taken)


def _rows_of_batches(batches: list[pa.RecordBatch], numbers: npt.NDArray[np.int64]) -> pa.Table:
    """The rows with these ascending numbers, a chunk for each batch."""
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
    bounds = np.searchsorted(numbers, starts)
    own = [numbers[bounds[i] : bounds[i + 1]] - starts[i] for i in range(len(batches))]
    return pa.Table.from_batches([batch.take(pa.array(each)) for batch, each in zip(batches, own, strict=True)])


def _fits(table: pa.Table) -> bool:
    """Whether the chunks of a column can be joined."""
    return all(column.nbytes <= _MOST_BYTES for column in table.columns)


def _keys_of(
    rows: pa.Table | pa.RecordBatch, spec: PartitionSpec, order: SortOrder, schema: Schema, *, zeros_differ: bool
) -> tuple[pa.Table, SortKeys]:
    keys = [storage_of(column) for column in partition_columns(rows, spec, schema)]
    options: SortKeys = [(str(i), "ascending", "at_start") for i in range(len(keys))]
    for sort_field in order.fields:
        if len(sort_field.source_ids) > 1:
            raise Unsupported(f"sorting by {sort_field.transform} of several columns")
        source = schema.primitive(sort_field.source_id)
        column = column_by_id(rows, schema, sort_field.source_id)
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
