"""Milliseconds of metadata as Arrow timestamps."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

INSTANT = pa.timestamp("us", "UTC")


def instants(milliseconds: Iterable[int | None]) -> pa.Array:
    """Timestamps with microseconds in UTC; null for None."""
    return pa.array([None if ms is None else ms * 1000 for ms in milliseconds], pa.int64()).view(INSTANT)
