"""The report in a terminal: the findings, the tables that are not folded, the remarks."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from bench.report.model import Cell, Report, Section, Table, Tone
from bench.report.remarks import Remark, Severity

_TONE = {Tone.PLAIN: "", Tone.BEST: "bold green", Tone.DOUBTFUL: "yellow", Tone.WRONG: "bold red"}
_MARK = {Tone.PLAIN: "", Tone.BEST: "* ", Tone.DOUBTFUL: "", Tone.WRONG: "! "}
_SEVERITY = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}


def renderables(report: Report) -> Iterator[RenderableType]:
    """What to print, in order: tables first, then what they mean, so that the end of the output is the summary."""
    for section in report.sections:
        yield from _section(section)
    if report.remarks:
        yield Text("\nBefore you believe it", style="bold")
        for remark in report.remarks:
            yield from _remark(remark)
    yield Text("\nFindings", style="bold")
    if not report.findings:
        yield Text("Nothing was measured.")
    for finding in report.findings:
        yield Text.assemble("- ", finding.statement)
        if finding.evidence:
            yield Padding(Text(finding.evidence, style="dim"), (0, 0, 0, 2))


def _section(section: Section) -> Iterator[RenderableType]:
    tables = [table for table in section.tables if not table.folded]
    if tables:
        yield Text(f"\n{section.title}", style="bold")
    for table in tables:
        yield _grid(table)


def _grid(table: Table) -> Grid:
    grid = Grid(title=table.title, caption=table.note or None, title_justify="left", caption_justify="left",
                title_style="", caption_style="dim", box=box.SIMPLE_HEAD, pad_edge=False)  # fmt: skip
    for index, name in enumerate(table.columns):
        right = bool(table.rows) and table.rows[0][index].figure
        grid.add_column(name, justify="right" if right else "left", overflow="fold")
    for row in table.rows:
        grid.add_row(*(_cell(cell) for cell in row))
    return grid


def _cell(cell: Cell) -> Text:
    text = Text(_MARK[cell.tone] + cell.text, style=_TONE[cell.tone])
    if cell.detail:
        text.append(f"\n{cell.detail}", style="dim")
    return text


def _remark(remark: Remark) -> Iterator[RenderableType]:
    yield Text.assemble((f"{remark.severity.name.lower()}: ", _SEVERITY[remark.severity]), remark.text)
    yield Padding(Text(remark.advice, style="dim"), (0, 0, 0, 2))
