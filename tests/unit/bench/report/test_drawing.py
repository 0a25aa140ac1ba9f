from __future__ import annotations

import re
import warnings
from dataclasses import replace
from html import unescape

from icebench.bench.report.charts import (
    Bar,
    BarChart,
    BarPanel,
    DotChart,
    DotPanel,
    DotRow,
    Point,
    ScatterChart,
    ScatterPoint,
    Share,
)
from icebench.bench.report.drawing import draw


def test_long_names_that_differ_at_their_ends_stay_apart() -> None:
    labels = [f"sorted (compression-level={level}, files={files})" for level, files in ((9, 61), (1, 8))]
    points = tuple(ScatterPoint(label=label, x=1.0 + place, y=2.0, joined=True) for place, label in enumerate(labels))
    drawn = draw(ScatterChart(caption="", x_axis="s", y_axis="s", points=points), "t")
    for level, files in ((9, 61), (1, 8)):
        assert f"={level}, files={files})" in drawn
    assert all(label not in drawn for label in labels)


def test_long_names_that_differ_in_the_middle_stay_apart() -> None:
    codecs = ("snappy", "gzip", "snappy, files=8", "gzip, files=8")
    labels = [f"sorted (compression-codec={codec}, compression-level=9)" for codec in codecs]
    bars = tuple(Bar(label=f"{label}\nicebench", shares=(Share(kind="k", value=1.0),), note="") for label in labels)
    rows = tuple(DotRow(label=label, points=(Point(series="icebench", value=1.0),)) for label in labels)
    points = tuple(ScatterPoint(label=label, x=1.0, y=2.0, joined=True) for label in labels)
    for chart in (
        BarChart(caption="", axis="", kinds=("k",), panels=(BarPanel(title="", bars=bars),)),
        DotChart(caption="", axis="", log=False, series=("icebench",), panels=(DotPanel(title="", rows=rows),)),
        ScatterChart(caption="", x_axis="s", y_axis="s", points=points),
    ):
        drawn = draw(chart, "t")
        assert all(f"\u2026{codec}\u2026" in drawn for codec in codecs)
        assert "sorted" in drawn
        assert all(label not in drawn for label in labels)


def _texts(drawn: str) -> list[str]:
    """What a drawing says, a line each."""
    return [unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", drawn)]


def _dots(*labels: str, panels: int = 1) -> DotChart:
    rows = tuple(DotRow(label=label, points=(Point(series="icebench", value=1.0),)) for label in labels)
    own = tuple(DotPanel(title=f"scan {number}", rows=rows) for number in range(panels))
    return DotChart(caption="", axis="ms", log=False, series=("icebench",), panels=own)


def test_what_all_long_labels_begin_with_is_said_in_the_title() -> None:
    labels = [f"deletion vectors, {how}" for how in ("never compacted", "compacted every 10", "by policy default")]
    bars = tuple(Bar(label=label, shares=(Share(kind="k", value=1.0),), note="") for label in labels)
    bar_chart = BarChart(caption="", axis="", kinds=("k",), panels=(BarPanel(title="scan 0", bars=bars),))
    for chart in (_dots(*labels), bar_chart):
        said = _texts(draw(chart, "t"))
        assert {"never compacted", "compacted every 10", "by policy default"} <= set(said)
        assert "scan 0 (deletion vectors)" in said
    untitled = replace(_dots(*labels), panels=tuple(replace(each, title="") for each in _dots(*labels).panels))
    assert "deletion vectors" in _texts(draw(untitled, "t"))


def test_a_long_label_is_wrapped_between_words() -> None:
    labels = ["sorted", "unpartitioned (metrics.default=counts)", "rewritten once a day and never again", "x" * 40]
    said = _texts(draw(_dots(*labels), "t"))
    wrapped = ("sorted", "unpartitioned", "(metrics.default=counts)", "rewritten once a day and never", "again")
    assert set(wrapped) <= set(said)
    chart = _dots(*labels[:3])
    heights = [float(draw(each, "t").split('"')[1].split()[-1]) for each in (chart, _dots("a", "b", "c"))]
    assert heights[0] > heights[1]


def test_numbers_of_the_common_axis_are_seen_from_every_part_of_a_drawing() -> None:
    """A page draws 7.8 inches of 72 points on about 1,130 pixels."""
    screen = 900 * 7.8 * 72 / 1130
    for labels in (("a", "b", "c"), ("a", "b"), [f"row {number}" for number in range(12)]):
        drawn = draw(_dots(*labels, panels=31), "t")
        height = float(drawn.split('"')[1].split()[-1])
        places = sorted({float(found) for found in re.findall(r' y="([\d.]+)"[^>]*>ms</text>', drawn)})
        assert height > 2 * screen
        assert max(b - a for a, b in zip((0.0, *places), (*places, height), strict=True)) < screen
    assert draw(_dots("a", "b", panels=4), "t").count(">ms</text>") == 1


def test_texts_are_not_limited_to_the_fonts_of_this_machine() -> None:
    points = (ScatterPoint(label="\u540d", x=1.0, y=2.0, joined=True),)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "\u540d" in draw(ScatterChart(caption="", x_axis="s", y_axis="s", points=points), "t")


def test_lines_to_labels_end_before_the_labels() -> None:
    points = tuple(ScatterPoint(label=f"layout {n}", x=1 + n / 100, y=70.0, joined=n == 0) for n in range(9))
    drawn = draw(ScatterChart(caption="", x_axis="s", y_axis="s", points=points), "t")
    ends = [float(x) for x in re.findall(r'<path[^>]*d="M ([\d.]+) [\d.]+\s+Q', drawn)]
    labels = [float(x) for x in re.findall(r'<text[^>]* x="([\d.]+)"[^>]*>layout', drawn)]
    assert len(ends) == len(labels) == len(points)
    assert max(ends) < min(labels)
