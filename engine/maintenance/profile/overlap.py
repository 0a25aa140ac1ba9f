"""How the ranges of values of files overlap, by Snowflake's definitions (SYSTEM$CLUSTERING_INFORMATION).

Each file has a closed range of one column's values. Its *overlaps* are the other files with a value in common with that
range; its *depth* is the most files, itself included, that cover one value of the range. A filter for one value reads
as many files as cover it, so depths of 1 mean perfect clustering. Everything is O(n log n) in arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from icebench.engine.codec.array_views import Int64Array, bytes_array, data_of, offsets_of
from icebench.engine.codec.taking import take
from icebench.engine.columnar.ranking import rank_bytes
from icebench.engine.expressions.vectors import BytesVector, NumberVector, Vector

_SPARSE = 8
"""Whole numbers serve as ranks if their span is at most this many times their count; sorting takes longer."""
_PAIRS = 1 << 22
"""Pairs of boxes that are compared at a time."""
_PREFIX_BYTES = 8
_MOST_POSITION = 1e300
"""Infinities are as far away as this."""


def rank_values(vectors: Sequence[Vector]) -> list[Int64Array]:
    """Ranks of the values of vectors of one type, comparable between vectors; anything where there is no value."""
    numbers = [each for each in vectors if isinstance(each, NumberVector)]
    if len(numbers) == len(vectors):
        known = [each.values if each.valid is None else np.where(each.valid, each.values, 0) for each in numbers]
        ranks = compact_ranks(np.concatenate(known)) if known else np.zeros(0, np.int64)
    else:
        ranks = rank_bytes(_concatenated([each for each in vectors if isinstance(each, BytesVector)]))
    return np.split(ranks, np.cumsum([len(each) for each in vectors])[:-1]) if vectors else []


def value_positions(vectors: Sequence[Vector], ranks: Sequence[Int64Array]) -> list[NDArray[np.float64]]:
    """Numbers in the order of the values, whose differences measure their distance: numbers themselves, and of byte
    strings the eight bytes after the common prefix.

    Args:
        vectors: Of one type, without nulls.
        ranks: Their ranks, by `rank_values`.
    """
    numbers = [each for each in vectors if isinstance(each, NumberVector)]
    if len(numbers) == len(vectors):
        return [np.clip(each.values.astype(np.float64), -_MOST_POSITION, _MOST_POSITION) for each in numbers]
    strings = _concatenated([each for each in vectors if isinstance(each, BytesVector)])
    every = np.concatenate(ranks)
    if not len(every):
        return [np.zeros(0) for _ in vectors]
    first, last = (strings[int(at)].as_py() for at in (every.argmin(), every.argmax()))
    offsets, data = offsets_of(strings), data_of(strings)
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))
    at = offsets[:-1] + common
    positions = np.zeros(len(every))
    for place in range(_PREFIX_BYTES):
        has = at + place < offsets[1:]
        positions[has] += data[at[has] + place] * 256.0**-place
    return np.split(positions, np.cumsum([len(each) for each in vectors])[:-1])


def select_rows(vector: Vector, rows: Int64Array) -> Vector:
    """The values at these rows, in memory of their own."""
    valid = None if vector.valid is None else vector.valid[rows]
    if isinstance(vector, NumberVector):
        return NumberVector(vector.values[rows], valid)
    assert isinstance(vector, BytesVector)
    taken = take(bytes_array(vector.offsets, vector.data), rows)
    return BytesVector(offsets_of(taken), data_of(taken), valid)


def compact_ranks(values: NDArray[np.int64] | NDArray[np.float64]) -> Int64Array:
    """Whole numbers from 0 in the same order and with the same equalities, at most about `_SPARSE` times as many as
    there are values."""
    if not len(values):
        return np.zeros(0, np.int64)
    if values.dtype == np.int64:
        least = int(values.min())
        if int(values.max()) - least < _SPARSE * len(values):
            return values.astype(np.int64, copy=False) - least
    found: Int64Array = np.unique(values, return_inverse=True)[1]
    return found


def count_overlaps(low: Int64Array, high: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The overlaps and the depth of each range of ranks, ends included.

    Args:
        low: The ranks at which ranges begin, from 0; the highest rank should be of the order of the number of ranges.
        high: Where they end, at or above `low`.
    """
    if not len(low):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    begins = np.bincount(low, minlength=int(high.max()) + 1)
    begun = np.cumsum(begins, dtype=np.int32)
    ended = np.cumsum(np.bincount(high), dtype=np.int32)
    ended_before = np.concatenate([np.zeros(1, np.int32), ended[:-1]])
    # The most ranges cover a value where one begins, so that only these are looked at.
    is_begin = begins > 0
    place = np.cumsum(is_begin, dtype=np.int32) - 1
    covering = (begun - ended_before)[is_begin]
    overlaps = begun[high].astype(np.int64) - ended_before[low] - 1
    return overlaps, _range_max(covering, place[low], place[high])


def count_overlaps_within(groups: Int64Array, low: Int64Array, high: Int64Array) -> tuple[Int64Array, Int64Array]:
    """As `count_overlaps`, among ranges of the same group only; groups are numbered from 0."""
    if not len(low):
        return count_overlaps(low, high)
    # Ranges of different groups become disjoint.
    apart = groups * (int(high.max()) + 1)
    both = compact_ranks(np.concatenate([apart + low, apart + high]))
    return count_overlaps(both[: len(low)], both[len(low) :])


def count_boxes_within(groups: Int64Array, low: NDArray[np.float64], high: NDArray[np.float64]) -> Int64Array:
    """The depth of boxes, with a row of `low` and `high` for each dimension: the boxes of the same group that hold the
    middle of a box, itself included.

    Pairs are compared within a group, for the most that cover one point of a box takes exponential time in dimensions.
    """
    found = np.zeros(len(groups), np.int64)
    middle = (low + high) / 2
    for group in np.unique(groups).tolist():
        own = np.flatnonzero(groups == group)
        for part in np.array_split(own, -(-len(own) * len(own) // _PAIRS)):
            holds = np.ones((len(part), len(own)), np.bool_)
            for at, begin, end in zip(middle, low, high, strict=True):
                holds &= (begin[own] <= at[part, None]) & (at[part, None] <= end[own])
            found[part] = holds.sum(axis=1)
    return found


def _range_max(values: NDArray[np.int32], first: NDArray[np.int32], last: NDArray[np.int32]) -> Int64Array:
    """The greatest of ``values[first[i]:last[i] + 1]`` for each i, by a sparse table made a level at a time."""
    levels = (np.frexp((last - first + 1).astype(np.float64))[1] - 1).astype(np.uint8)  # so that the sort is by radix
    found = np.empty(len(first), np.int64)
    order = np.argsort(levels, kind="stable")
    ends = np.cumsum(np.bincount(levels))
    table = values
    for level, end in enumerate(ends.tolist()):
        span = 1 << level
        own = order[ends[level - 1] if level else 0 : end]
        found[own] = np.maximum(table[first[own]], table[last[own] - span + 1])
        table = np.maximum(table[:-span], table[span:])
    return found


def _concatenated(vectors: Sequence[BytesVector]) -> pa.Array:
    parts = [
        each.data[each.offsets[0] : each.offsets[-1]] if len(each.offsets) else np.zeros(0, np.uint8)
        for each in vectors
    ]
    starts = np.cumsum([0, *map(len, parts)])[:-1]
    offsets = [each.offsets[1:] - each.offsets[0] + start for each, start in zip(vectors, starts, strict=True)]
    return bytes_array(np.concatenate([np.zeros(1, np.int64), *offsets]), np.concatenate(parts))
