"""Bounds of uuids whose writer may have used another order.

Uuids are ordered by their bytes, unsigned (RFC 9562; Parquet's logical type UUID). Iceberg Java up to 1.12 compares
them as Java does, as two signed longs, when it puts together the bounds of several partition values, and those of
several row groups, which are in the order of the bytes (apache/iceberg issue 14216): its bounds may lie the wrong way
round, or inside the values. Nothing in a manifest states the order, so only what holds in all of these is used.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from icebench.engine.expressions.vectors import BytesVector, Vector, in_order
from icebench.engine.spec.types import PrimitiveType

_WIDTH = 16
_HALF = 8
_SIGN = 0x80

OneOrder: TypeAlias = NDArray[np.bool_] | Literal[True]


def believed_bounds(
    type_: PrimitiveType, lower: Vector | None, upper: Vector | None, count: int, *, one_order: OneOrder = True
) -> tuple[Vector | None, Vector | None]:
    """The usable part of the bounds in a manifest or manifest list, given the known bugs of writers.

    All comparisons with such bounds start here; `icebench.engine.plan.trusted_metrics` handles what concerns metrics
    alone. For `one_order` see `uuid_bounds`.
    """
    return uuid_bounds(lower, upper, count, one_order) if type_.name == "uuid" else in_order(lower, upper)


def uuid_bounds(
    lower: Vector | None, upper: Vector | None, count: int, one_order: OneOrder
) -> tuple[Vector | None, Vector | None]:
    """Bounds that hold whichever order the writer used, from the bounds of `count` rows.

    A lower bound whose first half is not negative, as a signed number, bounds in all orders, and so does a negative
    upper one; what the second halves say is given up where the orders differ there. Of values that were compared in one
    order the other bound holds, too, where one does: Java's bounds are recognized by lying the wrong way round.

    Args:
        lower: Lower bounds; None for none.
        upper: Upper bounds.
        count: How many rows there are.
        one_order: Whether all values of a row were compared in one order, whichever that is: by row, or True for all.
            Bounds of several row groups may be the least by one order of the least by the other.
    """
    low, low_known = _rows(lower, count)
    high, high_known = _rows(upper, count)
    low_plus, high_minus = low_known & (low[:, 0] < _SIGN), high_known & (high[:, 0] >= _SIGN)
    one_value = low_known & high_known & (low == high).all(axis=1) & one_order
    low[~one_value & (low[:, _HALF] >= _SIGN), _HALF:] = 0x00
    high[~one_value & (high[:, _HALF] < _SIGN), _HALF:] = 0xFF
    return (
        _vector(low, low_known & (low_plus | (high_minus & one_order))),
        _vector(high, high_known & (high_minus | (low_plus & one_order))),
    )


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
