"""Dates, times and timestamps as exact literals, with nanoseconds and any year (datetime has neither).

A text is ISO 8601: ``2024-02-29``, ``-0001-01-01``, ``23:59:59.5``, ``2024-02-29T12:00:00.000000001+02:00`` (a space
may stand for the T). At most nine digits after the second's point.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import Literal

from engine.errors import Invalid
from engine.spec.transforms import civil_of

TemporalKind = Literal["date", "time", "timestamp", "timestamptz"]

NANOS_PER_SECOND = 1_000_000_000
NANOS_PER_DAY = 86_400 * NANOS_PER_SECOND

_DATE = r"(?P<year>[+-]?\d{4,15})-(?P<month>\d{2})-(?P<day>\d{2})"
_TIME = r"(?P<hour>\d{2}):(?P<minute>\d{2})(:(?P<second>\d{2})(\.(?P<fraction>\d{1,9}))?)?"
_ZONE = r"(?P<zone>Z|z|[+-]\d{2}(:?\d{2})?)"
_PATTERN = re.compile(rf"({_DATE})?((?P<separator>[Tt ])?{_TIME})?\s?{_ZONE}?")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class TemporalLiteral:
    """A date, time or timestamp in nanoseconds: from 1970-01-01T00:00:00 (UTC for timestamptz), or from midnight."""

    kind: TemporalKind
    nanoseconds: int

    def __str__(self) -> str:
        """The ISO 8601 text, without quotes."""
        if self.kind == "time":
            return _clock(self.nanoseconds)
        days, rest = divmod(self.nanoseconds, NANOS_PER_DAY)
        year, month, day = civil_of(days)
        sign = "-" if year < 0 else "+" if year > 9999 else ""
        date = f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"
        if self.kind == "date":
            return date
        return f"{date}T{_clock(rest)}" + ("+00:00" if self.kind == "timestamptz" else "")


def _clock(nanoseconds: int) -> str:
    seconds, fraction = divmod(nanoseconds, NANOS_PER_SECOND)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:09d}".rstrip("0") if fraction else text


def days_of(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 of a proleptic Gregorian date of any year."""
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def to_temporal(value: dt.date | dt.time | dt.datetime) -> TemporalLiteral:
    """Convert a standard library value, exactly; an aware datetime becomes a timestamptz.

    Raises:
        Invalid: A time with a zone, which no Iceberg type holds.
    """
    if isinstance(value, dt.datetime):
        aware = value.tzinfo is not None
        delta = (value if aware else value.replace(tzinfo=dt.UTC)) - _EPOCH
        nanoseconds = (delta.days * 86_400 + delta.seconds) * NANOS_PER_SECOND + delta.microseconds * 1000
        return TemporalLiteral("timestamptz" if aware else "timestamp", nanoseconds)
    if isinstance(value, dt.date):
        return TemporalLiteral("date", days_of(value.year, value.month, value.day) * NANOS_PER_DAY)
    if value.tzinfo is not None:
        raise Invalid(f"the time {value} has a zone; Iceberg's time type has none")
    seconds = value.hour * 3600 + value.minute * 60 + value.second
    return TemporalLiteral("time", seconds * NANOS_PER_SECOND + value.microsecond * 1000)


def parse_temporal(text: str) -> TemporalLiteral:
    """Parse ISO 8601 text; its form decides the kind.

    Raises:
        Invalid: Not such a text, or not a date of the calendar.
    """
    match = _PATTERN.fullmatch(text.strip())
    has_date = match is not None and match["year"] is not None
    has_time = match is not None and match["hour"] is not None
    if (
        match is None
        or not (has_date or has_time)
        or (has_date and has_time) != (match["separator"] is not None)
        or (match["zone"] is not None and not (has_date and has_time))
    ):
        raise Invalid(f"{text!r} is not a date, a time or a timestamp such as 2024-02-29T12:00:00")
    nanoseconds = 0
    if has_date:
        year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
        days = days_of(year, month, day)
        if civil_of(days) != (year, month, day):
            raise Invalid(f"{text!r} is not a date of the calendar")
        nanoseconds = days * NANOS_PER_DAY
    if has_time:
        hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"] or 0)
        if hour > 23 or minute > 59 or second > 59:
            raise Invalid(f"{text!r} is not a time of the day")
        seconds = hour * 3600 + minute * 60 + second
        nanoseconds += seconds * NANOS_PER_SECOND + int((match["fraction"] or "").ljust(9, "0"))
    if match["zone"] is not None:
        return TemporalLiteral("timestamptz", nanoseconds - _offset_seconds(match["zone"]) * NANOS_PER_SECOND)
    return TemporalLiteral("timestamp" if has_date and has_time else "date" if has_date else "time", nanoseconds)


def _offset_seconds(zone: str) -> int:
    if zone in "Zz":
        return 0
    digits = zone[1:].replace(":", "")
    seconds = int(digits[:2]) * 3600 + int(digits[2:] or 0) * 60
    return -seconds if zone[0] == "-" else seconds
