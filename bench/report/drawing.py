"""Charts as SVG text: real text in the page's fonts, colours as CSS variables, the same bytes for the same values."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import quote, unquote

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from icebench.bench.report.charts import (
    BarChart,
    Chart,
    DotChart,
    DotPanel,
    HistoryChart,
    HistoryPanel,
    LineChart,
    LinePanel,
    Point,
    ScatterChart,
)
from icebench.bench.report.labels import common_phrase, shortened
from icebench.bench.report.palette import (
    GRID,
    HATCHES,
    INK,
    MUTED,
    SURFACE,
    marker,
    part_colour,
    series_colour,
    with_variables,
)
from icebench.bench.report.quantities import digits

WIDTH = 7.8
"""Inches; the page scales drawings to its own width."""
NARROW = 4.3
"""Inches of a drawing for a telephone, whose letters are as large there."""

# Inches of the parts of a drawing.
_TITLE, _LEGEND, _FOOT, _RIGHT = 0.32, 0.22, 0.5, 0.9
_INCHES_A_LETTER, _INCHES_A_BOLD_LETTER = 0.083, 0.088
_LONGEST_LABEL = 30
_LONGEST_SCATTER_LABEL, _LONGEST_NARROW_LABEL = 36, 17
_SCATTER_HEIGHT, _INCHES_A_LABEL = 3.0, 0.17
_HISTORY_HEIGHT, _INCHES_A_REVISION = 1.0, 0.75
_LINES_HEIGHT = 1.9
_HOVER = "hover: "
"""What the id of a drawn group begins with whose rest is shown on hover, as in a URL."""
_SCREEN = 5.5
"""Inches that the drawing has on a screen, about 800 pixels."""
_ONE_COLUMN = 4
"""Panels up to which one column is easier to read."""

# Any: matplotlib types the keys of its settings one by one, and such a dictionary cannot be written down.
_STYLE: Any = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "hatch.color": SURFACE,
    "hatch.linewidth": 0.7,
}


def draw(chart: Chart, name: str, width: float = WIDTH) -> str:
    """The chart as an SVG element, to be put into a page as it is.

    Args:
        chart: What is drawn.
        name: Keeps its ids apart from other drawings'.
        width: Inches, of dots and lines; others are as wide as they need.
    """
    with rc_context(_STYLE), rc_context({"svg.hashsalt": name}):
        match chart:
            case DotChart():
                figure = _dots(chart, width)
            case LineChart():
                figure = _lines(chart, width)
            case BarChart():
                figure = _bars(chart)
            case ScatterChart():
                figure = _scatter(chart, WIDTH, _LONGEST_SCATTER_LABEL)
            case HistoryChart():
                figure = _history(chart)
        return _svg(figure)


def draw_narrow(chart: Chart, name: str) -> str | None:
    """The chart for a narrow window, with shorter labels; None for one that has no narrow form and is scrolled."""
    if not isinstance(chart, ScatterChart):
        return None
    with rc_context(_STYLE), rc_context({"svg.hashsalt": name}):
        return _svg(_scatter(chart, NARROW, _LONGEST_NARROW_LABEL))


def _dots(chart: DotChart, width: float) -> Figure:
    named = _named([(panel.title, [row.label for row in panel.rows]) for panel in chart.panels])
    row_height = max(0.115 * len(chart.series) + 0.16, 0.08 + 0.14 * named.lines)
    rows = _legend_rows(chart.series, width)
    panels = _panels(named, row_height, _RIGHT / 2, total_width=width, legend=rows)
    for axis, panel in zip(panels.axes, chart.panels, strict=True):
        _dot_panel(axis, panel, chart.series)
    first = panels.axes[0]
    if chart.log:
        first.set_xscale("log")
    elif first.get_xlim()[0] >= 0:
        first.set_xlim(left=0)
    else:
        for axis in panels.axes:
            axis.axvline(0, color=MUTED, linewidth=0.8, zorder=1)
    _number_axis(first, log=chart.log)
    _common_axis(panels, chart.axis)
    _legend(panels.figure, [_series_key(index, name) for index, name in enumerate(chart.series)], rows)
    return panels.figure


def _dot_panel(axis: Axes, panel: DotPanel, series: Sequence[str]) -> None:
    for place, row in enumerate(panel.rows):
        for point in row.points:
            index = series.index(point.series)
            offset = (index - (len(series) - 1) / 2) * 0.75 / max(len(series), 1)
            _interval(axis, point, place + offset, index)


def _interval(axis: Axes, point: Point, y: float, index: int) -> None:
    colour = series_colour(index)
    if point.low is not None and point.high is not None:
        axis.plot([point.low, point.high], [y, y], color=colour, linewidth=2.2, solid_capstyle="butt", zorder=2)
    axis.plot(
        [point.value],
        [y],
        marker=marker(index),
        color=colour,
        markersize=6,
        markeredgecolor=SURFACE,
        markeredgewidth=0.4,
        linestyle="none",
        zorder=3,
    )


def _bars(chart: BarChart) -> Figure:
    named = _named([(panel.title, [bar.label for bar in panel.bars]) for panel in chart.panels])
    panels = _panels(named, 0.16 + 0.14 * named.lines, _RIGHT)
    for axis, panel in zip(panels.axes, chart.panels, strict=True):
        for place, bar in enumerate(panel.bars):
            left = 0.0
            for share in bar.shares:
                index = chart.kinds.index(share.kind)
                axis.barh(
                    place,
                    share.value,
                    left=left,
                    height=0.62,
                    color=part_colour(index),
                    hatch=HATCHES[index % 3],
                    edgecolor=SURFACE,
                    linewidth=0.4,
                )
                left += share.value
            axis.annotate(
                bar.note,
                (left, place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=MUTED,
                annotation_clip=False,
            )
    longest = max(sum(s.value for s in bar.shares) for panel in chart.panels for bar in panel.bars)
    panels.axes[0].set_xlim(left=0, right=longest or 1)
    _number_axis(panels.axes[0], log=False)
    _common_axis(panels, chart.axis)
    keys = [
        Patch(facecolor=part_colour(i), hatch=HATCHES[i % 3], edgecolor=SURFACE, label=kind)
        for i, kind in enumerate(chart.kinds)
    ]
    _legend(panels.figure, keys)
    return panels.figure


def _scatter(chart: ScatterChart, width: float, longest: int) -> Figure:
    """Labels stand in a column at the right, each joined to its point, so that none covers another."""
    points = sorted(chart.points, key=lambda point: point.y)
    short = shortened((point.label for point in points), longest)
    labels = [short[point.label] for point in points]
    margin = 0.3 + _INCHES_A_LETTER * max(map(len, labels))
    height = max(_SCATTER_HEIGHT, _INCHES_A_LABEL * len(points))
    total = height + _FOOT + _LEGEND
    figure = Figure(figsize=(width, total))
    FigureCanvasSVG(figure)
    left = 0.75
    axis = figure.add_axes((left / width, _FOOT / total, (width - left - margin) / width, height / total))
    axis.set_xlim(0, 1.05 * max(max(point.reach or (point.x,)) for point in points) or 1)
    axis.set_ylim(0, 1.05 * max(point.y for point in points) or 1)
    axis.set_axisbelow(True)
    axis.grid(visible=True, color=GRID, linewidth=0.8)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    joined = sorted((point.x, point.y) for point in points if point.joined)
    axis.step(*zip(*joined, strict=True), where="post", color=series_colour(0), linewidth=1.5, zorder=2)
    step = _INCHES_A_LABEL / height
    place = 0.0
    for number, (point, label) in enumerate(zip(points, labels, strict=True)):
        place = min(max(place, point.y / axis.get_ylim()[1]), 1 - step * (len(points) - 1 - number))
        index = 0 if point.joined else 1
        if point.reach is not None:
            axis.hlines(point.y, *point.reach, color=series_colour(index), linewidth=1.2, zorder=2)
        axis.plot(
            [point.x],
            [point.y],
            marker=marker(index),
            color=series_colour(index),
            markersize=7,
            markeredgecolor=SURFACE,
            markeredgewidth=0.4,
            linestyle="none",
            zorder=3,
        )
        axis.annotate(
            label,
            (point.x, point.y),
            xytext=(1.02, place),
            textcoords="axes fraction",
            va="center",
            fontsize=8.5,
            color=INK,
            annotation_clip=False,
            # From the middle of a label, a steep line would cross the label below it.
            arrowprops={
                "arrowstyle": "-",
                "relpos": (0, 0.5),
                "color": MUTED,
                "linewidth": 0.5,
                "shrinkA": 1,
                "shrinkB": 4,
            },
        )
        place += step
    for each in (axis.xaxis, axis.yaxis):
        each.set_major_formatter(FuncFormatter(lambda value, _: digits(value)))
    axis.set_xlabel(chart.x_axis)
    axis.set_ylabel(chart.y_axis)
    return figure


def _history(chart: HistoryChart) -> Figure:
    left, right = 0.85, 0.3
    count, total = len(chart.panels), len(chart.panels) * (_HISTORY_HEIGHT + _TITLE) + 1.5 * _FOOT + _LEGEND
    figure = Figure(figsize=(WIDTH, total))
    FigureCanvasSVG(figure)
    axes: list[Axes] = []
    for number, panel in enumerate(chart.panels):
        bottom = total - _LEGEND - (number + 1) * (_HISTORY_HEIGHT + _TITLE)
        box = (left / WIDTH, bottom / total, (WIDTH - left - right) / WIDTH, _HISTORY_HEIGHT / total)
        axes.append(figure.add_axes(box, sharex=axes[0] if axes else None))
        _history_panel(axes[-1], panel)
        if number < count - 1:
            axes[-1].tick_params(axis="x", labelbottom=False)
    places = range(len(chart.revisions))
    step = max(1, -(-len(places) // int((WIDTH - left - right) / _INCHES_A_REVISION)))
    axes[0].set_xlim(-0.5, len(places) - 0.5)
    axes[0].xaxis.set_major_locator(FixedLocator(list(places[::step])))
    axes[-1].set_xticklabels(chart.revisions[::step], fontsize=8)
    axes[-1].set_xlabel(chart.x_axis)
    figure.text(0.0, 0.5, chart.y_axis, rotation=90, va="center", ha="left", color=MUTED)
    level = Line2D([], [], color=series_colour(1), linewidth=2.2, label="level")
    _legend(figure, [_series_key(0, "revision, with its 95 % interval"), level])
    return figure


def _history_panel(axis: Axes, panel: HistoryPanel) -> None:
    axis.set_title(panel.title, loc="left", fontsize=9, fontweight="bold", color=INK, pad=4)
    axis.grid(visible=True, axis="y", color=GRID, linewidth=0.8)
    axis.set_axisbelow(True)
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: digits(value)))
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    for level in panel.levels:
        ends = [level.first - 0.5, level.last + 0.5]
        axis.plot(ends, [level.value] * 2, color=series_colour(1), linewidth=2.2, solid_capstyle="butt", zorder=2)
        where = (ends[0], level.value)
        axis.annotate(level.note, where, xytext=(2, 3), textcoords="offset points", fontsize=8, color=MUTED)
    for point in panel.points:
        colour = series_colour(0)
        if point.low is not None and point.high is not None:
            axis.vlines(point.place, point.low, point.high, color=colour, linewidth=1.2, zorder=3)
        axis.plot([point.place], [point.value], marker(0), color=colour, markersize=4, markeredgewidth=0, zorder=4)
        # What shows a text is larger than the point, and is not seen.
        (reach,) = axis.plot([point.place], [point.value], "o", color=colour, markersize=14, alpha=0.0, zorder=5)
        reach.set_gid(f"{_HOVER}{quote(point.text)}")


def _lines(chart: LineChart, width: float) -> Figure:
    highest = max(point.high or point.y for panel in chart.panels for line in panel.lines for point in line.points)
    left, right = max(0.75, 0.35 + _INCHES_A_LETTER * len(digits(10 * highest))), 0.2
    rows = _legend_rows(chart.series, width)
    total = len(chart.panels) * (_LINES_HEIGHT + _TITLE) + _FOOT + rows * _LEGEND
    figure = Figure(figsize=(width, total))
    FigureCanvasSVG(figure)
    axes: list[Axes] = []
    short = shortened((panel.title for panel in chart.panels), int((width - left) / _INCHES_A_BOLD_LETTER))
    for number, panel in enumerate(chart.panels):
        bottom = total - rows * _LEGEND - (number + 1) * (_LINES_HEIGHT + _TITLE)
        box = (left / width, bottom / total, (width - left - right) / width, _LINES_HEIGHT / total)
        axes.append(figure.add_axes(box, sharex=axes[0] if axes else None))
        _line_panel(axes[-1], panel, chart)
        axes[-1].set_title(short[panel.title], loc="left", fontsize=9, fontweight="bold", color=INK, pad=4)
        if number < len(chart.panels) - 1:
            axes[-1].tick_params(axis="x", labelbottom=False)
    axes[-1].set_xlabel(chart.x_axis)
    figure.text(0.0, 0.5, chart.y_axis, rotation=90, va="center", ha="left", color=MUTED)
    _legend(figure, [_series_key(index, name) for index, name in enumerate(chart.series)], rows)
    return figure


def _legend_rows(names: Sequence[str], width: float) -> int:
    """Into how many rows a legend of these names goes."""
    a_key = 0.45 + _INCHES_A_LETTER * max(map(len, names))
    return -(-len(names) // max(1, int(width / a_key)))


def _line_panel(axis: Axes, panel: LinePanel, chart: LineChart) -> None:
    axis.grid(visible=True, color=GRID, linewidth=0.8)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    if chart.level is not None:
        axis.axhline(chart.level, color=MUTED, linewidth=0.8, zorder=1)
    for line in panel.lines:
        index = chart.series.index(line.series)
        colour = series_colour(index)
        points = sorted(line.points, key=lambda point: point.x)
        for point in points:
            if point.low is not None and point.high is not None:
                axis.vlines(point.x, point.low, point.high, color=colour, linewidth=1.2, zorder=2)
        axis.plot(
            [point.x for point in points],
            [point.y for point in points],
            marker=marker(index),
            color=colour,
            linewidth=1.4,
            markersize=5.5,
            markeredgecolor=SURFACE,
            markeredgewidth=0.4,
            zorder=3,
        )
    if chart.log_x:
        axis.set_xscale("log")
    if chart.log_y:
        axis.set_yscale("log")
    else:
        axis.set_ylim(bottom=0)
    _numbers(axis.xaxis, axis.get_xlim(), log=chart.log_x)
    _numbers(axis.yaxis, axis.get_ylim(), log=chart.log_y)


@dataclass(frozen=True)
class _Panels:
    """Axes in reading order; `numbered` are those below which the numbers of the common axis stand."""

    figure: Figure
    axes: list[Axes]
    numbered: list[Axes]


@dataclass(frozen=True)
class _Named:
    """What panels say beside what is drawn: their titles, and the labels of the rows of each."""

    titles: list[str]
    labels: list[list[str]]

    @property
    def lines(self) -> int:
        """Of the label that has most."""
        return 1 + max(label.count("\n") for own in self.labels for label in own)


def _named(panels: Sequence[tuple[str, Sequence[str]]]) -> _Named:
    """Labels that fit, each panel given as its title and labels; what all long labels begin with is in the titles."""
    phrase = common_phrase((label for _, labels in panels for label in labels), _LONGEST_LABEL)
    said = phrase.rstrip(" ,;:")
    rest = [[label.removeprefix(phrase) for label in labels] for _, labels in panels]
    short = shortened((label for own in rest for label in own), _LONGEST_LABEL, wrapped=True)
    titles = [f"{title} ({said})" if title and said else title or said for title, _ in panels]
    return _Named(titles, [[short[label] for label in own] for own in rest])


def _panels(
    named: _Named,
    row_height: float,
    right: float,
    *,
    total_width: float = WIDTH,
    legend: int = 1,
) -> _Panels:
    """Panels that share their horizontal axis: one below the other, many with equal rows in two columns.

    Args:
        named: The titles and labels.
        row_height: Inches.
        right: Inches to leave free at the right of each panel.
        total_width: Inches.
        legend: Rows of the legend above them.
    """
    titles, labels = named.titles, named.labels
    margin = 0.12 + _INCHES_A_LETTER * max(len(line) for own in labels for label in own for line in label.split("\n"))
    wide, narrow = ((total_width - margin - columns * right) / columns for columns in (1, 2))
    alike = all(own == labels[0] for own in labels) and max(map(len, titles)) <= narrow / _INCHES_A_BOLD_LETTER
    columns, width = (2, narrow) if alike and len(titles) > _ONE_COLUMN else (1, wide)
    heights = [row_height * max(map(len, labels[i : i + columns])) for i in range(0, len(titles), columns)]
    feet = _feet([_TITLE + height for height in heights])
    total = sum(heights) + _TITLE * len(heights) + legend * _LEGEND + _FOOT * len(feet)
    figure = Figure(figsize=(total_width, total))
    FigureCanvasSVG(figure)
    axes: list[Axes] = []
    top = total - legend * _LEGEND
    short = shortened(titles, int(width / _INCHES_A_BOLD_LETTER))
    for ordinal, (title, own) in enumerate(zip(titles, labels, strict=True)):
        row, column = divmod(ordinal, columns)
        above = top - sum(heights[:row]) - _TITLE * (row + 1) - _FOOT * sum(foot < row for foot in feet)
        height = row_height * len(own)
        left, bottom = margin + column * (width + right), above - height
        box = (left / total_width, bottom / total, width / total_width, height / total)
        axis = figure.add_axes(box, sharex=axes[0] if axes else None)
        _rows(axis, short[title], own if column == 0 else [""] * len(own))
        axes.append(axis)
    low = [axis for place, axis in enumerate(axes) if place >= len(axes) - columns or place // columns in feet]
    return _Panels(figure, axes, low)


def _feet(heights: Sequence[float]) -> list[int]:
    """The rows of panels below which numbers stand, by the rows' heights: the last, and as many others as make each
    screen show some."""
    feet, since = [], 0.0
    for row, height in enumerate(heights):
        if row and since + height > _SCREEN:
            feet.append(row - 1)
            since = 0.0
        since += height
    return [*feet, len(heights) - 1]


def _rows(axis: Axes, title: str, labels: Sequence[str]) -> None:
    axis.set_title(title, loc="left", fontsize=9, fontweight="bold", color=INK, pad=4)
    axis.yaxis.set_major_locator(FixedLocator(list(range(len(labels)))))
    axis.set_yticklabels(labels, color=INK)
    axis.set_ylim(len(labels) - 0.5, -0.5)
    axis.tick_params(axis="y", length=0)
    axis.grid(visible=True, axis="x", color=GRID, linewidth=0.8)
    axis.set_axisbelow(True)
    for between in range(1, len(labels)):
        axis.axhline(between - 0.5, color=GRID, linewidth=0.5)
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)


def _number_axis(axis: Axes, *, log: bool) -> None:
    _numbers(axis.xaxis, axis.get_xlim(), log=log)


def _numbers(axis: Axis, limits: tuple[float, float], *, log: bool) -> None:
    axis.set_major_formatter(FuncFormatter(lambda value, _: digits(value)))
    if not log:
        return
    low, high = limits
    # Under two decades the powers of ten are too few to read a value from.
    wide = high / low > 100
    axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def _common_axis(panels: _Panels, label: str) -> None:
    for axis in panels.axes:
        if axis in panels.numbered:
            axis.set_xlabel(label)
        else:
            axis.tick_params(axis="x", labelbottom=False, length=0)
            axis.spines["bottom"].set_visible(False)


def _series_key(index: int, name: str) -> Line2D:
    colour = series_colour(index)
    return Line2D(
        [],
        [],
        color=colour,
        marker=marker(index),
        markersize=6,
        linewidth=2.2,
        label=name,
        markeredgecolor=SURFACE,
        markeredgewidth=0.4,
    )


def _legend(figure: Figure, keys: Sequence[Line2D | Patch], rows: int = 1) -> None:
    figure.legend(
        handles=keys,
        loc="upper left",
        ncols=-(-len(keys) // rows),
        frameon=False,
        fontsize=8.5,
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.1,
        columnspacing=1.4,
        handletextpad=0.5,
    )


def _svg(figure: Figure) -> str:
    target = io.StringIO()
    with warnings.catch_warnings():  # text stays text, in the fonts of the browser
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = target.getvalue()
    text = text[text.index("<svg") :].strip()
    # The page says how large it is, and in which fonts; name spaces and the doctype are XML's business, not HTML's.
    text = re.sub(
        r'<svg [^>]*viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" aria-hidden="true" focusable="false">', text
    )
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(rf'<g id="{_HOVER}([^"]*)">', lambda it: f"<g><title>{escape(unquote(it[1]))}</title>", text)
    # Only clip paths and markers are referred to; the ids of groups would be in the page once for every drawing.
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    text = re.sub(r"'DejaVu Sans'(, [^;\"]*)?", "var(--sans)", text)
    return with_variables(text)
