"""Dates, times and timestamps as exact literals, with nanoseconds and any year (datetime has neither).

A text is ISO 8601: ``2024-02-29``, ``-0001-01-01``, ``23:59:59.5``, ``2024-02-29T12:00:00.000000001+02:00`` (a space
may stand for the T). At most nine digits after the second's point.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import Literal

from icebench.engine.errors import Invalid
from icebench.engine.spec.calendar import SECONDS_PER_DAY, clock_of, days_of, iso_clock, iso_date

TemporalKind = Literal["date", "time", "timestamp", "timestamptz"]

NANOS_PER_SECOND = 1_000_000_000
NANOS_PER_DAY = SECONDS_PER_DAY * NANOS_PER_SECOND

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
        if self.kind == "date":
            return iso_date(days)
        return f"{iso_date(days)}T{_clock(rest)}" + ("+00:00" if self.kind == "timestamptz" else "")


def _clock(nanoseconds: int) -> str:
    return iso_clock(nanoseconds, NANOS_PER_SECOND).rstrip("0").removesuffix(".")


def to_temporal(value: dt.date | dt.time | dt.datetime) -> TemporalLiteral:
    """Convert a standard library value or a timestamp of pandas, exactly; an aware one becomes a timestamptz.

    Raises:
        Invalid: A time with a zone, which no Iceberg type holds, or the NaT of pandas.
    """
    if value != value:  # noqa: PLR0124 - NaT is a datetime
        raise Invalid(f"{value} is not a literal; use `is null` or `is not null`")
    if isinstance(value, dt.datetime):
        aware = value.tzinfo is not None
        delta = (value if aware else value.replace(tzinfo=dt.UTC)) - _EPOCH
        nanoseconds = (delta.days * 86_400 + delta.seconds) * NANOS_PER_SECOND + delta.microseconds * 1000
        nanoseconds += getattr(value, "nanosecond", 0)
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
    try:
        if has_date:
            nanoseconds = days_of(int(match["year"]), int(match["month"]), int(match["day"])) * NANOS_PER_DAY
        if has_time:
            hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"] or 0)
            nanoseconds += clock_of(hour, minute, second, match["fraction"] or "0", NANOS_PER_SECOND)
    except ValueError as error:
        raise Invalid(f"{text!r}: {error}") from error
    if match["zone"] is not None:
        return TemporalLiteral("timestamptz", nanoseconds - _offset_seconds(match["zone"]) * NANOS_PER_SECOND)
    return TemporalLiteral("timestamp" if has_date and has_time else "date" if has_date else "time", nanoseconds)


def _offset_seconds(zone: str) -> int:
    if zone in "Zz":
        return 0
    digits = zone[1:].replace(":", "")
    seconds = int(digits[:2]) * 3600 + int(digits[2:] or 0) * 60
    return -seconds if zone[0] == "-" else seconds
