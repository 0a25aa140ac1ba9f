"""What is drawn, without how: charts as values, so that a test can look at them and the terminal can do without."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Point:
    """One figure with its interval, where there is one; `series` decides colour and marker."""

    series: str
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class DotRow:
    """A line of a dot chart: all series of one thing."""

    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True, kw_only=True)
class DotPanel:
    """Rows that share a title."""

    title: str
    rows: tuple[DotRow, ...]


@dataclass(frozen=True, kw_only=True)
class DotChart:
    """Figures with intervals along one axis that all panels share. No lengths, so the axis may be logarithmic."""

    caption: str
    axis: str
    log: bool
    series: tuple[str, ...]
    panels: tuple[DotPanel, ...]


@dataclass(frozen=True, kw_only=True)
class Share:
    """One part of a bar; `kind` is the name of a part of its chart."""

    kind: str
    value: float


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A bar of parts, in the order of the chart's kinds; `note` stands at its end."""

    label: str
    shares: tuple[Share, ...]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class BarPanel:
    """Bars that share a title."""

    title: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, kw_only=True)
class BarChart:
    """Stacked parts of a whole, along an axis that starts at zero. `kinds` is the order of the parts."""

    caption: str
    axis: str
    kinds: tuple[str, ...]
    panels: tuple[BarPanel, ...]


@dataclass(frozen=True, kw_only=True)
class ScatterPoint:
    """One thing in two quantities; the joined ones are connected from left to right. `reach` is the interval of
    `x`, where there is one."""

    label: str
    x: float
    y: float
    joined: bool = False
    reach: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class ScatterChart:
    """Things in two quantities, of both of which less is better; both axes start at zero."""

    caption: str
    x_axis: str
    y_axis: str
    points: tuple[ScatterPoint, ...]


@dataclass(frozen=True, kw_only=True)
class HistoryPoint:
    """A revision, by its place among those of the chart. `text` is shown on hover."""

    place: int
    value: float
    text: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Level:
    """What a series is from one place to another, both included; `note` says how it differs from the one before."""

    first: int
    last: int
    value: float
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class HistoryPanel:
    """One series, and the levels that it has."""

    title: str
    points: tuple[HistoryPoint, ...]
    levels: tuple[Level, ...]


@dataclass(frozen=True, kw_only=True)
class HistoryChart:
    """Series over the same revisions, one below the other; `revisions` has the text below each place."""

    caption: str
    x_axis: str
    y_axis: str
    revisions: tuple[str, ...]
    panels: tuple[HistoryPanel, ...]


@dataclass(frozen=True, kw_only=True)
class LinePoint:
    """One figure of a line with its interval, where there is one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Line:
    """Points that are joined, from left to right; `series` decides colour and marker."""

    series: str
    points: tuple[LinePoint, ...]


@dataclass(frozen=True, kw_only=True)
class LinePanel:
    """Lines that share a title."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, kw_only=True)
class LineChart:
    """How a quantity grows with another, one panel below the other. Axes are logarithmic where `log_x` and `log_y` say
    so; all panels share the first, and each has a second of its own. `level` is marked across all panels."""

    caption: str
    x_axis: str
    y_axis: str
    series: tuple[str, ...]
    panels: tuple[LinePanel, ...]
    log_x: bool = True
    log_y: bool = True
    level: float | None = None


Chart = DotChart | BarChart | ScatterChart | HistoryChart | LineChart
