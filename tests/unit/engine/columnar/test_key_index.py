import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icebench.engine.columnar.key_index import KeyIndex
from icebench.engine.columnar.scalars import to_arrow_array
from icebench.engine.spec.types import DecimalType, PrimitiveType
from icebench.engine.spec.values import Value, decimal_of
from tests.unit.engine.columnar.value_strategies import PRIMITIVES, values


def token(value: Value | None) -> object:
    """Equal exactly where keys are: by type, NaN to itself, zeros by sign."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, math.copysign(1, value))
    return value


@st.composite
def cases(
    draw: st.DrawFn, first: PrimitiveType
) -> tuple[list[PrimitiveType], list[list[Value | None]], list[list[Value | None]], list[int]]:
    types = [first, *draw(st.lists(st.sampled_from(PRIMITIVES), max_size=2))]
    pools = [st.none() | st.sampled_from(draw(st.lists(values(t, nan=True), min_size=1, max_size=3))) for t in types]
    keys = draw(st.lists(st.tuples(*pools), max_size=8))
    probes = draw(st.lists(st.tuples(*pools), max_size=8))
    numbers = draw(st.lists(st.integers(0, 5), min_size=len(keys), max_size=len(keys)))

    def columns(rows: list[tuple[Value | None, ...]]) -> list[list[Value | None]]:
        return [[row[i] for row in rows] for i in range(len(types))]

    return types, columns(keys), columns(probes), numbers


@pytest.mark.parametrize("first", PRIMITIVES, ids=str)
@settings(max_examples=10)
@given(data=st.data(), cut=st.integers(0, 2))
def test_finds_the_greatest_number_of_each_key(first: PrimitiveType, data: st.DataObject, cut: int) -> None:
    types, keys, probes, numbers = data.draw(cases(first))
    expected: dict[tuple[object, ...], int] = {}
    for row, number in zip(zip(*keys, strict=True), numbers, strict=True):
        key = tuple(token(v) for v in row)
        expected[key] = max(expected.get(key, -1), number)
    index = KeyIndex.build(
        [to_arrow_array(t, c) for t, c in zip(types, keys, strict=True)], np.array(numbers, np.int64)
    )
    arrays = [to_arrow_array(t, c).slice(cut) for t, c in zip(types, probes, strict=True)]
    found = index.greatest(arrays).tolist()
    wanted = [expected.get(tuple(token(v) for v in row), -1) for row in zip(*probes, strict=True)]
    assert found == wanted[cut:]


def test_null_is_no_key_where_no_key_has_nulls() -> None:
    index = KeyIndex.build([pa.array([0, 7]), pa.array([0, 0])], np.array([3, 4]))
    probes = [pa.array([0, None, 0, 7]), pa.array([0, 0, None, 0])]
    assert index.greatest(probes).tolist() == [3, -1, -1, 4]


def test_null_is_neither_zero_nor_null_of_another_column() -> None:
    index = KeyIndex.build([pa.array([None, 0]), pa.array([0, None])], np.array([3, 4]))
    probes = [pa.array([None, 0, 0, None]), pa.array([0, None, 0, None])]
    assert index.greatest(probes).tolist() == [3, 4, -1, -1]


@pytest.mark.parametrize("type_", [DecimalType(18, 2), DecimalType(38, 2)], ids=str)
def test_decimals_are_compared_whole_wherever_a_slice_begins(type_: DecimalType) -> None:
    high = 1 << 64 if type_.precision > 18 else 1 << 32
    column = [decimal_of(n, 2) for n in (5, 5 + high, -5, 7)]
    index = KeyIndex.build([to_arrow_array(type_, column[:3])], np.array([9, 2, 3]))
    assert index.greatest([to_arrow_array(type_, column).slice(1)]).tolist() == [2, 3, -1]


def test_nan_is_one_key_whatever_its_bits() -> None:
    bits = np.array([0x7FF8000000000000, 0x7FF8000000000001, -0x8000000000000], np.int64)
    nans = pa.array(bits.view(np.float64))
    index = KeyIndex.build([nans.slice(0, 1)], np.array([6]))
    assert index.greatest([nans]).tolist() == [6, 6, 6]


def test_holds_many_keys() -> None:
    keys = np.arange(0, 300_000, 3)
    texts = pa.array([f"key-{k}" for k in keys[:5_000]])
    index = KeyIndex.build([pa.array(keys)], keys * 2)
    probes = np.arange(300_000)
    assert np.array_equal(index.greatest([pa.array(probes)]), np.where(probes % 3 == 0, probes * 2, -1))
    by_text = KeyIndex.build([texts], np.arange(5_000))
    assert by_text.greatest([texts]).tolist() == list(range(5_000))
    assert by_text.greatest([pa.array(["key-1", "key-", "", None])]).tolist() == [-1] * 4
