"""Converts metric maps, decoded as lists of keys and values, to one column per key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.codec.columns import BytesColumn, FixedColumn, ListColumn
from engine.codec.taking import take_bytes, take_numbers


def pairs_by_key(
    lists: ListColumn,
    keys: FixedColumn,
    values: FixedColumn | BytesColumn,
    *,
    wanted: Sequence[int] | None,
) -> dict[int, FixedColumn | BytesColumn]:
    """The columns of all keys that occur, or of the wanted ones that occur, with one value per list.

    Args:
        lists: The range of pairs of each list.
        keys: The keys of all pairs.
        values: Their values. Where a list has a key twice, the last one counts.
        wanted: The wanted keys; None for all.
    """
    if len(keys) == 0:
        return {}
    count = len(lists)
    owners = np.repeat(np.arange(count), np.diff(lists.offsets))
    order = np.argsort(keys.values, kind="stable")
    sorted_keys = keys.values[order]
    present, begins = np.unique(sorted_keys, return_index=True)
    ends = [*begins[1:].tolist(), len(order)]
    made: dict[int, FixedColumn | BytesColumn] = {}
    for key, begin, end in zip(present.tolist(), begins.tolist(), ends, strict=True):
        if wanted is not None and key not in wanted:
            continue
        source = np.full(count, -1, np.int64)
        source[owners[order[begin:end]]] = order[begin:end]
        if values.valid is not None:
            source[source >= 0] = np.where(values.valid[source[source >= 0]], source[source >= 0], -1)
        column = take_numbers(values, source) if isinstance(values, FixedColumn) else take_bytes(values, source)
        if column.has_values:
            made[key] = column
    return made
