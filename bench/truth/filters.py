"""Filters as DuckDB understands them: what docs/design/expressions.md says of a filter, where DuckDB by itself takes
something else for it.

- Names: the exact one, or the only one that differs in case alone.
- A date, time or timestamp is compared with a text in whole nanoseconds, with the zone that the text has.
- ``X'00ff'`` is bytes; ``is nan`` is never null; a number compared with a float or double is rounded to that type.
- A cast of a number with decimals to a whole number truncates. The SQL standard leaves the choice between rounding and
  truncating to implementations (ISO/IEC 9075-2, 6.13 <cast specification>); Spark truncates, as filters here do, and
  DuckDB rounds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import ClassVar

import sqlglot
from sqlglot import exp, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError

from icebench.bench.engines.sql_text import quoted
from icebench.bench.errors import ConfigError
from icebench.bench.truth.metadata import Column, TableJson
from icebench.bench.truth.sql import NoTruth

COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
TEMPORAL = ("date", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")
WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")
DATE_NANOS = 86_400_000_000_000
MOST_DIGITS = 38
"""Of a decimal in DuckDB."""

_MOMENT = re.compile(
    r"(?P<base>(?P<date>[-+\d]*-\d\d-\d\d)?[Tt ]?(\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?)(?P<rest>\d{0,3})"
    r"\s?(?P<zone>[Zz]|[+-]\d\d(:?\d\d)?)?"
)
_MISSING = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]+'>")
_PARTS = (exp.Year, exp.Month, exp.Day, exp.DayOfMonth, exp.Hour, exp.Extract, exp.Cast)
_TEXTS = (exp.Lower, exp.Upper, exp.DPipe, exp.Concat, exp.Substring, exp.Trim)


class _FilterDialect(Dialect):
    """Both kinds of quotes for names, one for text, and bytes."""

    class Tokenizer(tokens.Tokenizer):
        IDENTIFIERS: ClassVar = ['"', "`"]
        QUOTES: ClassVar = ["'"]
        STRING_ESCAPES: ClassVar = ["'"]
        HEX_STRINGS: ClassVar = [("x'", "'"), ("X'", "'")]


def parsed(filter: str) -> exp.Condition:
    """The tree of a filter.

    Raises:
        ConfigError: It cannot be parsed.
    """
    try:
        return sqlglot.parse_one(filter, dialect=_FilterDialect, into=exp.Condition)
    except SqlglotError as error:
        where = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
        place = f" at line {where['line']}, column {where['col']}" if where else ""
        said = _MISSING.sub("something is missing", " ".join(str(where.get("description", error)).split()))
        raise ConfigError(f"filter {filter!r} cannot be parsed: {said}{place}") from error


def filter_columns(filter: str, table: TableJson) -> tuple[Column, ...]:
    """The top-level columns that a filter names, in the table's order. Raises as `filter_names` does."""
    named = filter_names(filter, [column.name for column in table.columns])
    return tuple(column for column in table.columns if column.name in named)


def filter_names(filter: str, known: Collection[str]) -> set[str]:
    """The top-level columns that a filter names, out of these.

    Raises:
        ConfigError: The filter cannot be parsed, or names a column that is not known, or several that differ in case.
    """
    return {_resolved(path_of(column)[0], known, filter) for column in _references(parsed(filter))}


def references(tree: exp.Expr) -> list[tuple[str, ...]]:
    """The columns, and fields of columns, that a tree names, each once."""
    return list(dict.fromkeys(tuple(path_of(column)) for column in _references(tree)))


def path_of(column: exp.Expr) -> list[str]:
    """`a.b` is field b of the struct a: the first part is the column."""
    return [part.name for part in _parts(column)]


def _parts(column: exp.Expr) -> list[exp.Expr]:
    return list(column.parts) if isinstance(column, exp.Column | exp.Dot) else []


def is_nan_name(node: exp.Expr) -> bool:
    """Whether this is the ``nan`` of ``is nan``, which a parser takes for a column."""
    return isinstance(node.parent, exp.Is) and node.arg_key == "expression" and node.name.lower() == "nan"


def _references(tree: exp.Expr) -> Iterable[exp.Expr]:
    """Columns and fields of columns; of a chain, the longest."""
    for node in tree.find_all(exp.Column, exp.Dot):
        if not isinstance(node.parent, exp.Dot) and not is_nan_name(node):
            yield node


def _resolved(name: str, known: Collection[str], filter: str) -> str:
    if name in known:
        return name
    found = [each for each in known if each.lower() == name.lower()]
    if not found:
        raise ConfigError(f"filter {filter!r} names column {name!r}, which the table does not have")
    if len(found) > 1:
        several = " and ".join(map(repr, found))
        raise ConfigError(f"filter {filter!r} names column {name!r}, which is {several} without regard to case")
    return found[0]


def resolved(filter: str, known: Collection[str]) -> exp.Condition:
    """The tree of a filter with the first part of each column as the table has it. Raises as `filter_names` does."""
    tree = parsed(filter)
    for column in list(_references(tree)):
        _parts(column)[0].set("this", _resolved(_parts(column)[0].name, known, filter))
    return tree


def to_duckdb(filter: str, columns: Mapping[str, tuple[str, str]]) -> str:
    """The filter as DuckDB's SQL.

    Args:
        filter: SQL, as users write it.
        columns: Name -> the name in DuckDB, and the Iceberg type ("nested" for structs, lists and maps).

    Raises:
        ConfigError: As `filter_names`.
        NoTruth: Engines differ on what it means.
    """
    tree: exp.Expr = exp.Paren(this=resolved(filter, columns))
    for node in list(tree.find_all(*COMPARISONS, exp.In, exp.Between)):
        operands = [node.this, *_others(node)]
        kinds = {kind for kind in (_kind(operand, columns) for operand in operands) if kind is not None}
        for operand in operands:
            for kind in kinds:
                _place(operand, kind, columns)
    for node in list(tree.find_all(exp.HexString)):
        node.replace(exp.Var(this=f"unhex('{node.this}')"))
    for node in list(tree.find_all(exp.Cast)):
        if node.to.this.name in WHOLE and not _is_text(node.this, columns):
            node.set("this", exp.Anonymous(this="trunc", expressions=[node.this]))
    for test in list(tree.find_all(exp.Is, exp.IsNan)):
        if isinstance(test, exp.IsNan) or is_nan_name(test.expression):
            test.replace(exp.Coalesce(this=exp.IsNan(this=test.this), expressions=[exp.false()]))
    for column in [each for each in _references(tree) if isinstance(each.parent, _PARTS)]:
        if (_kind(column, columns) or "").endswith("_ns"):
            column.replace(exp.Var(this=_microseconds(columns[column.name][0])))
    for column in list(_references(tree)):
        column.replace(exp.Var(this=sql_of(path_of(column), columns)))
    return tree.sql(dialect="duckdb")


def _others(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.In):
        return list(node.expressions)
    return [node.args["low"], node.args["high"]] if isinstance(node, exp.Between) else [node.expression]


def _kind(operand: exp.Expr, columns: Mapping[str, tuple[str, str]]) -> str | None:
    """The type of a top-level column, ``"nested"`` for a field of one; None for anything else."""
    column = operand.unnest()
    parts = _parts(column)
    return None if not parts else columns[parts[0].name][1]


def sql_of(path: Sequence[str], columns: Mapping[str, tuple[str, str]]) -> str:
    """A column, or a field of structs, as DuckDB's SQL."""
    first, *fields = path
    text = columns[first][0]
    for field in fields:
        text = f"struct_extract({text}, {quoted(field)})"
    return text


def _place(operand: exp.Expr, kind: str, columns: Mapping[str, tuple[str, str]]) -> None:
    """Write one side of a comparison with a column of that type, or a field of a struct, so that it is compared
    exactly: beside a number with an exponent DuckDB takes all of them for doubles."""
    inner = operand.unnest()
    if kind in TEMPORAL:
        text = moment_text(inner)
        if text is not None:
            operand.replace(exp.Var(this=_nanoseconds_of_text(text, kind)))
        elif _kind(operand, columns) == kind:
            operand.replace(exp.Var(this=_nanoseconds_of_column(columns[inner.name][0], kind)))
        return
    number = number_text(inner)
    if number is None:
        return
    if kind in ("float", "double"):
        operand.replace(exp.Var(this=f"CAST({quoted(number)} AS {kind.upper()})"))
    elif "e" in number.lower() and abs(Decimal(number).adjusted()) < MOST_DIGITS:
        operand.replace(exp.Var(this=f"{Decimal(number):f}"))


def moment_text(node: exp.Expr) -> str | None:
    """The text of a literal that may be a date or time: ``'…'``, ``TIMESTAMP '…'``, ``cast('…' as date)``."""
    if isinstance(node, exp.Cast):
        node = node.this.unnest()
    return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None


def number_text(node: exp.Expr) -> str | None:
    """The text of a number with its sign; None for anything else."""
    if isinstance(node, exp.Neg):
        inner = number_text(node.this.unnest())
        return None if inner is None else inner[1:] if inner.startswith("-") else f"-{inner}"
    return str(node.this) if isinstance(node, exp.Literal) and not node.is_string else None


def _nanoseconds_of_text(text: str, kind: str) -> str:
    """A literal in nanoseconds. DuckDB reads it, but for what is below a microsecond."""
    match = _MOMENT.fullmatch(text.strip())
    if match is None:
        raise NoTruth(f"{text!r} is not a date or time that all engines read alike")
    zoned = kind.startswith("timestamptz")
    if zoned != (match["zone"] is not None) or (kind == "time") != (match["date"] is None):
        raise NoTruth(f"engines differ on how a {kind} compares with {text!r}")
    target = "TIME" if kind == "time" else "TIMESTAMPTZ" if zoned else "TIMESTAMP"
    base = f"{match['base'].upper()}{(match['zone'] or '').upper()}"
    rest = int(match["rest"].ljust(3, "0")) if match["rest"] else 0
    return f"(CAST(epoch_us(CAST({quoted(base)} AS {target})) AS HUGEINT) * 1000 + {rest})"


def _nanoseconds_of_column(column: str, kind: str) -> str:
    if kind == "date":
        return f"(CAST({column} - DATE '1970-01-01' AS HUGEINT) * {DATE_NANOS})"
    if kind.endswith("_ns"):
        return f"CAST(epoch_ns({column}) AS HUGEINT)"
    return f"(CAST(epoch_us({column}) AS HUGEINT) * 1000)"


def _microseconds(column: str) -> str:
    """A timestamp with nanoseconds as one without: DuckDB rounds those before 1970 up."""
    ticks = f"CAST(epoch_ns({column}) AS HUGEINT)"
    return f"make_timestamp(CAST(({ticks} - ({ticks} % 1000 + 1000) % 1000) // 1000 AS BIGINT))"


def _is_text(node: exp.Expr, columns: Mapping[str, tuple[str, str]]) -> bool:
    """Whether a value is known to be no number."""
    inner = node.unnest()
    kind = _kind(inner, columns)
    if kind not in (None, "nested"):
        return not (kind in ("int", "long", "float", "double") or kind.startswith("decimal"))
    if isinstance(inner, exp.Cast):
        return inner.to.this.name not in (*WHOLE, "FLOAT", "DOUBLE", "DECIMAL")
    return isinstance(inner, (*_TEXTS, exp.Boolean)) or (isinstance(inner, exp.Literal) and inner.is_string)
