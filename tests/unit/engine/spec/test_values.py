from __future__ import annotations

import struct
import uuid
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.spec import types
from icebench.engine.spec.types import DecimalType, FixedType, PrimitiveType
from icebench.engine.spec.values import Value, as_value, decimal_of, decode_value, encode_value, unscaled
from icebench.errors import CorruptTable

# Appendix D of the specification: single-value serialization.
FORMS: list[tuple[PrimitiveType, Value, str]] = [
    (types.BOOLEAN, True, "01"),
    (types.BOOLEAN, False, "00"),
    (types.INT, 34, "22000000"),
    (types.INT, -1, "ffffffff"),
    (types.LONG, 34, "2200000000000000"),
    (types.FLOAT, 1.0, "0000803f"),
    (types.DOUBLE, 1.0, "000000000000f03f"),
    (types.DATE, 17486, "4e440000"),
    (types.TIME, 1, "0100000000000000"),
    (types.TIMESTAMP, -1, "ffffffffffffffff"),
    (types.STRING, "ice", "696365"),
    (types.STRING, "é", "c3a9"),
    (types.UUID, uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), "f79c3e09677c4bbda4793f349cb785e7"),
    (FixedType(2), b"\x00\xff", "00ff"),
    (types.BINARY, b"", ""),
    (DecimalType(9, 2), Decimal("14.20"), "058c"),
    (DecimalType(9, 2), Decimal("0.00"), "00"),
    (DecimalType(9, 2), Decimal("1.27"), "7f"),
    (DecimalType(9, 2), Decimal("1.28"), "0080"),
    (DecimalType(9, 2), Decimal("-1.28"), "80"),
    (DecimalType(9, 2), Decimal("-1.29"), "ff7f"),
]


@pytest.mark.parametrize(("type_", "value", "form"), FORMS)
def test_values_have_the_specifications_form(type_: PrimitiveType, value: Value, form: str) -> None:
    assert encode_value(type_, value).hex() == form
    assert decode_value(type_, bytes.fromhex(form)) == value


@pytest.mark.parametrize(
    ("type_", "old", "expected"),
    [
        (types.LONG, struct.pack("<i", -7), -7),
        (types.DOUBLE, struct.pack("<f", 0.5), 0.5),
        (types.TIMESTAMP, struct.pack("<i", 1), 86_400_000_000),
        (types.TIMESTAMP_NS, struct.pack("<i", -1), -86_400_000_000_000),
    ],
)
def test_bounds_from_before_a_promotion_are_widened(type_: PrimitiveType, old: bytes, expected: Value) -> None:
    assert decode_value(type_, old) == expected


@pytest.mark.parametrize(
    ("type_", "data"),
    [
        (types.INT, b"\x00"),
        (types.LONG, b"\x00" * 7),
        (types.BOOLEAN, b""),
        (types.STRING, b"\xff"),
        (types.UUID, b"\x00" * 15),
        (FixedType(3), b"\x00\x00"),
        (DecimalType(9, 2), b""),
        (DecimalType(38, 2), b"\x00" * 18),
    ],
)
def test_wrong_bytes_are_corrupt(type_: PrimitiveType, data: bytes) -> None:
    with pytest.raises(CorruptTable, match=str(type_).split("(")[0].split("[")[0]):
        decode_value(type_, data)


@pytest.mark.parametrize(
    ("type_", "value"), [(types.INT, "1"), (types.INT, True), (types.STRING, b"x"), (DecimalType(9, 2), 1.5)]
)
def test_a_value_of_another_type_is_refused(type_: PrimitiveType, value: Value) -> None:
    with pytest.raises(TypeError, match="is not a value"):
        encode_value(type_, value)


@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38))
def test_decimals_round_trip_exactly(number: int, scale: int) -> None:
    type_ = DecimalType(38, scale)
    value = decimal_of(number, scale)
    assert unscaled(value, scale) == number
    data = encode_value(type_, value)
    assert decode_value(type_, data) == value
    assert -value.as_tuple().exponent == scale  # type: ignore[operator]
    # The fewest bytes that hold the number.
    assert len(data) == 1 or not -(1 << (8 * len(data) - 9)) <= number < 1 << (8 * len(data) - 9)


def test_decimals_do_not_lose_digits() -> None:
    with pytest.raises(ValueError, match="more than 2 digits"):
        unscaled(Decimal("1.005"), 2)


@given(st.integers(-(2**63), 2**63 - 1))
def test_longs_round_trip(value: int) -> None:
    assert decode_value(types.LONG, encode_value(types.LONG, value)) == value


@given(st.floats(allow_nan=False, width=32))
def test_floats_round_trip_with_their_sign(value: float) -> None:
    assert struct.pack("<f", decode_value(types.FLOAT, encode_value(types.FLOAT, value))) == struct.pack("<f", value)


@given(st.floats(-(2.0**128) + 2.0**103, 2.0**128 - 2.0**103, exclude_min=True, exclude_max=True) | st.integers(-9, 9))
def test_a_value_of_a_float_column_is_one_that_is_read_back(value: float) -> None:
    made = as_value(types.FLOAT, value)
    assert isinstance(made, float)
    assert made == float(np.float32(value))
    assert decode_value(types.FLOAT, encode_value(types.FLOAT, made)) == made
    assert as_value(types.DOUBLE, value) == value


@pytest.mark.parametrize("value", [2.0**128 - 2.0**103, -1e39, 10**400])
def test_numbers_beyond_a_float_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="is not a value of type float"):
        as_value(types.FLOAT, value)
