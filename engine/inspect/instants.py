"""Milliseconds of metadata as Arrow timestamps."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from icebench.engine.errors import CorruptTable

INSTANT = pa.timestamp("us", "UTC")


def instants(milliseconds: Iterable[int | None]) -> pa.Array:
    """Timestamps with microseconds in UTC; null for None. Raises CorruptTable for one that does not fit into 64
    bits."""
    try:
        return pa.array([None if ms is None else ms * 1000 for ms in milliseconds], pa.int64()).view(INSTANT)
    except OverflowError as error:
        raise CorruptTable("a timestamp of the metadata is hundreds of thousands of years away") from error
