"""Keys of several columns encoded as one long, so that Spark joins on a long.

Spark has a specialised hash table for long keys, several times faster than that for rows. The range of each key column
is known, hence the number of values that it can have; combinations are numbered in mixed radix, so that no two have the
same number. A row with a value outside of a column's range equals no key: it gets null, which no join matches. Where a
key column has nulls, null counts as one more value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebench.engine.spec.types import PrimitiveType

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
    """The possible values of one key column: `count` values from `low`, and perhaps null."""

    type: PrimitiveType
    low: int
    count: int
    has_null: bool

    @property
    def size(self) -> int:
        return self.count + self.has_null

    def holds(self, column: str) -> str:
        """SQL: whether the value of a row is in the range. Never true for null unless the keys have nulls."""
        if not self.count:
            return f"({column} IS NULL)"
        value = _AS_LONG[self.type.name].format(column)
        inside = f"{value} >= {_long(self.low)} AND {value} <= {_long(self.low + self.count - 1)}"
        return f"({column} IS NULL OR {inside})" if self.has_null else f"({inside})"

    def number(self, column: str) -> str:
        """SQL: the ordinal of a value for which `holds` is true."""
        if not self.count:
            return _long(0)
        value = f"({_AS_LONG[self.type.name].format(column)} - {_long(self.low)})"
        return f"coalesce({value}, {_long(self.count)})" if self.has_null else value

    def numbers(self, values: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
        """The ordinals of a column of keys."""
        found = _whole_numbers(values, null=self.low) - self.low
        return np.where(_is_null(values), self.count, found)


@dataclass(frozen=True)
class Packing:
    """The encoding of keys as longs; made by `packing_of`."""

    ranges: Sequence[_Range]

    @property
    def size(self) -> int:
        """The number of combinations; every key's number is below it."""
        return prod(r.size for r in self.ranges)

    def packed(self, columns: Sequence[str]) -> str:
        """SQL: the number of a row's key, null where it equals no key. `columns` are SQL expressions without side
        effects."""
        inside = " AND ".join(r.holds(c) for r, c in zip(self.ranges, columns, strict=True))
        number = self.ranges[0].number(columns[0])
        for r, column in zip(self.ranges[1:], columns[1:], strict=True):
            number = f"({number} * {_long(r.size)} + {r.number(column)})"
        # No arithmetic for rows outside, where it could overflow.
        return f"CASE WHEN {inside} THEN {number} END"

    def keys(self, columns: Sequence[pa.Array | pa.ChunkedArray]) -> npt.NDArray[np.int64]:
        """The numbers of the keys."""
        found = self.ranges[0].numbers(columns[0])
        for r, column in zip(self.ranges[1:], columns[1:], strict=True):
            found = found * r.size + r.numbers(column)
        return found


def packing_of(types: Sequence[PrimitiveType], keys: Sequence[Sequence[pa.Array | pa.ChunkedArray]]) -> Packing | None:
    """An encoding under which two keys have the same number if and only if they are equal.

    Args:
        types: The types of the columns that are compared.
        keys: The key columns, of one or more sets of keys.

    Returns:
        None where a column is not of an integer-like type, there are no keys, or there are 2^63 or more combinations.
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
    """The values as integers, as `_AS_LONG` defines them; `null` replaces null."""
    narrow = column.cast(pa.int32()) if pa.types.is_date32(column.type) else column
    values: npt.NDArray[np.int64] = narrow.cast(pa.int64()).fill_null(null).to_numpy()
    return values


def _is_null(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = np.asarray(column.is_null())
    return found


def _long(value: int) -> str:
    """A long as a literal of Spark SQL, the least one included."""
    return f"{value}L" if value >= 0 else f"CAST('{value}' AS BIGINT)"
