"""Bounds of uuids whose writer may have used another order.

Uuids are ordered by their bytes, unsigned (RFC 9562; Parquet's logical type UUID). Iceberg Java up to 1.12 compares
them as Java does, as two signed longs, when it puts together the bounds of several row groups, and of several partition
values (apache/iceberg issue 14216): its bounds may lie the wrong way round, or inside the values. Nothing in a manifest
states the order, so only what holds in both orders is used.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from icebench.engine.expressions.vectors import BytesVector, Vector, in_order
from icebench.engine.spec.types import PrimitiveType

_WIDTH = 16
_HALF = 8
_SIGN = 0x80


def believed_bounds(
    type_: PrimitiveType, lower: Vector | None, upper: Vector | None, count: int
) -> tuple[Vector | None, Vector | None]:
    """The usable part of the bounds in a manifest or manifest list, given the known bugs of writers.

    All comparisons with such bounds start here; `icebench.engine.plan.trusted_metrics` handles what concerns metrics
    alone.
    """
    return uuid_bounds(lower, upper, count) if type_.name == "uuid" else in_order(lower, upper)


def uuid_bounds(lower: Vector | None, upper: Vector | None, count: int) -> tuple[Vector | None, Vector | None]:
    """Bounds that hold whichever order the writer used, from the bounds of `count` rows.

    Bounds whose first halves have the same sign are in order in those halves; what the second halves say is given up
    where the orders differ there. Where the signs differ, Java's bounds are recognized by lying the wrong way round,
    and a bound without its counterpart is believed if it is on the side where it bounds in both orders.
    """
    low, low_known = _rows(lower, count)
    high, high_known = _rows(upper, count)
    low_plus, high_minus = low_known & (low[:, 0] < _SIGN), high_known & (high[:, 0] >= _SIGN)
    one_value = low_known & high_known & (low == high).all(axis=1)
    low[~one_value & (low[:, _HALF] >= _SIGN), _HALF:] = 0x00
    high[~one_value & (high[:, _HALF] < _SIGN), _HALF:] = 0xFF
    return _vector(low, low_known & (low_plus | high_minus)), _vector(high, high_known & (high_minus | low_plus))


def _rows(vector: Vector | None, count: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """The bytes of each row, and whether it has a uuid."""
    found = np.zeros((count, _WIDTH), dtype=np.uint8)
    if vector is None:
        return found, np.zeros(count, dtype=np.bool_)
    assert isinstance(vector, BytesVector)
    known = (np.diff(vector.offsets) == _WIDTH) & (True if vector.valid is None else vector.valid)
    starts = vector.offsets[:-1][known]
    found[known] = vector.data[starts[:, np.newaxis] + np.arange(_WIDTH)]
    return found, known


def _vector(rows: NDArray[np.uint8], known: NDArray[np.bool_]) -> Vector:
    return BytesVector(np.arange(len(rows) + 1, dtype=np.int64) * _WIDTH, rows.reshape(-1), known)
