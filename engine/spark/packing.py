"""Keys of several columns as one long, so that Spark joins on it.

For a long Spark has a hash table of its own, which is several times faster than the one of rows. Of the keys to be
found the ranges are known, and so is how many values each column can have: their product numbers all combinations,
without two of one number. A row outside of the ranges equals no key; it gets null, which no join looks up. Null, where
a column of the keys has it, is one value more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.spec.types import PrimitiveType

_MOST = (1 << 63) - 1
"""The most numbers: both a number and the size of a range are a long that is not negative."""

_AS_LONG: Mapping[str, str] = {
    "boolean": "CAST({} AS BIGINT)",
    "int": "CAST({} AS BIGINT)",
    "long": "{}",
    "date": "CAST(unix_date({}) AS BIGINT)",
    "timestamptz": "unix_micros({})",
}
"""Types whose values are whole numbers in Spark too, and how. A timestamp without a zone is a number only by way of the
session's time zone, which is not exact."""


@dataclass(frozen=True, slots=True)
class _Range:
    """What one column of the keys can be: `count` values from `low`, and null perhaps."""

    type: PrimitiveType
    low: int
    count: int
    has_null: bool

    @property
    def size(self) -> int:
        return self.count + self.has_null

    def holds(self, column: str) -> str:
        """Whether a row's value is among them; never true for a null that is not."""
        if not self.count:
            return f"({column} IS NULL)"
        value = _AS_LONG[self.type.name].format(column)
        inside = f"{value} >= {_long(self.low)} AND {value} <= {_long(self.low + self.count - 1)}"
        return f"({column} IS NULL OR {inside})" if self.has_null else f"({inside})"

    def number(self, column: str) -> str:
        """Which of them a value is that `holds`."""
        if not self.count:
            return _long(0)
        value = f"({_AS_LONG[self.type.name].format(column)} - {_long(self.low)})"
        return f"coalesce({value}, {_long(self.count)})" if self.has_null else value

    def numbers(self, values: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
        """The same for columns of keys."""
        found = _whole_numbers(values, null=self.low) - self.low
        return np.where(_is_null(values), self.count, found)


@dataclass(frozen=True)
class Packing:
    """How keys become numbers; made by `packing_of`."""

    ranges: Sequence[_Range]

    @property
    def size(self) -> int:
        """How many keys there could be: each has a number below."""
        return prod(r.size for r in self.ranges)

    def packed(self, columns: Sequence[str]) -> str:
        """The text of a row's number, null where the row equals no key; `columns` are texts without side effects."""
        inside = " AND ".join(r.holds(c) for r, c in zip(self.ranges, columns, strict=True))
        number = self.ranges[0].number(columns[0])
        for r, column in zip(self.ranges[1:], columns[1:], strict=True):
            number = f"({number} * {_long(r.size)} + {r.number(column)})"
        # No arithmetic for rows outside, where it could overflow.
        return f"CASE WHEN {inside} THEN {number} END"

    def keys(self, columns: Sequence[pa.Array | pa.ChunkedArray]) -> npt.NDArray[np.int64]:
        """The numbers of keys."""
        found = self.ranges[0].numbers(columns[0])
        for r, column in zip(self.ranges[1:], columns[1:], strict=True):
            found = found * r.size + r.numbers(column)
        return found


def packing_of(types: Sequence[PrimitiveType], keys: Sequence[Sequence[pa.Array | pa.ChunkedArray]]) -> Packing | None:
    """How to number keys, so that equal ones have equal numbers and others do not.

    Args:
        types: Of the columns that are compared.
        keys: Those columns, of one set of keys or some.

    Returns:
        None where a column is not of whole numbers, there are no keys, or there could be 2^63 or more of them.
    """
    if any(t.name not in _AS_LONG for t in types) or not any(len(own[0]) for own in keys):
        return None
    packing = Packing([_range(t, [own[place] for own in keys]) for place, t in enumerate(types)])
    return packing if packing.size <= _MOST else None


def _range(type_: PrimitiveType, columns: Sequence[pa.Array | pa.ChunkedArray]) -> _Range:
    values = np.concatenate([_whole_numbers(c.drop_null(), null=0) for c in columns])
    has_null = any(c.null_count for c in columns)
    if not len(values):
        return _Range(type_, 0, 0, has_null)
    low = int(values.min())
    return _Range(type_, low, int(values.max()) - low + 1, has_null)


def _whole_numbers(column: pa.Array | pa.ChunkedArray, *, null: int) -> npt.NDArray[np.int64]:
    """Values as the numbers that `_AS_LONG` gives, `null` for null."""
    narrow = column.cast(pa.int32()) if pa.types.is_date32(column.type) else column
    values: npt.NDArray[np.int64] = narrow.cast(pa.int64()).fill_null(null).to_numpy()
    return values


def _is_null(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = np.asarray(column.is_null())
    return found


def _long(value: int) -> str:
    """A number as Spark SQL takes it, the least one too."""
    return f"{value}L" if value >= 0 else f"CAST('{value}' AS BIGINT)"
