"""Evaluates `icebench.engine.expressions.scalar` for the rows of a batch, with SQL's null semantics.

Whole numbers are computed as int64, decimals as decimal256; overflow is an error. Branches are evaluated only for the
rows that take them, so a condition can guard against division by zero.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from types import UnionType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from icebench.engine.columnar.rows import exact_cast
from icebench.engine.columnar.schemas import to_arrow_type
from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.expressions.like_patterns import like_pattern
from icebench.engine.expressions.scalar import (
    Call,
    CaseNode,
    CastNode,
    ColumnValue,
    LiteralNode,
    Node,
    SqlExpression,
    text_of,
)
from icebench.engine.expressions.temporal_literals import NANOS_PER_DAY, TemporalLiteral, parse_temporal
from icebench.engine.spec.types import PrimitiveType

_MOST_DIGITS = 76
_LONG_DIGITS = 19
_HALF_UP = "half_towards_infinity"
_COMPARED = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "same"}


def evaluate(expression: SqlExpression, rows: pa.RecordBatch, target: pa.Field) -> pa.Array:
    """Evaluate an expression for a column.

    Args:
        expression: What to compute.
        rows: The columns, by name.
        target: The column that takes them: a decimal is rounded half up to its scale, nothing else is changed. Nested
            values are returned as they are.

    Raises:
        Invalid: No such column, types that do not go together, an overflow, a division by zero, a cast of a value that
            is none of the type, or values that do not fit the column.
        Unsupported: Types that a function does not take.
    """
    try:
        found = _evaluate(expression.tree, rows)
        if pat.is_decimal(target.type) and pat.is_decimal(found.type) and found.type.scale > target.type.scale:
            found = _rounded(found, target.type.scale)
        return found if pat.is_nested(found.type) else exact_cast(found, target.type, target.name)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise Invalid(f"`{expression.text}`: {error}") from error


def evaluate_condition(tree: Node, rows: pa.RecordBatch) -> pa.BooleanArray:
    """The outcome of a boolean expression for each row: true, false or null; raises as `evaluate`."""
    try:
        return _boolean(_evaluate(tree, rows), "a filter")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise Invalid(f"the filter `{text_of(tree)}`: {error}") from error


def _evaluate(node: Node, rows: pa.RecordBatch) -> pa.Array:
    match node:
        case ColumnValue(path):
            return _column(path, rows)
        case LiteralNode(value):
            return pa.repeat(_scalar(value), rows.num_rows)
        case CastNode(value, type_):
            return _cast(_evaluate(value, rows), type_)
        case CaseNode(branches, default):
            return _case(branches, default, rows)
        case Call("coalesce", arguments):
            return _coalesce(arguments, rows)
        case Call("and" | "or" as name, (left, right)):
            return _logical(name, left, right, rows)
        case Call(name, arguments) if name in _COMPARED:
            return _compare(name, *_evaluated(arguments, rows))
        case Call(name, (value, *literals)) if name in _WITH_LITERALS:
            values = [each.value for each in literals if isinstance(each, LiteralNode)]
            if len(values) < len(literals):
                raise Unsupported(f"`{text_of(node)}`: literals are expected after the first argument")
            return _WITH_LITERALS[name](_evaluate(value, rows), *values)
        case Call(name, arguments):
            return _FUNCTIONS[name](*(_evaluate(each, rows) for each in arguments))


def _evaluated(arguments: Sequence[Node], rows: pa.RecordBatch) -> list[pa.Array]:
    """The two sides of a comparison; a text or moment is a literal of the other side's type."""
    others = [index for index, each in enumerate(arguments) if not _is_moment(each)]
    if not others:  # a text beside a moment
        others = [index for index, each in enumerate(arguments) if not _is_moment(each, str)]
    types = {index: _evaluate(arguments[index], rows) for index in others}
    found = []
    for index, each in enumerate(arguments):
        if index in types:
            found.append(types[index])
        else:
            other = types.get(1 - index)
            found.append(pa.repeat(_moment(each, pa.null() if other is None else other.type), rows.num_rows))
    return found


def _is_moment(node: Node, kind: UnionType | type = str | TemporalLiteral) -> bool:
    return isinstance(node, LiteralNode) and isinstance(node.value, kind)


def _moment(node: Node, other: pa.DataType) -> pa.Scalar:
    """A literal as a value of a date, time or timestamp type, or as itself."""
    assert isinstance(node, LiteralNode)
    value = node.value
    if not (pat.is_date32(other) or pat.is_time64(other) or pat.is_timestamp(other)):
        return _scalar(value)
    moment = parse_temporal(value) if isinstance(value, str) else value
    assert isinstance(moment, TemporalLiteral)
    zoned = pat.is_timestamp(other) and other.tz is not None
    kind = "date" if pat.is_date32(other) else "time" if pat.is_time64(other) else "timestamp"
    if moment.kind != kind + "tz" * zoned and not (moment.kind == "date" and kind == "timestamp" and not zoned):
        raise Invalid(f"a value of {other} cannot be compared with the {moment.kind} {moment}")
    return _moment_of_type(moment, other)


def _moment_of_type(moment: TemporalLiteral, type_: pa.DataType) -> pa.Scalar:
    """A literal as a value of a date, time or timestamp type; raises Invalid if it is none, as a fraction of its unit
    or a far year."""
    is_date = pat.is_date32(type_)
    unit = NANOS_PER_DAY if is_date else 1 if pat.is_timestamp(type_) and type_.unit == "ns" else 1000
    count, rest = divmod(moment.nanoseconds, unit)
    limit = 1 << (31 if is_date else 63)
    if rest or not -limit <= count < limit:
        raise Invalid(f"the {moment.kind} {moment} is no value of {type_}")
    return pa.scalar(count, pa.int32() if is_date else pa.int64()).cast(type_)


def _column(path: tuple[str, ...], rows: pa.RecordBatch) -> pa.Array:
    """A column; uuids as their bytes, as literals of them are, since Arrow does not compare its own type."""
    if path[0] not in rows.schema.names:
        raise Invalid(f"no column {path[0]!r} in an expression")
    found = rows.column(path[0])
    for place, name in enumerate(path[1:], 1):
        if not pat.is_struct(found.type) or found.type.get_field_index(name) < 0:
            raise Invalid(f"no column {'.'.join(path[: place + 1])!r} in an expression")
        found = pc.struct_field(found, name)
    if pat.is_large_string(found.type):
        return found.cast(pa.string())
    return found.storage if found.type == pa.uuid() else found


def _scalar(value: Any) -> pa.Scalar:  # noqa: ANN401 - the value of a literal
    if isinstance(value, TemporalLiteral):
        if value.kind == "date":
            return _moment_of_type(value, pa.date32())
        if value.kind == "time":
            return _moment_of_type(value, pa.time64("us"))
        unit = "ns" if value.nanoseconds % 1000 else "us"
        return _moment_of_type(value, pa.timestamp(unit, "UTC" if value.kind == "timestamptz" else None))
    if isinstance(value, uuid.UUID):
        return pa.scalar(value.bytes, pa.binary(16))
    if isinstance(value, Decimal):
        number = value
    elif isinstance(value, bool) or not isinstance(value, int):
        return pa.scalar(value)
    elif -(1 << 63) <= value < 1 << 63:
        return pa.scalar(value, pa.int64())
    else:
        number = Decimal(value)
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    if 0 < exponent < _MOST_DIGITS:
        return _scalar(Decimal(f"{number:f}"))  # Arrow counts the digits as written
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > _MOST_DIGITS:
        raise Unsupported(f"{number}: a number of more than {_MOST_DIGITS} digits")
    return pa.scalar(number, pa.decimal256(precision, scale))


def _common(types: list[pa.DataType], what: str) -> pa.DataType:
    """The type in which values of these types are computed."""
    known = {type_ for type_ in types if not pat.is_null(type_)}
    if not known:
        return pa.null()
    if all(map(_is_number, known)):
        if any(map(pat.is_floating, known)):
            return pa.float64() if known != {pa.float32()} else pa.float32()
        decimals = [_decimal_type(t) for t in known]
        if all(map(pat.is_integer, known)):
            return pa.int64()
        scale = max(t.scale for t in decimals)
        return _decimal256(max(t.precision - t.scale for t in decimals) + scale, scale, what)
    if len(known) > 1:
        raise Invalid(f"{what} of {' and '.join(sorted(map(str, known)))}; cast one of them")
    return known.pop()


def _unify(values: list[pa.Array], what: str) -> list[pa.Array]:
    common = _common([value.type for value in values], what)
    return [_as(value, common) for value in values]


def _as(value: pa.Array, type_: pa.DataType) -> pa.Array:
    if pat.is_decimal(type_) and pat.is_integer(value.type):
        value = value.cast(_decimal_type(value.type))
    if pat.is_floating(type_) and pat.is_decimal(value.type):
        return _nearest(value, type_)
    if pat.is_floating(type_) and pat.is_integer(value.type):
        return value.cast(type_, safe=False)
    return value.cast(type_)


def _nearest(decimals: pa.Array, type_: pa.DataType) -> pa.Array:
    """Decimals as the nearest floating-point numbers, by way of their text: Arrow's own cast gives the number beside it
    for one in eight."""
    return decimals.cast(pa.string()).cast(type_)


def _is_number(type_: pa.DataType) -> bool:
    return bool(pat.is_integer(type_) or pat.is_floating(type_) or pat.is_decimal(type_))


def _decimal_type(type_: pa.DataType) -> pa.DataType:
    if pat.is_decimal(type_):
        return pa.decimal256(type_.precision, type_.scale)
    return pa.decimal256(_LONG_DIGITS, 0)


def _decimal256(precision: int, scale: int, what: str) -> pa.DataType:
    if precision > _MOST_DIGITS:
        raise Unsupported(f"{what} of decimals that needs {precision} digits; there are {_MOST_DIGITS}")
    return pa.decimal256(precision, scale)


def _rounded(value: pa.Array, digits: int) -> pa.Array:
    """Rounded half up. A decimal may grow by a digit, of which Arrow would make 0."""
    if pat.is_decimal(value.type):
        value = value.cast(_decimal256(value.type.precision + 1, value.type.scale, "rounding"))
    return pc.round(value, digits, _HALF_UP)


def _arithmetic(name: str) -> Callable[[pa.Array, pa.Array], pa.Array]:
    kernel = getattr(pc, f"{name}_checked")

    def compute(left: pa.Array, right: pa.Array) -> pa.Array:
        common = _common([left.type, right.type], name)
        if not pat.is_null(common) and not _is_number(common):
            raise Unsupported(f"{name} of {common}")
        if pat.is_null(common):
            return left
        if not pat.is_decimal(common):
            return kernel(_as(left, common), _as(right, common))
        one, other = (
            value.cast(_decimal_type(value.type)) if not pat.is_null(value.type) else value.cast(common)
            for value in (left, right)
        )
        if name == "divide":
            return _quotient(one, other)
        a, b = one.type, other.type
        if name == "multiply":
            _decimal256(a.precision + b.precision + 1, a.scale + b.scale, name)
        else:
            _decimal256(common.precision + 1, common.scale, name)
        return kernel(one, other)

    return compute


def _quotient(left: pa.Array, right: pa.Array) -> pa.Array:
    """A quotient with the scale that Spark gives it, rounded half up; Arrow truncates."""
    a, b = left.type, right.type
    scale = max(6, a.scale + b.precision + 1)
    # Arrow gives a quotient max(4, scale + divisor's precision - divisor's scale + 1) digits: one more than wanted.
    widened = max(a.scale, scale + b.scale - b.precision)
    digits = max(4, widened + b.precision - b.scale + 1)
    _decimal256(a.precision - a.scale + b.scale + digits + widened - a.scale, digits, "divide")
    exact = left.cast(_decimal256(a.precision + widened - a.scale, widened, "divide"))
    return _rounded(pc.divide_checked(exact, right), scale)


def _divide(left: pa.Array, right: pa.Array) -> pa.Array:
    if all(pat.is_integer(value.type) or pat.is_null(value.type) for value in (left, right)):
        left, right = _as(left, pa.float64()), _as(right, pa.float64())
    return _arithmetic("divide")(left, right)


def _remainder(left: pa.Array, right: pa.Array) -> pa.Array:
    """A remainder with the sign of the dividend."""
    left, right = _unify([left, right], "%")
    if not pat.is_integer(left.type) and not pat.is_null(left.type):
        raise Unsupported(f"% of {left.type}")
    if pat.is_null(left.type):
        return left
    # The least number divided by -1 overflows, and its remainder is 0.
    divisor = pc.if_else(pc.equal(right, -1), 1, right)
    return pc.subtract_checked(left, pc.multiply_checked(pc.divide_checked(left, divisor), divisor))


def _case(branches: tuple[tuple[Node, Node], ...], default: Node, rows: pa.RecordBatch) -> pa.Array:
    left = np.arange(rows.num_rows)
    places, parts = [], []
    for condition, value in branches:
        some = rows.take(pa.array(left))
        is_true = _mask(_boolean(_evaluate(condition, some), "case"))
        places.append(left[is_true])
        parts.append(_evaluate(value, rows.take(pa.array(places[-1]))))
        left = left[~is_true]
    places.append(left)
    parts.append(_evaluate(default, rows.take(pa.array(left))))
    return put_together(places, parts, "case")


def _coalesce(arguments: tuple[Node, ...], rows: pa.RecordBatch) -> pa.Array:
    left = np.arange(rows.num_rows)
    places, parts = [], []
    for ordinal, argument in enumerate(arguments):
        found = _evaluate(argument, rows.take(pa.array(left)))
        is_last = ordinal == len(arguments) - 1
        chosen = np.full(len(left), True) if is_last else _mask(found.is_valid())
        places.append(left[chosen])
        parts.append(found.filter(pa.array(chosen)))
        left = left[~chosen]
    return put_together(places, parts, "coalesce")


def put_together(places: list[Any], parts: list[pa.Array], what: str) -> pa.Array:
    """Merge parts into one array, each value at its index."""
    order = np.argsort(np.concatenate(places), kind="stable")
    return pa.concat_arrays(_unify(parts, what)).take(pa.array(order))


def _logical(name: str, left: Node, right: Node, rows: pa.RecordBatch) -> pa.Array:
    """Three-valued AND and OR; the right side is evaluated only for rows that the left side does not decide."""
    first = _boolean(_evaluate(left, rows), name)
    decides = _mask(pc.equal(first, name == "or"))
    open_rows = np.flatnonzero(~decides)
    second = _boolean(_evaluate(right, rows.take(pa.array(open_rows))), name)
    kernel = pc.and_kleene if name == "and" else pc.or_kleene
    settled = kernel(first.take(pa.array(open_rows)), second)
    return put_together([np.flatnonzero(decides), open_rows], [first.filter(pa.array(decides)), settled], name)


def _boolean(value: pa.Array, what: str) -> pa.Array:
    if pat.is_null(value.type):
        return value.cast(pa.bool_())
    if not pat.is_boolean(value.type):
        raise Invalid(f"{what} of {value.type}, which is not boolean")
    return value


def _mask(value: pa.Array) -> Any:  # noqa: ANN401 - an array of bool
    """Rows for which a condition is true."""
    return pc.fill_null(value, False).to_numpy(zero_copy_only=False)


def _round(value: pa.Array, digits: int) -> pa.Array:
    if pat.is_integer(value.type) or pat.is_null(value.type):
        return value
    if not _is_number(value.type):
        raise Unsupported(f"round of {value.type}")
    return _rounded(value, digits)


def _text(name: str, kernel: Callable[[pa.Array], pa.Array]) -> Callable[[pa.Array], pa.Array]:
    def compute(value: pa.Array) -> pa.Array:
        if not pat.is_string(value.type) and not pat.is_null(value.type):
            raise Unsupported(f"{name} of {value.type}; cast it to string")
        return kernel(value.cast(pa.string()))

    return compute


def _concat(*values: pa.Array) -> pa.Array:
    texts = [_text("||", lambda text: text)(value) for value in values]
    return pc.binary_join_element_wise(*texts, "", null_handling="emit_null")


def _compare(name: str, left: pa.Array, right: pa.Array) -> pa.Array:
    """Compare; NaN equals itself and is above all numbers."""
    one, other = _unify([left, right], name)
    if name == "same":
        equal = pc.fill_null(_compare("equal", one, other), False)
        return pc.or_(equal, pc.and_(one.is_null(), other.is_null()))
    if pat.is_null(one.type):
        return pa.nulls(len(one), pa.bool_())
    found = getattr(pc, name)(one, other)
    if not pat.is_floating(one.type):
        return found
    nan, other_nan = pc.is_nan(one), pc.is_nan(other)
    if name == "not_equal":
        return pc.and_(found, pc.invert(pc.and_(nan, other_nan)))
    if name in ("greater", "greater_equal"):
        found = pc.or_(found, pc.and_not(nan, other_nan))
    if name in ("less", "less_equal"):
        found = pc.or_(found, pc.and_not(other_nan, nan))
    return found if name in ("less", "greater") else pc.or_(found, pc.and_(nan, other_nan))


def _nullif(left: pa.Array, right: pa.Array) -> pa.Array:
    if pat.is_null(left.type):
        return left
    same = _compare("equal", left, right)
    return pc.if_else(pc.fill_null(same, False), pa.scalar(None, left.type), left)


def _of_number(name: str) -> Callable[[pa.Array], pa.Array]:
    kernel = getattr(pc, f"{name}_checked")

    def compute(value: pa.Array) -> pa.Array:
        if pat.is_null(value.type):
            return value
        if not _is_number(value.type):
            raise Unsupported(f"{name} of {value.type}")
        return kernel(value.cast(pa.int64()) if pat.is_integer(value.type) else value)

    return compute


def _substring(value: pa.Array, start: Any, length: Any = None) -> pa.Array:  # noqa: ANN401 - values of literals
    if not isinstance(start, int) or start < 1 or not (length is None or (isinstance(length, int) and length >= 0)):
        raise Unsupported(f"substr from character {start}, of length {length}")
    stop = None if length is None else start - 1 + length
    return _text("substr", lambda text: pc.utf8_slice_codeunits(text, start - 1, stop))(value)


def _part(name: str) -> Callable[[pa.Array], pa.Array]:
    kernel = getattr(pc, name)

    def compute(value: pa.Array) -> pa.Array:
        if pat.is_null(value.type):
            return value
        if not pat.is_timestamp(value.type) and not (pat.is_date(value.type) and name != "hour"):
            raise Unsupported(f"{name} of {value.type}")
        # Parts of timestamps with a zone are those of UTC, as in partition transforms.
        return kernel(value.cast(pa.timestamp(value.type.unit)) if pat.is_timestamp(value.type) else value)

    return compute


def _is_nan(value: pa.Array) -> pa.Array:
    if not pat.is_floating(value.type) and not pat.is_null(value.type):
        raise Invalid(f"isnan of {value.type}; only float and double columns hold NaN")
    return pc.fill_null(pc.is_nan(value.cast(pa.float64())), False)


_FUNCTIONS: dict[str, Callable[..., pa.Array]] = {
    "add": _arithmetic("add"),
    "subtract": _arithmetic("subtract"),
    "multiply": _arithmetic("multiply"),
    "divide": _divide,
    "remainder": _remainder,
    "negate": _of_number("negate"),
    "abs": _of_number("abs"),
    "not": lambda value: pc.invert(_boolean(value, "not")),
    "is_null": lambda value: value.is_null(),
    "is_true": lambda value: pc.fill_null(_boolean(value, "is true"), False),
    "is_false": lambda value: pc.invert(pc.fill_null(_boolean(value, "is false"), True)),
    "nullif": _nullif,
    "concat": _concat,
    "upper": _text("upper", pc.utf8_upper),
    "lower": _text("lower", pc.utf8_lower),
    **{name: _part(name) for name in ("year", "month", "day", "hour")},
    "is_nan": _is_nan,
    "trim": _text("trim", lambda text: pc.utf8_trim(text, characters=" ")),
    "length": _text("length", lambda text: pc.utf8_length(text).cast(pa.int64())),
}


def _is_like(text: pa.Array, pattern: str) -> pa.Array:
    if "\\" not in pattern:
        return pc.match_like(text, pattern)
    # Where `match_like` takes a pattern for a prefix or a suffix, it looks for its backslashes, too.
    wild = {"%": ".*", "_": "."}
    parts = like_pattern(pattern, "\\").parts
    regex = "".join(wild[part] if is_wild else rf"\x{{{ord(part):x}}}" for part, is_wild in parts)
    return pc.match_substring_regex(text, rf"(?s)\A{regex}\z")


_WITH_LITERALS: dict[str, Callable[..., pa.Array]] = {
    "round": _round,
    "substr": _substring,
    "like": lambda value, pattern: _text("like", lambda text: _is_like(text, pattern))(value),
    "starts_with": lambda value, prefix: _text("starts_with", lambda text: pc.starts_with(text, prefix))(value),
}
"""Functions whose arguments after the first are literals."""


def _cast(value: pa.Array, type_: PrimitiveType) -> pa.Array:
    """Cast as SQL does: numbers are truncated to whole numbers, decimals are rounded half up."""
    target = to_arrow_type(type_)
    source = value.type
    if pat.is_null(source) or source == target:
        return value.cast(target)
    if not _is_castable(source, target):
        raise Unsupported(f"cast of {source} to {type_}")
    if pat.is_integer(target) and (pat.is_decimal(source) or pat.is_floating(source)):
        return pc.trunc(value).cast(target)
    if pat.is_decimal(target):
        if pat.is_integer(source):
            value = value.cast(pa.decimal256(_LONG_DIGITS + target.scale, target.scale))
        elif pat.is_decimal(source) and source.scale > target.scale:
            value = _rounded(value, target.scale)
        return value.cast(target)
    if pat.is_floating(target) and pat.is_decimal(source):
        return _nearest(value, target)
    return value.cast(target, safe=not pat.is_floating(target) or pat.is_string(source))


def _is_castable(source: pa.DataType, target: pa.DataType) -> bool:
    if _is_number(source):
        if pat.is_string(target):
            return bool(not pat.is_floating(source))
        return _is_number(target) and not (pat.is_floating(source) and pat.is_decimal(target))
    if pat.is_string(source):
        return not pat.is_timestamp(target) or target.tz is None
    if pat.is_boolean(source):
        return bool(pat.is_string(target) or pat.is_integer(target))
    if pat.is_timestamp(source):
        return bool(pat.is_date(target) and source.tz is None)
    if pat.is_date(source):
        return bool(pat.is_string(target) or (pat.is_timestamp(target) and target.tz is None))
    return False
