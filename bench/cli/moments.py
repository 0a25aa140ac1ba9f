"""Points in time as they are typed in a command line."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import click

_AGO = re.compile(r"(\d{1,6})\s*([dhm])")
_UNITS = {"d": "days", "h": "hours", "m": "minutes"}


class Moment(click.ParamType[int]):
    """Gives milliseconds since 1970."""

    name = "time"

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Refuses what is no time with the forms that there are."""
        if isinstance(value, int):
            return value
        text = str(value).strip()
        try:
            if ago := _AGO.fullmatch(text):
                moment = self._now() - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
            else:
                moment = self._now() if text == "now" else datetime.fromisoformat(text)
            zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
            return round(zoned.timestamp() * 1000)
        except (ValueError, OverflowError):
            self.fail(f"{text!r} is no time; such are now, 7d, 12h, 2026-01-31, 2026-01-31T12:00:00Z", param, ctx)
