"""Filters of pyarrow and of PyIceberg as filters of the engine.

A filter keeps SQL's meaning of null, except that `is_in` of pyarrow is never null, as there. NaN is ordered as
`icebench.engine.expressions.predicate` says. What has no equal here raises Unsupported by name.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from itertools import chain
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from icebench.engine.columnar.scalars import literal_of
from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.expressions import predicate
from icebench.engine.expressions.builder import Expression, col, compare
from icebench.engine.expressions.predicate import FALSE, MIRRORED, TRUE, Constant, Operator, Predicate, all_of, any_of
from icebench.engine.expressions.temporal_literals import NANOS_PER_DAY, TemporalKind, TemporalLiteral
from icebench.engine.spec.schema import Schema

_OPERATORS: dict[str, Operator] = {
    "EqualTo": "=",
    "NotEqualTo": "!=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "equal": "=",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_VALUES = {
    "add": "__add__", "add_checked": "__add__", "subtract": "__sub__", "subtract_checked": "__sub__",
    "multiply": "__mul__", "multiply_checked": "__mul__", "negate": "__neg__", "negate_checked": "__neg__",
    "abs": "abs", "abs_checked": "abs", "utf8_lower": "lower", "utf8_upper": "upper", "utf8_length": "length",
    "coalesce": "coalesce", "year": "year", "month": "month", "day": "day", "hour": "hour",
}  # fmt: skip
"""Functions of pyarrow, and the methods of `Expression` that are they."""
_MATCH, _SKIP = 0, 1  # `SetLookupOptions::NullMatchingBehavior` of Arrow C++
_KINDS = "(call|end|literal|options|field_ref|nested_field_ref): '"
_ITEM = re.compile(rf"^{_KINDS}(.*?)'(?=\n{_KINDS}|\Z)", re.DOTALL | re.MULTILINE)


def to_predicate(filter: object, schema: Schema, *, true: Callable[[], Predicate] = lambda: TRUE) -> Predicate:
    """The filter of another library as one of the engine, for columns of `schema`.

    Args:
        filter: The filter.
        schema: The columns.
        true: What `true` in a filter of pyarrow says.

    Raises:
        Invalid: It is no filter.
        Unsupported: A part of it has no equal here; the message names it.
    """
    if isinstance(filter, Expression):
        return filter.as_predicate()
    if isinstance(filter, pc.Expression):
        return _ArrowFilter(filter, true).predicate()
    if any(base.__module__.startswith("pyiceberg.expressions") for base in type(filter).__mro__):
        return _PyIcebergFilter(schema).predicate(filter)
    raise Invalid(f"{type(filter).__name__} is not a filter; give text, or an object made by icebench.col")


class _PyIcebergFilter:
    """PyIceberg holds dates as days and timestamps as microseconds, without a kind: that of a timestamp follows from
    the column."""

    def __init__(self, schema: Schema) -> None:
        names = schema.name_of.items()
        self._zoned = {name.lower() for i, name in names if str(schema.by_id[i].type).startswith("timestamptz")}

    def predicate(self, given: Any) -> Predicate:  # noqa: ANN401 - of a library that need not be there
        name = type(given).__name__
        match name:
            case "AlwaysTrue" | "AlwaysFalse":
                return Constant(name == "AlwaysTrue")
            case "And":
                return self.predicate(given.left) & self.predicate(given.right)
            case "Or":
                return self.predicate(given.left) | self.predicate(given.right)
            case "Not":
                return ~self.predicate(given.child)
        term: Any = getattr(given, "term", None)
        if type(term).__name__ != "Reference":
            raise Unsupported(f"{given} of PyIceberg as a filter")
        column = str(term.name)
        match name:
            case "IsNull" | "NotNull":
                found = predicate.is_null(column)
            case "IsNaN" | "NotNaN":
                found = predicate.is_nan(column)
            case "In" | "NotIn":
                found = predicate.is_in(column, [self._value(each, column) for each in given.literals])
            case "StartsWith" | "NotStartsWith":
                found = predicate.starts_with(column, given.literal.value)
            case _ if name in _OPERATORS:
                return predicate.compare(column, _OPERATORS[name], self._value(given.literal, column))
            case _:
                raise Unsupported(f"{given} of PyIceberg as a filter")
        return ~found if name.startswith("Not") else found

    def _value(self, literal: Any, column: str) -> Any:  # noqa: ANN401 - as above
        value = literal.value
        kind: TemporalKind = "timestamptz" if column.lower() in self._zoned else "timestamp"
        match type(literal).__name__:
            case "DateLiteral":
                return TemporalLiteral("date", value * NANOS_PER_DAY)
            case "TimeLiteral":
                return TemporalLiteral("time", value * 1000)
            case "TimestampLiteral":
                return TemporalLiteral(kind, value * 1000)
            case "TimestampNanoLiteral":
                return TemporalLiteral(kind, value)
            case "UUIDLiteral":
                return _uuid(value)
        return value


def _uuid(value: Any) -> Any:  # noqa: ANN401 - bytes or a UUID, by the version of PyIceberg
    return uuid.UUID(bytes=value) if isinstance(value, bytes) else value


_Value: TypeAlias = "Predicate | Expression | pa.Scalar"


class _ArrowFilter:
    """Reads the serialized form of a pyarrow expression: calls in prefix order in the metadata of a record batch, whose
    columns have literals and options (Arrow C++, `compute::Serialize`)."""

    def __init__(self, expression: pc.Expression, true: Callable[[], Predicate]) -> None:
        self._shown, self._true = str(expression), true
        try:
            _, (buffer,) = expression.__reduce__()
        except pa.ArrowNotImplementedError as error:
            raise Unsupported(f"the pyarrow filter {self._shown}: {error}") from error
        self._batch = pa.ipc.open_file(buffer).get_batch(0)
        text = self._batch.schema.to_string(show_schema_metadata=True, truncate_metadata=False)
        found = _ITEM.findall(text.partition("-- schema metadata --\n")[2])
        self._items = iter([(kind, text) for kind, text, _ in found])

    def predicate(self) -> Predicate:
        return self._filter(self._next())

    def _unsupported(self, name: str) -> Unsupported:
        return Unsupported(f"{name} in the pyarrow filter {self._shown}")

    def _filter(self, value: _Value) -> Predicate:
        if isinstance(value, Expression):
            return value.as_predicate()
        if isinstance(value, pa.BooleanScalar) and value.is_valid:
            return self._true() if value.as_py() else FALSE
        if isinstance(value, Predicate):
            return value
        raise self._unsupported(f"the value {value} where a filter is expected")

    def _next(self) -> _Value:
        kind, text = next(self._items)
        match kind:
            case "field_ref":
                return col(text)
            case "nested_field_ref":
                return col(".".join(next(self._items)[1] for _ in range(int(text))))
            case "literal":
                return self._batch.column(int(text))[0]
        return self._call(text)

    def _call(self, name: str) -> _Value:
        arguments: list[_Value] = []
        options: dict[str, Any] = {}
        while True:
            kind, text = next(peeked := self._items)
            if kind == "end":
                break
            if kind == "options":
                options = self._batch.column(int(text))[0]
                continue
            self._items = chain([(kind, text)], peeked)
            arguments.append(self._next())
        return self._applied(name, arguments, dict(options))

    def _applied(self, name: str, arguments: list[_Value], options: dict[str, pa.Scalar]) -> _Value:
        match name, arguments:
            case (("and_kleene" | "or_kleene"), [left, right]):
                combine = all_of if name == "and_kleene" else any_of
                return combine([self._filter(left), self._filter(right)])
            case "invert", [value]:
                return ~self._filter(value)
            case (("is_null" | "is_valid"), [Expression() as value]):
                found = value.is_null()
                if options and options["nan_is_null"].as_py():
                    found |= value.is_nan()
                return found if name == "is_null" else ~found
            case "is_nan", [Expression() as value]:
                return value.is_nan() | (value != value)  # noqa: PLR0124 - null for null, as there
            case "is_in", [Expression() as value]:
                return self._is_in(value, options)
            case (("starts_with" | "match_substring" | "match_like"), [Expression() as value]):
                return self._search(name, value, options)
            case _, [left, right] if name in _OPERATORS:
                return self._compared(name, left, right)
            case _, [Expression() as first, *others] if name in _VALUES:
                values = [self._operand(each) for each in others]
                return getattr(first, _VALUES[name])(*values)
        raise self._unsupported(f"the function {name}")

    def _operand(self, value: _Value) -> Any:  # noqa: ANN401 - an expression or the value of a literal
        if isinstance(value, Predicate):
            raise self._unsupported(f"the filter {value} where a value is expected")
        return value if isinstance(value, Expression) else literal_of(value)

    def _compared(self, name: str, left: _Value, right: _Value) -> Predicate:
        if isinstance(left, Expression):
            return compare(left, _OPERATORS[name], self._operand(right))
        if isinstance(right, Expression):
            return compare(right, MIRRORED[_OPERATORS[name]], self._operand(left))
        raise self._unsupported(f"{name} without a column")

    def _is_in(self, value: Expression, options: dict[str, pa.Scalar]) -> Predicate:
        """Never null: a null value is one of the values if they have a null that is not to be skipped."""
        values, nulls = options["value_set"].values, options["null_matching_behavior"].as_py()
        if nulls not in (_MATCH, _SKIP):
            raise self._unsupported("is_in that is null for null")
        given = [literal_of(each) for each in values.drop_null()]
        numbers = [each for each in given if each == each]  # noqa: PLR0124 - all but NaN
        found = value.isin(numbers)
        if len(numbers) < len(given):
            found |= value.is_nan()
        return found | value.is_null() if values.null_count and nulls == _MATCH else found & value.not_null()

    def _search(self, name: str, value: Expression, options: dict[str, pa.Scalar]) -> Predicate:
        if options["ignore_case"].as_py():
            raise self._unsupported(f"{name} without regard to case")
        pattern = options["pattern"].as_py()
        if name == "starts_with":
            return value.startswith(pattern)
        if name == "match_substring":
            pattern = "%" + re.sub(r"[%_\\]", r"\\\g<0>", pattern) + "%"
        return value.like(pattern, "\\" if "\\" in pattern else None)
