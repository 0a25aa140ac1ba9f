"""Rows as a DataFrame of pandas."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from icebench.engine.columnar.projection import cast_leaves
from icebench.engine.columnar.schemas import pandas_field
from icebench.engine.errors import Unsupported
from icebench.engine.spec.schema import Schema


def frame(rows: pa.Table, schema: Schema) -> Any:  # noqa: ANN401 - of a package that need not be there
    """The rows as a `pandas.DataFrame`, by Arrow's conversion.

    Raises:
        Unsupported: A value that has no Python object where pandas needs one; names the column.
    """
    converted = cast_leaves(rows, schema, pa.schema([pandas_field(field) for field in rows.schema]))
    try:
        return converted.to_pandas()
    except (OverflowError, ValueError):
        _check_columns(converted)
        raise


def _check_columns(rows: pa.Table) -> None:
    for name in rows.column_names:
        try:
            rows.select([name]).to_pandas()
        except (OverflowError, ValueError) as error:
            raise Unsupported(f"column {name!r} as a column of pandas: {error}") from error
