"""Places on the Hilbert curve against what makes a curve Hilbert's, and against its textbook inverse."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.maintenance.hilbert import hilbert_indexes, hilbert_values
from icebench.engine.maintenance.z_order import z_values
from icebench.errors import Invalid

SIZES = [(dimensions, bits) for dimensions in range(1, 7) for bits in range(1, 7) if dimensions * bits <= 12]


def indexes(points: list[tuple[int, ...]], bits: int) -> list[int]:
    found: list[int] = hilbert_indexes([np.array(axis, np.uint64) for axis in zip(*points, strict=True)], bits).tolist()
    return found


@pytest.mark.parametrize(("dimensions", "bits"), SIZES)
def test_the_curve_visits_every_point_once_and_steps_to_a_neighbour(dimensions: int, bits: int) -> None:
    points = list(product(range(1 << bits), repeat=dimensions))
    by_index = dict(zip(indexes(points, bits), points, strict=True))
    walk = [by_index[place] for place in range(len(points))]
    assert all(sum(abs(a - b) for a, b in zip(here, there, strict=True)) == 1 for here, there in pairwise(walk))
    # It leaves no cube, of whatever size, before it has been everywhere in it.
    for size in range(1, bits):
        count = 1 << size * dimensions
        cubes = [{tuple(x >> size for x in p) for p in walk[i : i + count]} for i in range(0, len(walk), count)]
        assert all(len(cube) == 1 for cube in cubes)


def textbook_point(index: int, dimensions: int, bits: int) -> tuple[int, ...]:
    """The point at a place, one bit at a time: TransposetoAxes of Skilling's paper."""
    text = format(index, f"0{bits * dimensions}b")
    x = [int(text[axis::dimensions], 2) for axis in range(dimensions)]
    carried = x[-1] >> 1
    for axis in range(dimensions - 1, 0, -1):
        x[axis] ^= x[axis - 1]
    x[0] ^= carried
    bit = 2
    while bit != 1 << bits:
        for axis in range(dimensions - 1, -1, -1):
            if x[axis] & bit:
                x[0] ^= bit - 1
            else:
                swapped = (x[0] ^ x[axis]) & (bit - 1)
                x[0] ^= swapped
                x[axis] ^= swapped
        bit <<= 1
    return tuple(x)


@given(st.integers(1, 64), st.data())
def test_the_textbook_finds_the_point_again(dimensions: int, data: st.DataObject) -> None:
    bits = data.draw(st.integers(1, min(64 // dimensions, 32)))
    point = st.tuples(*[st.integers(0, (1 << bits) - 1)] * dimensions)
    points = data.draw(st.lists(point, min_size=1, max_size=10))
    assert [textbook_point(index, dimensions, bits) for index in indexes(points, bits)] == points


@given(st.lists(st.integers(-5, 5) | st.none(), min_size=1, max_size=30))
def test_one_column_is_sorted(values: list[int | None]) -> None:
    column = pa.array(values, pa.int64())
    assert np.array_equal(
        np.argsort(hilbert_values([column]), kind="stable"), np.argsort(z_values([column]), kind="stable")
    )


def test_arguments_are_left_as_they_are() -> None:
    axes = [np.array([3, 1], np.uint64), np.array([2, 0], np.uint64)]
    hilbert_indexes(axes, 2)
    assert [axis.tolist() for axis in axes] == [[3, 1], [2, 0]]


def test_how_many_columns() -> None:
    one = pa.array([1, 2])
    assert len(hilbert_values([one] * 64)) == 2
    for wrong in ([], [one] * 65):
        with pytest.raises(Invalid, match="a Hilbert curve takes 1 to 64"):
            hilbert_values(wrong)
