"""Filters of scans, applied to rows that are in no table, such as those of metadata tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from icebench.engine.columnar.filters import check_filter, row_mask
from icebench.engine.columnar.rows import table_rows
from icebench.engine.columnar.schemas import from_arrow_schema
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
    return rows.filter(pa.array(np.concatenate(masks) if masks else np.zeros(0, bool), pa.bool_()))
