"""The report as one HTML file: style, drawings, text and scripts inline, nothing fetched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps

from icebench.bench.report.charts import Chart
from icebench.bench.report.drawing import WIDTH, draw, draw_narrow
from icebench.bench.report.evidence import Evidence
from icebench.bench.report.model import Report
from icebench.bench.report.palette import DARK, LIGHT, stylesheet

_FONTS = {
    "--sans": 'system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif',
    "--mono": 'ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace',
}

PADDING = 12
"""Around a picture that stands by itself, in its units."""


def render(report: Report) -> str:
    """The page. The same report gives the same text."""
    evidence = Evidence(report)
    data = htmlsafe_json_dumps(evidence.data(), separators=(",", ":"))
    return page(
        "page.html.j2",
        scripts=("page.js", "evidence.js", "view.js"),
        report=report,
        drawing=draw,
        narrow=draw_narrow,
        place_of=evidence.place,
        evidence=data,
    )


def page(template: str, *, scripts: Sequence[str] = ("page.js",), **values: object) -> str:
    """A page from a template beside this module, with the colours, fonts and style of all pages."""
    environment = Environment(
        loader=FunctionLoader(_resource), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    return environment.get_template(template).render(
        **values,
        light=stylesheet(LIGHT),
        dark=stylesheet(DARK),
        fonts=stylesheet(_FONTS),
        style=_resource("page.css"),
        script="".join(map(_resource, scripts)),
    )


def picture(chart: Chart, width: float = WIDTH) -> str:
    """The chart as an SVG file of its own, for a README or a pull request: light or dark as its reader prefers.

    Args:
        chart: What is drawn.
        width: Inches, as for `icebench.bench.report.drawing.draw`.
    """
    drawn = draw(chart, "chart", width)
    left, top, width, height = (float(n) for n in re.findall(r'viewBox="([^"]*)"', drawn)[0].split())
    frame = (left - PADDING, top - PADDING, width + 2 * PADDING, height + 2 * PADDING)
    x, y, w, h = (f"{n:g}" for n in frame)
    style = f":root {{ {stylesheet(LIGHT)} {stylesheet(_FONTS)} }}"
    style += f" @media (prefers-color-scheme: dark) {{ :root {{ {stylesheet(DARK)} }} }}"
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{w}" height="{h}" viewBox="{x} {y} {w} {h}" role="img">'
        f"<title>{escape(chart.caption)}</title><style>{style}</style>"
        f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="6" style="fill: var(--surface)"/>'
    )
    return re.sub(r"^<svg [^>]*>", lambda _: opening, drawn) + "\n"


def _resource(name: str) -> str:
    return files("icebench.bench.report").joinpath(name).read_text(encoding="utf-8")
