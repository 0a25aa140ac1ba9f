from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.spec import types
from icebench.engine.spec.transforms import (
    Bucket,
    Day,
    Hour,
    Identity,
    Month,
    Transform,
    Truncate,
    UnknownTransform,
    Void,
    Year,
    hash_value,
    murmur3,
    parse_transform,
)
from icebench.engine.spec.types import DecimalType, FixedType, PrimitiveType
from icebench.engine.spec.values import Value

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def micros(text: str) -> int:
    at = dt.datetime.fromisoformat(text)
    return (at.replace(tzinfo=at.tzinfo or dt.UTC) - _EPOCH) // dt.timedelta(microseconds=1)


def days(text: str) -> int:
    return (dt.date.fromisoformat(text) - _EPOCH.date()).days


# The specification's own test values (appendix B), all of them.
HASHES: list[tuple[PrimitiveType, Value, int]] = [
    (types.INT, 34, 2017239379),
    (types.LONG, 34, 2017239379),
    (DecimalType(9, 2), Decimal("14.20"), -500754589),
    (DecimalType(38, 2), Decimal("14.20"), -500754589),
    (types.DATE, days("2017-11-16"), -653330422),
    (types.TIME, (22 * 3600 + 31 * 60 + 8) * 1_000_000, -662762989),
    (types.TIMESTAMP, micros("2017-11-16T22:31:08"), -2047944441),
    (types.TIMESTAMP, micros("2017-11-16T22:31:08.000001"), -1207196810),
    (types.TIMESTAMPTZ, micros("2017-11-16T14:31:08-08:00"), -2047944441),
    (types.TIMESTAMPTZ, micros("2017-11-16T14:31:08.000001-08:00"), -1207196810),
    (types.TIMESTAMP_NS, micros("2017-11-16T22:31:08") * 1000, -2047944441),
    (types.TIMESTAMP_NS, micros("2017-11-16T22:31:08.000001") * 1000 + 1, -1207196810),
    (types.TIMESTAMPTZ_NS, micros("2017-11-16T14:31:08-08:00") * 1000, -2047944441),
    (types.TIMESTAMPTZ_NS, micros("2017-11-16T14:31:08.000001-08:00") * 1000 + 1, -1207196810),
    (types.STRING, "iceberg", 1210000089),
    (types.UUID, uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), 1488055340),
    (FixedType(4), b"\x00\x01\x02\x03", -188683207),
    (types.BINARY, b"\x00\x01\x02\x03", -188683207),
]


@pytest.mark.parametrize(("type_", "value", "expected"), HASHES)
def test_hashes_are_the_specifications(type_: PrimitiveType, value: Value, expected: int) -> None:
    assert hash_value(type_, value) == expected
    assert Bucket(16).apply(type_, value) == (expected & 0x7FFFFFFF) % 16


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", 0), (b"a", 0x3C2569B2), (b"ab", 0x9BBFD75F - (1 << 32)), (b"abc", 0xB3DD93FA - (1 << 32))],
)
def test_murmur3_takes_tails_of_every_length(data: bytes, expected: int) -> None:
    assert murmur3(data) == expected


@pytest.mark.parametrize(
    ("width", "type_", "value", "expected"),
    [
        (10, types.INT, 1, 0),
        (10, types.INT, -1, -10),
        (10, types.LONG, 1, 0),
        (10, types.LONG, -1, -10),
        (10, types.LONG, 20, 20),
        (50, DecimalType(9, 2), Decimal("10.65"), Decimal("10.50")),
        (10, DecimalType(9, 2), Decimal("-0.05"), Decimal("-0.10")),
        (3, types.STRING, "iceberg", "ice"),
        (3, types.STRING, "ic", "ic"),
        (1, types.STRING, "\U0001f9ca cold", "\U0001f9ca"),
        (3, types.BINARY, b"\x01\x02\x03\x04\x05", b"\x01\x02\x03"),
    ],
)
def test_truncate(width: int, type_: PrimitiveType, value: Value, expected: Value) -> None:
    assert Truncate(width).apply(type_, value) == expected


@pytest.mark.parametrize(
    ("text", "year", "month", "day"),
    [
        ("1970-01-01", 0, 0, 0),
        ("1969-12-31", -1, -1, -1),
        ("2017-11-16", 47, 47 * 12 + 10, 17486),
        ("2000-02-29", 30, 30 * 12 + 1, 11016),
        ("0001-01-01", -1969, -1969 * 12, -719162),
    ],
)
def test_calendar_transforms_of_dates(text: str, year: int, month: int, day: int) -> None:
    value = days(text)
    assert Year().apply(types.DATE, value) == year
    assert Month().apply(types.DATE, value) == month
    assert Day().apply(types.DATE, value) == day


@pytest.mark.parametrize(
    ("text", "hour", "day"),
    [
        ("1970-01-01T00:59:59.999999", 0, 0),
        ("1969-12-31T23:59:59.999999", -1, -1),
        ("1969-12-31T22:00:00", -2, -1),
        ("2017-11-16T22:31:08", 17486 * 24 + 22, 17486),
    ],
)
def test_calendar_transforms_of_instants(text: str, hour: int, day: int) -> None:
    for type_, value in ((types.TIMESTAMP, micros(text)), (types.TIMESTAMPTZ_NS, micros(text) * 1000)):
        assert Hour().apply(type_, value) == hour
        assert Day().apply(type_, value) == day


ALL: list[Transform] = [
    Identity(),
    Bucket(7),
    Truncate(3),
    Year(),
    Month(),
    Day(),
    Hour(),
    Void(),
    UnknownTransform("zorder"),
]


@pytest.mark.parametrize("transform", ALL, ids=str)
def test_text_gives_the_transform_back(transform: Transform) -> None:
    assert parse_transform(str(transform)) == transform


@pytest.mark.parametrize("transform", ALL[:-1], ids=str)
def test_null_maps_to_null(transform: Transform) -> None:
    assert transform.apply(types.LONG if transform.accepts(types.LONG) else types.TIMESTAMP, None) is None


@pytest.mark.parametrize("text", ["bucket[0]", "truncate[]", "bucket", "bucket[-1]", "year[2]", "zorder(a, b)"])
def test_what_is_not_known_is_kept_as_it_is(text: str) -> None:
    parsed = parse_transform(text)
    assert isinstance(parsed, UnknownTransform)
    assert str(parsed) == text


def test_case_does_not_matter() -> None:
    assert parse_transform("BUCKET[4]") == Bucket(4)
    assert parse_transform("Day") == Day()


@pytest.mark.parametrize("width", [0, -1])
def test_widths_are_positive(width: int) -> None:
    with pytest.raises(ValueError, match="bucket"):
        Bucket(width)
    with pytest.raises(ValueError, match="positive"):
        Truncate(width)


@pytest.mark.parametrize(
    ("transform", "accepted", "refused"),
    [
        (Identity(), [types.LONG, types.STRING, types.DOUBLE], [types.VARIANT]),
        (Bucket(4), [types.INT, types.UUID, types.TIMESTAMP_NS, DecimalType(9, 2)], [types.BOOLEAN, types.DOUBLE]),
        (Truncate(4), [types.INT, types.STRING, types.BINARY], [types.DATE, types.UUID, types.TIMESTAMP]),
        (Year(), [types.DATE, types.TIMESTAMP, types.TIMESTAMPTZ_NS], [types.TIME, types.LONG]),
        (Hour(), [types.TIMESTAMP, types.TIMESTAMPTZ], [types.DATE, types.STRING]),
        (Void(), [types.LONG, types.DOUBLE], []),
    ],
    ids=str,
)
def test_source_types(transform: Transform, accepted: list[PrimitiveType], refused: list[PrimitiveType]) -> None:
    assert [t for t in [*accepted, *refused] if transform.accepts(t)] == accepted


def test_result_types() -> None:
    assert Bucket(4).result_type(types.STRING) == types.INT
    assert Truncate(4).result_type(types.STRING) == types.STRING
    assert Year().result_type(types.TIMESTAMP) == types.INT
    assert Day().result_type(types.TIMESTAMP) == types.DATE
    assert Identity().result_type(DecimalType(9, 2)) == DecimalType(9, 2)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(1, 2**31 - 1))
def test_truncate_rounds_down_to_a_multiple(value: int, width: int) -> None:
    result = Truncate(width).apply(types.LONG, value)
    assert isinstance(result, int)
    assert result % width == 0
    assert result <= value < result + width


@given(st.lists(st.integers(-(2**50), 2**50), min_size=2), st.sampled_from([Truncate(10), Year(), Month(), Day()]))
def test_order_is_preserved_where_the_transform_says_so(values: list[int], transform: Transform) -> None:
    assert transform.preserves_order
    type_ = types.TIMESTAMP if transform.accepts(types.TIMESTAMP) else types.LONG
    results = [transform.apply(type_, value) for value in sorted(values)]
    assert results == sorted(results)  # type: ignore[type-var]
