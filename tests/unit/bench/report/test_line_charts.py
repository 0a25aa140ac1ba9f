"""Line charts as they are drawn: what is in the drawing, where, and that it fits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from xml.etree import ElementTree as ET

import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

from icebench.bench.report.charts import Chart, DotChart, DotPanel, DotRow, Line, LineChart, LinePanel, LinePoint, Point
from icebench.bench.report.drawing import NARROW, WIDTH, draw
from icebench.bench.report.html import PADDING, picture

INCH = 72
ENGINES = ("icebench", "iceberg-java", "polars", "pyiceberg", "duckdb")
PLACES = (1.0, 10.0, 100.0, 1000.0)

Spot = tuple[float, float]


def line(series: str, values: Sequence[float], places: Sequence[float] = PLACES, *, spread: float = 0.0) -> Line:
    """A line through these values; `spread` is what half of an interval is of its value, none of 0."""
    points = []
    for x, y in zip(places, values, strict=True):
        low, high = (y * (1 - spread), y * (1 + spread)) if spread else (None, None)
        points.append(LinePoint(x=x, y=y, low=low, high=high))
    return Line(series=series, points=tuple(points))


def panel(*lines: Line, title: str = "a panel") -> LinePanel:
    return LinePanel(title=title, lines=lines)


def chart(*panels: LinePanel, series: Sequence[str] = ("icebench", "polars")) -> LineChart:
    return LineChart(caption="c", x_axis="files", y_axis="milliseconds", series=tuple(series), panels=panels)


TWO = chart(panel(line("icebench", (1, 20, 100, 1000)), line("polars", (30, 300, 3000, 30_000))))


@dataclass(frozen=True)
class Text:
    """A text of a drawing, and from where to where it reaches."""

    text: str
    left: float
    right: float
    top: float
    bottom: float


class Drawing:
    """A drawing, parsed."""

    def __init__(self, chart: Chart, width: float = WIDTH) -> None:
        drawn = draw(chart, "t", width)
        spaces = '<svg xmlns:xlink="http://www.w3.org/1999/xlink" '
        self.root = ET.fromstring(drawn.replace("<svg ", spaces, 1))
        self.box = [float(number) for number in self.root.attrib["viewBox"].split()]

    def texts(self) -> list[Text]:
        return [_placed(element) for element in self.root.iter("text")]

    def numbers(self) -> list[str]:
        """The texts beside ticks, those of the first axis of a panel before those of the second."""
        return [each.text for each in self.texts() if re.fullmatch(r"[\d,.]+", each.text)]

    def paths(self, colour: str) -> list[list[Spot]]:
        """What is drawn in a colour: corners of each line."""
        return [
            _corners(path.attrib["d"])
            for path in self.root.iter("path")
            if f"stroke: var(--{colour});" in path.attrib.get("style", "") and "d" in path.attrib and not path.get("id")
        ]

    def joined(self, series: int) -> list[list[Spot]]:
        """The lines of a series through as many points as there are places."""
        return [path for path in self.paths(f"series-{series}") if len(path) == len(PLACES)]

    def intervals(self, series: int) -> list[list[Spot]]:
        """The vertical lines of a series."""
        return [path for path in self.paths(f"series-{series}") if len(path) == 2 and path[0][0] == path[1][0]]

    def markers(self, series: int) -> list[Spot]:
        """Where a series has markers, the legend's among them."""
        return [
            (float(use.attrib["x"]), float(use.attrib["y"]))
            for use in self.root.iter("use")
            if f"fill: var(--series-{series});" in use.attrib["style"]
        ]

    def shapes(self, series: int) -> set[str]:
        """The outlines of a series' markers."""
        known = {path.attrib["id"]: path.attrib["d"] for path in self.root.iter("path") if path.get("id")}
        link = "{http://www.w3.org/1999/xlink}href"
        own = (use for use in self.root.iter("use") if f"fill: var(--series-{series});" in use.attrib["style"])
        return {known[use.attrib[link].removeprefix("#")].split("C")[0] for use in own}


def _corners(path: str) -> list[Spot]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML] (-?[\d.]+) (-?[\d.]+)", path)]


def _placed(element: ET.Element) -> Text:
    """Widths are those of the font that the layout is made for, which is wider than most."""
    text, style, transform = element.text or "", element.attrib["style"], element.attrib.get("transform", "")
    size = re.findall(r"font-size: ([\d.]+)px", style)
    weight = "bold" if "font-weight: 700" in style else "normal"
    font = FontProperties(family="DejaVu Sans", size=float(size[0]), weight=weight)
    length, height, _ = TextToPath().get_text_width_height_descent(text, font, ismath=False)
    moved = re.search(r"translate\((-?[\d.]+) (-?[\d.]+)\)", transform)
    x, y = (float(n) for n in moved.groups()) if moved else (float(element.attrib["x"]), float(element.attrib["y"]))
    if "rotate(-90" in transform:
        return Text(text, x - height, x, y - length, y)
    share = {"start": 0.0, "middle": 0.5, "end": 1.0}[
        re.findall(r"text-anchor: (\w+)", style + "; text-anchor: start")[0]
    ]
    return Text(text, x - share * length, x + (1 - share) * length, y - height, y)


def wide(*values: float, series: Sequence[str] = ENGINES) -> LineChart:
    """A chart of many engines in two panels, about these values."""
    lines = [line(name, [value * (1 + n / 3) for value in values], spread=0.2) for n, name in enumerate(series)]
    return chart(panel(*lines), panel(*lines, title="another panel"), series=series)


@pytest.mark.parametrize("width", [NARROW, 5.4, WIDTH])
def test_a_drawing_is_as_wide_as_was_asked(width: float) -> None:
    left, top, own, _ = Drawing(TWO, width).box
    assert (left, top) == (0, 0)
    assert own == pytest.approx(width * INCH)
    root = ET.fromstring(picture(TWO, width))
    box = [float(number) for number in root.attrib["viewBox"].split()]
    assert box[2] == pytest.approx(width * INCH + 2 * PADDING)
    assert float(root.attrib["width"]) == pytest.approx(box[2])


@pytest.mark.parametrize("width", [5.4, WIDTH])
@pytest.mark.parametrize("count", [1, 5])
def test_dots_are_as_wide_as_was_asked_too(width: float, count: int) -> None:
    """One panel below the other, and many in two columns."""
    row = DotRow(label="a row", points=(Point(series="icebench", value=1.0),))
    panels = tuple(DotPanel(title=f"panel {number}", rows=(row,)) for number in range(count))
    dots = DotChart(caption="c", axis="s", log=False, series=("icebench",), panels=panels)
    drawing = Drawing(dots, width)
    assert drawing.box[2] == pytest.approx(width * INCH)
    right = max(x for path in drawing.paths("muted") for x, _ in path)
    assert 0.85 * width * INCH < right < width * INCH
    if width == WIDTH:
        assert draw(dots, "t") == draw(dots, "t", width)


@pytest.mark.parametrize("width", [NARROW, 5.4, WIDTH])
@pytest.mark.parametrize("values", [(0.001, 0.01, 0.1, 1.0), (1, 20, 100, 1000), (100, 10_000, 50_000, 600_000)])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_texts_are_inside_the_drawing(width: float, values: tuple[float, ...], count: int) -> None:
    drawing = Drawing(wide(*values, series=ENGINES[:count]), width)
    assert len(drawing.texts()) > count + 8
    for each in drawing.texts():
        assert each.left >= -0.5, each
        assert each.right <= drawing.box[2] + 0.5, each
        assert each.top >= -0.5, each
        assert each.bottom <= drawing.box[3] + 0.5, each


@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize("width", [NARROW, 5.4, WIDTH])
def test_texts_do_not_cover_each_other(width: float, log: bool) -> None:
    found = Drawing(replace(wide(1, 30, 200, 40_000), log_y=log), width).texts()
    for place, one in enumerate(found):
        for other in found[place + 1 :]:
            apart = (
                one.right <= other.left or other.right <= one.left or one.bottom <= other.top or other.bottom <= one.top
            )
            assert apart, (one, other)


@pytest.mark.parametrize("width", [NARROW, 5.4, WIDTH])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_a_legend_of_long_names_is_above_the_panels_and_inside_the_drawing(width: float, count: int) -> None:
    names = [f"deletion vectors of {10**n} rows" for n in range(count)]
    drawing = Drawing(wide(1, 20, 100, 1000, series=names), width)
    legend = [each for each in drawing.texts() if each.text in names]
    (title,) = (each for each in drawing.texts() if each.text == "a panel")
    assert sorted(each.text for each in legend) == names
    assert max(each.bottom for each in legend) <= title.top
    assert max(each.right for each in legend) <= drawing.box[2]
    assert len({(each.left, each.bottom) for each in legend}) == count


def test_every_series_has_its_own_marker_and_is_in_the_legend() -> None:
    drawing = Drawing(wide(1, 20, 100, 1000))
    texts = [each.text for each in drawing.texts()]
    shapes = [drawing.shapes(series) for series in range(len(ENGINES))]
    for series, name in enumerate(ENGINES):
        assert texts.count(name) == 1
        assert len(drawing.markers(series)) == 2 * len(PLACES) + 1
        assert len(shapes[series]) == 2  # in the legend it is larger
    assert len(set.union(*shapes)) == 2 * len(ENGINES)


def test_markers_and_colours_follow_the_series_and_not_the_order_of_lines() -> None:
    (own,) = TWO.panels
    turned = replace(TWO, panels=(replace(own, lines=own.lines[::-1]),))
    for series in (0, 1):
        assert sorted(Drawing(turned).markers(series)) == sorted(Drawing(TWO).markers(series))
    alone = Drawing(replace(TWO, panels=(replace(own, lines=own.lines[1:]),)))
    assert len(alone.markers(0)) == 1  # the legend's
    assert len(alone.markers(1)) == len(PLACES) + 1


def test_points_are_joined_from_left_to_right() -> None:
    values = (1.0, 20.0, 100.0, 1000.0)
    ordered = Drawing(chart(panel(line("icebench", values)), series=("icebench",)))
    turned = Drawing(chart(panel(line("icebench", values[::-1], PLACES[::-1])), series=("icebench",)))
    (joined,) = turned.joined(0)
    assert [x for x, _ in joined] == sorted(x for x, _ in joined)
    assert joined in ordered.paths("series-0")


def test_a_logarithmic_axis_has_equal_steps_for_equal_factors() -> None:
    one = chart(panel(line("icebench", (1, 10, 100, 1000))), series=("icebench",))
    for log_x in (True, False):
        for log_y in (True, False):
            drawing = Drawing(replace(one, log_x=log_x, log_y=log_y))
            (joined,) = drawing.joined(0)
            for axis, log in enumerate((log_x, log_y)):
                steps = [abs(joined[n + 1][axis] - joined[n][axis]) for n in range(3)]
                assert steps[2] / steps[0] == pytest.approx(1 if log else 100, rel=0.01)


def test_a_linear_axis_starts_at_zero_and_a_logarithmic_one_does_not() -> None:
    one = chart(panel(line("icebench", (500, 600, 700, 1000))), series=("icebench",))
    linear = Drawing(replace(one, log_y=False))
    assert "0" in linear.numbers()
    (joined,) = linear.joined(0)
    foot = max(y for path in linear.paths("grid") for _, y in path)
    assert (foot - joined[-1][1]) / (foot - joined[0][1]) == pytest.approx(2, rel=0.01)
    assert "0" not in Drawing(one).numbers()


def test_numbers_beside_axes_are_written_out() -> None:
    drawing = Drawing(chart(panel(line("icebench", (0.01, 1, 100, 100_000))), series=("icebench",)))
    assert {"1", "10", "100", "1,000", "0.01", "10,000"} <= set(drawing.numbers())


@pytest.mark.parametrize("values", [(2.1, 2.5, 3.0, 4.8), (11, 12, 13, 14), (30.0, 30.0, 30.0, 30.0), (1, 3, 5, 9)])
def test_a_logarithmic_axis_of_a_short_span_has_at_least_two_numbers(values: tuple[float, ...]) -> None:
    """Else nothing can be read from it."""
    drawing = Drawing(replace(chart(panel(line("icebench", values)), series=("icebench",)), log_x=False))
    beside = [each for each in drawing.texts() if re.fullmatch(r"[\d,.]+", each.text) and each.right < 54]
    assert len(beside) >= 2


def test_each_interval_is_a_line_from_its_low_to_its_high_end() -> None:
    with_intervals = Drawing(chart(panel(line("icebench", (1, 10, 100, 1000), spread=0.5)), series=("icebench",)))
    found = with_intervals.intervals(0)
    (joined,) = with_intervals.joined(0)
    assert [path[0][0] for path in found] == [x for x, _ in joined]
    for (_, first), (_, second), (_, y) in ((*path, spot) for path, spot in zip(found, joined, strict=True)):
        assert min(first, second) < y < max(first, second)
        # From a half to three halves, on a logarithmic axis.
        assert (max(first, second) - y) / (y - min(first, second)) == pytest.approx(1.7095, rel=0.01)
    assert Drawing(chart(panel(line("icebench", (1, 10, 100, 1000))), series=("icebench",))).intervals(0) == []


def test_the_level_is_drawn_across_every_panel() -> None:
    two = chart(*(panel(line("icebench", (1, 10, 100, 1000))) for _ in range(2)), series=("icebench",))

    def levels(chart: LineChart) -> list[list[Spot]]:
        """Horizontal lines but for the foot of a panel."""
        drawing = Drawing(chart)
        feet = {y for path in drawing.paths("muted") if path[0][0] == path[-1][0] for _, y in path}
        return [path for path in drawing.paths("muted") if path[0][1] == path[-1][1] and path[0][1] not in feet]

    assert levels(two) == []
    found = levels(replace(two, level=10.0))
    assert len(found) == 2
    drawing = Drawing(replace(two, level=10.0))
    joined = drawing.joined(0)
    for level, points in zip(found, joined, strict=True):
        (left, y), (right, _) = level
        assert y == pytest.approx(points[1][1])  # the value of the second point is the level's
        assert left < points[0][0] < points[-1][0] < right


def test_panels_share_the_first_axis_and_have_a_second_of_their_own() -> None:
    drawing = Drawing(
        chart(
            panel(line("icebench", (1, 10, 100, 1000)), title="by files"),
            panel(line("icebench", (3e4, 4e4, 5e4, 6e4), (100, 1e3, 1e4, 1e5)), title="by columns"),
            series=("icebench",),
        )
    )
    first, second = drawing.joined(0)
    assert first[2][0] == pytest.approx(second[0][0])  # both are at 100
    assert drawing.numbers().count("100,000") == 1
    titles = {each.text: each for each in drawing.texts() if each.text.startswith("by ")}
    for title, points in (("by files", first), ("by columns", second)):
        assert titles[title].bottom < min(y for _, y in points)
    assert titles["by columns"].top > max(y for _, y in first)
    # Both reach from the foot of their panel to its head.
    heights = [max(y for _, y in points) - min(y for _, y in points) for points in (first, second)]
    assert heights[0] == pytest.approx(heights[1], rel=0.01)


def test_the_same_chart_gives_the_same_drawing() -> None:
    assert draw(TWO, "t", 5.4) == draw(TWO, "t", 5.4)
    assert "clip-path" in draw(TWO, "t")
    ids = [set(re.findall(r' id="([^"]*)"', draw(TWO, name))) for name in ("t", "u")]
    assert not ids[0] & ids[1]
