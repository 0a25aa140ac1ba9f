"""Whether an engine's answer is the right one."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

Row = tuple[Any, ...]

TOLERANCE = 1e-9
"""Of doubles, relative: the order of a sum is the engine's. All other values are compared exactly."""


@dataclass(frozen=True)
class Answer:
    """The right rows, each with its rank by ORDER BY; rows of one rank may come in any order."""

    ranked: tuple[tuple[int, Row], ...]

    def difference(self, rows: Sequence[Row]) -> str | None:
        """What is wrong with an engine's rows; None if nothing is."""
        if len(rows) != len(self.ranked):
            return f"{len(rows)} rows, not {len(self.ranked)}"
        place = 0
        for rank, group in itertools.groupby(self.ranked, key=lambda ranked: ranked[0]):
            right = sorted((row for _, row in group), key=_order)
            found = sorted(rows[place : place + len(right)], key=_order)
            for mine, other in zip(found, right, strict=True):
                if not _same_rows(mine, other):
                    return f"{mine} instead of {other} at rank {rank}"
            place += len(right)
        return None


def _order(row: Row) -> Row:
    """Sorts rows of one rank: by what is exact first, so that rounding does not change their order."""
    exact = [(value is None, _comparable(value)) for value in row if not isinstance(value, float)]
    return (*exact, *((value is None, value) for value in row if isinstance(value, float)))


def _comparable(value: Any) -> Any:
    return "" if value is None else value


def _same_rows(left: Row, right: Row) -> bool:
    return len(left) == len(right) and all(map(_same, left, right))


def _same(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return left is right
    if isinstance(left, float) or isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or math.isclose(
            left, right, rel_tol=TOLERANCE, abs_tol=TOLERANCE
        )
    numbers = int, Decimal
    assert isinstance(left, (*numbers, str, dt.date)), f"no rule for {type(left)}"
    alike = (isinstance(left, numbers) and isinstance(right, numbers)) or type(left) is type(right)
    return alike and left == right
