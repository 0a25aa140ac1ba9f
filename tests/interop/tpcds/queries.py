"""The rows and queries of TPC-DS, both DuckDB's, and its answers over tables of its own."""

from __future__ import annotations

from functools import cached_property

import pyarrow as pa

from icebench.bench.truth.queries import Query, ReferenceAnswers
from icebench.bench.truth.query_answers import RankedRows
from icebench.bench.workloads.dsdgen import DSDGEN_TABLES, tpcds_database, tpcds_queries

TABLES = DSDGEN_TABLES


class Reference:
    """A database with the rows of dsdgen. Queries are without their outer LIMIT, which would choose among rows of the
    same rank: all rows are compared."""

    def __init__(self, scale: float) -> None:
        self._connection = tpcds_database()
        self._connection.execute(f"call dsdgen(sf={scale})")
        self._answers: dict[int, RankedRows] = {}

    @cached_property
    def queries(self) -> dict[int, Query]:
        """All queries by number."""
        return {number: Query(f"q{number}", text).unlimited for number, text in tpcds_queries().items()}

    @cached_property
    def _over_all_tables(self) -> ReferenceAnswers:
        found = ReferenceAnswers()
        for table in TABLES:
            found.add_rows(table, self.rows(table).combine_chunks().to_batches())
        return found

    def rows(self, table: str) -> pa.Table:
        return self._connection.execute(f"from {table}").to_arrow_table()

    def answer(self, number: int) -> RankedRows:
        """What a query should return."""
        if number not in self._answers:
            self._answers[number] = self._over_all_tables.answer(self.queries[number])
        return self._answers[number]
