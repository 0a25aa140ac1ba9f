"""Narrow decimals, widened."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as some

from icebench.engine.columnar.decimals import widen

NARROW = {7: pa.decimal32(7, 2), 15: pa.decimal64(15, 2)}


@pytest.mark.parametrize("precision", NARROW)
@given(data=some.data())
def test_what_is_widened_is_what_casting_gives(precision: int, data: some.DataObject) -> None:
    most = 10**precision - 1
    numbers = data.draw(some.lists(some.none() | some.integers(-most, most), max_size=40))
    array = pa.array([None if n is None else Decimal(n).scaleb(-2) for n in numbers], NARROW[precision])
    start = data.draw(some.integers(0, len(numbers)))
    part = array.slice(start)
    target = pa.decimal128(precision, 2)
    whole = widen(part, target)
    whole.validate(full=True)
    assert whole.equals(part.cast(target))
