"""From numpy to Arrow without a Python object for any value: buffers are laid out here and handed over as they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from icebench.bench.workloads.draws import Int64s, Words, below, words

Bools = NDArray[np.bool_]
# Two 64-bit words a value, the low one first and the high one with the sign: decimal128's own layout.
Words128 = NDArray[np.int64]


def null_masks(seed: int, table: str, rows: Int64s, per_ten_thousand: int) -> Words:
    """Which columns of each row are null: bit n stands for column n.

    As in dsdgen, nulls come together: a few rows have them, and there each nullable column is null with even chance.

    Args:
        seed: The workload's seed.
        table: Whose nulls.
        rows: Row ids.
        per_ten_thousand: How many rows of 10,000 have nulls; each column's null rate is half of it.
    """
    word = words(seed, f"{table}.nulls", rows)
    # Of a word that decides that there are nulls, the bits that say where are as good as independent: the decision is
    # made by its highest bits, and no table has that many columns.
    return word * (below(word, 10_000) < per_ten_thousand)


class BatchBuilder:
    """Gathers the columns of one record batch, laying nulls over those that may be null.

    Args:
        schema: Columns of the batch; each must be set once before `finish`, in any order.
        rows: Length of the batch.
        masks: For each row, the columns that are null (bit n for column n); None: none are.
    """

    def __init__(self, schema: pa.Schema, rows: int, masks: Words | None = None) -> None:
        self._schema = schema
        self._rows = rows
        self._masks = masks
        self._columns: dict[str, pa.Array] = {}

    def _validity(self, name: str, known: Bools | None) -> pa.Buffer | None:
        index = self._schema.get_field_index(name)
        if not self._schema.field(index).nullable:
            return None
        valid = known
        if self._masks is not None:
            unmasked = (self._masks & np.uint64(1 << index)) == 0
            valid = unmasked if known is None else known & unmasked
        return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))

    def _put(self, name: str, buffers: list[pa.Buffer | None]) -> None:
        self._columns[name] = pa.Array.from_buffers(self._schema.field(name).type, self._rows, buffers)

    def integers(self, name: str, values: NDArray[np.integer], known: Bools | None = None) -> None:
        """Set a column of type int, bigint or date (days since 1970-01-01); null where `known` is false."""
        width = np.int64 if self._schema.field(name).type.bit_width == 64 else np.int32
        data = np.ascontiguousarray(values, width)
        self._put(name, [self._validity(name, known), pa.py_buffer(data)])

    def decimals(self, name: str, unscaled: NDArray[np.integer]) -> None:
        """Set a decimal column from unscaled values (cents for a scale of 2) that fit in 64 bits."""
        # Arrow's pool reuses memory; fresh pages for each column would cost as much as all the rest of the batch.
        data = pa.allocate_buffer(self._rows * 16)
        pairs = np.frombuffer(data, np.int64).reshape(self._rows, 2)
        pairs[:, 0] = unscaled
        pairs[:, 1] = unscaled >> (unscaled.dtype.itemsize * 8 - 1)
        self._put(name, [self._validity(name, None), data])

    def wide_decimals(self, name: str, pairs: Words128) -> None:
        """Set a decimal column from unscaled 128-bit values, as pairs of a low and a high word."""
        self._put(name, [self._validity(name, None), pa.py_buffer(np.ascontiguousarray(pairs))])

    def strings(self, name: str, values: pa.StringArray) -> None:
        """Set a string column from values without nulls of their own."""
        _, offsets, data = values.buffers()
        assert values.offset == 0, "the offsets buffer is taken from its beginning"
        self._put(name, [self._validity(name, None), offsets, data])

    def finish(self) -> pa.RecordBatch:
        """The batch. Raises KeyError for a column that was not set."""
        return pa.RecordBatch.from_arrays([self._columns[name] for name in self._schema.names], schema=self._schema)


def chosen(vocabulary: Sequence[str], index: NDArray[np.integer]) -> pa.StringArray:
    """The word at each index of a vocabulary."""
    return pa.array(vocabulary, pa.string()).take(pa.array(index))


def fixed_texts(letters: NDArray[np.uint8]) -> pa.StringArray:
    """Strings of equal length from a matrix of ASCII codes, one string a row."""
    rows, width = letters.shape
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(width)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(letters))]
    return pa.Array.from_buffers(pa.string(), rows, buffers)


def numbered(values: NDArray[np.integer], before: str = "", after: str = "") -> pa.StringArray:
    """Numbers in decimal, between two texts."""
    return pc.binary_join_element_wise(before, pa.array(values).cast(pa.string()), after, "")
