"""Columns."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icebench.engine.codec.array_views import (
    bytes_array,
    bytes_array_of,
    cast_array,
    data_of,
    first_not_utf8,
    fits_int32,
    has_values,
    list_array,
    number_array,
    offsets_of,
    valid_of,
    values_of,
)

VALID = np.array([True, False, True])
NUMBERS = number_array(np.array([1, 2, 3]), VALID)
BYTES = bytes_array(np.array([0, 1, 1, 3]), np.frombuffer(b"abc", np.uint8), VALID)
LISTS = list_array(np.array([0, 2, 2, 3]), number_array(np.array([7, 8, 9])), VALID)


def test_values_as_python_objects():
    assert NUMBERS.to_pylist() == [1, None, 3]
    assert BYTES.to_pylist() == [b"a", None, b"bc"]
    assert LISTS.to_pylist() == [[7, 8], None, [9]]
    assert number_array(np.array([1.5, 2.5], "f4")).to_pylist() == [1.5, 2.5]
    assert number_array(np.array([3]), type_=pa.timestamp("us")).type == pa.timestamp("us")
    assert bytes_array_of([b"a", None, b"bc"]).equals(BYTES)
    for array in (NUMBERS, BYTES, LISTS):
        array.validate(full=True)


def test_nothing_is_copied():
    values, offsets, data = np.array([1, 2, 3]), np.array([0, 1]), np.frombuffer(b"a", np.uint8)
    assert np.shares_memory(values_of(number_array(values)), values)
    made = bytes_array(offsets, data)
    assert np.shares_memory(offsets_of(made), offsets)
    assert np.shares_memory(data_of(made), data)


@pytest.mark.parametrize("array", [NUMBERS, BYTES, LISTS])
def test_presence(array: pa.Array):
    assert has_values(array)
    assert np.array_equal(valid_of(array), VALID)  # type: ignore[arg-type]
    assert np.array_equal(valid_of(array[1:]), [False, True])  # type: ignore[arg-type]
    assert valid_of(array[2:]) is None
    assert not has_values(array[1:2])
    assert not has_values(array[:0])


@pytest.mark.parametrize("type_", [pa.binary(), pa.string(), pa.large_binary(), pa.large_string()])
def test_byte_strings_are_seen_where_they_are(type_: pa.DataType):
    array = pa.array(["x", "ab", None, "c"], type_)[1:]
    ends, data = offsets_of(array), data_of(array).tobytes()
    assert [data[a:b] for a, b in pairwise(ends)] == [b"ab", b"", b"c"]
    assert offsets_of(array[:0]).tolist() == [0]


@pytest.mark.parametrize("type_", [pa.list_(pa.int32()), pa.large_list(pa.int64())])
def test_lists_are_seen_where_they_are(type_: pa.DataType):
    array = pa.array([[1], [2, 3], None, [4]], type_)[1:]
    ends, values = offsets_of(array), values_of(array.values)
    assert [values[a:b].tolist() for a, b in pairwise(ends)] == [[2, 3], [], [4]]


@pytest.mark.parametrize("letter", ["i1", "i4", "i8", "u1", "f4", "f8"])
def test_numbers_are_seen_where_they_are(letter: str):
    array = number_array(np.array([1, 2, 3], letter))[1:]
    assert values_of(array).tolist() == [2, 3]
    assert values_of(array).dtype == letter
    assert np.array_equal(valid_of(pa.nulls(2)), [False, False])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("array", "type_", "values"),
    [
        (NUMBERS, pa.int8(), [1, None, 3]),
        (NUMBERS, pa.int64(), [1, None, 3]),
        (number_array(np.array([0, 1, 2], np.uint8)), pa.bool_(), [False, True, True]),
        (number_array(np.array([0.5], "f4")), pa.float64(), [0.5]),
        (BYTES, pa.binary(), [b"a", None, b"bc"]),
        (BYTES, pa.string(), ["a", None, "bc"]),
        (LISTS, pa.list_(pa.int32()), [[7, 8], None, [9]]),
    ],
)
def test_arrays_of_another_type(array: pa.Array, type_: pa.DataType, values: list[Any]):
    made = cast_array(array, type_)
    made.validate(full=True)
    assert made.type == type_
    assert made.to_pylist() == values


def test_more_than_two_gigabytes():
    lists = list_array(np.array([0, 1 << 31]), pa.nulls(1 << 31))
    with pytest.raises(ValueError, match="two gigabytes"):
        cast_array(lists, pa.list_(pa.int64()))


@pytest.mark.parametrize(
    ("values", "bad"),
    [
        ([b"abc", b""], None),
        (["é".encode(), "☃".encode()], None),
        ([b"a", b"\xff"], 1),
        # Together these two are UTF-8, one by one they are not.
        ([b"\xc3", b"\xa9"], 0),
    ],
)
def test_text_that_is_not_utf8(values: list[bytes], bad: int | None):
    assert first_not_utf8(bytes_array_of(values)) == bad


@pytest.mark.parametrize(
    ("values", "fits"),
    [([], True), ([0, (1 << 31) - 1, -(1 << 31)], True), ([0, 1 << 31], False), ([-(1 << 31) - 1], False)],
)
def test_numbers_of_32_bits(values: list[int], fits: bool):
    assert fits_int32(np.array(values, np.int64)) == fits
