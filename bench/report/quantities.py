"""Figures as people read them: units scaled, as many digits as a measurement supports."""

from __future__ import annotations

import math

_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_TIME_STEPS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (0.0, "ns"))
_LARGE_STEPS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
MEGABYTE = 1 << 20
"""Bytes of a MB, as properties of tables have them: 1,024 KB, and 1,024 of them are a GB."""
BYTES_OF = {"GB": 1 << 30, "MB": MEGABYTE, "KB": 1 << 10}
"""Unit of a size -> its bytes, the largest first: the same in every table, chart and estimate."""


def quantity(value: float, unit: str, *, like: float | None = None) -> str:
    """A value with its unit, three digits: ``0.0123 s`` is ``12.3 ms``, ``2.5e6 rows/s`` is ``2.5 M rows/s``.

    Args:
        value: In `unit`.
        unit: Of a record: a time (s, ms, us, ns), a share (ratio, fraction), bytes, a rate (rows/s), or a count.
        like: Scale the unit as for this value, so that the ends of an interval share the unit of its middle.
    """
    scale, name = scaled(value if like is None else like, unit)
    text = digits(value / scale)
    if name == "%":
        return f"{text}%"
    return f"{text} {name}".rstrip()


def duration(seconds: float) -> str:
    """A time that people wait: ``4.3 s``, ``75 minutes``, ``20 hours``, ``12 days``."""
    for step, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * step:
            return f"{digits(seconds / step)} {name}"
    return quantity(seconds, "s")


def interval(low: float, high: float, unit: str, *, like: float) -> str:
    """An interval in the unit of `like`, without naming it again: ``[11.9, 12.8]``."""
    scale, _ = scaled(like, unit)
    return f"[{digits(low / scale)}, {digits(high / scale)}]"


def digits(value: float) -> str:
    """Three significant digits, no exponent, no zeros at the end of decimals; whole thousands are grouped."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    places = 2 - math.floor(math.log10(abs(value)))
    if places <= 0:
        return f"{value:,.0f}"
    text = f"{value:.{min(places, 9)}f}"
    return text.rstrip("0").rstrip(".")


def times(ratio: float) -> str:
    """A ratio: ``3.2x``; two decimals near one, where they matter."""
    return f"{factor(ratio)}x" if ratio < 2 else f"{digits(ratio)}x"


def factor(end: float) -> str:
    """An end of a ratio's interval: ``1.07``; below a tenth, where two decimals are none, three digits."""
    return f"{end:.2f}" if end >= 0.1 else digits(end)


def signed_percent(share: float) -> str:
    """A relative change: ``+3.1%``."""
    return f"{share:+.1%}"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """``1 file``, ``2 files``, ``1,200 files``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(names: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""


def scaled(value: float, unit: str) -> tuple[float, str]:
    """What a value in this unit is divided by to be shown, and the unit that it is shown in."""
    size = abs(value)
    if unit in _SECONDS:
        own = _SECONDS[unit]
        # Nothing at all keeps its unit.
        step, name = next(s for s in _TIME_STEPS if size * own >= s[0]) if size else (own, unit)
        return (step or 1e-9) / own, name
    if unit in {"ratio", "fraction", "share", "1"}:
        return 0.01, "%"
    if unit in {"bytes", "B"}:
        return next(((float(step), name) for name, step in BYTES_OF.items() if size >= step), (1.0, "B"))
    if "/" in unit:
        return next(((step, f"{letter} {unit}") for step, letter in _LARGE_STEPS if size >= step), (1.0, unit))
    return 1.0, unit
