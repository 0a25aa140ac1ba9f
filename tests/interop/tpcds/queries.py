"""The rows and queries of TPC-DS, both DuckDB's, and its answers over tables of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from tests.interop.tpcds.answers import Answer

TABLES = (
    "call_center", "catalog_page", "catalog_returns", "catalog_sales", "customer", "customer_address",
    "customer_demographics", "date_dim", "household_demographics", "income_band", "inventory", "item", "promotion",
    "reason", "ship_mode", "store", "store_returns", "store_sales", "time_dim", "warehouse", "web_page", "web_returns",
    "web_sales", "web_site",
)  # fmt: skip


@dataclass(frozen=True)
class Query:
    """A query without its outer LIMIT, which would choose among rows of the same rank: all rows are compared."""

    number: int
    text: str

    @cached_property
    def _parsed(self) -> exp.Select:
        parsed = sqlglot.parse_one(self.text, read="duckdb")
        assert isinstance(parsed, exp.Select)
        parsed.set("limit", None)
        return parsed

    @property
    def tables(self) -> frozenset[str]:
        """The tables of TPC-DS that it reads."""
        return frozenset(table.name for table in self._parsed.find_all(exp.Table)) & frozenset(TABLES)

    @property
    def duckdb(self) -> str:
        return self._parsed.sql("duckdb")

    def ranked(self, width: int) -> str:
        """The query, of `width` columns, with a last one: the rank of each row by ORDER BY, where rows may be equal.

        Of a double that is computed, an engine's order of additions decides the last digits, and so whether the keys
        behind it decide: it is rounded, and they are left out.
        """
        rows = self._parsed.copy()
        order = rows.args.get("order")
        rows.set("order", None)
        names = [select.unnest().output_name for select in rows.selects]
        keys: list[int] = []
        for number, key in enumerate([] if order is None else order.expressions):
            what = key.this
            if isinstance(what, exp.Literal) and what.is_int:
                place = int(what.name) - 1
            elif isinstance(what, exp.Column) and what.name in names:
                place = names.index(what.name)
            else:  # not in the result
                assert rows.args.get("distinct") is None
                place = width + sum(place >= width for place in keys)
                exact = f"round(cast({what.sql()} as double), 6)" if isinstance(what, exp.Binary) else what.copy()
                rows.select(exp.alias_(exact, f"key_{place}"), copy=False)
            keys.append(place)
            key.set("this", exp.column(f"c{place}"))
            if order is not None and isinstance(what, exp.Binary):
                order.set("expressions", order.expressions[: number + 1])
                break
        columns = [f"c{place}" for place in range(width)]
        hidden = [f"c{place}" for place in sorted(keys) if place >= width]
        over = "" if order is None else order.sql("duckdb")
        return (
            f"select {', '.join(columns)}, rank() over ({over}) "
            f"from ({rows.sql('duckdb')}) as answer({', '.join(columns + hidden)})"
        )

    @property
    def spark(self) -> str:
        """In Spark's dialect, and with DuckDB's arithmetic: it divides and averages decimals as doubles, and rounds a
        double's own value, not the shortest text for it (1.025 is less than that)."""
        query = self._parsed.copy()
        for rounded in query.find_all(exp.Round):
            if rounded.args.get("decimals") is not None:
                factor = f"1e{rounded.args['decimals'].name}"
                rounded.replace(sqlglot.parse_one(f"round(({rounded.this.sql()}) * {factor}) / {factor}"))
        for division in query.find_all(exp.Div):
            division.set("this", exp.cast(division.this, "double"))
            division.set("expression", exp.cast(division.expression, "double"))
        for average in query.find_all(exp.Avg):
            average.set("this", exp.cast(average.this, "double"))
        return query.sql("spark")


class Reference:
    """A database with the rows of dsdgen. The extension comes from its package: nothing is downloaded."""

    def __init__(self, scale: float) -> None:
        self._connection = duckdb.connect()
        extension = files("duckdb_extension_tpcds") / "extensions" / f"v{duckdb.__version__}" / "tpcds.duckdb_extension"
        self._connection.execute(f"load '{extension}'")
        self._connection.execute(f"call dsdgen(sf={scale})")

        self._answers: dict[int, Answer] = {}

    @cached_property
    def queries(self) -> dict[int, Query]:
        """All queries by number."""
        found = self._connection.execute("select query_nr, query from tpcds_queries()").fetchall()
        return {number: Query(number, text) for number, text in found}

    def rows(self, table: str) -> pa.Table:
        return self._connection.execute(f"from {table}").to_arrow_table()

    def answer(self, number: int) -> Answer:
        """What a query should return."""
        if number not in self._answers:
            query = self.queries[number]
            width = len(self._connection.execute(f"describe {query.duckdb}").fetchall())
            rows = self._connection.execute(query.ranked(width)).fetchall()
            ranked = sorted(((row[-1], row[:-1]) for row in rows), key=lambda ranked: ranked[0])
            self._answers[number] = Answer(tuple(ranked))
        return self._answers[number]
