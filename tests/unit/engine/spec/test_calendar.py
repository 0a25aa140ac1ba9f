"""Days and clock times against the standard library where it reaches, and by their laws beyond."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.spec.calendar import civil_of, clock_of, days_of, iso_clock, iso_date

EPOCH = dt.date(1970, 1, 1)


@given(st.dates())
def test_days_are_those_of_the_standard_library(date: dt.date) -> None:
    days = (date - EPOCH).days
    assert days_of(date.year, date.month, date.day) == days
    assert civil_of(days) == (date.year, date.month, date.day)
    assert iso_date(days) == date.isoformat()


@given(st.integers(-(2**40), 2**40))
def test_days_go_on_beyond_it(days: int) -> None:
    year, month, day = civil_of(days)
    assert days_of(year, month, day) == days
    # 400 years are 146,097 days whatever the year.
    assert civil_of(days + 146_097) == (year + 400, month, day)


@pytest.mark.parametrize(
    ("year", "month", "day"),
    [(2023, 2, 29), (1900, 2, 29), (2024, 2, 30), (2024, 13, 1), (2024, 0, 1), (2024, 4, 31), (2024, 1, 0)],
)
def test_what_is_no_date_is_refused(year: int, month: int, day: int) -> None:
    with pytest.raises(ValueError, match="not a date of the calendar"):
        days_of(year, month, day)


@given(st.times())
def test_clock_times_are_those_of_the_standard_library(time: dt.time) -> None:
    units = clock_of(time.hour, time.minute, time.second, f"{time.microsecond:06d}", 10**6)
    assert dt.time.fromisoformat(iso_clock(units, 10**6)) == time


@pytest.mark.parametrize("clock", [(24, 0, 0), (0, 60, 0), (0, 0, 60)])
def test_what_is_no_time_is_refused(clock: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="not a time of the day"):
        clock_of(*clock, "0", 10**6)


def test_a_fraction_has_no_more_digits_than_the_units() -> None:
    assert clock_of(0, 0, 1, "000000001", 10**9) == 10**9 + 1
    assert clock_of(0, 0, 1, "000001000", 10**6) == 10**6 + 1
    with pytest.raises(ValueError, match="more digits"):
        clock_of(0, 0, 1, "0000001", 10**6)
