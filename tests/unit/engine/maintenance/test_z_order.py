"""Z-values against bits put together one by one, and shares against counting."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.maintenance.z_order import SampledShares, interleave_bits, shares, z_values
from icebench.errors import Invalid


@given(st.integers(1, 8), st.integers(1, 8), st.data())
def test_bits_go_in_turn(width: int, bits: int, data: st.DataObject) -> None:
    numbers = st.lists(st.integers(0, 2**bits - 1), min_size=width, max_size=width)
    rows = data.draw(st.lists(numbers, min_size=1, max_size=20))
    columns = [np.array(column, np.uint64) for column in zip(*rows, strict=True)]
    expected = []
    for row in rows:
        texts = [format(number, f"0{bits}b") for number in row]
        expected.append(int("".join(text[place] for place in range(bits) for text in texts), 2))
    assert interleave_bits(columns, bits).tolist() == expected


VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[object]]] = {
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1)),
    "double": (pa.float64(), st.floats(allow_nan=False).map(lambda number: number + 0.0)),
    "boolean": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us"), st.datetimes()),
    "text": (pa.string(), st.text("ab\U0001f9ca", max_size=3)),
    "binary": (pa.binary(), st.binary(max_size=3)),
    "fixed": (pa.binary(2), st.binary(min_size=2, max_size=2)),
    "decimal": (pa.decimal128(38, 2), st.decimals(-1000, 1000, places=2) | st.just(Decimal("9" * 36))),
}


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data(), bits=st.integers(1, 32))
def test_a_share_is_how_many_come_before(kind: str, data: st.DataObject, bits: int) -> None:
    type_, values = VALUES[kind]
    rows = data.draw(st.lists(st.none() | values, min_size=1, max_size=30))
    found = shares(pa.chunked_array([pa.array(rows, type_)]), bits).tolist()

    def before(row: object) -> int:
        return sum(row is not None if other is None else row is not None and other < row for other in rows)  # type: ignore[operator]

    assert found == [(before(row) << bits) // len(rows) for row in rows]


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data(), bits=st.integers(1, 32))
def test_a_share_of_a_sample_is_how_many_of_it_come_before(kind: str, data: st.DataObject, bits: int) -> None:
    type_, values = VALUES[kind]
    sample = data.draw(st.lists(st.none() | values, min_size=1, max_size=30))
    rows = data.draw(st.lists(st.none() | values | st.sampled_from(sample), min_size=1, max_size=30))
    found = SampledShares.of(pa.array(sample, type_), bits)(pa.chunked_array([pa.array(rows, type_)])).tolist()

    def before(row: object) -> int:
        return sum(row is not None if other is None else row is not None and other < row for other in sample)  # type: ignore[operator]

    assert found == [(before(row) << bits) // (len(sample) + 1) for row in rows]


def test_a_share_of_a_large_sample_is_near_that_of_all_its_values() -> None:
    sample = np.random.default_rng(1).permutation(20_000) * 2
    found = SampledShares.of(pa.array(sample), 20)(pa.array([-1, 0, 1, 20_001, 39_998, 50_000])).tolist()
    assert found == sorted(found)
    exact = [0, 0, 1, 10_001, 19_999, 20_000]
    assert found == pytest.approx([each / 20_001 * 2**20 for each in exact], abs=3 / 20_001 * 2**20)


def test_extension_types_and_nan() -> None:
    ids = sorted(uuid.UUID(int=i << 64) for i in (5, 3, 9))
    column = pa.array([each.bytes for each in ids], pa.uuid())
    assert shares(column, 2).tolist() == [0, 1, 2]
    assert shares(pa.array([float("nan"), 1.0, None, float("inf")]), 2).tolist() == [3, 1, 0, 2]
    assert shares(pa.nulls(3, pa.int64()), 8).tolist() == [0, 0, 0]
    assert SampledShares.of(column, 2)(column.take(pa.array([2, 0, 1]))).tolist() == [2, 0, 1]
    assert SampledShares.of(pa.nulls(3, pa.int64()), 8)(pa.array([None, 7])).tolist() == [0, 192]
    assert shares(pa.array([dt.time(1), dt.time(0)]), 1).tolist() == [1, 0]


def test_neighbours_on_the_curve() -> None:
    x, y = (pa.array([i % 8 for i in range(64)]), pa.array([i // 8 for i in range(64)]))
    order = np.argsort(z_values([x, y]), kind="stable")
    first = {(i % 8, i // 8) for i in order[:16].tolist()}
    assert first == {(i, j) for i in range(4) for j in range(4)}


def test_how_many_columns() -> None:
    one = pa.array([1, 2])
    assert z_values([one] * 64).tolist() == [0, 2**64 - 1]
    for wrong in ([], [one] * 65):
        with pytest.raises(Invalid, match="1 to 64"):
            z_values(wrong)
