"""Z-order: rows along a curve on which neighbours are near each other in several columns at once.

A column's value counts by the share of rows that come before it, not by its own bits. So a column of numbers from 0 to
1,000 weighs as much as one of hashes, text with a common prefix is distinguished, and every type that can be sorted
takes part, wide decimals among them. Shares are of the rows at hand: they order one group of files and mean nothing
beyond it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebench.engine.columnar.batch_columns import combined
from icebench.engine.columnar.schemas import storage_of
from icebench.engine.errors import Invalid

UInt64s = npt.NDArray[np.uint64]

_BITS = 64
_MOST_BITS = 32
"""Of one column. More would distinguish values closer together than one row in four billion."""

_MOST_VALUES = 1 << 13
"""Of a sampled column: each row's value is looked up among them."""


def z_values(columns: Sequence[pa.Array | pa.ChunkedArray]) -> UInt64s:
    """The place of each row on the curve.

    Args:
        columns: Up to 64 columns of primitive types, equally long; nulls come first, NaN last.

    Raises:
        Invalid: No column, or more than 64.
    """
    bits = bits_of_each(len(columns), "z-order")
    return interleave_bits([shares(column, bits) for column in columns], bits)


def bits_of_each(columns: int, curve: str) -> int:
    """How many bits of each column fit into a place on a curve; raises Invalid for no column, or more than 64."""
    if not 0 < columns <= _BITS:
        raise Invalid(f"{curve} takes 1 to {_BITS} columns, not {columns}")
    return min(_BITS // columns, _MOST_BITS)


def shares(column: pa.Array | pa.ChunkedArray, bits: int) -> UInt64s:
    """For each row, which share of the rows has a lesser value, as a number of that many bits.

    Equal values have equal shares, and a greater value never a lesser one; nulls are less than all values. Zeros of
    either sign are different values, in any order.
    """
    return shares_of_ranks(ranked(column)[0], bits)


def ranked(column: pa.Array | pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """For each row the rank of its value among the distinct ones, -1 for null; and these values in their order, as
    Arrow stores them."""
    array = storage_of(combined(column) if isinstance(column, pa.ChunkedArray) else column)
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    if array.null_count == len(array):
        return np.full(len(array), -1, np.int64), array[:0]
    encoded = array.dictionary_encode()
    numbers = pa.array(np.arange(len(encoded.dictionary)))
    order = combined(pa.table({"value": encoded.dictionary, "number": numbers}).sort_by("value")["number"])
    ranks = np.empty(len(order) + 1, np.int64)
    ranks[order.to_numpy()] = np.arange(len(order))
    ranks[-1] = -1
    codes = encoded.indices.fill_null(len(order)).to_numpy(zero_copy_only=False)
    return ranks[codes], encoded.dictionary.take(order)


def shares_of_ranks(ranks: npt.NDArray[np.int64], bits: int) -> UInt64s:
    """`shares` of a column from the ranks of its rows."""
    count = len(ranks)
    if not count:
        return np.zeros(0, np.uint64)
    rows = np.bincount(ranks + 1)
    before = (np.cumsum(rows) - rows).astype(np.uint64)
    # No share is as much as one, so that it fits. More than 2**32 rows leave fewer bits.
    exact = np.uint64(min(bits, 64 - count.bit_length()))
    scaled = ((before << exact) // np.uint64(count)) << (np.uint64(bits) - exact)
    return scaled[ranks + 1]


@dataclass(frozen=True)
class SampledShares:
    """`shares` of the values of a column, whatever rows they are of, as a sample of its rows has them.

    Args:
        values: Distinct values of the sample in their order, as Arrow stores them.
        before: The shares of these values, and of a value beyond all of them.
    """

    values: pa.Array
    before: UInt64s

    @classmethod
    def of(cls, sample: pa.Array | pa.ChunkedArray, bits: int) -> SampledShares:
        """Of a column of sampled rows."""
        ranks, values = ranked(sample)
        lesser = np.cumsum(np.bincount(ranks + 1, minlength=len(values) + 1)).astype(np.uint64)
        exact = np.uint64(min(bits, 64 - (len(ranks) + 1).bit_length()))
        before = ((lesser << exact) // np.uint64(len(ranks) + 1)) << (np.uint64(bits) - exact)
        if len(values) > _MOST_VALUES:
            chosen = np.linspace(0, len(values) - 1, _MOST_VALUES).astype(np.int64)
            values, before = values.take(pa.array(chosen)), before[np.append(chosen, len(values))]
        return cls(values, before)

    def __call__(self, column: pa.Array | pa.ChunkedArray) -> UInt64s:
        """The share of each row: that of the least value of the sample that is not less than the row's."""
        own = storage_of(combined(column) if isinstance(column, pa.ChunkedArray) else column)
        chunks = own.chunks if isinstance(own, pa.ChunkedArray) else [own]
        ranks, _ = ranked(pa.concat_arrays([self.values, *chunks]))
        known, rows = np.split(ranks, [len(self.values)])
        is_known = np.bincount(known, minlength=int(ranks.max(initial=0)) + 1)
        lesser = np.cumsum(is_known) - is_known
        return np.where(rows < 0, np.uint64(0), self.before[lesser[rows]])


def interleave_bits(columns: Sequence[UInt64s], bits: int) -> UInt64s:
    """Interleave the bits of several numbers: the highest of the first, the highest of the second, and so on.

    Args:
        columns: Numbers of `bits` bits each, equally many; ``len(columns) * bits`` is at most 64.
        bits: How many of each number.
    """
    width = len(columns)
    spread = _spread_bytes(width)
    made = np.zeros(len(columns[0]), np.uint64)
    for place, column in enumerate(columns):
        for low in range(0, bits, 8):
            own = (column >> np.uint64(low)).astype(np.uint8)
            made |= spread[own] << np.uint64(low * width + width - 1 - place)
    return made


def _spread_bytes(width: int) -> UInt64s:
    """Each byte's bits, `width` places apart; those that would be out of a number are left out."""
    numbers = np.arange(256, dtype=np.uint64)
    made = np.zeros(256, np.uint64)
    for bit in range(min(8, -(-_BITS // width))):
        made |= ((numbers >> np.uint64(bit)) & np.uint64(1)) << np.uint64(bit * width)
    return made
