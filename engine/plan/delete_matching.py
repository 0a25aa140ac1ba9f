"""Pairs data files with delete files by scope and sequence number, in compiled loops.

A pair is one number, ``data file * number of delete files + delete file``, so that sorted pairs are in the order of
data files, then delete files. There may be hundreds of millions (a thousand unpartitioned equality deletes over a
hundred thousand files), so pairs that key ranges exclude are never created.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from icebench.engine.codec.array_views import BoolArray, Int64Array
from icebench.engine.kernels.compiling import kernel

Pairs = Int64Array
NO_PAIRS: Pairs = np.zeros(0, np.int64)

VALUE, NULL, NAN = 1, 2, 4
"""Kinds of values that a column may have, as bits."""


@dataclass(frozen=True)
class KeyRanges:
    """Ranges of the values of each key column (first axis) in each file, and the kinds of these values.

    Ranges are comparable between data files and delete files. `used` marks the delete files that compare the column.
    """

    low: Int64Array
    high: Int64Array
    kinds: NDArray[np.uint8]
    delete_low: Int64Array
    delete_high: Int64Array
    delete_kinds: NDArray[np.uint8]
    used: BoolArray


def no_ranges(files: int, deletes: int) -> KeyRanges:
    """Unknown ranges, which keep every pair."""
    places = np.zeros((0, files), np.int64), np.zeros((0, deletes), np.int64)
    kinds = np.zeros((0, files), np.uint8), np.zeros((0, deletes), np.uint8)
    return KeyRanges(places[0], places[0], kinds[0], places[1], places[1], kinds[1], np.zeros((0, deletes), np.bool_))


def pair_with_deletes(
    scopes: tuple[Int64Array, Int64Array],
    least_seq: Int64Array,
    delete_seq: Int64Array,
    chosen: Int64Array,
    ranges: KeyRanges,
) -> Pairs:
    """Pair each data file with each of the `chosen` delete files of its scope whose number is at least its `least_seq`.

    `scopes` has those of all data files and of all delete files; `least_seq` is per data file, `delete_seq` per delete
    file, chosen or not.
    """
    scope, delete_scope = scopes
    numbers = np.unique(delete_seq[chosen])
    width = len(numbers) + 1
    keys = delete_scope[chosen] * width + np.searchsorted(numbers, delete_seq[chosen])
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.searchsorted(keys, scope * width + np.searchsorted(numbers, least_seq))
    end = np.maximum(np.searchsorted(keys, (scope + 1) * width), first)
    found: Pairs = _expand(
        np.stack([first, end]),
        chosen[order],
        len(delete_seq),
        (ranges.low, ranges.high, ranges.kinds),
        (ranges.delete_low, ranges.delete_high, ranges.delete_kinds, ranges.used),
    )
    return found


_Own = tuple[Int64Array, Int64Array, NDArray[np.uint8]]
_Other = tuple[Int64Array, Int64Array, NDArray[np.uint8], BoolArray]


def _may_meet(file: int, delete: int, own: _Own, other: _Other) -> bool:  # pragma: no cover - compiled
    """Whether in every key column some value of the data file may equal one of the delete file."""
    low, high, kinds = own
    delete_low, delete_high, delete_kinds, used = other
    for key in range(used.shape[0]):
        if not used[key, delete]:
            continue
        both = kinds[key, file] & delete_kinds[key, delete]
        if both & (NULL | NAN):
            continue
        if not both & VALUE or low[key, file] > delete_high[key, delete] or high[key, file] < delete_low[key, delete]:
            return False
    return True


def _pairs_bytes(stretches: Int64Array, deletes: Int64Array, width: int, own: _Own, other: _Other) -> int:
    del deletes, width, own
    return 16 * int((stretches[1] - stretches[0]).sum()) * (1 + len(other[3])) + stretches.nbytes


@kernel(helpers=(_may_meet,), work=_pairs_bytes)
def _expand(
    stretches: Int64Array, deletes: Int64Array, width: int, own: _Own, other: _Other
) -> Int64Array:  # pragma: no cover - compiled
    """The pairs of each data file and its range of `deletes`, sorted. They are counted first, to allocate exactly."""
    first, end = stretches[0], stretches[1]
    files = first.shape[0]
    total = 0
    for file in range(files):
        for i in range(first[file], end[file]):
            if _may_meet(file, deletes[i], own, other):
                total += 1
    found = np.empty(total, dtype=np.int64)
    at = 0
    for file in range(files):
        start = at
        for i in range(first[file], end[file]):
            if _may_meet(file, deletes[i], own, other):
                found[at] = file * width + deletes[i]
                at += 1
        found[start:at].sort()
    return found
