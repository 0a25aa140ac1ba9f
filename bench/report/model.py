"""The view model: all that a report says, in order, as plain values. HTML and terminal are drawn from nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from icebench.bench.report.charts import Chart

if TYPE_CHECKING:  # what remarks and records are made from loads scipy
    from icebench.bench.records.record import Record
    from icebench.bench.report.remarks import Remark

Row = Mapping[str, str | float | int | None]
"""Named values, for other programs."""


class Tone(Enum):
    """How a cell of a table stands out."""

    PLAIN = "plain"
    BEST = "best"
    DOUBTFUL = "doubtful"
    WRONG = "wrong"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell: what it says, smaller print beside it, and how it stands out. Text is left-aligned, figures right.
    `heat` is how dark it is in a heat map, from 0 to 1; None elsewhere. `record` has the samples that it sums up, which
    a page shows on demand. `order` is the number that a column is sorted by where the text of its cells has none, such
    as ``never``, which is infinite."""

    text: str
    detail: str = ""
    tone: Tone = Tone.PLAIN
    figure: bool = True
    heat: float | None = None
    record: Record | None = None
    order: float | None = None


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of cells under column names. A `folded` one is to look things up: closed in HTML, left out in a terminal.
    `short` names it among the others of a switch."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    folded: bool = False
    short: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row of {len(row)} cells in table {self.title!r} of {len(self.columns)} columns")

    def of_workload(self, name: str) -> Table:
        """The table with the workload's name in its title; unchanged if that is empty."""
        return replace(self, title=named(name, self.title))


@dataclass(frozen=True, kw_only=True)
class Section:
    """One measurement: what was measured, in words, then drawn, then in figures. Of `switch`, tables that say the same
    in several quantities, a page shows the one that its reader chooses; `commands` are lines to copy and run, in titled
    groups. An `opening` one is part of the answer. `number` distinguishes those of one key, each of a workload."""

    key: str
    title: str
    explanation: str
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    switch: tuple[Table, ...] = ()
    commands: tuple[tuple[str, tuple[str, ...]], ...] = ()
    opening: bool = False
    number: int = 0

    @property
    def anchor(self) -> str:
        """Its name in addresses and files, unique in its report."""
        return f"{self.key}-of-{self.number}" if self.number else self.key

    def of_workload(self, name: str, number: int) -> Section:
        """The section with the workload's name in all titles; unchanged if that is empty."""
        if not name:
            return self
        return replace(
            self,
            title=named(name, self.title),
            charts=tuple(replace(chart, caption=named(name, chart.caption)) for chart in self.charts),
            tables=tuple(table.of_workload(name) for table in self.tables),
            switch=tuple(table.of_workload(name) for table in self.switch),
            number=number,
        )

    @property
    def all_tables(self) -> tuple[Table, ...]:
        """In their order."""
        return (*self.switch, *self.tables)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A statement that the figures support, and the figures."""

    statement: str
    evidence: str = ""

    def of_workload(self, name: str) -> Finding:
        """The finding with the workload's name before its statement; unchanged if that is empty."""
        return replace(self, statement=named(name, self.statement))


@dataclass(frozen=True)
class Fact:
    """A line of the environment."""

    name: str
    value: str


@dataclass(frozen=True, kw_only=True)
class Report:
    """A whole report. `answer` is one sentence, or empty; `source` is what it reports on; `complete` is False for a run
    that was interrupted or failed."""

    title: str
    subtitle: str
    source: str
    findings: tuple[Finding, ...]
    remarks: tuple[Remark, ...]
    sections: tuple[Section, ...]
    facts: tuple[Fact, ...]
    reproduce: tuple[str, ...]
    answer: str = ""
    complete: bool = True
    glossary: tuple[Fact, ...] = field(default=())
    facts_title: str = "Environment"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Things side by side: what may be said of them, tables of which the first `summaries` sum up the others, notes of
    which the first `errors` say what went wrong, and `rows`, the same figures as values for other programs."""

    title: str
    findings: tuple[Finding, ...]
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    rows: tuple[Row, ...]
    summaries: int = 1
    errors: int = 0


def named(name: str, text: str) -> str:
    """``wide, 100 columns: Cold plan``; the text alone if the name is empty."""
    return f"{name}: {text}" if name else text


def plain(text: str, detail: str = "") -> Cell:
    """A cell of words."""
    return Cell(text=text, detail=detail, figure=False)
