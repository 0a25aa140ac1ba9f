"""Bounds of uuids in the byte order of the RFC, in Java's signed order, and in both, against brute force."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.expressions.uuid_bounds import uuid_bounds
from icebench.engine.expressions.vectors import BytesVector, Vector, vector_of
from icebench.engine.spec.types import UUID

HALF = st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1]) | st.integers(0, 2**64 - 1)
UUIDS = st.builds(lambda high, low: uuid.UUID(int=high << 64 | low), HALF, HALF)


def in_java(value: uuid.UUID) -> tuple[int, int]:
    """The key of `java.util.UUID.compareTo`."""
    raw = value.bytes
    return int.from_bytes(raw[:8], "big", signed=True), int.from_bytes(raw[8:], "big", signed=True)


def bytes_of(value: uuid.UUID) -> bytes:
    return value.bytes


def values(vector: Vector | None) -> list[bytes | None]:
    assert isinstance(vector, BytesVector)
    assert vector.valid is not None
    raw = vector.data.tobytes()
    return [raw[16 * i : 16 * i + 16] if known else None for i, known in enumerate(vector.valid)]


@given(
    files=st.lists(st.lists(UUIDS, min_size=1, max_size=4), min_size=1, max_size=4),
    order=st.sampled_from([in_java, bytes_of]),
    left_out=st.sampled_from(["", "lower", "upper"]),
)
def test_hold_in_whichever_order_the_writer_took_them(
    files: Sequence[Sequence[uuid.UUID]], order: Callable[[uuid.UUID], Any], left_out: str
) -> None:
    given_lower = vector_of(UUID, [min(f, key=order) for f in files]) if left_out != "lower" else None
    given_upper = vector_of(UUID, [max(f, key=order) for f in files]) if left_out != "upper" else None
    lower, upper = uuid_bounds(given_lower, given_upper, len(files), True)
    for file, low, high in zip(files, values(lower), values(upper), strict=True):
        assert low is None or low <= min(v.bytes for v in file)
        assert high is None or high >= max(v.bytes for v in file)


@given(
    files=st.lists(st.lists(st.lists(UUIDS, min_size=1, max_size=3), min_size=1, max_size=3), min_size=1, max_size=4),
    left_out=st.sampled_from(["", "lower", "upper"]),
)
def test_hold_where_row_groups_were_compared_in_another_order(
    files: Sequence[Sequence[Sequence[uuid.UUID]]], left_out: str
) -> None:
    """As Iceberg Java's `ParquetMetrics` does."""
    least = [min((min(group, key=bytes_of) for group in groups), key=in_java) for groups in files]
    most = [max((max(group, key=bytes_of) for group in groups), key=in_java) for groups in files]
    given_lower = vector_of(UUID, least) if left_out != "lower" else None
    given_upper = vector_of(UUID, most) if left_out != "upper" else None
    one_order = np.array([len(groups) == 1 for groups in files])
    lower, upper = uuid_bounds(given_lower, given_upper, len(files), one_order)
    for groups, low, high in zip(files, values(lower), values(upper), strict=True):
        assert low is None or low <= min(v.bytes for group in groups for v in group)
        assert high is None or high >= max(v.bytes for group in groups for v in group)


def test_keep_what_prunes_random_uuids() -> None:
    first, last = uuid.UUID("0188c0de-0000-4000-8000-000000000001"), uuid.UUID("f088c0de-0000-4000-9000-000000000001")
    for one_order in (np.array([True]), np.array([False])):
        lower, upper = uuid_bounds(vector_of(UUID, [first]), vector_of(UUID, [last]), 1, one_order)
        assert values(lower) == [first.bytes[:8] + bytes(8)]
        assert values(upper) == [last.bytes]
    lows, highs = vector_of(UUID, [last, first, None]), vector_of(UUID, [first, first, last])
    lower, upper = uuid_bounds(lows, highs, 3, True)
    assert values(lower) == [None, first.bytes, None]
    assert values(upper) == [None, first.bytes, last.bytes]
    lower, upper = uuid_bounds(lows, highs, 3, np.zeros(3, np.bool_))
    assert values(lower) == [None, first.bytes[:8] + bytes(8), None]
    assert values(upper) == [None, None, last.bytes]
