"""Filters of scans, applied to rows that are in no table, such as those of metadata tables."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from icebench.engine.columnar.filters import check_filter, row_mask
from icebench.engine.columnar.rows import table_rows
from icebench.engine.columnar.schemas import from_arrow_schema, with_fields
from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.predicate import Filter
from icebench.engine.plan.scan import as_predicate


def filter_rows(rows: pa.Table, filter: Filter) -> pa.Table:
    """The rows for which a filter is true.

    The filter is bound and evaluated as in a scan of a table with these rows::

        icebench.filter_rows(table.inspect.files(), "record_count < 1000 and partition.day >= date '2026-01-01'")

    Args:
        rows: Columns of types that Iceberg has; fields of structs are named with dots.
        filter: What `Table.scan` takes: text, `icebench.col`, or an expression of pyarrow or PyIceberg.

    Raises:
        Invalid: The filter cannot be parsed, or does not fit the columns.
        Unsupported: A filter or a column of a kind that the engine does not support.
    """
    schema = from_arrow_schema(rows.schema)
    bound = bind(as_predicate(filter, schema), schema)
    check_filter(bound, schema)
    masks = [row_mask(batch, bound, schema).to_numpy(zero_copy_only=False) for batch in table_rows(rows, schema)]
    return _select(rows, np.concatenate(masks) if masks else np.zeros(0, bool))


def _select(rows: pa.Table, mask: npt.NDArray[np.bool_]) -> pa.Table:
    columns = [_values(column, field, mask) for column, field in zip(rows.columns, rows.schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _values(column: pa.ChunkedArray, field: pa.Field, mask: npt.NDArray[np.bool_]) -> pa.ChunkedArray:
    """The values where `mask` is true. Arrow filters no views of strings and no run ends."""
    chosen = pa.array(mask, pa.bool_())
    plain = _without_views(field.with_type(with_fields(field.type, _without_views))).type
    with suppress(pa.ArrowNotImplementedError):
        return column.filter(chosen)
    with suppress(pa.ArrowNotImplementedError):
        return column.cast(plain).filter(chosen).cast(field.type)
    return _runs(column, mask)


def _without_views(field: pa.Field) -> pa.Field:
    if pat.is_string_view(field.type):
        return field.with_type(pa.large_string())
    return field.with_type(pa.large_binary()) if pat.is_binary_view(field.type) else field


def _runs(column: pa.ChunkedArray, mask: npt.NDArray[np.bool_]) -> pa.ChunkedArray:
    """The values where `mask` is true, as slices that are put together."""
    chunks, first = [], 0
    for chunk in column.chunks:
        own = mask[first : first + len(chunk)]
        first += len(chunk)
        edges = np.flatnonzero(np.diff(own, prepend=False, append=False)).tolist()
        slices = [chunk.slice(start, end - start) for start, end in zip(edges[::2], edges[1::2], strict=True)]
        chunks += [pa.concat_arrays(slices)] if slices else []
    return pa.chunked_array(chunks, column.type)
