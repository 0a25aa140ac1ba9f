"""The meaning of filters, written down a second time, from docs/design/expressions.md, one row at a time in Python.

Values are whole numbers, decimals, floats, text, bytes (uuids too), booleans, and nanoseconds for dates and times.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import pyarrow as pa
from sqlglot import exp

from icebench.bench.truth.filters import (
    COMPARISONS,
    DATE_NANOS,
    TEMPORAL,
    WHOLE,
    is_nan_name,
    moment_text,
    number_text,
    path_of,
)

Row = Sequence[Any]
Condition = Callable[[Row], bool | None]
_EXACT = Context(prec=120)
_FLOATS = ("float", "double")
_NUMBERS = ("whole", "decimal", *_FLOATS)
_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_KINDS = {"int": "whole", "long": "whole", "fixed": "binary"}
_LITERAL_TYPES = ("DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ", "DATETIME", "UUID")
_MOMENT = re.compile(
    r"(?:(\d{4})-(\d\d)-(\d\d))?(?:[Tt ]?(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?\s?(Z|z|([+-])(\d\d):?(\d\d)?)?"
)


class NoOpinion(Exception):
    """A filter, or a value, of which the definition is not written down here."""


@dataclass(frozen=True)
class _Term:
    """A value: its kind, how a row gives it, and its literal text, if it is one."""

    kind: str
    of: Callable[[Row], Any]
    literal: str | None = None
    is_column: bool = False


def compiled(tree: exp.Expr, kinds: Mapping[tuple[str, ...], str]) -> Condition:
    """A filter as a function of a row.

    Args:
        tree: Of `icebench.bench.truth.filters.resolved`.
        kinds: Path of a column or field -> Iceberg type, in the order of a row's values.

    Raises:
        NoOpinion: Something in it is not written down here; also when a row is evaluated. The function raises
            ArithmeticError or ValueError where a filter fails.
    """
    term = _Compiler(kinds).term(tree)
    if term.kind != "boolean":
        raise NoOpinion(tree.sql())
    return term.of


def nanoseconds_per_unit(kind: pa.DataType) -> int | None:
    """Of a type of dates or times; None for others."""
    if pa.types.is_date32(kind):
        return DATE_NANOS
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[kind.unit]
    return None


def order_of(one: Any, other: Any) -> int:  # noqa: ANN401 - values of one kind
    """-1, 0 or 1. NaN equals itself and is above all numbers; -0.0 is 0.0; text is ordered by its UTF-8 bytes."""
    if isinstance(one, str):
        one, other = one.encode(), other.encode()
    nan, other_nan = one != one, other != other  # noqa: PLR0124
    if nan or other_nan:
        return int(nan) - int(other_nan)
    return int(one > other) - int(one < other)


_TESTS: dict[type[exp.Expr], Callable[[int], bool]] = {
    exp.EQ: lambda order: order == 0,
    exp.NEQ: lambda order: order != 0,
    exp.LT: lambda order: order < 0,
    exp.LTE: lambda order: order <= 0,
    exp.GT: lambda order: order > 0,
    exp.GTE: lambda order: order >= 0,
}


class _Compiler:
    def __init__(self, kinds: Mapping[tuple[str, ...], str]) -> None:
        self._kinds = kinds

    def term(self, node: exp.Expr) -> _Term:
        node = node.unnest()
        text = number_text(node)
        if text is not None:
            return _number(text)
        if isinstance(node, COMPARISONS):
            return self._comparison(node)
        own = _COMPILE.get(type(node))
        if own is None:
            raise NoOpinion(node.sql())
        return own(self, node)

    def boolean(self, node: exp.Expr) -> Condition:
        term = self.term(node)
        if term.kind != "boolean":
            raise NoOpinion(node.sql())
        return term.of

    def column(self, node: exp.Expr) -> _Term:
        path = tuple(path_of(node))
        if path not in self._kinds or self._kinds[path] == "nested":
            raise NoOpinion(node.sql())
        kind = self._kinds[path].partition("(")[0].partition("[")[0].removesuffix("_ns")
        place = list(self._kinds).index(path)
        return _Term(_KINDS.get(kind, kind), lambda row: row[place], is_column=True)

    def _comparison(self, node: exp.Expr) -> _Term:
        kind = type(node)
        left, right = _matched(self.term(node.this), self.term(node.expression), node)
        if kind in (exp.NullSafeEQ, exp.NullSafeNEQ):
            return _Term("boolean", lambda row: _is_same(left.of(row), right.of(row)) == (kind is exp.NullSafeEQ))
        return _Term("boolean", _compare(left, right, _TESTS[kind]))

    def conjunction(self, node: exp.Expr) -> _Term:
        left, right = self.boolean(node.this), self.boolean(node.expression)
        decisive = isinstance(node, exp.Or)

        def evaluate(row: Row) -> bool | None:
            first = left(row)
            if first is decisive:
                return decisive
            second = right(row)
            return decisive if second is decisive else None if None in (first, second) else not decisive

        return _Term("boolean", evaluate)

    def negation(self, node: exp.Expr) -> _Term:
        return _Term("boolean", _negated(self.boolean(node.this)))

    def membership(self, node: exp.Expr) -> _Term:
        if node.args.get("query") or node.args.get("unnest") or not node.expressions:
            raise NoOpinion(node.sql())
        value = self.term(node.this)
        tests = [_compare(*_matched(value, self.term(each), node), _TESTS[exp.EQ]) for each in node.expressions]

        def evaluate(row: Row) -> bool | None:
            found = [test(row) for test in tests]
            return True if True in found else None if None in found else False

        return _Term("boolean", evaluate)

    def between(self, node: exp.Expr) -> _Term:
        value = self.term(node.this)
        low = _compare(*_matched(value, self.term(node.args["low"]), node), _TESTS[exp.GTE])
        high = _compare(*_matched(value, self.term(node.args["high"]), node), _TESTS[exp.LTE])

        def evaluate(row: Row) -> bool | None:
            found = (low(row), high(row))
            return False if False in found else None if None in found else True

        return _Term("boolean", evaluate)

    def is_(self, node: exp.Expr) -> _Term:
        wanted = node.expression
        if is_nan_name(wanted):
            return self.is_nan(node)
        if isinstance(wanted, exp.Null):
            value = self.term(node.this).of
            return _Term("boolean", lambda row: value(row) is None)
        if isinstance(wanted, exp.Boolean):
            condition = self.boolean(node.this)
            return _Term("boolean", lambda row: condition(row) is bool(wanted.this))
        raise NoOpinion(node.sql())

    def is_nan(self, node: exp.Expr) -> _Term:
        value = self.term(node.this)
        if value.kind not in _FLOATS:
            raise NoOpinion(node.sql())
        return _Term("boolean", lambda row: (found := value.of(row)) is not None and math.isnan(found))

    def like(self, node: exp.Expr) -> _Term:
        escape = None
        if isinstance(node, exp.Escape):
            node, escape = node.this, str(node.expression.this)
        pattern = moment_text(node.expression) if isinstance(node, exp.Like) else None
        if pattern is None or (escape is None and "\\" in pattern):
            raise NoOpinion(node.sql())
        matches = re.compile(_pattern(pattern, escape), re.DOTALL).fullmatch
        value = self._text(node.this)
        test = _of_one(lambda text: matches(text) is not None)(value.of)
        return _Term("boolean", _negated(test) if node.args.get("negate") else test)

    def starts_with(self, node: exp.Expr) -> _Term:
        value, prefix = self.term(node.this), self.term(node.expression)
        if value.kind != prefix.kind or value.kind not in ("string", "binary"):
            raise NoOpinion(node.sql())
        start = prefix.of(())
        return _Term("boolean", _of_one(lambda found: found.startswith(start))(value.of))

    def _text(self, node: exp.Expr) -> _Term:
        value = self.term(node)
        if value.kind != "string":
            raise NoOpinion(node.sql())
        return value

    def of_text(self, node: exp.Expr) -> _Term:
        functions: dict[type[exp.Expr], Callable[[str], Any]] = {
            exp.Upper: str.upper,
            exp.Lower: str.lower,
            exp.Length: len,
            exp.Trim: lambda t: t.strip(" "),
        }
        if any(value for name, value in node.args.items() if name != "this"):
            raise NoOpinion(node.sql())
        value, own = self._text(node.this), functions[type(node)]

        def evaluate(text: str) -> Any:  # noqa: ANN401
            if not text.isascii() and own in (str.upper, str.lower):
                raise NoOpinion("cases of other letters than ASCII's")
            return own(text)

        return _Term("whole" if own is len else "string", _of_one(evaluate)(value.of))

    def concatenation(self, node: exp.Expr) -> _Term:
        parts = [node.this, node.expression] if isinstance(node, exp.DPipe) else node.expressions
        texts = [self._text(part).of for part in parts]

        def evaluate(row: Row) -> str | None:
            found = [text(row) for text in texts]
            return None if None in found else "".join(found)

        return _Term("string", evaluate)

    def substring(self, node: exp.Expr) -> _Term:
        limits = [number_text(each) for each in (node.args.get("start"), node.args.get("length")) if each is not None]
        if not limits or None in limits or any(not str(each).isdigit() for each in limits) or limits[0] == "0":
            raise NoOpinion(node.sql())
        start, *length = (int(str(each)) for each in limits)
        stop = start - 1 + length[0] if length else None
        return _Term("string", _of_one(lambda text: text[start - 1 : stop])(self._text(node.this).of))

    def part(self, node: exp.Expr) -> _Term:
        name = node.this.name.lower() if isinstance(node, exp.Extract) else type(node).__name__.lower()
        value = self.term(node.expression if isinstance(node, exp.Extract) else node.this)
        place = {"year": 0, "month": 1, "day": 2, "dayofmonth": 2, "hour": 3}.get(name)
        if place is None or value.kind not in ("date", "timestamp", "timestamptz") or value.literal is not None:
            raise NoOpinion(node.sql())
        if value.kind == "date" and name == "hour":
            raise NoOpinion(node.sql())
        return _Term("whole", _of_one(lambda moment: _calendar(moment)[place])(value.of))

    def arithmetic(self, node: exp.Expr) -> _Term:
        left, right = self.term(node.this), self.term(node.expression)
        kinds, divides = {left.kind, right.kind}, isinstance(node, exp.Div)
        # A quotient of decimals, and 32-bit floats, have rules of their own.
        if not kinds <= {"whole", "decimal", "double"} or ("decimal" in kinds and isinstance(node, exp.Div | exp.Mod)):
            raise NoOpinion(node.sql())
        kind = "double" if divides or "double" in kinds else "decimal" if "decimal" in kinds else "whole"
        own = _ARITHMETIC[type(node)]

        def evaluate(row: Row) -> Any:  # noqa: ANN401
            one, other = left.of(row), right.of(row)
            if one is None or other is None:
                return None
            if kind == "double":
                return own(float(one), float(other))
            if kind == "decimal":
                return own(Decimal(one), Decimal(other))
            return _long(own(one, other))

        return _Term(kind, evaluate)

    def of_number(self, node: exp.Expr) -> _Term:
        value = self.term(node.this)
        if value.kind not in ("whole", "decimal", "double"):
            raise NoOpinion(node.sql())
        own: Callable[[Any], Any] = _negative if isinstance(node, exp.Neg) else abs
        whole = value.kind == "whole"
        return _Term(value.kind, _of_one(lambda n: _long(own(n)) if whole else own(n))(value.of))

    def coalesce(self, node: exp.Expr) -> _Term:
        terms = [self.term(each) for each in (node.this, *node.expressions)]
        kind = _common([term.kind for term in terms], node)

        def evaluate(row: Row) -> Any:  # noqa: ANN401
            return next((found for term in terms if (found := term.of(row)) is not None), None)

        return _Term(kind, _widened(kind, evaluate))

    def nullif(self, node: exp.Expr) -> _Term:
        value = self.term(node.this)
        same = _compare(*_matched(value, self.term(node.expression), node), _TESTS[exp.EQ])
        return _Term(value.kind, lambda row: None if same(row) else value.of(row))

    def case(self, node: exp.Expr) -> _Term:
        if isinstance(node, exp.If):
            branches = [(self.boolean(node.this), self.term(node.args["true"]))]
            default = node.args.get("false")
        else:
            if node.args.get("this") is not None:
                raise NoOpinion(node.sql())
            branches = [(self.boolean(each.this), self.term(each.args["true"])) for each in node.args["ifs"]]
            default = node.args.get("default")
        otherwise = _NULL if default is None else self.term(default)
        kind = _common([*(value.kind for _, value in branches), otherwise.kind], node)

        def evaluate(row: Row) -> Any:  # noqa: ANN401
            return next((value.of(row) for test, value in branches if test(row) is True), otherwise.of(row))

        return _Term(kind, _widened(kind, evaluate))

    def cast(self, node: exp.Expr) -> _Term:
        target = node.args["to"].this.name
        text = moment_text(node)
        if text is not None and target in _LITERAL_TYPES:
            return _Term("string", lambda _: text, literal=text)
        value = self.term(node.this)
        if value.kind in _NUMBERS and target in WHOLE and value.literal is None:
            return _Term("whole", _of_one(lambda number: _truncated(number, target))(value.of))
        if value.kind in ("whole", "float", "double") and target == "DOUBLE":
            return _Term("double", _of_one(float)(value.of))
        if value.kind == "timestamp" and target == "DATE":
            return _Term("date", _of_one(lambda moment: moment - moment % DATE_NANOS)(value.of))
        raise NoOpinion(node.sql())


def _constant(kind: str, value: object, literal: str | None = None) -> _Term:
    return _Term(kind, lambda _: value, literal)


_NULL = _constant("null", None)
_COMPILE: dict[type[exp.Expr], Callable[[_Compiler, Any], _Term]] = {
    exp.Column: _Compiler.column, exp.Dot: _Compiler.column, exp.And: _Compiler.conjunction,
    exp.Or: _Compiler.conjunction, exp.Not: _Compiler.negation, exp.In: _Compiler.membership,
    exp.Between: _Compiler.between, exp.Is: _Compiler.is_, exp.IsNan: _Compiler.is_nan, exp.Like: _Compiler.like,
    exp.Escape: _Compiler.like, exp.StartsWith: _Compiler.starts_with, exp.Cast: _Compiler.cast,
    exp.Coalesce: _Compiler.coalesce, exp.Case: _Compiler.case, exp.If: _Compiler.case,
    exp.Substring: _Compiler.substring, exp.DPipe: _Compiler.concatenation, exp.Concat: _Compiler.concatenation,
    **dict.fromkeys((exp.Upper, exp.Lower, exp.Length, exp.Trim), _Compiler.of_text),
    **dict.fromkeys((exp.Year, exp.Month, exp.Day, exp.DayOfMonth, exp.Hour, exp.Extract), _Compiler.part),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod), _Compiler.arithmetic),
    **dict.fromkeys((exp.Neg, exp.Abs), _Compiler.of_number),
    exp.Boolean: lambda _, node: _constant("boolean", bool(node.this)),
    exp.Null: lambda *_: _NULL,
    exp.HexString: lambda _, node: _constant("binary", bytes.fromhex(str(node.this))),
    exp.Literal: lambda _, node: _constant("string", str(node.this), str(node.this)),
}  # fmt: skip


def _negative(number: Any) -> Any:  # noqa: ANN401 - Python's minus rounds decimals to 28 digits
    return number.copy_negate() if isinstance(number, Decimal) else -number


def _divided(one: float, other: float) -> float:
    return one / other


def _remainder(one: Any, other: Any) -> Any:  # noqa: ANN401 - both whole, or both floats
    if isinstance(one, float):
        return math.nan if math.isinf(one) else math.fmod(one, other)
    rest = abs(one) % abs(other)
    return -rest if one < 0 else rest


_ARITHMETIC: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.Add: lambda a, b: _EXACT.add(a, b) if isinstance(a, Decimal) else a + b,
    exp.Sub: lambda a, b: _EXACT.subtract(a, b) if isinstance(a, Decimal) else a - b,
    exp.Mul: lambda a, b: _EXACT.multiply(a, b) if isinstance(a, Decimal) else a * b,
    exp.Div: _divided,
    exp.Mod: _remainder,
}


def _of_one(function: Callable[[Any], Any]) -> Callable[[Callable[[Row], Any]], Callable[[Row], Any]]:
    """A function of a value that is null for null."""
    return lambda value: lambda row: None if (found := value(row)) is None else function(found)


def _negated(condition: Condition) -> Condition:
    return lambda row: None if (found := condition(row)) is None else not found


def _compare(left: _Term, right: _Term, test: Callable[[int], bool]) -> Condition:
    def evaluate(row: Row) -> bool | None:
        one, other = left.of(row), right.of(row)
        return None if one is None or other is None else test(order_of(one, other))

    return evaluate


def _is_same(one: Any, other: Any) -> bool:  # noqa: ANN401 - values of one kind
    return one is other if one is None or other is None else order_of(one, other) == 0


def _matched(left: _Term, right: _Term, node: exp.Expr) -> tuple[_Term, _Term]:
    """Both sides of a comparison as values of one kind."""
    left, right = _beside(left, right, node), _beside(right, left, node)
    if "null" in (left.kind, right.kind):
        return left, right
    if {left.kind, right.kind} <= set(_NUMBERS) and left.kind != right.kind:
        # Numbers compare exactly in Python; where one is a double that a row computes, both are doubles.
        if {left.kind, right.kind} & set(_FLOATS) and not (left.literal or right.literal):
            return _Term("double", _of_one(float)(left.of)), _Term("double", _of_one(float)(right.of))
    elif left.kind != right.kind:
        raise NoOpinion(node.sql())
    return left, right


def _beside(term: _Term, other: _Term, node: exp.Expr) -> _Term:
    """A literal as a value that the other side can be compared with."""
    if term.literal is None:
        return term
    value: Any
    if other.kind in TEMPORAL:
        value = _moment(term.literal, other.kind, node)
    elif other.kind == "uuid" and term.kind == "string":
        value = UUID(term.literal).bytes
    elif other.kind in _FLOATS and term.kind in _NUMBERS:
        value = _rounded(Decimal(term.literal), other.kind)
    elif term.kind == "decimal" and "e" in term.literal.lower() and not other.is_column:
        value = float(term.literal)
        return _constant("double", value, term.literal)
    else:
        return term
    return _constant(other.kind, value, term.literal)


def _moment(text: str, kind: str, node: exp.Expr) -> int:
    match = _MOMENT.fullmatch(text.strip())
    if match is None:
        raise NoOpinion(node.sql())
    year, month, day, hour, minute, second, fraction, zone, sign, hours, minutes = match.groups()
    wanted = kind == "timestamptz", kind != "time"
    if wanted != (zone is not None, year is not None) or (kind == "time" and hour is None):
        raise NoOpinion(node.sql())
    try:
        days = 0 if year is None else dt.date(int(year), int(month), int(day)).toordinal() - 719_163
        clock = dt.time(int(hour or 0), int(minute or 0), int(second or 0))
    except ValueError as error:
        raise NoOpinion(str(error)) from error
    seconds = days * 86_400 + clock.hour * 3600 + clock.minute * 60 + clock.second
    if sign is not None:
        offset = int(hours) * 3600 + int(minutes or 0) * 60
        seconds += offset if sign == "-" else -offset
    return seconds * 10**9 + int((fraction or "0").ljust(9, "0"))


def _rounded(number: Decimal, kind: str) -> Any:  # noqa: ANN401 - a float, or beyond all of them the number itself
    """The nearest value of a floating-point type; a number beyond the greatest one stays below infinity."""
    if abs(number.adjusted()) > 400:
        return Decimal(0) if number.adjusted() < 0 else number
    near = float(number)
    if not number:
        return near
    if kind == "float":
        if abs(number) > Decimal(struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]):
            return number
        bits = struct.unpack("<i", struct.pack("<f", near))[0]
        some = [struct.unpack("<f", struct.pack("<i", bits + step))[0] for step in (-1, 0, 1)]
        finite = [(each, step) for each, step in zip(some, (-1, 0, 1), strict=True) if math.isfinite(each)]
        exact = Fraction(number)
        return min(finite, key=lambda pair: (abs(Fraction(pair[0]) - exact), (bits + pair[1]) & 1))[0]
    return number if math.isinf(near) else near


def _number(text: str) -> _Term:
    value: Any = int(text) if text.lstrip("-").isdigit() else Decimal(text)
    return _constant("whole" if isinstance(value, int) else "decimal", value, text)


def _pattern(pattern: str, escape: str | None) -> str:
    """A LIKE pattern as a regular expression."""
    found, at = "", 0
    while at < len(pattern):
        character = pattern[at]
        if character == escape:
            at += 1
            if at == len(pattern) or pattern[at] not in ("%", "_", escape):
                raise NoOpinion(f"the escape in {pattern!r}")
            found += re.escape(pattern[at])
        else:
            found += {"%": ".*", "_": "."}.get(character) or re.escape(character)
        at += 1
    return found


def _common(kinds: Sequence[str], node: exp.Expr) -> str:
    found = set(kinds) - {"null"}
    if len(found) == 1:
        return found.pop()
    if found and found <= {"whole", "decimal", "double"}:
        return "double" if "double" in found else "decimal"
    raise NoOpinion(node.sql())


def _widened(kind: str, value: Callable[[Row], Any]) -> Callable[[Row], Any]:
    return _of_one(float)(value) if kind == "double" else value


def _long(number: int) -> int:
    if not _LEAST <= number <= _GREATEST:
        raise OverflowError("a whole number beyond 64 bits")
    return number


def _truncated(number: Any, target: str) -> int:  # noqa: ANN401 - a number of any kind
    if isinstance(number, Decimal):
        number = number.to_integral_value(ROUND_DOWN, _EXACT)
    whole = int(number)
    limit = 1 << (_BITS[target] - 1)
    if not -limit <= whole < limit:
        raise OverflowError(f"{whole} is no {target}")
    return whole


def _calendar(moment: int) -> tuple[int, int, int, int]:
    days, rest = divmod(moment, DATE_NANOS)
    try:
        date = dt.date.fromordinal(days + 719_163)
    except (ValueError, OverflowError) as error:
        raise NoOpinion("a year beyond the calendar of Python") from error
    return date.year, date.month, date.day, rest // (3600 * 10**9)
