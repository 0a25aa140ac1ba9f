"""Parses SQL that computes values from the columns of a row into a tree; see
`icebench.engine.columnar.scalar_evaluation`.

::

    sql("price * 1.1")
    sql("case when quantity > 100 then upper(name) || '!' else coalesce(name, 'none') end")

Columns (nested ones with dots), numbers, ``'text'``, ``true``, ``false``, ``null``, ``X'00ff'``, ``DATE '...'``,
``TIME '...'``, ``TIMESTAMP '...'`` (with a zone it is a timestamptz), ``UUID '...'``; ``+ - * / %``, ``||``,
``= <> < <= > >=``, ``and``, ``or``, ``not``, ``is [not] null``, ``is [not] true``, ``[not] in (...)``,
``[not] between``, ``is [not] distinct from``, ``[not] like`` with a text, ``starts_with``, ``isnan``, ``case``, ``if``,
``coalesce``, ``nullif``, ``cast``, ``concat``, ``upper``, ``lower``, ``trim``, ``length``, ``substr`` from a character
on, ``abs``, ``round``, and of dates and timestamps (in UTC) ``year``, ``month``, ``day``, ``hour``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.expressions.dialect import FilterDialect
from icebench.engine.expressions.like_patterns import like_pattern
from icebench.engine.expressions.literals import uuid_literal
from icebench.engine.expressions.scalar import (
    Call,
    CaseNode,
    CastNode,
    ColumnValue,
    LiteralNode,
    LiteralValue,
    Node,
    SqlExpression,
)
from icebench.engine.expressions.sql import shorten
from icebench.engine.expressions.temporal_literals import TemporalLiteral, parse_temporal
from icebench.engine.spec.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    PrimitiveType,
)


def sql(text: str) -> SqlExpression:
    """Parse an expression that computes a value for each row, for `Table.update`, where a plain string is a value.

    Null in arithmetic and comparisons gives null; ``and`` and ``or`` use three-valued logic. Integers are computed with
    64 bits, decimals exactly. Quotients of decimals have six digits after the point or more and are rounded half up;
    those of integers are doubles. An overflow, a division by zero or a failed cast raises Invalid at evaluation, but
    not for rows that ``case``, ``coalesce``, ``and`` and ``or`` leave out.

    Args:
        text: See the module.

    Raises:
        Invalid: Not an expression; the message says where.
        Unsupported: SQL that is not listed there.
    """
    try:
        tree = sqlglot.parse_one(text, dialect=FilterDialect, into=exp.Condition)
        return SqlExpression(text, to_tree(tree))
    except SqlglotError as error:
        raise Invalid(f"cannot parse the expression {shorten(text)!r}: {shorten(str(error))}") from error
    except RecursionError as error:
        raise Invalid("the expression is nested too deeply") from error


_CALLS: dict[type[exp.Expr], str] = {
    exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply", exp.Div: "divide", exp.Mod: "remainder",
    exp.EQ: "equal", exp.NEQ: "not_equal", exp.LT: "less", exp.LTE: "less_equal", exp.GT: "greater",
    exp.GTE: "greater_equal", exp.And: "and", exp.Or: "or", exp.DPipe: "concat", exp.Nullif: "nullif",
    exp.NullSafeEQ: "same", exp.StartsWith: "starts_with",
}  # fmt: skip
"""Of two arguments, `this` and `expression`."""

_ONE: dict[type[exp.Expr], str] = {
    exp.Neg: "negate",
    exp.Not: "not",
    exp.Upper: "upper",
    exp.Lower: "lower",
    exp.Length: "length",
    exp.Abs: "abs",
    exp.IsNan: "is_nan",
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.Hour: "hour",
}
"""Of one argument, `this`."""

_TYPES: dict[str, PrimitiveType] = {
    "BOOLEAN": BOOLEAN,
    "INT": INT,
    "BIGINT": LONG,
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
    "TEXT": STRING,
    "VARCHAR": STRING,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMPNTZ": TIMESTAMP,
    "TIMESTAMPTZ": TIMESTAMPTZ,
}


_TIMESTAMPS = ("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ", "TIMESTAMP_NS", "DATETIME")


def to_tree(node: exp.Expr) -> Node:
    """The tree of parsed SQL; raises as `sql`."""
    kind = type(node)
    if kind is exp.Neg and isinstance(node.this, exp.Literal) and not node.this.is_string:
        number = _literal(node.this).value
        assert isinstance(number, int | float | Decimal)
        return LiteralNode(negative(number))
    if kind in _CALLS:
        return Call(_CALLS[kind], (to_tree(node.this), to_tree(node.expression)))
    if kind in _ONE and not any(value for name, value in node.args.items() if name != "this"):
        return Call(_ONE[kind], (to_tree(node.this),))
    translate = _OTHERS.get(kind)
    if translate is None:
        raise _unsupported(node)
    return translate(node)


def negative(number: float | Decimal) -> int | float | Decimal:
    """The number with the other sign; Python's minus rounds decimals to 28 digits."""
    return number.copy_negate() if isinstance(number, Decimal) else -number


def _unsupported(node: exp.Expr) -> Unsupported:
    return Unsupported(f"`{node.sql(dialect=FilterDialect)}` in a filter or an expression")


def _column(node: exp.Expr) -> Node:
    assert isinstance(node, exp.Column | exp.Dot)
    if isinstance(node.this, exp.Star):
        raise _unsupported(node)
    return ColumnValue(tuple(part.name for part in node.parts))


def _literal(node: exp.Expr) -> LiteralNode:
    text = str(node.this)
    if node.is_string:
        return LiteralNode(text)
    try:
        if text.isdecimal():
            return LiteralNode(int(text))
        return LiteralNode(float(text) if "e" in text.lower() else Decimal(text))
    except (ValueError, InvalidOperation) as error:
        raise Invalid(f"{text[:40]!r} is not a number") from error


def binary(node: exp.Expr) -> bytes:
    """The bytes of ``X'...'``; raises Invalid."""
    digits = str(node.this)
    try:
        return bytes.fromhex(digits)
    except ValueError as error:
        raise Invalid(f"X'{digits}' is not an even number of hexadecimal digits") from error


def text_as(text: str, target: str) -> LiteralValue | None:
    """A text as a literal of a type, such as ``DATE '...'``; None for other types, and where something would be lost.

    Raises:
        Invalid: The text is no such literal.
    """
    if target == "UUID":
        return uuid_literal(text) if re.fullmatch(r"[0-9a-fA-F-]{32,36}", text) else None
    if target not in ("DATE", "TIME", *_TIMESTAMPS):
        return None
    moment = parse_temporal(text)
    if target in ("DATE", "TIME") or moment.kind == "time":
        return moment if moment.kind == target.lower() else None
    return TemporalLiteral("timestamp", moment.nanoseconds) if moment.kind == "date" else moment


def _is(node: exp.Expr) -> Node:
    if isinstance(node.expression, exp.Null):
        return Call("is_null", (to_tree(node.this),))
    if isinstance(node.expression, exp.Boolean):
        wanted = "is_true" if node.expression.this else "is_false"
        return Call(wanted, (to_tree(node.this),))
    raise _unsupported(node)


def _in(node: exp.Expr) -> Node:
    if node.args.get("query") or node.args.get("unnest") or not node.expressions:
        raise _unsupported(node)
    value = to_tree(node.this)
    tests: list[Node] = [Call("equal", (value, to_tree(each))) for each in node.expressions]
    # A balanced tree, so that thousands of values do not nest deeper than Python's stack.
    while len(tests) > 1:
        pairs = [Call("or", (left, right)) for left, right in zip(tests[::2], tests[1::2], strict=False)]
        tests = [*pairs, *tests[len(tests) & ~1 :]]
    return tests[0]


def _between(node: exp.Expr) -> Node:
    value = to_tree(node.this)
    low, high = Call("greater_equal", (value, to_tree(node.args["low"]))), to_tree(node.args["high"])
    return Call("and", (low, Call("less_equal", (value, high))))


def _case(node: exp.Expr) -> Node:
    subject = node.args.get("this")
    default = node.args.get("default")
    branches = []
    for branch in node.args["ifs"]:
        condition = to_tree(branch.this)
        if subject is not None:
            condition = Call("equal", (to_tree(subject), condition))
        branches.append((condition, to_tree(branch.args["true"])))
    return CaseNode(tuple(branches), LiteralNode(None) if default is None else to_tree(default))


def _if(node: exp.Expr) -> Node:
    otherwise = node.args.get("false")
    branch = to_tree(node.this), to_tree(node.args["true"])
    return CaseNode((branch,), LiteralNode(None) if otherwise is None else to_tree(otherwise))


def _cast(node: exp.Expr) -> Node:
    to = node.args["to"]
    name = to.this.name if isinstance(to.this, exp.DataType.Type) else str(to.this)
    if name == "DECIMAL":
        numbers = decimal_sizes(to)
        if numbers is None or len(numbers) != 2 or not 1 <= numbers[0] <= 38 or not 0 <= numbers[1] <= numbers[0]:
            raise Unsupported(f"`{node.sql(dialect=FilterDialect)}`: a decimal needs a precision and a scale")
        return CastNode(to_tree(node.this), DecimalType(*numbers))
    literal = _typed_literal(node, name)
    if literal is not None:
        return literal
    if name not in _TYPES or to.expressions or node.args.get("format"):
        raise _unsupported(node)
    return CastNode(to_tree(node.this), _TYPES[name])


def decimal_sizes(to: exp.Expr) -> list[int] | None:
    """The precision and scale of a decimal type as far as they are given; None if they are no whole numbers."""
    sizes = [each.this for each in to.expressions]
    whole = all(isinstance(each, exp.Literal) and each.is_int for each in sizes)
    return [int(each.name) for each in sizes] if whole else None


def _typed_literal(node: exp.Expr, target: str) -> LiteralNode | None:
    """A text with a type as a literal. None leaves the cast to the evaluation: it fails only for rows that need it."""
    if not (isinstance(node.this, exp.Literal) and node.this.is_string) or node.args.get("format"):
        return None
    text = str(node.this.this)
    if target == "DOUBLE" and text in ("Infinity", "-Infinity"):
        return LiteralNode(float(text))
    try:
        found = text_as(text, target)
    except Invalid:
        if target in _TYPES:
            return None
        raise
    zone = {"TIMESTAMPTZ": "timestamptz", "TIMESTAMPNTZ": "timestamp"}.get(target)
    is_other = zone is not None and isinstance(found, TemporalLiteral) and found.kind != zone
    return None if found is None or is_other else LiteralNode(found)


def _several(name: str) -> Callable[[exp.Expr], Node]:
    def translate(node: exp.Expr) -> Node:
        first = [node.this] if isinstance(node.this, exp.Expr) else []
        return Call(name, tuple(to_tree(each) for each in [*first, *node.expressions]))

    return translate


def _like(node: exp.Expr) -> Node:
    escape = None
    if isinstance(node, exp.Escape):
        node, escape = node.this, str(node.expression.this)
    if not isinstance(node, exp.Like) or not (isinstance(node.expression, exp.Literal) and node.expression.is_string):
        raise _unsupported(node)
    found = Call("like", (to_tree(node.this), LiteralNode(str(like_pattern(str(node.expression.this), escape)))))
    return Call("not", (found,)) if node.args.get("negate") else found


def _substring(node: exp.Expr) -> Node:
    limits = [node.args.get("start"), node.args.get("length")]
    if not all(each is None or (isinstance(each, exp.Literal) and each.is_int) for each in limits):
        raise _unsupported(node)
    start, length = (None if each is None else int(str(each.this)) for each in limits)
    if not start:
        raise _unsupported(node)
    return Call("substr", (to_tree(node.this), LiteralNode(start), *([] if length is None else [LiteralNode(length)])))


def _extract(node: exp.Expr) -> Node:
    part = str(node.this.this).lower()
    if part not in ("year", "month", "day", "hour"):
        raise _unsupported(node)
    return Call(part, (to_tree(node.expression),))


def _trim(node: exp.Expr) -> Node:
    if node.args.get("expression") or node.args.get("position") or node.args.get("collation"):
        raise _unsupported(node)
    return Call("trim", (to_tree(node.this),))


def _round(node: exp.Expr) -> Node:
    digits = node.args.get("decimals")
    if node.args.get("truncate") or not (digits is None or (isinstance(digits, exp.Literal) and digits.is_int)):
        raise _unsupported(node)
    return Call("round", (to_tree(node.this), LiteralNode(0 if digits is None else int(str(digits.this)))))


_OTHERS: dict[type[exp.Expr], Callable[[exp.Expr], Node]] = {
    exp.Paren: lambda node: to_tree(node.this),
    exp.Column: _column,
    exp.Dot: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda node: LiteralNode(bool(node.this)),
    exp.Null: lambda _: LiteralNode(None),
    exp.HexString: lambda node: LiteralNode(binary(node)),
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Case: _case,
    exp.If: _if,
    exp.Cast: _cast,
    exp.Coalesce: _several("coalesce"),
    exp.Concat: _several("concat"),
    exp.Trim: _trim,
    exp.Round: _round,
    exp.Like: _like,
    exp.Escape: _like,
    exp.Substring: _substring,
    exp.Extract: _extract,
    exp.NullSafeNEQ: lambda node: Call("not", (Call("same", (to_tree(node.this), to_tree(node.expression))),)),
}
