"""Evidence about a source column from its partition values; one mechanism for every transform.

A partition value says something of every row's source value: a month lies between its first and last day, ``truncate``
gives a range or a prefix, ``identity`` the value itself, ``bucket`` the literals that the column may be equal to. Null
means null, as all transforms keep null and only void makes it. So partition tuples and manifest summaries are turned
into evidence of source columns, and the filter is evaluated on them as on any statistics; no filter is projected.
Several fields of one source give several pieces of evidence, which the evaluator intersects.

Void, unknown and multi-argument transforms give no evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from icebench.engine.expressions.bounds import ColumnBounds, Evidence, PreparedLeaf
from icebench.engine.expressions.literal_intervals import FALSE, TRUE, LiteralIntervals, Outcomes
from icebench.engine.expressions.literals import INTEGER_RANGES
from icebench.engine.expressions.vectors import BytesVector, NumberVector, Vector
from icebench.engine.spec.calendar import UNITS_PER_DAY
from icebench.engine.spec.transforms import Bucket, Day, Hour, Identity, Month, Transform, Truncate, Year
from icebench.engine.spec.types import DecimalType, PrimitiveType

_HOURS_PER_DAY = 24
_WIDE_DECIMAL_BYTES = 17


def source_evidence(transform: Transform, source: PrimitiveType, values: ColumnBounds) -> Evidence | None:
    """The evidence about the source column in partition values; None if there is none.

    `values` bounds each row's partition values, in the representation of `transform.result_type(source)`: equal bounds
    for a partition tuple, a range for a manifest's summary.
    """
    if not transform.accepts(source):
        return None
    match transform:
        case Identity():
            return values
        case Year() | Month() | Day() | Hour():
            return _of_time_unit(transform, source, values)
        case Truncate(width):
            return _of_truncate(width, source, values)
        case Bucket():
            return BucketValues(transform, source, values)
    return None


def _of_time_unit(transform: Transform, source: PrimitiveType, values: ColumnBounds) -> ColumnBounds:
    """The range from the first to the last instant of each unit.

    Writers before Iceberg 0.12 cut instants before 1970 towards zero and stored the next unit, so a unit up to that of
    1970-01-01 may also hold the one before.
    """
    lower, upper = values.lower, values.upper
    if lower is not None:
        units = _numbers(lower)
        lower = _valid_where(*_first_instant(transform, source, units - (units <= 0)), lower)
    if upper is not None:
        first, fits = _first_instant(transform, source, _numbers(upper) + 1)
        upper = _valid_where(first - 1, fits, upper)
    return ColumnBounds(values.count, lower, upper, values.presence)


def _first_instant(
    transform: Transform, source: PrimitiveType, units: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The first day or tick of each unit, and whether it fits into 64 bits."""
    ticks = UNITS_PER_DAY[source.name]
    match transform:
        case Year():
            days = units.astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64)
        case Month():
            days = units.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
        case Hour():
            days, ticks = units, ticks // _HOURS_PER_DAY
        case _:
            days = units
    fits = np.abs(days) < (1 << 63) // ticks
    return np.where(fits, days, 0) * ticks, fits


def _of_truncate(width: int, source: PrimitiveType, values: ColumnBounds) -> ColumnBounds:
    lower, upper = values.lower, values.upper
    match upper:
        case NumberVector(numbers, _):
            limit = INTEGER_RANGES.get(source.name, (0, (1 << 63) - 1))[1]
            step = min(width - 1, limit)
            fits = numbers <= limit - step
            known = fits if upper.valid is None else fits & upper.valid
            if lower is not None:
                # Java's arithmetic wraps the lowest values of a type around into its last bin.
                sound = known & ~_has_last_int_bin(width, lower, upper) if source.name == "long" else known
                lower = _valid_where(_numbers(lower), sound, lower)
            upper = NumberVector(np.where(fits, numbers, 0) + step, known)
        case BytesVector() if isinstance(source, DecimalType):
            raised = _add_big_endian(upper.data, min(width - 1, (1 << 62) - 1))
            upper = BytesVector(upper.offsets, raised, upper.valid) if width <= 1 << 62 else None
        case BytesVector(offsets, data, valid):
            cut = _utf16_lengths(offsets, data) >= width if source.name == "string" else np.diff(offsets) >= width
            upper = BytesVector(offsets, data, valid, cut)
    return ColumnBounds(values.count, lower, upper, values.presence)


def _has_last_int_bin(width: int, lower: Vector, upper: Vector) -> NDArray[np.bool_]:
    """Where bins from `lower` to `upper` include the last one of type int, which the column of type long may have had
    when they were written."""
    limit = INTEGER_RANGES["int"][1]
    return (_numbers(lower) <= limit) & (_numbers(upper) > limit - min(width - 1, limit))


def _add_big_endian(keys: NDArray[np.uint8], addend: int) -> NDArray[np.uint8]:
    """Numbers of `_WIDE_DECIMAL_BYTES` bytes, each plus a non-negative one of 62 bits; the sign bit flipped or not."""
    found = keys.reshape(-1, _WIDE_DECIMAL_BYTES).copy()
    carry = np.full(len(found), addend, np.int64)
    for place in reversed(range(_WIDE_DECIMAL_BYTES)):
        carry += found[:, place]
        found[:, place] = carry & 0xFF
        carry >>= 8
    return found.reshape(-1)


def _utf16_lengths(offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Each text's UTF-16 units, which are never fewer than its characters."""
    units = ((data & 0xC0) != 0x80).astype(np.int64) + (data >= 0xF0)
    before = np.concatenate([[0], np.cumsum(units)])
    return before[offsets[1:]] - before[offsets[:-1]]


def _valid_where(
    numbers: NDArray[np.int64] | NDArray[np.float64], fits: NDArray[np.bool_], old: Vector
) -> NumberVector:
    return NumberVector(numbers, fits if old.valid is None else fits & old.valid)


def _numbers(vector: Vector) -> NDArray[np.int64]:
    assert isinstance(vector, NumberVector)
    return vector.values.astype(np.int64, copy=False)


@dataclass(frozen=True)
class BucketValues:
    """Bucket numbers, or ranges of them: a value equal to a literal has the literal's bucket."""

    transform: Bucket
    source: PrimitiveType
    values: ColumnBounds

    def outcomes(self, test: PreparedLeaf) -> Outcomes:
        return self.values.presence.outcomes(self.values.count, test, self._of_values)

    def _of_values(self, intervals: LiteralIntervals) -> Outcomes:
        """The outcomes of the open intervals, which any bucket may hold, and of the literals in the row's buckets."""
        if intervals.points is None or intervals.open_outcomes == TRUE | FALSE:
            return np.full(self.values.count, TRUE | FALSE, dtype=np.uint8)
        found = np.full(self.values.count, intervals.open_outcomes, dtype=np.uint8)
        width = self.transform.width
        low, high = _bucket(self.values.lower, 0, width), _bucket(self.values.upper, width - 1, width)
        for outcome, buckets in _buckets_of_points(intervals, self.transform, self.source):
            some = np.searchsorted(buckets, high, side="right") > np.searchsorted(buckets, low, side="left")
            found |= some.astype(np.uint8) * np.uint8(outcome)
        return found


@lru_cache(maxsize=256)
def _buckets_of_points(
    intervals: LiteralIntervals, transform: Bucket, source: PrimitiveType
) -> tuple[tuple[int, NDArray[np.int64]], ...]:
    """For TRUE and FALSE the sorted buckets of the literals with that outcome; hashed once per filter and transform."""
    assert intervals.points is not None
    buckets = np.array([transform.apply(source, point) for point in intervals.points], dtype=np.int64)
    outcomes = np.array(intervals.point_outcomes)
    return tuple((outcome, np.unique(buckets[outcomes == outcome])) for outcome in (TRUE, FALSE))


def _bucket(vector: Vector | None, otherwise: int, width: int) -> NDArray[np.int64]:
    if vector is None:
        return np.array(otherwise, dtype=np.int64)
    numbers = _numbers(vector)
    known = (numbers >= 0) & (numbers < width)
    return np.where(known if vector.valid is None else known & vector.valid, numbers, otherwise)
