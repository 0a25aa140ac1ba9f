"""Parses SQL-like text into a filter.

::

    ss_item_sk < 5 and ss_store_sk in (1, 2) and not (address.city like 'San%' or "odd name" is null)

Comparisons ``= == != <> < <= > >= <=>`` of a column with a literal, ``[not] in``, ``[not] between``, ``is [not] null``,
``is [not] nan``, ``isnan(c)``, ``is [not] true/false``, ``is [not] distinct from``, ``[not] like 'prefix%'``,
``starts_with(c, 'prefix')``, boolean columns by themselves, ``and``, ``or``, ``not``, ``true``, ``false``.

Whatever else `icebench.engine.expressions.parse_scalar` computes may stand for the column or the literal: another
column, arithmetic, functions. Such a test is evaluated for each row that the rest of the filter leaves.

Literals: numbers, ``'text'``, ``true``, ``X'00ff'``, ``DATE '...'``, ``TIME '...'``, ``TIMESTAMP '...'``,
``UUID '...'`` and ``cast('...' as type)``. Names may be dotted, and quoted with ``"`` or a backtick.
"""

from __future__ import annotations

import operator
import re
import uuid
from collections.abc import Callable
from decimal import MAX_PREC, Context, Decimal, InvalidOperation
from typing import Any, cast

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.expressions import parse_scalar
from icebench.engine.expressions.dialect import FilterDialect
from icebench.engine.expressions.like_patterns import like, like_pattern
from icebench.engine.expressions.literals import place
from icebench.engine.expressions.predicate import (
    FALSE,
    MIRRORED,
    TRUE,
    Computed,
    Constant,
    Operator,
    Predicate,
    all_of,
    any_of,
    compare,
    equal,
    is_in,
    is_nan,
    is_null,
    negation,
    not_null,
    starts_with,
)
from icebench.engine.expressions.scalar import LiteralValue
from icebench.engine.expressions.sql import shorten
from icebench.engine.expressions.temporal_literals import TemporalLiteral
from icebench.engine.spec.types import FLOAT

_COMPARISONS: dict[type[exp.Expr], Operator] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_FOLDS: dict[Operator, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_MOST_DIGITS = 38
"""Of a decimal."""
_PLAIN = (exp.Column, exp.Dot, exp.Literal, exp.Boolean, exp.Null, exp.HexString)
_MISSING = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]+'>")
"""What sqlglot says where an operand should be."""


def parse(text: str) -> Predicate:
    """Parse a filter.

    Raises:
        Invalid: Not a filter; the message says where.
        Unsupported: SQL that filters do not have, such as subqueries.
    """
    if not text.strip():
        raise Invalid("the filter is empty; write `true` to keep every row")
    try:
        tree = sqlglot.parse_one(text, dialect=FilterDialect, into=exp.Condition)
        return _predicate(tree)
    except ParseError as error:
        where = error.errors[0] if error.errors else {}
        place = f" at line {where['line']}, column {where['col']}" if where else ""
        said = shorten(_MISSING.sub("something is missing", str(where.get("description", error))))
        raise Invalid(f"cannot parse the filter {shorten(text)!r}: {said}{place}") from error
    except SqlglotError as error:
        raise Invalid(f"cannot parse the filter {shorten(text)!r}: {shorten(str(error))}") from error
    except RecursionError as error:
        raise Invalid("the filter is nested too deeply; use `in (...)` for many values") from error


def _predicate(node: exp.Expr) -> Predicate:
    return _PREDICATES.get(type(node), _computed)(node)


def _computed(node: exp.Expr) -> Predicate:
    """A test that is evaluated row by row."""
    return Computed(parse_scalar.to_tree(node))


def _is_plain(column: exp.Expr, *others: exp.Expr) -> bool:
    """Whether a test is of one column with literals, which statistics answer."""
    return not any(_is_computed(each) for each in (column, *others)) and not any(map(_is_column, map(_unwrap, others)))


def _is_computed(node: exp.Expr) -> bool:
    """Whether a value is neither a column nor a literal."""
    inner = _unwrap(node)
    while isinstance(inner, (exp.Neg, exp.Cast)) and not _is_column(_unwrap(inner.this)):
        inner = _unwrap(inner.this)
    return not isinstance(inner, _PLAIN)


def _unsupported(node: exp.Expr) -> Unsupported:
    return Unsupported(f"`{node.sql(dialect=FilterDialect)}` in a filter")


def _comparison(node: exp.Expr) -> Predicate:
    symbol = _COMPARISONS[type(node)]
    left, right = _unwrap(node.this), _unwrap(node.expression)
    if (_is_column(left) and _is_column(right)) or _is_computed(left) or _is_computed(right):
        return _computed(node)
    if _is_column(left):
        return compare(_column(left), symbol, _literal(right))
    if _is_column(right):
        return compare(_column(right), MIRRORED[symbol], _literal(left))
    return _fold(_literal(left), symbol, _literal(right), node)


def _fold(left: LiteralValue, symbol: Operator, right: LiteralValue, node: exp.Expr) -> Predicate:
    """Evaluate a comparison of two literals, such as the ``1 = 1`` of query generators."""
    numbers = (int, Decimal)
    same = type(left) is type(right) or (isinstance(left, numbers) and isinstance(right, numbers))
    if isinstance(left, TemporalLiteral) or isinstance(left, bool) != isinstance(right, bool) or not same:
        raise _unsupported(node)
    return Constant(_FOLDS[symbol](left, right))


def _null_safe(node: exp.Expr) -> Predicate:
    """Whether both sides are the same or both null, of either form of the comparison."""
    left, right = _unwrap(node.this), _unwrap(node.expression)
    if (_is_column(left) and _is_column(right)) or _is_computed(left) or _is_computed(right):
        return _computed(exp.NullSafeEQ(this=left, expression=right))
    column, value = (left, right) if _is_column(left) else (right, left)
    if isinstance(value, exp.Null):
        return is_null(_column(column))
    name = _column(column)
    return all_of([not_null(name), equal(name, _literal(value))])


def _is(node: exp.Expr) -> Predicate:
    if _is_computed(node.this):
        return _computed(node)
    name, right = _column(node.this), node.expression
    if isinstance(right, exp.Null):
        return is_null(name)
    if isinstance(right, exp.Boolean):
        return all_of([not_null(name), equal(name, bool(right.this))])
    if isinstance(right, exp.Column) and right.name.lower() == "nan":
        return is_nan(name)
    raise _unsupported(node)


def _in(node: exp.Expr) -> Predicate:
    if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
        raise _unsupported(node)
    if not node.expressions:
        raise Invalid(f"`{node.sql(dialect=FilterDialect)}` has no values")
    if not _is_plain(node.this, *node.expressions):
        return any_of(_predicate(exp.EQ(this=node.this, expression=each)) for each in node.expressions)
    values = [_literal(each) for each in node.expressions]
    return is_in(_column(node.this), values)


def _between(node: exp.Expr) -> Predicate:
    if node.args.get("symmetric"):
        raise _unsupported(node)
    if not _is_plain(node.this, node.args["low"], node.args["high"]):
        above = exp.GTE(this=node.this, expression=node.args["low"])
        below = exp.LTE(this=node.this, expression=node.args["high"])
        return all_of([_predicate(above), _predicate(below)])
    name = _column(node.this)
    low, high = _literal(node.args["low"]), _literal(node.args["high"])
    return all_of([compare(name, ">=", low), compare(name, "<=", high)])


def _like(node: exp.Expr, escape: str | None = None) -> Predicate:
    pattern = like_pattern(_text(node.expression), escape)
    found = like(parse_scalar.to_tree(node.this), pattern)
    return negation(found) if node.args.get("negate") else found


def _escaped(node: exp.Expr) -> Predicate:
    if not isinstance(node.this, exp.Like):
        raise _unsupported(node)
    return _like(node.this, _text(node.expression))


def _starts_with(node: exp.Expr) -> Predicate:
    if _is_computed(node.this):
        return _computed(node)
    value = _literal(node.expression)
    if not isinstance(value, (str, bytes)):
        raise Invalid(f"nothing starts with {value!r}; give a text or binary literal")
    return starts_with(_column(node.this), value)


def _unwrap(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _is_column(node: exp.Expr) -> bool:
    return isinstance(node, (exp.Column, exp.Dot))


def _column(node: exp.Expr) -> str:
    """The full dotted name of a column reference."""
    node = _unwrap(node)
    match node:
        case exp.Column() if isinstance(node.this, exp.Identifier):
            return ".".join(part.name for part in node.parts)
        case exp.Dot() if isinstance(node.expression, exp.Identifier):
            return f"{_column(node.this)}.{node.expression.name}"
        case exp.Literal() | exp.Boolean() | exp.Null():
            raise Invalid(f"`{node.sql(dialect=FilterDialect)}` stands where a column is expected")
    raise _unsupported(node)


def _text(node: exp.Expr) -> str:
    if isinstance(node, exp.Literal) and node.is_string:
        return str(node.this)
    raise Invalid(f"`{node.sql(dialect=FilterDialect)}` stands where a text in single quotes is expected")


def _literal(node: exp.Expr) -> LiteralValue:
    node = _unwrap(node)
    match node:
        case exp.Literal():
            return str(node.this) if node.is_string else _number(str(node.this))
        case exp.Neg():
            value = _literal(node.this)
            if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
                return parse_scalar.negative(value)
        case exp.Boolean():
            return bool(node.this)
        case exp.HexString():
            return parse_scalar.binary(node)
        case exp.Null():
            raise Invalid("null is not comparable; use `is null`, `is not null` or `<=>`")
        case exp.Cast() if type(node) is exp.Cast:
            return _cast(_literal(node.this), node)
        case exp.Column() | exp.Dot():
            raise Unsupported(f"the column `{node.sql(dialect=FilterDialect)}` where a literal is expected")
    raise _unsupported(node)


def _number(text: str) -> int | Decimal:
    try:
        return int(text) if text.isdigit() else Decimal(text)
    except (ValueError, InvalidOperation) as error:
        raise Invalid(f"{text[:40]!r} is not a number") from error


def _cast(value: LiteralValue, node: exp.Cast) -> LiteralValue:
    """Evaluate a cast of a literal, if all engines agree on its value."""
    target = node.to.this.name if isinstance(node.to.this, exp.DType) else str(node.to.this)
    made: LiteralValue | None = None
    match value:
        case _ if target in _INTEGERS or target in ("DECIMAL", "FLOAT", "DOUBLE"):
            made = _cast_number(value, target, node)
        case bool() if target == "BOOLEAN":
            made = value
        case str() if target in ("VARCHAR", "TEXT", "CHAR") and not node.to.expressions:
            made = value
        case str() | bytes() if target in ("BINARY", "VARBINARY"):
            made = value.encode() if isinstance(value, str) else value
        case str():
            made = parse_scalar.text_as(value, target)
    if made is None:
        raise _unsupported(node)
    return made


def _cast_number(value: LiteralValue, target: str, node: exp.Cast) -> int | float | Decimal | None:
    if isinstance(value, (TemporalLiteral, bytes, uuid.UUID, bool)):
        return None
    try:
        number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    except InvalidOperation as error:
        raise Invalid(f"{value!r} is not a number") from error
    if number.is_nan():
        raise Invalid("NaN is not a literal; use `is nan` or `is not nan`")
    if target == "FLOAT":
        nearest = place(FLOAT, number, "")
        return cast("float", nearest.floor) if nearest.exact else None
    if target == "DOUBLE":
        return float(number)  # a column of type float rounds it, see `engine.expressions.literals`
    if not number.is_finite():
        return None
    if target == "DECIMAL":
        sizes = parse_scalar.decimal_sizes(node.to)
        if sizes is None:
            return None
        precision, scale = sizes[0] if sizes else 38, sizes[1] if len(sizes) > 1 else 0
        fits = precision <= _MOST_DIGITS and number.copy_abs() < Decimal(10) ** (precision - scale)
        return number if not sizes or (fits and _has_scale(number, scale)) else None
    limit = 1 << (_INTEGERS[target] - 1)
    return int(number) if -limit <= number < limit and _has_scale(number, 0) else None


def _has_scale(number: Decimal, scale: int) -> bool:
    """Whether a number has no more digits than this after the point; exactly, unlike Python's arithmetic."""
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return exponent >= -scale or number == number.quantize(Decimal(1).scaleb(-scale), context=Context(prec=MAX_PREC))


_PREDICATES: dict[type[exp.Expr], Callable[[Any], Predicate]] = {
    exp.Paren: lambda node: _predicate(node.this),
    exp.And: lambda node: all_of(_predicate(each) for each in node.flatten()),
    exp.Or: lambda node: any_of(_predicate(each) for each in node.flatten()),
    exp.Not: lambda node: negation(_predicate(node.this)),
    exp.Boolean: lambda node: TRUE if node.this else FALSE,
    exp.Column: lambda node: equal(_column(node), True),
    exp.Dot: lambda node: equal(_column(node), True),
    **dict.fromkeys(_COMPARISONS, _comparison),
    exp.NullSafeEQ: _null_safe,
    exp.NullSafeNEQ: lambda node: negation(_null_safe(node)),
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.Escape: _escaped,
    exp.StartsWith: _starts_with,
    exp.IsNan: lambda node: _computed(node) if _is_computed(node.this) else is_nan(_column(node.this)),
}
