"""Single values as JSON; expected texts are those of the specification's table and of Iceberg Java."""

from __future__ import annotations

import math
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from icebench.engine.codec.metadata_json.values import value_from_json, value_to_json
from icebench.engine.spec.calendar import days_of
from icebench.engine.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    NestedField,
    StructType,
    Type,
    list_type,
    map_type,
)

DAY_US = 86_400_000_000
POINT = StructType((NestedField(field_id=1, name="x", type=INT), NestedField(field_id=2, name="y", type=STRING)))


@pytest.mark.parametrize(
    ("type_", "value", "written"),
    [
        (BOOLEAN, True, True),
        (INT, 34, 34),
        (LONG, -(1 << 63), -(1 << 63)),
        (FLOAT, 1.0, 1.0),
        (DecimalType(4, 2), Decimal("14.20"), "14.20"),
        (DecimalType(18, 8), Decimal("0E-8"), "0.00000000"),
        (DecimalType(18, 8), Decimal("1E-8"), "0.00000001"),
        (DATE, 17_486, "2017-11-16"),
        (DATE, days_of(12_000, 2, 29), "+12000-02-29"),
        (DATE, days_of(-5, 12, 31), "-0005-12-31"),
        (TIME, 81_068_123_456, "22:31:08.123456"),
        (TIMESTAMP, 17_486 * DAY_US + 81_068_123_456, "2017-11-16T22:31:08.123456"),
        (TIMESTAMPTZ, 17_486 * DAY_US + 81_068_123_456, "2017-11-16T22:31:08.123456+00:00"),
        (TIMESTAMP_NS, -1, "1969-12-31T23:59:59.999999999"),
        (STRING, "iceberg", "iceberg"),
        (UUID, uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        (FixedType(4), b"\x00\x01\x02\xff", "000102ff"),
        (BINARY, b"", ""),
        (POINT, ((1, 1), (2, "bar")), {"1": 1, "2": "bar"}),
        (POINT, (), {}),
        (list_type(3, INT), (1, None, 3), [1, None, 3]),
        (map_type(3, STRING, 4, INT), (("a", 1), ("b", 2)), {"keys": ["a", "b"], "values": [1, 2]}),
        (DOUBLE, math.inf, "Infinity"),
        (DOUBLE, -math.inf, "-Infinity"),
        (LONG, None, None),
    ],
)
def test_values_both_ways(type_: Type, value: Any, written: Any):
    assert value_to_json(type_, value) == written
    assert value_from_json(type_, written) == value


def test_a_float_is_read_with_32_bits_and_written_as_the_same_value():
    read = value_from_json(FLOAT, 0.1)
    assert read == float(np.float32(0.1)) != value_from_json(DOUBLE, 0.1)
    assert value_from_json(FLOAT, value_to_json(FLOAT, read)) == read


def test_nan_both_ways():
    assert value_to_json(DOUBLE, math.nan) == "NaN"
    assert math.isnan(value_from_json(DOUBLE, "NaN"))


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (TIME, "10:15", 36_900_000_000),
        (TIME, "10:15:30.5", 36_930_500_000),
        (TIMESTAMPTZ, "1970-01-01T00:00:01Z", 1_000_000),
        (DOUBLE, 3, 3.0),
    ],
)
def test_other_forms_that_writers_use(type_: Type, text: Any, value: Any):
    assert value_from_json(type_, text) == value


@pytest.mark.parametrize(
    ("type_", "written"),
    [
        (INT, 1 << 31),
        (INT, True),
        (INT, 1.5),
        (LONG, "5"),
        (BOOLEAN, 1),
        (DOUBLE, True),
        (DOUBLE, 10**400),
        (FLOAT, 1e39),
        (DecimalType(4, 2), "14.2"),
        (DecimalType(4, 2), "123.45"),
        (DecimalType(4, 2), "NaN"),
        (DATE, "2023-02-29"),
        (DATE, "2023-13-01"),
        (DATE, "yesterday"),
        (TIME, "24:00:00"),
        (TIME, "10:15:30.1234567"),
        (TIMESTAMP, "2017-11-16T22:31:08+00:00"),
        (TIMESTAMPTZ, "2017-11-16T22:31:08"),
        (TIMESTAMPTZ, "2017-11-16T22:31:08+01:00"),
        (TIMESTAMP, "2017-11-16"),
        (TIMESTAMP_NS, "9999-01-01T00:00:00"),
        (UUID, "x"),
        (FixedType(2), "00"),
        (BINARY, "0"),
        (list_type(3, INT), {}),
        (map_type(3, STRING, 4, INT), {"keys": ["a"], "values": []}),
        (map_type(3, STRING, 4, INT), {}),
        (VARIANT, "x"),
    ],
)
def test_what_is_no_value_is_refused(type_: Type, written: Any):
    with pytest.raises(ValueError, match=r"."):
        value_from_json(type_, written)
