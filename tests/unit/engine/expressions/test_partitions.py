"""How much each transform decides: that it never decides too much is a property test."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.bounds import ColumnBounds, Evaluator, Evidence, Presence
from icebench.engine.expressions.literal_intervals import FALSE, NULL, TRUE
from icebench.engine.expressions.literals import INTEGER_RANGES
from icebench.engine.expressions.parse import parse
from icebench.engine.expressions.partitions import _add_big_endian, source_evidence
from icebench.engine.expressions.vectors import BytesVector, NumberVector, vector_of
from icebench.engine.spec.schema import Schema
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
)
from icebench.engine.spec.types import (
    BINARY,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ_NS,
    VARIANT,
    DecimalType,
    NestedField,
    PrimitiveType,
)
from icebench.engine.spec.values import Value
from tests.property.evaluate import evaluate

T, F, N = TRUE, FALSE, NULL
BUCKET = (hash_value(INT, 34) & 0x7FFFFFFF) % 16
OTHER_BUCKET = (BUCKET + 1) % 16


class Rows:
    def __init__(self, count: int, evidence: Evidence) -> None:
        self.count = count
        self._evidence = evidence

    def evidence(self, field_id: int) -> Sequence[Evidence]:
        return (self._evidence,)


def outcomes(type_: PrimitiveType, transform: Transform, values: list[Value | None], text: str) -> list[int]:
    """The filter's outcomes for partitions of column `c` with these values."""
    present = np.array([v is not None for v in values])
    vector = vector_of(transform.result_type(type_), values)
    bounds = ColumnBounds(len(values), vector, vector, Presence(null=~present, nan=False, value=present))
    evidence = source_evidence(transform, type_, bounds)
    assert evidence is not None
    bound = bind(parse(text), Schema((NestedField(field_id=1, name="c", type=type_),)))
    return Evaluator(bound).outcomes(Rows(len(values), evidence)).tolist()


@pytest.mark.parametrize(
    ("type_", "transform", "values", "text", "expected"),
    [
        (INT, Identity(), [1, 2, 3, None], "c < 2", [T, F, F, N]),
        (INT, Identity(), [1, None], "c is null", [F, T]),
        (DATE, Year(), [53, 54, 55, None], "c >= date '2024-01-01'", [F, T, T, N]),
        (DATE, Year(), [53, 54], "c between date '2024-01-01' and date '2024-12-31'", [F, T]),
        (DATE, Month(), [648, 649, 650], "c = date '2024-02-29'", [F, T | F, F]),
        (DATE, Day(), [19782, 19783], "c = date '2024-02-29'", [T, F]),
        (TIMESTAMP, Month(), [648, 649], "c < timestamp '2024-02-01T00:00:00'", [T, F]),
        (TIMESTAMP, Day(), [19782, 19783], "c >= timestamp '2024-02-29T12:00:00'", [T | F, T]),
        (TIMESTAMP, Hour(), [474768, 474769], "c >= timestamp '2024-02-29T01:00:00'", [F, T]),
        (TIMESTAMPTZ_NS, Year(), [54], "c < timestamp '2025-01-01T00:00:00Z'", [T]),
        (INT, Truncate(10), [0, 10, 20, None], "c < 10", [T, F, F, N]),
        (INT, Truncate(10), [0, 10, 20], "c between 15 and 20", [F, T | F, T | F]),
        (LONG, Truncate(10), [-10], "c < 0", [T]),
        (DecimalType(4, 2), Truncate(50), [Decimal("10.50")], "c < 11", [T]),
        (DecimalType(4, 2), Truncate(50), [Decimal("10.50")], "c >= 11", [F]),
        (DecimalType(30, 2), Truncate(50), [Decimal("10.50")], "c < 11", [T]),
        (DecimalType(30, 2), Truncate(50), [Decimal("10.50")], "c >= 11", [F]),
        (STRING, Truncate(2), ["ab", "ac", "b"], "starts_with(c, 'ab')", [T, F, F]),
        (STRING, Truncate(2), ["ab", "b"], "c = 'abc'", [T | F, F]),
        (STRING, Truncate(2), ["ab", "b"], "c = 'b'", [F, T]),
        (STRING, Truncate(2), ["ab"], "starts_with(c, 'abc')", [T | F]),
        (STRING, Truncate(2), ["ab"], "not starts_with(c, 'a')", [F]),
        (BINARY, Truncate(1), [b"\xff"], "c >= X'ff'", [T]),
        (INT, Bucket(16), [BUCKET, OTHER_BUCKET], "c = 34", [T | F, F]),
        (INT, Bucket(16), [BUCKET, OTHER_BUCKET], "c != 34", [T | F, T]),
        (INT, Bucket(16), [3], "c < 34", [T | F]),
        (INT, Bucket(16), [None], "c = 34", [N]),
        (INT, Bucket(16), [None, 3], "c is null", [T, F]),
        (STRING, Bucket(8), [Bucket(8).apply(STRING, "a"), 99], "c in ('a')", [T | F, T | F]),
        (STRING, Bucket(8), [0], "starts_with(c, 'a')", [T | F]),
    ],
)
def test_what_values_decide(
    type_: PrimitiveType, transform: Transform, values: list[Value | None], text: str, expected: list[int]
) -> None:
    assert outcomes(type_, transform, values, text) == expected


def test_ranges_of_buckets() -> None:
    buckets = {n: Bucket(100).apply(INT, n) for n in range(20)}
    low, high = buckets[3], buckets[3]
    bounds = ColumnBounds(1, vector_of(INT, [low]), vector_of(INT, [high]), Presence(False, False, True))
    evidence = source_evidence(Bucket(100), INT, bounds)
    assert evidence is not None
    for n, bucket in buckets.items():
        bound = bind(parse(f"c = {n}"), Schema((NestedField(field_id=1, name="c", type=INT),)))
        assert Evaluator(bound).outcomes(Rows(1, evidence)).tolist() == [T | F if bucket == low else F]


def test_days_before_1970_may_have_been_stored_one_too_high() -> None:
    """Iceberg before 0.12 rounded towards zero."""
    assert outcomes(TIMESTAMP, Day(), [0, -1, 1], "c < timestamp '1970-01-01T00:00:00'") == [T | F, T, F]
    assert outcomes(TIMESTAMP, Day(), [-1], "c < timestamp '1969-12-31T00:00:00'") == [T | F]


def test_the_top_bin_of_a_type_may_hold_wrapped_values() -> None:
    """Java truncates -2147483648 to 2147483646, for its arithmetic wraps around."""
    assert outcomes(INT, Truncate(10), [2147483646], "c < 0") == [T | F]
    assert outcomes(INT, Truncate(10), [2147483630], "c < 0") == [F]


LEAST, GREATEST = INTEGER_RANGES["int"]
INTS = st.integers(LEAST, LEAST + 9) | st.integers(GREATEST - 40, GREATEST) | st.integers(-40, 40)


@given(
    width=st.sampled_from([1, 10, 1000, 1 << 20, (1 << 20) + 1, GREATEST]),
    ints=st.lists(st.integers(LEAST, LEAST + 9) | INTS, min_size=1, max_size=2),
    longs=st.lists(st.integers(GREATEST - 40, 1 << 33), max_size=1),
    literal=INTS,
    operator=st.sampled_from(["<", "<=", "=", "!=", ">=", ">"]),
)
def test_bins_that_java_wrapped_before_a_column_became_long(
    width: int, ints: list[int], longs: list[int], literal: int, operator: str
) -> None:
    """A manifest of bins of which some were computed with 32 bits."""
    bins = [((n - n % width) + (1 << 31)) % (1 << 32) - (1 << 31) for n in ints] + [n - n % width for n in longs]
    bounds = ColumnBounds(1, vector_of(LONG, [min(bins)]), vector_of(LONG, [max(bins)]), Presence(False, False, True))
    evidence = source_evidence(Truncate(width), LONG, bounds)
    assert evidence is not None
    bound = bind(parse(f"c {operator} {literal}"), Schema((NestedField(field_id=1, name="c", type=LONG),)))
    found = Evaluator(bound).outcomes(Rows(1, evidence))[0]
    for value in ints + longs:
        assert found & (T if evaluate(bound, {1: value}) else F), (value, bins)


def test_only_the_last_bin_of_int_is_doubted_in_a_column_of_type_long() -> None:
    assert outcomes(LONG, Truncate(10), [2147483630, 2147483640, 2147483650], "c < 0") == [F, T | F, F]
    assert outcomes(LONG, Truncate(10), [2147483640], "c < 2147483650") == [T]
    assert outcomes(INT, Truncate(10), [2147483630, 2147483640], "c < 0") == [F, T | F]


def test_times_that_64_bits_do_not_hold() -> None:
    assert outcomes(TIMESTAMP, Year(), [2**31 - 1], "c < timestamp '1970-01-01T00:00:00'") == [T | F]


def test_nan_partitions() -> None:
    vector = NumberVector(np.array([np.nan, 1.0]), np.array([False, True]))
    bounds = ColumnBounds(2, vector, vector, Presence(False, np.array([True, False]), np.array([False, True])))
    bound = bind(parse("c > 5"), Schema((NestedField(field_id=1, name="c", type=DOUBLE),)))
    evidence = source_evidence(Identity(), DOUBLE, bounds)
    assert evidence is not None
    assert Evaluator(bound).outcomes(Rows(2, evidence)).tolist() == [T, F]


@pytest.mark.parametrize(
    ("transform", "type_"),
    [(Void(), INT), (UnknownTransform("zorder"), INT), (Identity(), VARIANT), (Hour(), DATE), (Bucket(4), DOUBLE)],
)
def test_transforms_that_decide_nothing(transform: Transform, type_: PrimitiveType) -> None:
    assert source_evidence(transform, type_, ColumnBounds(1)) is None


@pytest.mark.parametrize(
    ("number", "addend"), [(0, 1), (255, 1), (65_535, 1), (1 << 120, 1 << 40), (0x01FF_FFFF, 0x0102_0304), (77, 0)]
)
def test_carries_go_through_all_bytes(number: int, addend: int) -> None:
    keys = np.frombuffer(number.to_bytes(17, "big") + (3).to_bytes(17, "big"), np.uint8)
    found = _add_big_endian(keys, addend).tobytes()
    assert [int.from_bytes(part, "big") for part in (found[:17], found[17:])] == [number + addend, 3 + addend]


def test_text_that_was_cut_between_the_halves_of_a_character() -> None:
    # Some writers count UTF-16 units: this one character may be the beginning of a longer text.
    value = vector_of(STRING, ["\N{GRINNING FACE}", "a"])
    found = source_evidence(Truncate(2), STRING, ColumnBounds(2, value, value))
    assert isinstance(found, ColumnBounds)
    assert isinstance(found.upper, BytesVector)
    assert found.upper.open_ended is not None
    assert found.upper.open_ended.tolist() == [True, False]
