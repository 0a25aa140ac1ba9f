"""Matches equal deleted and inserted rows, to find rows that were carried over and rows that were updated.

Equal means as for the keys of equality deletes: null equals null, NaN equals NaN, zeros differ by sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from icebench.engine.columnar.batch_columns import Elements, list_elements, map_entries
from icebench.engine.columnar.key_index import KeyIndex
from icebench.engine.columnar.schemas import storage_of, stored_type

Codes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def row_codes(columns: Sequence[pa.Array], count: int) -> Codes:
    """A number for each of `count` rows; rows have the same number exactly if they are equal.

    Columns may be nested. Lists and maps go through Python, value by value; everything else is compared by compiled
    code. The entries of a map have no order.
    """
    flat = [part for column in columns for part in _flat(storage_of(column))]
    if not flat or not count:
        return np.zeros(count, np.int64)
    return KeyIndex.build(flat, np.arange(count)).greatest(flat)


def find_uncancelled(codes: Codes, order: Codes, inserted: Flags) -> Flags:
    """Find the changes that remain when an inserted row cancels an equal deleted row, one for one.

    Changes of one code are processed in the order of `order`, deletes before inserts; each cancels the latest remaining
    one of the other kind.

    Args:
        codes: See `row_codes`.
        order: When the row changed.
        inserted: Whether the row was inserted rather than deleted.
    """
    rows = np.lexsort((inserted, order, codes))
    sign = np.where(inserted, 1, -1)[rows]
    first = np.ones(len(rows), np.bool_)
    first[1:] = codes[rows][1:] != codes[rows][:-1]
    group = np.cumsum(first) - 1
    balance = np.cumsum(sign)
    balance -= (balance - sign)[first][group]
    height = np.abs(balance)
    # A change remains if it moved the balance away from zero and the balance never returns.
    floor = height + group * (len(rows) + 1)
    lowest = np.minimum.accumulate(floor[::-1])[::-1]
    kept = np.zeros(len(codes), np.bool_)
    kept[rows] = (height > np.abs(balance - sign)) & (lowest == floor)
    return kept


@dataclass(frozen=True)
class UpdatePairs:
    """Indexes of rows before and after an update. `ambiguous` is a row whose key several rows have, if any."""

    before: Codes
    after: Codes
    ambiguous: int | None = None


def update_pairs(codes: Codes, inserted: Flags) -> UpdatePairs:
    """Pair each deleted row with the inserted row of the same key, by rising index of the deleted one.

    A key is ambiguous if it has both deleted and inserted rows, and several of either.
    """
    _, key = np.unique(codes, return_inverse=True)
    keys = int(key.max(initial=-1)) + 1
    deletes, inserts = np.bincount(key[~inserted], minlength=keys), np.bincount(key[inserted], minlength=keys)
    unclear = (deletes > 0) & (inserts > 0) & (deletes + inserts > 2)
    if unclear.any():
        return UpdatePairs(codes[:0], codes[:0], int(np.flatnonzero(unclear[key])[0]))
    place = np.full(keys, -1, np.int64)
    place[key[inserted]] = np.flatnonzero(inserted)
    paired = (deletes == 1) & (inserts == 1)
    before = np.flatnonzero(~inserted & paired[key])
    return UpdatePairs(before, place[key[before]])


def _flat(column: pa.Array) -> Iterator[pa.Array]:
    """Columns of numbers and byte strings that are equal exactly where the rows of a nested column are."""
    type_ = column.type
    if isinstance(type_, pa.BaseExtensionType):
        column, type_ = column.storage, type_.storage_type
    if pat.is_struct(type_):
        yield column.is_valid()
        for child in column.flatten():
            yield from _flat(storage_of(child))
    elif pat.is_list(type_) or pat.is_large_list(type_) or pat.is_map(type_):
        yield pa.array([text.encode() for text in _texts(column)], pa.binary())
    else:
        yield column


def _texts(array: pa.Array) -> list[str]:
    """The values of a column as texts; equal values have equal texts."""
    array, type_ = storage_of(array), stored_type(array.type)
    if pat.is_map(type_):
        keys, values = map(_texts, map_entries(array))
        entries = [f"{key}={value}" for key, value in zip(keys, values, strict=True)]
        texts = [f"{{{','.join(sorted(own))}}}" for own in _by_row(array, entries)]
    elif pat.is_list(type_) or pat.is_large_list(type_):
        texts = [f"[{','.join(own)}]" for own in _by_row(array, _texts(list_elements(array)))]
    elif pat.is_struct(type_):
        columns = [_texts(child) for child in array.flatten()]
        texts = [f"({','.join(row)})" for row in zip(*columns, strict=True)] if columns else ["()"] * len(array)
    elif pat.is_temporal(type_):
        # As integers: Python lacks most years that Arrow has.
        texts = list(map(repr, array.view(pa.int32() if type_.bit_width == 32 else pa.int64()).to_pylist()))
    else:
        texts = list(map(repr, array.to_pylist()))
    return [text if valid else "-" for text, valid in zip(texts, array.is_valid().to_pylist(), strict=True)]


def _by_row(array: pa.Array, elements: Sequence[str]) -> Iterator[Sequence[str]]:
    """The texts of the elements of each list or map."""
    return (elements[start:end] for start, end in pairwise(Elements.of(array).offsets.tolist()))
