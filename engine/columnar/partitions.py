"""Rows grouped by partition tuple, without a Python object per row (spec: "Partitioning")."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebench.engine.columnar.batch_columns import column_by_id
from icebench.engine.columnar.scalars import from_arrow_array
from icebench.engine.columnar.schemas import storage_of
from icebench.engine.columnar.transforms import transform_array
from icebench.engine.errors import Unsupported
from icebench.engine.spec.partitioning import Partition, PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Void
from icebench.engine.spec.types import PrimitiveType


@dataclass(frozen=True, slots=True)
class Groups:
    """Rows by partition.

    `order` are row indices that bring equal partitions together, keeping the order inside each, or None where the rows
    are grouped already. Group i is `partitions[i]`, rows `starts[i]` to `starts[i + 1]` of the ordered rows.
    """

    order: npt.NDArray[np.int64] | None
    starts: npt.NDArray[np.int64]
    partitions: tuple[Partition, ...]


def partition_columns(batch: pa.RecordBatch | pa.Table, spec: PartitionSpec, schema: Schema) -> list[pa.Array]:
    """The partition values of each row, one array per partition field.

    A void field's source may have been dropped: its values are null then as before.

    Raises:
        Unsupported: A transform of several columns.
    """
    made = []
    for field in spec.fields:
        if len(field.source_ids) > 1:
            raise Unsupported(f"writing with partition field {field.name!r}: {field.transform} of several columns")
        if isinstance(field.transform, Void) and field.source_id not in schema.by_id:
            made.append(pa.nulls(batch.num_rows))
            continue
        source = schema.primitive(field.source_id)
        made.append(transform_array(source, field.transform, column_by_id(batch, schema, field.source_id)))
    return made


def group_rows(batch: pa.RecordBatch | pa.Table, spec: PartitionSpec, schema: Schema) -> Groups:
    """Group rows by their partition tuple in `spec`."""
    rows = batch.num_rows
    columns = [_with_one_nan(column) for column in partition_columns(batch, spec, schema)]
    codes = _codes(columns, rows)
    changes = np.flatnonzero(codes[1:] != codes[:-1]) + 1
    starts = np.concatenate(([0], changes, [rows])).astype(np.int64) if rows else np.zeros(1, np.int64)
    order = None
    if len(np.unique(codes[starts[:-1]])) != len(starts) - 1:
        order = np.argsort(codes, kind="stable")
        ordered = codes[order]
        changes = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
        starts = np.concatenate(([0], changes, [rows])).astype(np.int64)
    first_rows = starts[:-1] if order is None else order[starts[:-1]]
    types = [f.type for f in spec.partition_type(schema).fields if isinstance(f.type, PrimitiveType)]
    return Groups(order, starts, partition_tuples(types, [column.take(pa.array(first_rows)) for column in columns]))


def _with_one_nan(column: pa.Array) -> pa.Array:
    """The column with a single NaN: Arrow distinguishes NaNs, partitions do not."""
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(math.nan, column.type), column)


def partition_tuples(types: Sequence[PrimitiveType], columns: Sequence[pa.Array]) -> tuple[Partition, ...]:
    """The rows of partition columns in the internal representation; an empty tuple if there are no columns."""
    if not columns:
        return ((),)
    values = [from_arrow_array(type_, column) for type_, column in zip(types, columns, strict=True)]
    return tuple(zip(*values, strict=True))


def _codes(columns: Sequence[pa.Array], rows: int) -> npt.NDArray[np.integer[Any]]:
    """A dense code per row, numbered by first appearance; codes are equal exactly if all columns are."""
    codes = np.zeros(rows, np.int64)
    for column in columns:
        encoded = storage_of(column).dictionary_encode(null_encoding="encode")
        own = encoded.indices.to_numpy(zero_copy_only=False)
        codes = codes * max(len(encoded.dictionary), 1) + own
        # Dense again at once, so that the product of many columns can not overflow.
        codes = pa.array(codes).dictionary_encode().indices.to_numpy().astype(np.int64)
    # numpy sorts 16 bits by radix, many times faster than more.
    return codes.astype(np.uint16) if rows and int(codes.max()) < 1 << 16 else codes
