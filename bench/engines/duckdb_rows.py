"""Rows of DuckDB as Python has them."""

from __future__ import annotations

from typing import Any

_ZONED = "TIMESTAMP WITH TIME ZONE"


def fetched_rows(connection: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401 - of a package that need not be there
    """All rows of the last result of a connection."""
    if all(str(column[1]) != _ZONED for column in connection.description):
        rows: list[tuple[Any, ...]] = connection.fetchall()
        return rows
    # DuckDB gives these only where pytz is installed.
    table = connection.to_arrow_table()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
