from __future__ import annotations

import warnings

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
        assert f"l={level}, files={files})" in drawn
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


def test_texts_are_not_limited_to_the_fonts_of_this_machine() -> None:
    points = (ScatterPoint(label="\u540d", x=1.0, y=2.0, joined=True),)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "\u540d" in draw(ScatterChart(caption="", x_axis="s", y_axis="s", points=points), "t")
