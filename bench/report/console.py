"""The report in a terminal: the findings, the tables that are not folded, the remarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from icebench.bench.report.line_counts import height
from icebench.bench.report.model import Cell, Comparison, Report, Section, Table, Tone
from icebench.bench.report.remarks import Remark, Severity

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
    if report.answer:
        yield Text(f"\n{report.answer}", style="bold")


def verdict(report: Report, console: Console, *, lines: int) -> Iterator[RenderableType]:
    """What to print where the screen is to hold all of it: failures, what layouts cost or read, then findings without
    their evidence, worst remarks last, as far as the lines suffice; the last line says what was left out."""
    answers = [section.all_tables[0] for section in report.sections if section.key in ("costs", "layouts")]
    # What a layout costs says more than what it reads, in a row instead of a column.
    opening = [_without_details(table) for table in answers[-1:]]
    errors = [_remark_line(remark) for remark in report.remarks if remark.severity is Severity.ERROR]
    others = [_remark_line(remark) for remark in report.remarks if remark.severity is Severity.WARNING]
    findings = [Text(f"- {finding.statement}") for finding in report.findings]
    nothing = [] if findings else [Text("Nothing was measured that could be compared.")]
    parts: list[RenderableType] = [*errors, *map(_grid, opening), *nothing, *findings, *others]
    yield from _fitting(parts, console, lines=lines, rest="icebench report --print")


def compared(comparison: Comparison, console: Console, *, lines: int | None) -> Iterator[RenderableType]:
    """A comparison: its summaries, what may be said, and notes, as far as the lines suffice; all of it for None."""
    findings = [Text(f"- {finding.statement}") for finding in comparison.findings]
    notes = [Text(note, style="dim") for note in comparison.notes]
    tables = [_grid(table) for table in comparison.tables]
    title = Text(comparison.title, style="bold")
    summed_up: list[RenderableType] = [title, *tables[: comparison.summaries], *findings, *notes]
    if lines is None:
        yield from (*tables[comparison.summaries :], *summed_up)
    else:
        yield from _fitting(summed_up, console, lines=lines, rest="--long")


def _fitting(parts: Sequence[RenderableType], console: Console, *, lines: int, rest: str) -> Iterator[RenderableType]:
    """The parts that fit; the last line says what was left out and where the rest is."""
    left, omitted = lines - 1, 0
    for part in parts:
        needed = height(console, part)
        if needed > left:
            omitted += 1
            continue
        left -= needed
        yield part
    more = f"{omitted} more remarks and findings, and all" if omitted else "All"
    yield Text(f"{more} tables: {rest}", style="dim")


def _without_details(table: Table) -> Table:
    """A line for each row."""
    return replace(table, rows=tuple(tuple(replace(cell, detail="") for cell in row) for row in table.rows), note="")


def _remark_line(remark: Remark) -> Text:
    return Text.assemble((f"{remark.severity.name.lower()}: ", _SEVERITY[remark.severity]), remark.text)


def _section(section: Section) -> Iterator[RenderableType]:
    tables = [table for table in section.all_tables if not table.folded]
    if tables:
        yield Text(f"\n{section.title}", style="bold")
    for table in tables:
        yield _grid(table)


def opening_rows(table: Table, most: int) -> Grid:
    """The first rows of a table, which has the most expensive ones first, each in a line, without its title."""
    short = _without_details(replace(table, title="", rows=table.rows[:most]))
    grid = _grid(short)
    grid.show_edge = False
    return grid


def _grid(table: Table) -> Grid:
    grid = Grid(
        title=table.title or None,
        caption=table.note or None,
        title_justify="left",
        caption_justify="left",
        title_style="",
        caption_style="dim",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
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
