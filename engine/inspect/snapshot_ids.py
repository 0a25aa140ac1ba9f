"""Snapshot ids of metadata as an Arrow column."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from icebench.engine.errors import Unsupported
from icebench.engine.spec.snapshots import MOST_LONG


def snapshot_ids(ids: Iterable[int | None]) -> pa.Array:
    """The ids as int64, or as uint64 if one is beyond a long; null for None. Raises Unsupported if one is beyond a long
    and another is negative."""
    values = list(ids)
    try:
        return pa.array(values, pa.uint64() if max((i or 0 for i in values), default=0) > MOST_LONG else pa.int64())
    except OverflowError as error:
        raise Unsupported("snapshot ids beyond a long beside negative ones in one column") from error
