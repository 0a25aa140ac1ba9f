"""Which rows a filter keeps, by a SQL engine that knows nothing of tables: DuckDB over Arrow batches in memory."""

from __future__ import annotations

import duckdb
import pyarrow as pa


class RowOracle:
    """Evaluates filters row by row. DuckDB's own parser and evaluator share nothing with the engines under test, and of
    the Iceberg engine of DuckDB nothing is used."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()

    def count(self, rows: pa.Table, filter: str) -> int:
        """How many of the rows make the filter true (neither false nor null)."""
        self._connection.register("candidate", rows)
        found = self._connection.execute(f"SELECT count(*) FROM candidate WHERE {filter}").fetchone()  # noqa: S608
        self._connection.unregister("candidate")
        assert found is not None
        return int(found[0])
