"""The report in a terminal: the findings, the tables that are not folded, the remarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table as Grid
from rich.text import Text

from icebench.bench.report.line_counts import height
from icebench.bench.report.model import Cell, Comparison, Finding, Report, Section, Table, Tone
from icebench.bench.report.remarks import Remark, Severity
from icebench.bench.report.wrapping import Hanging

_TONE = {Tone.PLAIN: "", Tone.BEST: "bold green", Tone.DOUBTFUL: "yellow", Tone.WRONG: "bold red"}
_MARK = {Tone.PLAIN: "", Tone.BEST: "* ", Tone.DOUBTFUL: "", Tone.WRONG: "! "}
_UNLIMITED = 10_000
_LONGEST_WORD = 24
"""Characters: names that are longer may be broken."""
_SEVERITY = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}


def renderables(report: Report) -> Iterator[RenderableType]:
    """What to print, in order: tables first, then what they mean, so that the end of the output is the summary."""
    for section in report.sections:
        yield from _section(section)
    if report.remarks:
        yield Text("\nBefore you believe it", style="bold")
        for remark in report.remarks:
            yield from _remark(remark)
    if report.findings or not report.sections:
        yield Text("\nFindings", style="bold")
    if not report.sections:
        yield Text("Nothing was measured.")
    for finding in report.findings:
        yield _statement(finding)
        if finding.evidence:
            yield Hanging("  ", finding.evidence, "dim")
    if report.answer:
        yield Text()
        yield Hanging("", report.answer, "bold")


def verdict(report: Report, console: Console, *, lines: int) -> Iterator[RenderableType]:
    """What to print where the screen is to hold all of it: failures, what layouts cost or read, then findings without
    their evidence, worst remarks last, as far as the lines suffice; the last line says what was left out."""
    # Of each workload what a layout costs, which says more than what it reads, unless it is a time of plans alone.
    found = {s.number: s.all_tables[0] for s in report.sections if s.key == "layouts"}
    found |= {s.number: s.tables[0] for s in report.sections if s.key == "costs" and len(s.tables[0].columns) > 2}
    opening = map(_without_details, found.values())
    errors, others = (
        [_remark_line(severity, remark.text) for remark in report.remarks if remark.severity is severity]
        for severity in (Severity.ERROR, Severity.WARNING)
    )
    findings = [_statement(finding) for finding in report.findings]
    nothing = [] if findings or found else [Text("Nothing was measured that could be compared.")]
    parts: list[RenderableType] = [*errors, *map(_grid, opening), *nothing, *findings, *others]
    yield from _fitting(parts, console, lines=lines, rest="icebench report --print")


def compared(comparison: Comparison, console: Console, *, lines: int | None) -> Iterator[RenderableType]:
    """A comparison: what went wrong, its summaries, what may be said, and notes, as far as the lines suffice; all of it
    for None."""
    findings = [_statement(finding) for finding in comparison.findings]
    errors = [_remark_line(Severity.ERROR, note) for note in comparison.notes[: comparison.errors]]
    notes = [Hanging("", note, "dim") for note in comparison.notes[comparison.errors :]]
    tables = [_grid(table) for table in comparison.tables]
    title = Hanging("", comparison.title, "bold")
    summed_up: list[RenderableType] = [title, *errors, *tables[: comparison.summaries], *findings, *notes]
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


def _statement(finding: Finding) -> Hanging:
    return Hanging("- ", finding.statement)


def _remark_line(severity: Severity, text: str) -> Hanging:
    return Hanging(Text(f"{severity.name.lower()}: ", _SEVERITY[severity]), text)


def _section(section: Section) -> Iterator[RenderableType]:
    tables = [table for table in section.all_tables if not table.folded]
    if tables:
        yield Text(f"\n{section.title}", style="bold")
    for table in tables:
        yield _grid(table)


def opening_rows(table: Table, most: int) -> RenderableType:
    """The first rows of a table, which has the most expensive ones first, each in a line, without its title."""
    return _InParts(_without_details(replace(table, title="", rows=table.rows[:most])), show_edge=False)


def _grid(table: Table) -> RenderableType:
    title = [Hanging("", table.title)] if table.title else []
    note = [Hanging("", table.note, "dim")] if table.note else []
    return Group(*title, _InParts(table), *note)


@dataclass(frozen=True)
class _InParts:
    """A table. In a terminal that is too narrow for its figures, which are never broken, it is drawn in parts, each
    with the columns before the first figure, which say what a row is of."""

    table: Table
    show_edge: bool = True

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        first, *others = self._parts(console, options)
        yield self._drawn(first)
        yield from map(self._drawn, others)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._drawn(range(len(self.table.columns))))

    def _parts(self, console: Console, options: ConsoleOptions) -> list[list[int]]:
        every = list(range(len(self.table.columns)))
        labels = next((place for place in every if self._is_figure(place)), len(every))
        parts = [every[:labels]]
        for place in every[labels:]:
            longer = [*parts[-1], place]
            if len(parts[-1]) > labels and self._needed(longer, console, options) > options.max_width:
                parts.append([*every[:labels], place])
            else:
                parts[-1] = longer
        return parts

    def _needed(self, places: Sequence[int], console: Console, options: ConsoleOptions) -> int:
        """The least width: of figures all, of texts the longest word."""
        wide = Measurement.get(console, options.update(max_width=_UNLIMITED), self._drawn(places)).maximum
        return wide - sum(self._slack(place) for place in places if not self._is_figure(place))

    def _slack(self, place: int) -> int:
        lines = [self.table.columns[place]]
        for row in self.table.rows:
            lines += [f"{_MARK[row[place].tone]}{row[place].text}", row[place].detail]
        longest = max((cell_len(word) for line in lines for word in line.split()), default=0)
        return max(map(cell_len, lines)) - min(longest, _LONGEST_WORD)

    def _is_figure(self, place: int) -> bool:
        return bool(self.table.rows) and self.table.rows[0][place].figure

    def _drawn(self, places: Sequence[int]) -> Grid:
        grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=self.show_edge)
        for place in places:
            is_figure = self._is_figure(place)
            grid.add_column(
                self.table.columns[place],
                justify="right" if is_figure else "left",
                no_wrap=is_figure,
                overflow="fold",
            )
        for row in self.table.rows:
            grid.add_row(*(_cell(row[place]) for place in places))
        return grid


def _cell(cell: Cell) -> Text:
    text = Text(_MARK[cell.tone] + cell.text, style=_TONE[cell.tone])
    if cell.detail:
        text.append(f"\n{cell.detail}", style="dim")
    return text


def _remark(remark: Remark) -> Iterator[RenderableType]:
    yield _remark_line(remark.severity, remark.text)
    yield Hanging("  ", remark.advice, "dim")
