"""Filters evaluated a second time, row by row in Python, as docs/design/expressions.md defines them.

DuckDB's own rules are other ones in places, and a filter's translation may be wrong; so may this be. Where the two
differ, nobody knows, and no engine is counted as wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from icebench.bench.truth.definition import Condition, NoOpinion, compiled, nanoseconds_per_unit
from icebench.bench.truth.filters import references, resolved, sql_of
from icebench.bench.truth.sql import Disputed, Sql

_ROWS = 20_000
"""How many rows of a table are evaluated twice by each filter."""
_FEWEST = 200
"""Of a file."""


@dataclass(frozen=True)
class SecondOpinion:
    """What the definition of filters says of the rows of one filter.

    Args:
        filter: Its text.
        paths: The columns that it names, and the fields of structs; each with what it is in DuckDB's SQL.
        columns: Name -> name in DuckDB, and Iceberg type.
        rows: How many of a file are evaluated.
    """

    filter: str
    paths: Mapping[tuple[str, ...], str]
    columns: Mapping[str, tuple[str, str]]
    rows: int

    @classmethod
    def of(cls, filter: str, columns: Mapping[str, tuple[str, str]], *, files: int) -> SecondOpinion:
        """The opinion of a filter on one of `files` files; raises as
        `icebench.bench.truth.filters.to_duckdb`."""
        paths = references(resolved(filter, columns))
        found = {path: sql_of(path, columns) for path in paths}
        return cls(filter, found, columns, max(_FEWEST, _ROWS // max(1, files)))

    def check(self, sql: Sql, table: str, condition: str, *, source: str) -> int:
        """Compare with DuckDB on rows of a table: all of them if they are few, else some at equal distances, and the
        first ones that are null, NaN, zero, least or greatest in a column, or that DuckDB keeps, or does not.

        Args:
            sql: That has the table, with `place`.
            table: Which.
            condition: The filter in DuckDB's SQL.
            source: The file, for errors.

        Returns:
            How many rows both evaluated: none if the definition of the filter is not written down here.

        Raises:
            Disputed: A row is kept by one and not by the other.
            NoTruth: DuckDB cannot evaluate the filter.
        """
        shown = [f"{text} AS r{number}" for number, text in enumerate(self.paths.values())]
        query = f"SELECT {', '.join([*shown, f'{condition} AS kept', 'place'])} FROM {table}"  # noqa: S608
        kinds = {path: self.columns[path[0]][1] for path in self.paths}
        if any(len(path) > 1 for path in self.paths):
            types = sql.types(f"({query})")
            kinds |= {path: types[f"r{number}"] for number, path in enumerate(self.paths) if len(path) > 1}
        evaluate = _evaluator(self.filter, tuple(self.columns), tuple(kinds.items()))
        if evaluate is None:
            return 0
        compared = 0
        for batch in sql.arrow(f"SELECT * FROM ({query}) WHERE {self._chosen(sql, table, query, kinds, source)}"):  # noqa: S608
            values = [plain_values(batch.column(number), kind) for number, kind in enumerate(kinds.values())]
            compared += self._compare(evaluate, values, batch, source)
        return compared

    def _chosen(self, sql: Sql, table: str, query: str, kinds: Mapping[tuple[str, ...], str], source: str) -> str:
        ((rows,),) = sql.rows(f"SELECT count(*) FROM {table}", source=source)  # noqa: S608
        if rows <= self.rows:
            return "true"
        special = [f"min(place) FILTER (kept IS {value})" for value in ("TRUE", "FALSE", "NULL")]
        for number, kind in enumerate(kinds.values()):
            name = f"r{number}"
            special.append(f"min(place) FILTER ({name} IS NULL)")
            if kind != "nested":
                special += [f"arg_min(place, {name})", f"arg_max(place, {name})"]
            if kind in ("float", "double"):
                special += [f"min(place) FILTER (isnan({name}))", f"min(place) FILTER ({name} = 0)"]
        places = f"SELECT unnest([{', '.join(special)}]) FROM ({query})"  # noqa: S608
        return f"place % {-(-rows // self.rows)} = 0 OR place IN ({places})"

    def _compare(self, evaluate: Condition, values: Sequence[Sequence[Any]], batch: pa.RecordBatch, source: str) -> int:
        places = batch.column("place").to_pylist()
        compared = 0
        for number, kept in enumerate(batch.column("kept").to_pylist()):
            row = [column[number] for column in values]
            try:
                own: object = evaluate(row)
            except NoOpinion:
                continue
            except (ArithmeticError, ValueError) as error:
                own = f"an error, {error}"
            if own in (True, False, None) and (own is True) == (kept is True):
                compared += 1
                continue
            shown = ", ".join(f"{'.'.join(path)} = {value!r}" for path, value in zip(self.paths, row, strict=True))
            raise Disputed(
                f"two evaluators of the filter {self.filter!r} differ on row {places[number]} of {source} ({shown}): "
                f"DuckDB says {_said(kept)}, the definition of filters {_said(own)}"
            )
        return compared


@lru_cache
def _evaluator(filter: str, columns: Sequence[str], kinds: Sequence[tuple[tuple[str, ...], str]]) -> Condition | None:
    try:
        return compiled(resolved(filter, columns), dict(kinds))
    except NoOpinion:
        return None


def plain_values(array: pa.Array, kind: str) -> list[Any]:
    """Values as `icebench.bench.truth.definition` has them: moments in nanoseconds, uuids as bytes."""
    unit = nanoseconds_per_unit(array.type)
    if unit is not None:
        whole = array.cast(pa.int32()) if pa.types.is_date32(array.type) else array
        return [None if value is None else value * unit for value in whole.cast(pa.int64()).to_pylist()]
    read: Callable[[Any], Any] = {"uuid": _uuid}.get(kind, lambda value: value)
    return [None if value is None else read(value) for value in array.to_pylist()]


def _uuid(value: Any) -> bytes:  # noqa: ANN401 - as the version of DuckDB has it
    return bytes(getattr(value, "bytes", None) or bytes.fromhex(str(value).replace("-", "")))


def _said(outcome: object) -> str:
    return {True: "true", False: "false", None: "null"}[outcome] if outcome in (True, False, None) else str(outcome)
