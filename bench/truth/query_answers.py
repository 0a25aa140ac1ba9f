"""Whether the rows of an answer to a query are the right ones."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from icebench.bench.errors import WrongAnswer
from icebench.bench.truth.sql import NoTruth

Row = tuple[Any, ...]

TOLERANCE = 1e-9
"""Of doubles, as the order of a sum is the engine's: relative, and absolute where a column has values of 1 and more; of
columns of smaller ones, relative to the greatest. All other values are compared exactly."""

_SHOWN = 400
"""Characters of a fault, which has values of rows."""

_EXACT = (str, bytes, dt.date, dt.time, dt.timedelta)


@dataclass(frozen=True)
class RankedRows:
    """The right rows of a query without its LIMIT, and which of them the LIMIT keeps.

    Rows of one rank may come in any order, so that a LIMIT that ends within a rank may keep any of them.

    Args:
        ranked: Each row with its rank by ORDER BY, in the order of the ranks.
        offset: How many rows are left out at the start.
        limit: How many rows there are at most; None for all.
    """

    ranked: tuple[tuple[int, Row], ...]
    offset: int = 0
    limit: int | None = None

    @classmethod
    def of(cls, rows: Sequence[Row], offset: int = 0, limit: int | None = None) -> RankedRows:
        """Rank sorted rows by their last two values, which they lose: a rank, and a double (or null) that has an
        engine's last digits. Rows that no limit keeps are left out."""
        end = len(rows) if limit is None else offset + limit
        tolerance = _absolute_tolerance(row[-1] for row in rows)
        ranked: list[tuple[int, Row]] = []
        for number, (*row, key, double) in enumerate(rows, 1):
            if number > 1 and key == rows[number - 2][-2] and _is_close(double, rows[number - 2][-1], tolerance):
                rank = ranked[-1][0]
            else:
                rank = number
            if rank > end:
                break
            ranked.append((rank, tuple(row)))
        return cls(tuple(ranked), offset, limit)

    @property
    def _end(self) -> int:
        return len(self.ranked) if self.limit is None else min(len(self.ranked), self.offset + self.limit)

    def __len__(self) -> int:
        return max(0, self._end - self.offset)

    def fault_of(self, rows: Sequence[Row]) -> str | None:
        """What is wrong with an engine's rows, in words; None if nothing is.

        Raises:
            NoTruth: A value is of a type for which there is no rule.
        """
        if len(rows) != len(self):
            return f"{len(rows)} rows, not {len(self)}"
        width = len(self.ranked[0][1]) if self.ranked else 0
        if (other := next((len(row) for row in rows if len(row) != width), None)) is not None:
            return f"{other} columns, not {width}"
        right_rows = [row for _, row in self.ranked]
        inexact = {
            place: _absolute_tolerance(row[place] for row in right_rows)
            for place in range(width)
            if any(isinstance(row[place], float) for row in itertools.chain(right_rows, rows))
        }
        place, taken = 0, 0
        for rank, group in itertools.groupby(self.ranked, key=lambda ranked: ranked[0]):
            right = [row for _, row in group]
            kept = min(place + len(right), self._end) - max(place, self.offset)
            place += len(right)
            if kept > 0:
                fault = _fault_of_group(rows[taken : taken + kept], right, inexact)
                if fault is not None:
                    return f"{fault} at rank {rank}"
                taken += kept
        return None


def wrong_answer(what: str, fault: str) -> WrongAnswer:
    """The error that says what is answered wrongly, and by which fault, in not too many words."""
    cut = fault if len(fault) <= _SHOWN else f"{fault[:_SHOWN]} ..."
    return WrongAnswer(f"{what}: {cut}")


def _fault_of_group(found: Sequence[Row], right: Sequence[Row], inexact: Mapping[int, float]) -> str | None:
    """The first row that is not among those of its rank; each of them is there once.

    Args:
        found: Rows of an engine.
        right: Those of the rank.
        inexact: Absolute tolerance of each column of doubles, by its place.
    """
    left: dict[Row, list[Row]] = {}
    for row in sorted(right, key=lambda row: _order(row, inexact)):
        left.setdefault(_key(row, inexact), []).append(row)
    for row in sorted(found, key=lambda row: _order(row, inexact)):
        alike = left.get(_key(row, inexact), [])
        place = next((place for place, other in enumerate(alike) if _are_close(row, other, inexact)), None)
        if place is None:
            others = alike or [row for rows in left.values() for row in rows]
            return f"{row} instead of {others[0]}" if others else f"{row}, which is there too often"
        del alike[place]
    return None


def _key(row: Row, inexact: Collection[int]) -> Row:
    """What must be equal in every value that is not a double."""
    return tuple(_comparable(value) for place, value in enumerate(row) if place not in inexact)


def _comparable(value: Any) -> Any:  # noqa: ANN401 - whatever an engine gives
    """A value with its kind, as equal ones of different kinds are not the same: true and 1, a date and its midnight."""
    match value:
        case None:
            return None
        case bool():
            return "boolean", value
        case int() | Decimal():
            return "number", value
        case dt.datetime():
            zoned = value.tzinfo is not None
            return "zoned" if zoned else "datetime", value.astimezone(dt.UTC) if zoned else value
        case bytearray() | memoryview():
            return "bytes", bytes(value)
        case UUID():  # a text in Spark
            return "str", str(value)
        case _ if isinstance(value, _EXACT):
            return type(value).__name__, value
    raise NoTruth(f"there is no rule for comparing values such as {value!r} ({type(value).__name__})")


def _order(row: Row, inexact: Collection[int]) -> Row:
    """Sorts rows by their doubles, so that equal ones are found soon."""
    values = [(row[place], place) for place in sorted(inexact)]
    return tuple((0.0 if _is_odd(value) else float(value), place) for value, place in values)


def _is_odd(value: Any) -> bool:  # noqa: ANN401 - whatever an engine gives
    return not isinstance(value, (int, float, Decimal)) or math.isnan(value)


def _absolute_tolerance(values: Iterable[Any]) -> float:
    greatest = max((abs(float(value)) for value in values if not _is_odd(value) and math.isfinite(value)), default=0.0)
    return TOLERANCE * min(greatest or 1.0, 1.0)


def _are_close(row: Row, other: Row, inexact: Mapping[int, float]) -> bool:
    return all(_is_close(row[place], other[place], tolerance) for place, tolerance in inexact.items())


def _is_close(left: Any, right: Any, tolerance: float) -> bool:  # noqa: ANN401 - whatever an engine gives
    if _is_odd(left) or _is_odd(right):
        return (left is None and right is None) or (_is_nan(left) and _is_nan(right))
    return math.isclose(left, right, rel_tol=TOLERANCE, abs_tol=tolerance)


def _is_nan(value: Any) -> bool:  # noqa: ANN401 - whatever an engine gives
    return isinstance(value, (float, Decimal)) and math.isnan(value)
