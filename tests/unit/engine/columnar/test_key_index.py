import math

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from engine.columnar.key_index import KeyIndex
from engine.columnar.scalars import to_arrow_array
from engine.spec.types import PrimitiveType
from engine.spec.values import Value
from tests.unit.engine.columnar.value_strategies import PRIMITIVES, values


def token(value: Value | None) -> object:
    """Equal exactly where keys are: by type, NaN to itself, zeros by sign."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, math.copysign(1, value))
    return value


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[PrimitiveType], list[list[Value | None]], list[list[Value | None]], list[int]]:
    types = draw(st.lists(st.sampled_from(PRIMITIVES), min_size=1, max_size=3))
    pools = [st.none() | st.sampled_from(draw(st.lists(values(t, nan=True), min_size=1, max_size=3))) for t in types]
    keys = draw(st.lists(st.tuples(*pools), max_size=8))
    probes = draw(st.lists(st.tuples(*pools), max_size=8))
    numbers = draw(st.lists(st.integers(0, 5), min_size=len(keys), max_size=len(keys)))

    def columns(rows: list[tuple[Value | None, ...]]) -> list[list[Value | None]]:
        return [[row[i] for row in rows] for i in range(len(types))]

    return types, columns(keys), columns(probes), numbers


@given(cases(), st.integers(0, 2))
def test_finds_the_greatest_number_of_each_key(
    case: tuple[list[PrimitiveType], list[list[Value | None]], list[list[Value | None]], list[int]], cut: int
) -> None:
    types, keys, probes, numbers = case
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


def test_holds_many_keys() -> None:
    keys = np.arange(0, 300_000, 3)
    texts = pa.array([f"key-{k}" for k in keys[:5_000]])
    index = KeyIndex.build([pa.array(keys)], keys * 2)
    probes = np.arange(300_000)
    assert np.array_equal(index.greatest([pa.array(probes)]), np.where(probes % 3 == 0, probes * 2, -1))
    by_text = KeyIndex.build([texts], np.arange(5_000))
    assert by_text.greatest([texts]).tolist() == list(range(5_000))
    assert by_text.greatest([pa.array(["key-1", "key-", "", None])]).tolist() == [-1] * 4
