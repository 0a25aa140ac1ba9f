"""Converts metric maps, decoded as lists of keys and values, to one column per key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from icebench.engine.codec.array_views import has_values, offsets_of, valid_of, values_of
from icebench.engine.codec.taking import take


def pairs_by_key(
    lists: pa.Array, keys: pa.Array, values: pa.Array, *, wanted: Sequence[int] | None
) -> dict[int, pa.Array]:
    """The columns of all keys that occur, or of the wanted ones that occur, with one value per list.

    Args:
        lists: The range of pairs of each list.
        keys: The keys of all pairs.
        values: Their values. Where a list has a key twice, the last one counts.
        wanted: The wanted keys; None for all.
    """
    if len(keys) == 0:
        return {}
    count, valid = len(lists), valid_of(values)
    owners = np.repeat(np.arange(count), np.diff(offsets_of(lists)))
    order = np.argsort(values_of(keys), kind="stable")
    sorted_keys = values_of(keys)[order]
    present, begins = np.unique(sorted_keys, return_index=True)
    ends = [*begins[1:].tolist(), len(order)]
    made: dict[int, pa.Array] = {}
    for key, begin, end in zip(present.tolist(), begins.tolist(), ends, strict=True):
        if wanted is not None and key not in wanted:
            continue
        source = np.full(count, -1, np.int64)
        source[owners[order[begin:end]]] = order[begin:end]
        if valid is not None:
            source[source >= 0] = np.where(valid[source[source >= 0]], source[source >= 0], -1)
        column = take(values, source)
        if has_values(column):
            made[key] = column
    return made
