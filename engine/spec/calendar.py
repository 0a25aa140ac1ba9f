"""Days and clock times as whole numbers, in the proleptic Gregorian calendar of any year (datetime has 1 to 9999)."""

from __future__ import annotations

SECONDS_PER_DAY = 86_400
UNITS_PER_SECOND = {
    **dict.fromkeys(("time", "timestamp", "timestamptz"), 10**6),
    **dict.fromkeys(("timestamp_ns", "timestamptz_ns"), 10**9),
}
"""Type name -> how many of its units make a second."""
UNITS_PER_DAY = {"date": 1, **{name: SECONDS_PER_DAY * units for name, units in UNITS_PER_SECOND.items()}}
"""Type name -> how many of its units make a day."""


def civil_of(days: int) -> tuple[int, int, int]:
    """Year, month and day of days from 1970-01-01."""
    shifted = days + 719_468
    era, day_of_era = divmod(shifted, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return (
        year_of_era + era * 400 + (1 if month <= 2 else 0),
        month,
        day_of_year - (153 * shifted_month + 2) // 5 + 1,
    )


def days_of(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01, the inverse of `civil_of`; raises ValueError for what is no date."""
    era, year_of_era = divmod(year - (month <= 2), 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days = era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468
    if civil_of(days) != (year, month, day):
        raise ValueError(f"{year}-{month:02d}-{day:02d} is not a date of the calendar")
    return days


def clock_of(hour: int, minute: int, second: int, fraction: str, per_second: int) -> int:
    """Units from midnight; `fraction` are up to nine digits after the second's point.

    Raises:
        ValueError: It is no time of a day, or the fraction has more digits than there are units in a second.
    """
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"{hour:02d}:{minute:02d}:{second:02d} is not a time of the day")
    units, lost = divmod(int(fraction.ljust(9, "0")), 10**9 // per_second)
    if lost:
        raise ValueError(f"a fraction of {fraction} of a second has more digits than the type")
    return (hour * 3600 + minute * 60 + second) * per_second + units


def iso_date(days: int) -> str:
    """``2024-02-29``; years outside of 0 to 9999 have a sign."""
    year, month, day = civil_of(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def iso_clock(units: int, per_second: int) -> str:
    """``23:59:59.000001``, with all digits that the units have."""
    seconds, fraction = divmod(units, per_second)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{clock}.{fraction:0{len(str(per_second)) - 1}d}"
