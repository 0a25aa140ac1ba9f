"""Expressions of SQL, one by one; `tests/property/test_computed.py` has a model of all together."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.columnar.scalar_evaluation import evaluate
from icebench.engine.expressions.parse_scalar import sql
from icebench.errors import Invalid

MOST = (1 << 63) - 1
ROWS = pa.RecordBatch.from_pydict(
    {
        "n": pa.array([7, -7, None], pa.int64()),
        "m": pa.array([MOST, MOST, MOST], pa.int64()),
        "d": pa.array([Decimal("1.00"), Decimal("-2.00"), None], pa.decimal128(7, 2)),
        "b": pa.array([True, False, None]),
        "s": pa.array(["ab", "", None]),
        "z": pa.array([0, 1, None], pa.timestamp("us", "UTC")),
        "ns": pa.array([1, 2, None], pa.timestamp("ns")),
        "u": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16), b"\1" * 16, None], pa.binary(16))),
    }
)


@pytest.mark.parametrize(
    ("text", "type_", "expected"),
    [
        ("n / 2", pa.float64(), [3.5, -3.5, None]),
        ("n % 4", pa.int64(), [3, -3, None]),
        ("n % -4", pa.int64(), [3, -3, None]),
        ("d / 3", pa.decimal128(20, 6), [Decimal("0.333333"), Decimal("-0.666667"), None]),
        ("-2.00 / 3.00", pa.decimal128(20, 8), [Decimal("-0.66666700")] * 3),
        ("b is true", pa.bool_(), [True, False, False]),
        ("b is false", pa.bool_(), [False, True, False]),
        ("not b", pa.bool_(), [False, True, None]),
        ("case when b then 1 end", pa.int64(), [1, None, None]),
        ("case when b then 1 else 2 end", pa.int64(), [1, 2, 2]),
        ("case n when 7 then 'a' when -7 then 'b' end", pa.string(), ["a", "b", None]),
        ("coalesce(n, m)", pa.int64(), [7, -7, MOST]),
        ("case when u = uuid '00000000-0000-0000-0000-000000000000' then 1 end", pa.int64(), [1, None, None]),
        ("coalesce(u, uuid '00000000-0000-0000-0000-000000000000') = u", pa.bool_(), [True, True, None]),
        ("coalesce(nullif(n, 7), 0)", pa.int64(), [0, -7, 0]),
        ("n between -7 and 7", pa.bool_(), [True, True, None]),
        ("n in (1, 2, -7)", pa.bool_(), [False, True, None]),
        ("n in (1, 2, 3, 4, -7)", pa.bool_(), [False, True, None]),
        (f"n in ({', '.join(map(str, range(3, 3000)))})", pa.bool_(), [True, False, None]),
        ("n not in (1, -7)", pa.bool_(), [True, False, None]),
        ("b and n > 0", pa.bool_(), [True, False, None]),
        ("b or n < 0", pa.bool_(), [True, True, None]),
        ("s || 'c'", pa.string(), ["abc", "c", None]),
        ("1.10", pa.decimal128(7, 2), [Decimal("1.10")] * 3),
        ("1e1", pa.float64(), [10.0] * 3),
        ("X'6162'", pa.binary(), [b"ab"] * 3),
        (
            "coalesce(z, timestamp '1970-01-01T00:00:00Z') = timestamp '1970-01-01T02:00:00+02:00'",
            pa.bool_(),
            [True, False, True],
        ),
        ("nullif(ns, timestamp '1970-01-01T00:00:00.000000001') is null", pa.bool_(), [True, False, True]),
        ("date '2020-01-01' = '2020-01-01'", pa.bool_(), [True] * 3),
        ("case when n = 0 then cast('no date' as date) end is null", pa.bool_(), [True] * 3),
        ("round(d / 8, 1)", pa.decimal128(7, 1), [Decimal("0.1"), Decimal("-0.3"), None]),
    ],
)
def test_values_are_those_of_sql(text: str, type_: pa.DataType, expected: list[Any]) -> None:
    assert evaluate(sql(text), ROWS, pa.field("x", type_)).to_pylist() == expected


@pytest.mark.parametrize(
    "text",
    [
        "coalesce(n, date '9999999-01-01')",
        "timestamp '999999-01-01T00:00:00' is null",
        "time '00:00:00.000000001' is null",
        "time 'noon' is null",
        "X'6' is null",
    ],
)
def test_literals_that_are_no_value_of_their_type_are_refused(text: str) -> None:
    with pytest.raises(Invalid):
        evaluate(sql(text), ROWS, pa.field("x", pa.bool_()))


@pytest.mark.parametrize("text", ["m + 1", "-m - 2", "m * 2", "n / 0.0 * 0 + 1 / 0", "n % 0"])
def test_what_overflows_or_divides_by_zero_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        evaluate(sql(text), ROWS, pa.field("x", pa.int64()))


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
@given(numbers=st.lists(st.decimals(-(10**9), 10**9, places=3), min_size=1))
def test_decimals_become_the_nearest_floating_point_numbers(type_: pa.DataType, numbers: list[Decimal]) -> None:
    rows = pa.RecordBatch.from_pydict({"d": pa.array(numbers, pa.decimal128(13, 3))})
    name = "float" if type_ == pa.float32() else "double"
    found = evaluate(sql(f"cast(d as {name})"), rows, pa.field("x", type_)).to_pylist()
    exact = list(map(Fraction, numbers))
    whole = np.float32 if type_ == pa.float32() else np.float64
    for value, wanted in zip(found, exact, strict=True):
        beside = [float(np.nextafter(whole(value), whole(far))) for far in (-np.inf, np.inf)]
        assert all(abs(Fraction(value) - wanted) <= abs(Fraction(other) - wanted) for other in beside)
    with_double = evaluate(sql("d + 0e0"), rows, pa.field("x", pa.float64())).to_pylist()
    assert with_double == list(map(float, numbers))
