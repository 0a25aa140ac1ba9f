from __future__ import annotations

import datetime as dt

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.expressions.temporal_literals import NANOS_PER_DAY, TemporalLiteral, parse_temporal, to_temporal
from icebench.engine.spec.calendar import days_of
from icebench.errors import Invalid

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1970-01-02", TemporalLiteral("date", NANOS_PER_DAY)),
        ("1969-12-31", TemporalLiteral("date", -NANOS_PER_DAY)),
        ("-0001-01-01", TemporalLiteral("date", days_of(-1, 1, 1) * NANOS_PER_DAY)),
        ("+12345-12-31", TemporalLiteral("date", days_of(12345, 12, 31) * NANOS_PER_DAY)),
        ("00:00:01", TemporalLiteral("time", SECOND)),
        ("23:59", TemporalLiteral("time", (23 * 3600 + 59 * 60) * SECOND)),
        ("1970-01-01T00:00:00.000000001", TemporalLiteral("timestamp", 1)),
        ("1970-01-01 00:00:00.5", TemporalLiteral("timestamp", SECOND // 2)),
        ("1970-01-01T02:00:00+02:00", TemporalLiteral("timestamptz", 0)),
        ("1970-01-01T00:00:00-0130", TemporalLiteral("timestamptz", 5400 * SECOND)),
        ("1970-01-01 00:00:00 Z", TemporalLiteral("timestamptz", 0)),
        ("1970-01-01T01+01", None),
        ("2023-02-29", None),
        ("2024-13-01", None),
        ("24:00:00", None),
        ("1970-01-01T", None),
        ("1970-01-01+02:00", None),
        ("12:00:00Z", None),
        ("1970-01-01T00:00:00.0000000001", None),
        ("", None),
    ],
)
def test_iso_text(text: str, moment: TemporalLiteral | None) -> None:
    if moment is None:
        with pytest.raises(Invalid):
            parse_temporal(text)
    else:
        assert parse_temporal(text) == moment


@given(st.builds(TemporalLiteral, st.sampled_from(["timestamp", "timestamptz"]), st.integers(-(10**26), 10**26)))
def test_text_of_a_moment_is_read_back(moment: TemporalLiteral) -> None:
    assert parse_temporal(str(moment)) == moment


@given(st.datetimes())
def test_datetimes_are_exact(value: dt.datetime) -> None:
    assert to_temporal(value) == parse_temporal(value.isoformat())
    aware = value.replace(tzinfo=dt.UTC)
    assert to_temporal(aware) == TemporalLiteral("timestamptz", to_temporal(value).nanoseconds)


def test_dates_and_times() -> None:
    assert to_temporal(dt.date(1970, 1, 3)) == TemporalLiteral("date", 2 * NANOS_PER_DAY)
    assert to_temporal(dt.time(0, 0, 1, 5)) == TemporalLiteral("time", SECOND + 5000)
    with pytest.raises(Invalid, match="zone"):
        to_temporal(dt.time(0, tzinfo=dt.UTC))


def test_the_missing_moment_of_pandas_is_no_literal() -> None:
    with pytest.raises(Invalid, match="NaT is not a literal"):
        to_temporal(pd.NaT)
