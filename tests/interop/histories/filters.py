"""Filters as every engine's text and as plain Python, with the three truth values of SQL."""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

Row = dict[str, Any]
Truth = bool | None


@dataclass(frozen=True)
class Where:
    """A filter: the text that our engine, Spark and PyIceberg all take, and what it means for a row."""

    text: str
    test: Callable[[Row], Truth]

    def __and__(self, other: Where) -> Where:
        def both(row: Row) -> Truth:
            found = (self.test(row), other.test(row))
            return False if False in found else None if None in found else True

        return Where(f"({self.text}) and ({other.text})", both)

    def __or__(self, other: Where) -> Where:
        def either(row: Row) -> Truth:
            found = (self.test(row), other.test(row))
            return True if True in found else None if None in found else False

        return Where(f"({self.text}) or ({other.text})", either)

    def __call__(self, row: Row) -> bool:
        """Whether the row is one of those."""
        return self.test(row) is True


@dataclass(frozen=True, eq=False)
class Column:
    """A column to compare; a name with dots is a field inside structs."""

    name: str
    __hash__ = None  # type: ignore[assignment]  # comparing gives a filter

    def of(self, row: Row) -> Any:
        value: Any = row
        for part in self.name.split("."):
            value = None if value is None else value[part]
        return value

    def _compared(self, sign: str, test: Callable[[Any, Any], bool], value: Any) -> Where:
        def compare(row: Row) -> Truth:
            own = self.of(row)
            return None if own is None else test(own, value)

        return Where(f"{self.name} {sign} {literal(value)}", compare)

    def __lt__(self, value: Any) -> Where:
        return self._compared("<", operator.lt, value)

    def __le__(self, value: Any) -> Where:
        return self._compared("<=", operator.le, value)

    def __gt__(self, value: Any) -> Where:
        return self._compared(">", operator.gt, value)

    def __ge__(self, value: Any) -> Where:
        return self._compared(">=", operator.ge, value)

    def __eq__(self, value: object) -> Where:  # type: ignore[override]
        return self._compared("=", operator.eq, value)

    def __ne__(self, value: object) -> Where:  # type: ignore[override]
        return self._compared("<>", operator.ne, value)

    def isin(self, *values: Any) -> Where:
        def among(row: Row) -> Truth:
            own = self.of(row)
            return None if own is None else own in values

        return Where(f"{self.name} in ({', '.join(map(literal, values))})", among)

    def is_null(self) -> Where:
        return Where(f"{self.name} is null", lambda row: self.of(row) is None)


def col(name: str) -> Column:
    return Column(name)


def literal(value: object) -> str:
    """A value in SQL; of dates and times the text, which every engine compares as the column's type."""
    if isinstance(value, dt.date | dt.time):
        return f"'{value.isoformat()}'"
    return str(value) if isinstance(value, int | float | Decimal) else f"'{value}'"
