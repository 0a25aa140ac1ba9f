"""Columns."""

from __future__ import annotations

import numpy as np
import pytest

from engine.codec.columns import BytesColumn, FixedColumn, ListColumn, first_not_utf8, fits_int32

VALID = np.array([True, False, True])
FIXED = FixedColumn(np.array([1, 2, 3]), VALID)
BYTES = BytesColumn(np.array([0, 1, 1, 3]), np.frombuffer(b"abc", np.uint8), VALID)
LISTS = ListColumn(np.array([0, 2, 2, 3]), np.array([7, 8, 9]), VALID)


def test_values_as_python_objects():
    assert FIXED.to_pylist() == [1, None, 3]
    assert BYTES.to_pylist() == [b"a", None, b"bc"]
    assert LISTS.to_pylist() == [[7, 8], None, [9]]
    assert LISTS.to_ranges() == [(0, 2), None, (2, 3)]
    assert FixedColumn(FIXED.values).to_pylist() == [1, 2, 3]


@pytest.mark.parametrize("column", [FIXED, BYTES, LISTS])
def test_size_and_presence(column: FixedColumn | BytesColumn | ListColumn):
    assert len(column) == 3
    assert column.has_values
    assert column.size_bytes >= 24 + 3
    assert not FixedColumn(np.zeros(0)).has_values
    assert not FixedColumn(np.zeros(2), np.zeros(2, bool)).has_values


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
    offsets = np.cumsum([0, *map(len, values)])
    assert first_not_utf8(BytesColumn(offsets, np.frombuffer(b"".join(values), np.uint8))) == bad


@pytest.mark.parametrize(
    ("values", "fits"),
    [([], True), ([0, (1 << 31) - 1, -(1 << 31)], True), ([0, 1 << 31], False), ([-(1 << 31) - 1], False)],
)
def test_numbers_of_32_bits(values: list[int], fits: bool):
    assert fits_int32(np.array(values, np.int64)) == fits
