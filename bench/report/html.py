"""The report as one HTML file: style, drawings and text inline, nothing fetched, no script."""

from __future__ import annotations

from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined

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
        drawing=draw,
        light=stylesheet(LIGHT),
        dark=stylesheet(DARK),
        fonts=stylesheet(_FONTS),
        style=_resource("page.css"),
    )


def _resource(name: str) -> str:
    return files("bench.report").joinpath(name).read_text(encoding="utf-8")
