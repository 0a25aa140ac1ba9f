"""What queries ask of a table: filters, columns and join keys, and how often; from SQL, or from logged scans.

Of each query that reads the table, the conditions that concern it alone become one filter of the engine. A condition
that a plan cannot use (it compares two tables, or computes) is listed with the reason: what advice does not take into
account should be known. A statement that is no SQL, or that names a column which the table does not have, is listed and
left out: nobody knows what it reads.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import sqlglot
from sqlglot import exp, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

import icebench
from icebench.bench.advise.conditions import (
    Condition,
    conjuncts,
    is_limited,
    joins_of,
    outer_conditions,
    row_conditions,
)
from icebench.bench.advise.query_logs import LoggedQuery, LoggedScan, read_log, text_of
from icebench.bench.advise.statement_reads import (
    BY_POSITION,
    aggregated_columns,
    has_unknown_reads,
    is_unknown,
    query_of,
    read_columns,
    reads_no_rows,
    tables_read,
)
from icebench.bench.errors import ConfigError
from icebench.errors import EngineError

_WEIGHT = re.compile(r"\bweight\b\s*([:=]?)\s*([-+.]?\d\S*)", re.IGNORECASE)
_NUMBER = re.compile(r"(?:\d{1,3}(?:[,_]\d{3})+|\d+)?(?:\.\d*)?(?:e[-+]?\d+)?", re.IGNORECASE)
_AFTER_NUMBER = ".,;:)*/"
_EQUALITIES = (exp.EQ, exp.In, exp.NullSafeEQ)
_RANGES = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.Like, exp.StartsWith)
_SHOWN = 100
_NO_SQL = "no SQL"
_NO_COLUMN = "the table has no such column"
_READS_UNKNOWN = "it is not known which columns it reads"
_NO_WEIGHT = "the weight is not a positive number or 0"
_METADATA = ("_", "$")
"""How names of metadata columns begin, such as ``_file`` and, of Trino, ``$path``."""
_BEGIN = re.compile(
    r"(?:select|with|insert|create|drop|alter|update|delete|merge|set|call|pragma|copy|attach)\b", re.IGNORECASE
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FROM_NUMBER: dict[str, Callable[[int], str]] = {
    "date": lambda days: (_EPOCH + timedelta(days)).date().isoformat(),
    "timestamp": lambda micros: (_EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None).isoformat(),
    "timestamptz": lambda micros: (_EPOCH + timedelta(microseconds=micros)).isoformat(),
}
"""What a number in a filter of Iceberg Java stands for, by the type of the column."""

logging.getLogger("sqlglot").setLevel(logging.ERROR)  # statements that it does not know well are none of queries


class _EngineSql(Dialect):
    """How the engine writes its filters: bytes as X'00ff'."""

    class Tokenizer(tokens.Tokenizer):
        HEX_STRINGS: ClassVar = [("x'", "'"), ("X'", "'")]


@dataclass(frozen=True, kw_only=True)
class Query:
    """One scan of the table.

    Args:
        name: Such as ``q3``; ``q3.2`` for the second scan of one statement.
        weight: How often it is asked, in any unit.
        filter: Of the engine; None keeps every row.
        columns: Full names of the columns that are read, those of the filter among them; in the schema's order.
        equalities: Columns that the filter compares by ``=`` or ``in``.
        ranges: Columns that it compares by order, or by a prefix.
        other_tests: Columns that it tests in other ways alone, such as ``is null``, ``<>`` or ``= :parameter``: metrics
            may answer it, and no layout is known to serve it.
        join_keys: Columns that it compares with those of another table.
        is_preview: It returns any rows up to a limit: no layout serves it.
        aggregated: Columns whose least or greatest value or count it returns for all rows: metrics may answer that.
    """

    name: str
    weight: float = 1.0
    filter: str | None = None
    columns: tuple[str, ...] = ()
    equalities: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()
    other_tests: tuple[str, ...] = ()
    join_keys: tuple[str, ...] = ()
    aggregated: tuple[str, ...] = ()
    is_preview: bool = False


@dataclass(frozen=True, kw_only=True)
class Unused:
    """What of a query is not taken into account, and why.

    Args:
        query: Its name.
        text: The condition or statement.
        reason: Why not.
        is_understood: False: what the query reads is not known, and it is left out.
    """

    query: str
    text: str
    reason: str
    is_understood: bool = True

    def __str__(self) -> str:
        return f"{self.query}: {self.text}: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class Queries:
    """The distinct scans of a table, each with its weight, what could not be used of them, and how many statements or
    scans were about something else."""

    queries: tuple[Query, ...]
    unused: tuple[Unused, ...] = ()
    others: int = 0

    @property
    def total_weight(self) -> float:
        """Of all queries."""
        return sum(query.weight for query in self.queries)

    @property
    def not_understood(self) -> tuple[Unused, ...]:
        """What is said of the queries that are left out."""
        return tuple(each for each in self.unused if not each.is_understood)


def read_queries(path: Path, table: icebench.Table, *, name: str | None = None, dialect: str | None = None) -> Queries:
    """The queries of a file that read the table: an SQL script, a log of another engine
    (`icebench.bench.advise.query_logs`), or one of this engine's scans.

    Args:
        path: The file; for a log of Spark that was rolled, the directory.
        table: The table.
        name: What queries call it; see `parse_queries`.
        dialect: Of sqlglot; by default that of the engine whose log it is.

    Raises:
        ConfigError: As `parse_queries` and `read_log`.
    """
    log = read_log(path)
    if log is not None:
        return _asked(log.queries, table, name, dialect or log.dialect, str(path))
    text = text_of(path)
    if text.lstrip().startswith("{"):
        return read_scans(path, table)
    return parse_queries(text, table, name=name, dialect=dialect, path=str(path))


def parse_queries(
    text: str, table: icebench.Table, *, name: str | None = None, dialect: str | None = None, path: str = "--queries"
) -> Queries:
    """The queries of an SQL script that read the table.

    A statement counts as often as it occurs, or as the comment ``weight: N`` before it says; not at all with 0.

    Args:
        text: Statements, each ended by a semicolon, or begun on a line of its own, as DuckDB logs them.
        table: The table.
        name: What queries call it; by default its own name. Either may have fewer parts before the last dot.
        dialect: Of sqlglot, such as ``spark`` or ``trino``; by default what most have in common.
        path: For messages.

    Raises:
        ConfigError: No SQL, or no query reads the table.
    """
    queries = (LoggedQuery(sql=each) for each in _split(text, dialect))
    return _asked(queries, table, name, dialect, path)


def _asked(
    queries: Iterable[LoggedQuery], table: icebench.Table, name: str | None, dialect: str | None, path: str
) -> Queries:
    reader = _Reader(table, (name or table.name).lower())
    found: list[Query] = []
    others, weightless = 0, False
    for number, query in enumerate(queries, 1):
        left = len(reader.unused)
        scans = reader.understood(query, f"q{number}", dialect)
        named = scans if len(scans) == 1 else [replace(s, name=f"q{number}.{n}") for n, s in enumerate(scans, 1)]
        found += (scan for scan in named if scan.weight)
        weightless = weightless or any(not scan.weight for scan in named)
        others += not scans and len(reader.unused) == left
    if not found:
        broken = [str(each) for each in reader.unused if not each.is_understood]
        if not broken and weightless:
            raise ConfigError(f"all queries that read a table {reader.name!r} have weight 0", path=path)
        raise ConfigError(broken[0] if broken else f"no query reads a table {reader.name!r}", path=path)
    return Queries(queries=merged(found), unused=tuple(reader.unused), others=others)


def _split(text: str, dialect: str | None) -> Iterator[str]:
    """The statements of a script, comments with the statement that follows.

    A statement also ends before a line that begins another if it is whole there.
    """
    try:
        ends = [token for token in sqlglot.tokenize(text, dialect) if token.token_type is sqlglot.TokenType.SEMICOLON]
        begins = [0, *(token.end + 1 for token in ends)]
        parts = [text[a:b] for a, b in zip(begins, [*(token.start for token in ends), len(text)], strict=True)]
    except SqlglotError:
        parts = re.split(r";(?=\s*(?:--[^\n]*)?\n)", text)
    for part in parts:
        whole = ""
        for line in part.splitlines(keepends=True):
            if _BEGIN.match(line) and _is_whole(whole, dialect):
                yield whole
                whole = ""
            whole += line
        if whole.strip():
            yield whole


def _is_whole(text: str, dialect: str | None) -> bool:
    try:
        return any(sqlglot.parse(text, dialect=dialect)) if text.strip() else False
    except (SqlglotError, ValueError):
        return False


def read_scans(path: Path, table: icebench.Table) -> Queries:
    """The queries of a file that is a log of this engine's scans; raises as `logged_queries` and `read_log`."""
    return logged_queries(text_of(path).splitlines(), table, path=str(path))


def logged_queries(lines: Iterable[str], table: icebench.Table, *, path: str = "--scans") -> Queries:
    """The queries of a log of this engine's scans: one JSON object a line (`icebench.engine.storage.scan_reports`).

    Scans of other tables are left out.

    Raises:
        ConfigError: A line is no such object, or no scan is of the table.
    """
    reader = _Reader(table, table.name.lower())
    found = []
    others = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
            location, filter, columns = values["location"], str(values["filter"]), list(map(str, values["columns"]))
            parts = [] if filter == "true" else list(conjuncts(_parse_filter(filter)))
        except (ValueError, KeyError, TypeError, SqlglotError) as error:
            raise ConfigError(f"line {number} reports no scan", path=path) from error
        if location == table.location:
            found += reader.reported(f"s{number}", parts, columns)
        else:
            others += 1
    if not found:
        broken = [str(each) for each in reader.unused if not each.is_understood]
        raise ConfigError(broken[0] if broken else f"no scan is of the table at {table.location}", path=path)
    return Queries(queries=merged(found), unused=tuple(reader.unused), others=others)


def _parse_filter(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, dialect=_EngineSql, into=exp.Condition)


def merged(queries: Iterable[Query]) -> tuple[Query, ...]:
    """Queries that ask the same become one, under the first's name, with their weights together."""
    found: dict[Query, Query] = {}
    for query in queries:
        key = replace(query, name="", weight=1.0)
        known = found.get(key)
        found[key] = query if known is None else replace(known, weight=known.weight + query.weight)
    return tuple(found.values())


def _is_below(place: str, directory: str) -> bool:
    return f"{place.rstrip('/')}/".startswith(f"{directory.rstrip('/')}/")


def _weight(statement: exp.Expr) -> float:
    """What a comment says, or 1.

    Raises:
        ValueError: It says no number; with the comment.
    """
    for node in statement.walk():
        for comment in node.comments or ():
            match = _WEIGHT.search(comment)
            if match:
                number = match[2].rstrip(_AFTER_NUMBER)
                weight = float(re.sub("[,_]", "", number)) if _NUMBER.fullmatch(number) else math.inf
                if math.isfinite(weight):
                    return weight
                if match[1]:
                    raise ValueError(comment)
    return 1.0


class _Reader:
    """Finds the scans of one table in statements."""

    def __init__(self, table: icebench.Table, name: str) -> None:
        self._table = table
        self.name = name
        self._schema = schema = table.schema()
        self._names = {column.lower(): column for column in schema.id_of}
        self._top_of = {column: schema.path_of(field_id)[0] for column, field_id in schema.id_of.items()}
        self._tops = {name.lower() for name in self._top_of.values()}
        self._order = {field.name: place for place, field in enumerate(schema.fields)}
        self.unused: list[Unused] = []

    def understood(self, query: LoggedQuery, name: str, dialect: str | None) -> list[Query]:
        """Each scan of the table in a query; none, if something of the query is not understood."""
        left = len(self.unused)
        scans = list(self.logged(query, name, dialect))
        if all(each.is_understood for each in self.unused[left:]):
            return scans
        self.unused[left:] = [each for each in self.unused[left:] if not each.is_understood]
        return []

    def reported(self, name: str, conditions: Sequence[exp.Expr], columns: Sequence[str]) -> list[Query]:
        """The scan that a report is of; none, if it names columns that the table does not have any more."""
        named = [*columns, *(".".join(p.name for p in c.parts) for own in conditions for c in own.find_all(exp.Column))]
        unknown = list(dict.fromkeys(each for each in named if each not in self._top_of))
        if not unknown:
            return [self.scan(name, conditions, columns)]
        self._leave(name, ", ".join(unknown), _NO_COLUMN, is_understood=False)
        return []

    def logged(self, query: LoggedQuery, name: str, dialect: str | None) -> Iterator[Query]:
        """Each scan of the table in a query: by its text if that is SQL which reads the table, else by its plan."""
        statements: list[exp.Expr | None] = []
        error = query.error
        try:
            statements = [] if error else sqlglot.parse(query.sql, dialect=dialect)
        except (SqlglotError, ValueError, RecursionError) as refused:
            error = f"{_NO_SQL}: {str(refused).splitlines()[0]}"
        if query.scans is None and error:
            self._leave(name, query.sql, error, is_understood=False)
        left = len(self.unused)
        of_text: list[Query] = []
        for statement in filter(None, statements):
            scans = self.scans(statement, name)
            try:
                of_text += (replace(scan, weight=_weight(statement)) for scan in scans)
            except ValueError as refused:
                self._leave(name, str(refused), _NO_WEIGHT, is_understood=False)
        yield from of_text
        if query.scans is not None and not of_text:
            del self.unused[left:]
            yield from (self._planned(each, name) for each in query.scans if self._is_named(each.table))

    def _planned(self, scan: LoggedScan, name: str) -> Query:
        parts: list[exp.Expr] = []
        try:
            # That a column is not null follows from what is said of it otherwise.
            listed = sqlglot.parse_one(f"select {scan.filters or 'true'}", dialect="spark").expressions
            for condition in listed:
                if all(self._column(column, "", alone=True) for column in condition.find_all(exp.Column)):
                    parts += (self._own(part, "", alone=True) for part in conjuncts(condition))
        except SqlglotError:
            self._leave(
                name, scan.filters, f"{_NO_SQL}: names and quotes are not escaped in plans", is_understood=False
            )
        said = [part for part in parts if not isinstance(part, exp.Not) or not isinstance(part.this, exp.Is)]
        compared = {column.name for part in said for column in part.find_all(exp.Column)}
        kept = [part for part in parts if part in said or not {c.name for c in part.find_all(exp.Column)} <= compared]
        columns = list(self._order) if scan.columns is None else scan.columns
        return self.scan(name, [self._with_times(part) for part in kept], columns)

    def _with_times(self, part: exp.Expr) -> exp.Expr:
        """The condition with dates and times in place of the numbers that stand for them."""
        for leaf in part.find_all(*_EQUALITIES, *_RANGES):
            types = {str(self._schema.find(column.name).type) for column in leaf.find_all(exp.Column)}
            for literal in list(leaf.find_all(exp.Literal)):
                kind = next(iter(types)) if len(types) == 1 else ""
                if not literal.is_string and literal.name.lstrip("-").isdigit() and kind in _FROM_NUMBER:
                    number = -int(literal.name) if isinstance(literal.parent, exp.Neg) else int(literal.name)
                    place = literal.parent if isinstance(literal.parent, exp.Neg) else literal
                    place.replace(exp.Literal.string(_FROM_NUMBER[kind](number)))
        return part

    def scans(self, statement: exp.Expr, name: str) -> Iterator[Query]:
        """Each scan of the table in a statement."""
        query = query_of(statement)
        if is_unknown(statement, self.name.split(".")[-1]):
            self._leave(name, statement, f"{_NO_SQL}: no known statement", is_understood=False)
        own = [source for source in tables_read(statement) if self._is_table(source)]
        if query is None:
            if own and not reads_no_rows(statement):
                self._leave(name, statement, _READS_UNKNOWN, is_understood=False)
            elif any(self._is_table(source) for source in statement.find_all(exp.Table)):
                self._leave(name, statement, "is no query")
            return
        if not own:
            return
        try:
            scopes = traverse_scope(query)
            if has_unknown_reads(query, scopes, self._is_table, len(own)):
                self._leave(name, statement, _READS_UNKNOWN, is_understood=False)
                return
            outer = outer_conditions(scopes)
        except SqlglotError as error:
            self._leave(name, statement, f"{_NO_SQL}: {str(error).splitlines()[0]}", is_understood=False)
            return
        reads = [
            (scope, alias)
            for scope in scopes
            for alias, source in scope.sources.items()
            if isinstance(source, exp.Table) and self._is_table(source)
        ]
        for node in query.find_all(exp.Join, *BY_POSITION):
            if not isinstance(node, exp.Join) or node.text("method").upper() == "NATURAL":
                self._leave(name, node, "uses columns without their names", is_understood=False)
        for scope, alias in reads:
            yield self._of_scope(scope, alias.lower(), name, outer.get(id(scope.expression), ()))

    def _is_table(self, source: exp.Table) -> bool:
        if isinstance(source.this, exp.Func):  # such as iceberg_scan('place') of DuckDB
            place = source.this.find(exp.Literal)
            return place is not None and _is_below(place.name, self._table.location)
        return self._is_named(".".join(part.name for part in source.parts))

    def _is_named(self, called: str) -> bool:
        """Whether a name is the table's, either of them perhaps with namespaces or a catalog more than the other."""
        names = (f".{called.lower()}", f".{self.name}")
        return any(name.endswith(other) for name, other in (names, names[::-1]))

    def _of_scope(self, scope: Scope, alias: str, name: str, outer: Sequence[Condition]) -> Query:
        found: list[exp.Expr] = []
        joins: set[str] = set()
        tested: set[str] = set()
        # In a correlated subquery a name that is not the table's is one of the query around it.
        alone = len(scope.sources) == 1 and not scope.is_correlated_subquery
        for condition in row_conditions(scope, alias, outer):
            part = condition.expression
            named = [self._column(column, alias, alone=alone) for column in part.find_all(exp.Column)]
            owners = {column for column in named if column}
            if not owners:
                continue
            if part.find(exp.Query):
                # Among them may be a column of the subquery's table that has the same name.
                joins |= owners
                self._leave(name, part, "compares with a subquery")
            elif condition.obstacle:
                tested |= owners
                self._leave(name, part, condition.obstacle)
            elif None not in named:
                found.append(self._own(part, alias, alone=alone))
            else:
                joins |= owners
                self._leave(name, part, "compares with another table")
        shared = (each.name.lower() for j in joins_of(scope) for each in j.args.get("using") or ())
        joins.update(self._names[each] for each in shared if each in self._names)
        self._check_columns(scope, alias, name, alone=alone)
        read = {self._read_column(column, alias, alone=alone) for column in read_columns(scope)}
        stars = [self._own_parts(column, alias, alone=alone) for column in scope.stars]
        read |= {self._names.get(parts[0]) for parts in stars if parts}  # address.* reads a struct
        selected = scope.expression.expressions if isinstance(scope.expression, exp.Select) else []
        aggregates = [] if scope.expression.args.get("group") or not alone else aggregated_columns(selected)
        aggregated = {self._column(column, alias, alone=alone) for column in aggregates}
        # A pivot groups by every column that it does not name.
        everything = ["*"] in stars or any(each.args.get("pivots") for each in scope.tables)
        everything = everything or any(isinstance(each, exp.Star) for each in selected)
        columns = list(self._order) if everything else [*joins, *(column for column in read if column)]
        scan = self.scan(name, found, columns)
        if is_preview := is_limited(scope):
            self._leave(name, scope.expression, "returns any rows up to a limit")
        tested -= {*scan.equalities, *scan.ranges, *scan.other_tests}
        return replace(
            scan,
            other_tests=(*scan.other_tests, *sorted(tested)),
            join_keys=tuple(sorted(joins)),
            aggregated=tuple(sorted(filter(None, aggregated))),
            is_preview=is_preview,
        )

    def scan(self, name: str, conditions: Sequence[exp.Expr], columns: Sequence[str]) -> Query:
        """A scan with those of the conditions that a plan can use."""
        used: list[exp.Expr] = []
        for part in conditions:
            try:
                by_rows = self._table.scan(filter=part.sql(_EngineSql)).tests_of_rows()
            except EngineError as error:
                self._leave(name, part, str(error))
                continue
            if by_rows:
                self._leave(name, part, f"no statistics answer {by_rows[0]}")
            else:
                used.append(part)
        kinds: dict[tuple[type[exp.Expr], ...], list[str]] = {_EQUALITIES: [], _RANGES: []}
        for kind, own in kinds.items():
            for part in used:
                for leaf in part.find_all(*kind):
                    own += [".".join(p.name for p in column.parts) for column in leaf.find_all(exp.Column)]
        named = [column for part in conditions for column in part.find_all(exp.Column)]
        in_filters = dict.fromkeys(".".join(part.name for part in column.parts) for column in named)
        tops = {self._top_of.get(column) for column in {*columns, *in_filters}}
        return Query(
            name=name,
            filter=" and ".join(f"({part.sql(_EngineSql)})" for part in used) or None,
            columns=tuple(column for column in self._order if column in tops),
            equalities=tuple(dict.fromkeys(kinds[_EQUALITIES])),
            ranges=tuple(dict.fromkeys(kinds[_RANGES])),
            other_tests=tuple(c for c in in_filters if c not in kinds[_EQUALITIES] and c not in kinds[_RANGES]),
        )

    def _check_columns(self, scope: Scope, alias: str, name: str, *, alone: bool) -> None:
        """Leave a query that names a column which can only be one of the table, and which it does not have."""
        own = scope.expression
        outputs = {each.alias.lower() for each in own.find_all(exp.Alias)}
        unknown = []
        for column in own.find_all(exp.Column):
            parts = [part.name.lower() for part in column.parts]
            is_here = column.find_ancestor(exp.Query) is own
            if not is_here or column.is_star or not (alone or alias in parts[:-1]) or parts[-1][:1] in _METADATA:
                continue
            is_output = len(parts) == 1 and parts[0] in outputs
            if not is_output and self._read_column(column, alias, alone=alone) is None:
                unknown.append(column.sql(_EngineSql))
        if unknown:
            self._leave(name, ", ".join(dict.fromkeys(unknown)), _NO_COLUMN, is_understood=False)

    def _column(self, column: exp.Column, alias: str, *, alone: bool) -> str | None:
        """The full name of a column of the table; None for one of another."""
        return self._names.get(".".join(self._own_parts(column, alias, alone=alone)))

    def _read_column(self, column: exp.Column, alias: str, *, alone: bool) -> str | None:
        """The same, and for a key of a map, as in ``properties.size``, the column that has it."""
        parts = self._own_parts(column, alias, alone=alone)
        found = self._names.get(".".join(parts))
        if found is None and parts and (top := self._names.get(parts[0])) is not None:
            return None if isinstance(self._schema.find(top).type, icebench.StructType) else top
        return found

    def _own_parts(self, column: exp.Column | exp.Dot, alias: str, *, alone: bool) -> list[str]:
        """The name of a column without that of the table; empty for one of another."""
        parts = [part.name.lower() for part in column.parts]
        if len(parts) > 1 and (alias in parts[:-1] or (alone and parts[0] not in self._tops)):
            return parts[parts.index(alias) + 1 if alias in parts[:-1] else len(parts) - 1 :]
        return [] if len(parts) > 1 and parts[0] not in self._tops else parts

    def _own(self, part: exp.Expr, alias: str, *, alone: bool) -> exp.Expr:
        """The condition with the table's own names for its columns."""

        def renamed(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column):
                return node
            name = self._column(node, alias, alone=alone)
            assert name is not None
            return exp.Column(this=exp.to_identifier(name, quoted=True))

        return part.copy().transform(renamed)

    def _leave(self, name: str, node: exp.Expr | str, reason: str, *, is_understood: bool = True) -> None:
        text = node.strip() if isinstance(node, str) else node.sql(_EngineSql)
        shown = text[:_SHOWN] + "..." * (len(text) > _SHOWN)
        self.unused.append(Unused(query=name, text=shown, reason=reason, is_understood=is_understood))
