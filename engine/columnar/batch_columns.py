"""Columns of a batch by field id, columns in one piece, and the content of lists and maps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

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


@dataclass(frozen=True)
class Elements:
    """Which of the child values of an array of lists or maps are elements of which of its values. Those that a slice
    leaves out, and those that nulls cover, are of none.

    Args:
        starts: Where the elements of each value begin.
        lengths: How many it has; 0 for a null.
    """

    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]

    @classmethod
    def of(cls, array: pa.Array) -> Elements:
        """Those of an array of any list type, or of maps."""
        type_ = array.type
        if pat.is_fixed_size_list(type_):
            starts = (np.arange(len(array)) + array.offset) * type_.list_size
            lengths = np.full(len(array), type_.list_size)
        elif pat.is_list_view(type_) or pat.is_large_list_view(type_):
            starts, lengths = array.offsets.to_numpy(), array.sizes.to_numpy()
        else:
            offsets = array.offsets.to_numpy()
            starts, lengths = offsets[:-1], np.diff(offsets)
        if array.null_count:
            lengths = np.where(array.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
        return cls(starts.astype(np.int64, copy=False), lengths.astype(np.int64, copy=False))

    @cached_property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Where the elements of each value begin in what `select` returns, and the end of the last."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.lengths)])

    def select(self, children: pa.Array) -> pa.Array:
        """The elements of all values, in order; a slice of `children` where they follow one another there.

        Raises:
            pa.ArrowNotImplementedError: They do not, and Arrow takes no values of the type: views of strings.
        """
        if not len(self.starts):
            return children.slice(0, 0)
        if (self.starts[1:] == self.starts[:-1] + self.lengths[:-1]).all():
            return children.slice(int(self.starts[0]), int(self.offsets[-1]))
        before = np.repeat(self.starts - self.offsets[:-1], self.lengths)
        return children.take(pa.array(before + np.arange(len(before))))


def list_elements(array: pa.Array) -> pa.Array:
    """The elements of all lists of an array, in order, without those that null lists cover. Unlike `flatten`, it also
    takes arrays that hold an extension type and are all null."""
    return Elements.of(array).select(array.values)


def map_entries(array: pa.MapArray) -> tuple[pa.Array, pa.Array]:
    """Keys and values of all map entries of an array, in order, without those that null maps cover."""
    elements = Elements.of(array)
    return elements.select(array.keys), elements.select(array.items)
