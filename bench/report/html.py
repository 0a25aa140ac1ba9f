"""The report as one HTML file: style, drawings and text inline, nothing fetched, no script."""

from __future__ import annotations

from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from bench.report.charts import Chart
from bench.report.drawing import draw
from bench.report.model import Report
from bench.report.palette import DARK, LIGHT, stylesheet

_FONTS = {
    "--sans": 'system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif',
    "--mono": 'ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace',
}


def render(report: Report) -> str:
    """The page. The same report gives the same text."""
    environment = Environment(
        loader=FunctionLoader(_resource), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    template = environment.get_template("page.html.j2")
    return template.render(
        report=report,
        drawing=_drawing,
        light=Markup(stylesheet(LIGHT)),  # noqa: S704 - our own constants
        dark=Markup(stylesheet(DARK)),  # noqa: S704 - our own constants
        fonts=Markup(stylesheet(_FONTS)),  # noqa: S704 - our own constants
        style=Markup(_resource("page.css")),  # noqa: S704 - our own file
    )


def _drawing(chart: Chart, name: str) -> Markup:
    # matplotlib escapes the text that it puts into SVG.
    return Markup(draw(chart, name))  # noqa: S704


def _resource(name: str) -> str:
    return files("bench.report").joinpath(name).read_text(encoding="utf-8")
