"""Exact look-up of rows among keys: an index is built once and probed batch by batch.

Arrow's join and `index_in` build a hash table at every call, which costs more than the look-ups of a small batch. Here
each column of a key becomes one or two 64-bit words (text and binary by codes of the keys' own values), so that one
compiled loop serves all types. Null equals null, NaN equals NaN, zeros differ by sign (as in Iceberg Java).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from icebench.engine.columnar.decimals import is_narrow, unscaled
from icebench.engine.columnar.hashing import byte_spans, murmur3_of_bytes
from icebench.engine.columnar.schemas import storage_of
from icebench.engine.kernels.compiling import kernel

Words = npt.NDArray[np.int64]

_BLOCK = 512
"""Rows that are hashed at a time."""
_ABSENT = np.int64(-2)
"""The code of a byte string that is not in any key."""


@dataclass(frozen=True)
class ByteStrings:
    """Dense codes of distinct byte strings: indexes into `offsets` and `data`, found through `slots`."""

    offsets: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]
    slots: npt.NDArray[np.int32]

    @classmethod
    def of(cls, array: pa.Array) -> ByteStrings:
        """Index the distinct strings of an array, without null."""
        distinct = array.unique().drop_null()
        offsets, data = byte_spans(distinct)
        slots = _slots(len(distinct))
        _insert_bytes(murmur3_of_bytes(distinct), slots)
        return cls(offsets, data, slots)

    def codes(self, array: pa.Array) -> Words:
        """The code of each string, `_ABSENT` for unknown strings; arbitrary for null."""
        offsets, data = byte_spans(array)
        return _find_bytes(murmur3_of_bytes(array), offsets, data, self.offsets, self.data, self.slots)


@dataclass(frozen=True)
class KeyIndex:
    """Keys with a number each; of equal keys the greatest number counts.

    `dictionaries` has an entry per column, None unless the column is text or binary. `bits` has a bit for each key's
    hash: it passes one in sixteen rows that match no key, without a branch to mispredict. `tags` has another byte of
    each slot's hash, 0 for a free slot, which passes one in 127 of those.
    """

    dictionaries: tuple[ByteStrings | None, ...]
    has_nulls: bool
    words: Words
    numbers: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int32]
    tags: npt.NDArray[np.uint8]
    bits: npt.NDArray[np.uint64]

    @classmethod
    def build(cls, columns: Sequence[pa.Array], numbers: npt.NDArray[np.int64]) -> KeyIndex:
        """Index the rows of `columns` (at least one, each of an engine type) with a number for each row."""
        stored = [storage_of(column) for column in columns]
        dictionaries = tuple(ByteStrings.of(c) if _is_bytes(c.type) else None for c in stored)
        has_nulls = any(column.null_count for column in stored)
        words = _words(stored, dictionaries, with_nulls=has_nulls)
        greatest = numbers.astype(np.int64)
        slots = _slots(len(words))
        tags = np.zeros(len(slots), np.uint8)
        # Eight bits a slot: sixteen a key or more, and the tags' size.
        bits = np.zeros(len(slots) // 8, np.uint64)
        _insert(words, greatest, slots, tags, bits)
        return cls(dictionaries, has_nulls, words, greatest, slots, tags, bits)

    def greatest(self, columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
        """For each row of `columns` the greatest number of its key, -1 if there is no such key."""
        stored = [storage_of(column) for column in columns]
        probes = _words(stored, self.dictionaries, with_nulls=self.has_nulls)
        found = _find(probes, self.words, self.numbers, self.slots, self.tags, self.bits)
        if not self.has_nulls:
            for column in stored:
                if column.null_count:
                    found[column.is_null().to_numpy(zero_copy_only=False)] = -1
        return found

    def __len__(self) -> int:
        return len(self.numbers)


def _is_bytes(type_: pa.DataType) -> bool:
    return pat.is_string(type_) or pat.is_binary(type_) or pat.is_fixed_size_binary(type_)


def _words(columns: Sequence[pa.Array], dictionaries: Sequence[ByteStrings | None], *, with_nulls: bool) -> Words:
    """Rows as 64-bit words: those of each column, then null bits if `with_nulls`."""
    rows = len(columns[0])
    parts: list[Words] = []
    nulls = [np.zeros(rows, np.int64) for _ in range(0, len(columns), 63)] if with_nulls else []
    for place, (column, dictionary) in enumerate(zip(columns, dictionaries, strict=True)):
        own = [dictionary.codes(column)] if dictionary is not None else _numbers(column)
        if column.null_count and with_nulls:
            missing = column.is_null().to_numpy(zero_copy_only=False)
            own = [np.where(missing, 0, word) for word in own]
            nulls[place // 63] |= missing.astype(np.int64) << place % 63
        parts.extend(own)
    parts += nulls
    return np.ascontiguousarray(parts[0].reshape(-1, 1) if len(parts) == 1 else np.column_stack(parts))


def _numbers(column: pa.Array) -> list[Words]:
    """The words of a column of numbers, booleans or times; arbitrary for null."""
    type_ = column.type
    if is_narrow(type_):
        # The same word as the lower one of decimal128.
        return [unscaled(column).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)]
    if pat.is_decimal(type_):
        buffer = column.buffers()[1]
        raw = np.frombuffer(buffer, np.int64, count=len(column) * 2, offset=column.offset * 16)
        return [raw[::2]] if type_.precision <= 18 else [raw[::2], raw[1::2]]
    if pat.is_boolean(type_):
        return [column.cast(pa.int8()).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)]
    if pat.is_floating(type_):
        values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
        return [np.where(np.isnan(values), np.nan, values).view(np.int64)]
    if pat.is_null(type_):
        return [np.zeros(len(column), np.int64)]
    integers = column.view(pa.int32() if type_.bit_width == 32 else pa.int64())
    filled = integers.fill_null(0) if integers.null_count else integers
    return [filled.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)]


def _slots(count: int) -> npt.NDArray[np.int32]:
    """An empty hash table, at most half full with `count` entries; -1 is a free slot."""
    return np.full(1 << max(int(2 * count - 1).bit_length(), 3), -1, np.int32)


@kernel(work=None)
def _insert_bytes(hashes: Any, slots: Any) -> None:  # noqa: ANN401 - compiled for what it gets
    mask = len(slots) - 1
    for i in range(len(hashes)):
        slot = hashes[i] & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = i


@kernel(work=None)
def _find_bytes(hashes: Any, offsets: Any, data: Any, key_offsets: Any, key_data: Any, slots: Any) -> Any:  # noqa: ANN401, PLR0917
    mask = len(slots) - 1
    found = np.full(len(hashes), _ABSENT, np.int64)
    for i in range(len(hashes)):
        start = offsets[i]
        length = offsets[i + 1] - start
        slot = hashes[i] & mask
        while slots[slot] >= 0:
            code = slots[slot]
            begin = key_offsets[code]
            if key_offsets[code + 1] - begin == length:
                same = 0
                while same < length and key_data[begin + same] == data[start + same]:
                    same += 1
                if same == length:
                    found[i] = code
                    break
            slot = (slot + 1) & mask
    return found


def _mixed(words: Any, row: Any) -> Any:  # noqa: ANN401
    h = np.uint64(0)
    for column in range(words.shape[1]):
        h ^= np.uint64(words[row, column])
        h *= np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(32)
        h *= np.uint64(0xD6E8FEB86659FD93)
        h ^= h >> np.uint64(29)
    return h


def _tag(h: Any) -> Any:  # noqa: ANN401
    """Bits of a hash that the slot number does not use; never 0."""
    return np.uint8((h >> np.uint64(57)) + np.uint64(1))


def _place(h: Any, bits: Any) -> Any:  # noqa: ANN401
    """The bit index of a hash, from the bits between those of the slot and of the tag."""
    return (h >> np.uint64(20)) & np.uint64(64 * len(bits) - 1)


@kernel(helpers=(_mixed, _tag, _place), work=None)
def _insert(words: Any, numbers: Any, slots: Any, tags: Any, bits: Any) -> None:  # noqa: ANN401
    mask = np.uint64(len(slots) - 1)
    for row in range(len(words)):
        h = _mixed(words, row)
        slot = h & mask
        while tags[slot]:
            other = slots[slot]
            column = 0
            while column < words.shape[1] and words[other, column] == words[row, column]:
                column += 1
            if column == words.shape[1]:
                break
            slot = (slot + np.uint64(1)) & mask
        if not tags[slot]:
            slots[slot] = row
            tags[slot] = _tag(h)
            place = _place(h, bits)
            bits[place >> np.uint64(6)] |= np.uint64(1) << (place & np.uint64(63))
        elif numbers[slots[slot]] < numbers[row]:
            numbers[slots[slot]] = numbers[row]


@kernel(helpers=(_mixed, _tag, _place), work=None)
def _find(probes: Any, words: Any, numbers: Any, slots: Any, tags: Any, bits: Any) -> Any:  # noqa: ANN401, PLR0917
    mask = np.uint64(len(slots) - 1)
    found = np.full(len(probes), -1, np.int64)
    rows = np.empty(_BLOCK, np.int64)
    hashes = np.empty(_BLOCK, np.uint64)
    for start in range(0, len(probes), _BLOCK):
        count: Any = 0
        for row in range(start, min(start + _BLOCK, len(probes))):
            h = _mixed(probes, row)
            place = _place(h, bits)
            # Written for each row, kept if the bit is set: no branch.
            rows[count] = row
            hashes[count] = h
            count += np.int64((bits[place >> np.uint64(6)] >> (place & np.uint64(63))) & np.uint64(1))
        for i in range(count):
            row = rows[i]
            slot = hashes[i] & mask
            wanted = _tag(hashes[i])
            while tags[slot]:
                if tags[slot] == wanted:
                    other = slots[slot]
                    column = 0
                    while column < words.shape[1] and words[other, column] == probes[row, column]:
                        column += 1
                    if column == words.shape[1]:
                        found[row] = numbers[other]
                        break
                slot = (slot + np.uint64(1)) & mask
    return found
