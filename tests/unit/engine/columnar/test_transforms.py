from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from icebench.engine.columnar.scalars import from_arrow_array, to_arrow_array
from icebench.engine.columnar.schemas import to_arrow_type
from icebench.engine.columnar.transforms import transform_array
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
    parse_transform,
)
from icebench.engine.spec.types import (
    BINARY,
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    FixedType,
    PrimitiveType,
)
from icebench.engine.spec.values import Value, decimal_of
from icebench.errors import Invalid, Unsupported
from tests.unit.engine.columnar.value_strategies import PRIMITIVES, same, values

TRANSFORMS: tuple[Transform, ...] = (
    Identity(),
    Void(),
    Year(),
    Month(),
    Day(),
    Hour(),
    Bucket(1),
    Bucket(16),
    Bucket(1000),
    Truncate(1),
    Truncate(3),
    Truncate(1000),
)

ACCEPTED = [(source, transform) for source in PRIMITIVES for transform in TRANSFORMS if transform.accepts(source)]


def _fits(result: PrimitiveType, value: Value | None) -> bool:
    try:
        to_arrow_array(result, [value])
    except (pa.ArrowInvalid, OverflowError):
        return False
    return True


@pytest.mark.parametrize(("source", "transform"), ACCEPTED, ids=str)
@settings(max_examples=10)
@given(data=st.data())
def test_equals_the_scalar_transform_value_by_value(
    source: PrimitiveType, transform: Transform, data: st.DataObject
) -> None:
    column = data.draw(st.lists(st.none() | values(source), max_size=12))
    offset = data.draw(st.integers(0, len(column)))
    expected = [transform.apply(source, value) for value in column]
    result = transform.result_type(source)
    assume(all(_fits(result, value) for value in expected))

    made = transform_array(source, transform, to_arrow_array(source, column).slice(offset))

    assert made.type == to_arrow_type(result)
    found = from_arrow_array(result, made)
    assert len(found) == len(column) - offset
    assert all(same(a, b) for a, b in zip(found, expected[offset:], strict=True))


SECONDS = {"timestamp": 10**6, "timestamptz": 10**6, "timestamp_ns": 10**9, "timestamptz_ns": 10**9}
DAY = 86_400


@pytest.mark.parametrize("source", [PrimitiveType(name) for name in SECONDS], ids=str)
@pytest.mark.parametrize(
    ("transform", "unit_seconds"),
    [(Hour(), 3_600), (Day(), DAY), (Month(), 31 * DAY), (Year(), 365 * DAY)],
    ids=["hour", "day", "month", "year"],
)
def test_units_before_1970_are_cut_down_not_towards_zero(
    source: PrimitiveType, transform: Transform, unit_seconds: int
) -> None:
    """1969 was no leap year, and its last month had 31 days: the last units before 1970 are that long."""
    unit = unit_seconds * SECONDS[source.name]
    column: list[Value | None] = [-unit - 1, -unit, -unit + 1, -unit // 2, -1, None, 0, 1, unit - 1]
    expected = [-2, -1, -1, -1, -1, None, 0, 0, 0]
    assert [transform.apply(source, value) for value in column] == expected
    result = transform.result_type(source)
    assert from_arrow_array(result, transform_array(source, transform, to_arrow_array(source, column))) == expected


@pytest.mark.parametrize(
    ("transform", "expected"),
    [(Day(), [-367, -366, -365, -1, 0, 1]), (Month(), [-13, -13, -12, -1, 0, 0]), (Year(), [-2, -2, -1, -1, 0, 0])],
    ids=["day", "month", "year"],
)
def test_dates_before_1970_are_cut_down_not_towards_zero(transform: Transform, expected: list[int]) -> None:
    column: list[Value | None] = [-367, -366, -365, -1, 0, 1]
    assert [transform.apply(DATE, value) for value in column] == expected
    made = transform_array(DATE, transform, to_arrow_array(DATE, column))
    assert from_arrow_array(transform.result_type(DATE), made) == expected


@pytest.mark.parametrize("source", [INT, LONG, DecimalType(5, 0), DecimalType(18, 2), DecimalType(30, 2)], ids=str)
@pytest.mark.parametrize("width", [1, 7, 10])
def test_negative_numbers_are_truncated_down_not_towards_zero(source: PrimitiveType, width: int) -> None:
    numbers = [-21, -20, -11, -10, -9, -8, -7, -1, 0, 1, 6, 7, 9, 10, 11]
    down = [number // width * width for number in numbers]

    def of(number: int) -> Value:
        return decimal_of(number, source.scale) if isinstance(source, DecimalType) else number

    column: list[Value | None] = [*map(of, numbers), None]
    expected = [*map(of, down), None]
    assert [Truncate(width).apply(source, value) for value in column] == expected
    assert (
        from_arrow_array(source, transform_array(source, Truncate(width), to_arrow_array(source, column))) == expected
    )


@given(st.lists(st.binary(max_size=40) | st.just(b""), max_size=10))
@example([b"\x00" * 5, b"\xff" * 7])
def test_hashes_byte_strings_of_every_length(column: list[bytes]) -> None:
    binary = PrimitiveType("binary")
    made = transform_array(binary, Bucket(2**31 - 1), pa.array(column, pa.binary()))
    assert made.to_pylist() == [Bucket(2**31 - 1).apply(binary, value) for value in column]


@pytest.mark.parametrize(
    ("source", "column"),
    [
        (STRING, ["skipped", "a", "bcdef", "ü", ""]),
        (BINARY, [b"skipped", b"\x00" * 4, b"\xff" * 7, b""]),
        (FixedType(3), [b"xyz", b"\x00\x01\x02", b"\xff\xfe\xfd"]),
        (DecimalType(9, 2), [Decimal("1.00"), Decimal("-14.20"), Decimal("0.01")]),
    ],
)
def test_a_slice_is_hashed_from_where_it_begins(source: PrimitiveType, column: list[Value]) -> None:
    made = transform_array(source, Bucket(2**31 - 1), to_arrow_array(source, column).slice(1))
    assert made.to_pylist() == [Bucket(2**31 - 1).apply(source, value) for value in column[1:]]


@pytest.mark.parametrize(
    ("source", "value"),
    [(INT, -(2**31)), (LONG, -(2**63)), (DecimalType(3, 0), "-999"), (DecimalType(20, 0), "-" + "9" * 20)],
)
def test_refuses_a_truncation_that_leaves_the_type(source: PrimitiveType, value: object) -> None:
    array = pa.array([value]).cast(to_arrow_type(source))
    with pytest.raises(Invalid, match="least multiple of 7"):
        transform_array(source, Truncate(7), array)


@pytest.mark.parametrize("source", [TIMESTAMP, TIMESTAMPTZ], ids=str)
def test_refuses_an_hour_that_is_no_int(source: PrimitiveType) -> None:
    hour = 3_600_000_000
    column: list[Value | None] = [None, -(2**31) * hour, (2**31 - 1) * hour + hour - 1]
    assert transform_array(source, Hour(), to_arrow_array(source, column)).to_pylist() == [None, -(2**31), 2**31 - 1]
    for beyond in (-(2**31) * hour - 1, 2**31 * hour):
        with pytest.raises(Invalid, match="its hour is no int"):
            transform_array(source, Hour(), to_arrow_array(source, [*column, beyond]))


@pytest.mark.parametrize("source", [PrimitiveType(name) for name in SECONDS], ids=str)
@pytest.mark.parametrize("transform", [Day(), Month(), Year()], ids=str)
def test_other_periods_of_all_timestamps_are_ints(source: PrimitiveType, transform: Transform) -> None:
    column: list[Value | None] = [-(2**63), 2**63 - 1]
    expected = [transform.apply(source, value) for value in column]
    made = transform_array(source, transform, to_arrow_array(source, column))
    assert from_arrow_array(transform.result_type(source), made) == expected


def test_names_an_unknown_transform() -> None:
    with pytest.raises(Unsupported, match=r"zigzag\[3\]"):
        transform_array(STRING, parse_transform("zigzag[3]"), pa.array(["a"]))
    assert isinstance(parse_transform("zigzag[3]"), UnknownTransform)


def test_knows_the_hashes_of_the_specification() -> None:
    # Appendix B of the specification.
    assert transform_array(INT, Bucket(2**31 - 1), pa.array([34], pa.int32())).to_pylist() == [2017239379]
    assert transform_array(STRING, Bucket(2**31 - 1), pa.array(["iceberg"])).to_pylist() == [1210000089]
    decimal = pa.array(["14.20"]).cast(pa.decimal128(9, 2))
    hashed = (-500754589) & 0x7FFFFFFF
    assert transform_array(DecimalType(9, 2), Bucket(2**31 - 1), decimal).to_pylist() == [hashed % (2**31 - 1)]
