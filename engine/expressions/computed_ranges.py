"""Comparisons of parts of dates and timestamps that are ranges of the column, so that statistics answer them."""

from __future__ import annotations

from collections.abc import Callable

from icebench.engine.expressions.predicate import Compare, Operator, Predicate, all_of, any_of
from icebench.engine.expressions.scalar import Call, CastNode, ColumnValue, LiteralNode, LiteralValue, Node
from icebench.engine.expressions.temporal_literals import NANOS_PER_DAY, TemporalKind, TemporalLiteral, parse_temporal
from icebench.engine.spec.calendar import days_of
from icebench.engine.spec.types import DATE, Type

_OPERATORS: dict[str, Operator] = {
    "equal": "=",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_KINDS: dict[str, TemporalKind] = {
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ns": "timestamp",
    "timestamptz": "timestamptz",
    "timestamptz_ns": "timestamptz",
}
_LAST_YEAR = 9999


def range_of(tree: Node, type_of: Callable[[tuple[str, ...]], Type]) -> Predicate | None:
    """The test as comparisons of its column with literals, with the same outcome for every row; None if it has none.

    ``year(column) = 2020``, and ``cast(column as date) < '2020-02-03'`` of a timestamp without a zone: equal values are
    an interval, and later intervals are greater.
    """
    match tree:
        case Call(name, (Call("year", (ColumnValue(path),)), LiteralNode(int() as year))) if name in _OPERATORS:
            kind = _KINDS.get(str(type_of(path)))
            if kind is None or isinstance(year, bool) or not 1 <= year < _LAST_YEAR:
                return None
            low, high = (days_of(each, 1, 1) for each in (year, year + 1))
        case Call(name, (CastNode(ColumnValue(path), type_), limit)) if name in _OPERATORS and type_ == DATE:
            kind, day = _KINDS.get(str(type_of(path))), _day(limit)
            if kind not in ("date", "timestamp") or day is None:
                return None
            low, high = day, day + 1
        case _:
            return None
    return _within(".".join(path), _OPERATORS[name], *(TemporalLiteral(kind, d * NANOS_PER_DAY) for d in (low, high)))


def _day(node: Node) -> int | None:
    literal = node.value if isinstance(node, CastNode) and node.type == DATE else node
    value: LiteralValue | None = literal.value if isinstance(literal, LiteralNode) else None
    found = parse_temporal(value) if isinstance(value, str) else value
    return found.nanoseconds // NANOS_PER_DAY if isinstance(found, TemporalLiteral) and found.kind == "date" else None


def _within(column: str, operator: Operator, low: TemporalLiteral, high: TemporalLiteral) -> Predicate:
    """`column operator` an interval from `low` to before `high`."""
    match operator:
        case "=":
            return all_of([Compare(column, ">=", low), Compare(column, "<", high)])
        case "!=":
            return any_of([Compare(column, "<", low), Compare(column, ">=", high)])
        case "<" | ">=":
            return Compare(column, operator, low)
        case "<=":
            return Compare(column, "<", high)
        case ">":
            return Compare(column, ">=", high)
