"""Figures for other programs, and tables for documents: CSV, JSON and Markdown."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence

from icebench.bench.markdown import escaped, escaped_block
from icebench.bench.records.record import Record
from icebench.bench.report.model import Cell, Comparison, Report, Row, Table, Tone


def comparison_of(report: Report, records: Iterable[Record]) -> Comparison:
    """A run's report, with a row for each series."""
    rows = tuple(
        {
            "workload": record.workload,
            "layout": record.layout,
            "engine": record.engine,
            "engine_version": record.engine_version,
            "measurement": record.measurement,
            "case": record.case,
            "cache": record.cache,
            "metric": record.metric,
            "unit": record.unit,
            "samples": len(record.samples),
            **{name: record.summary.get(name) for name in ("median", "ci_low", "ci_high", "minimum")},
        }
        for record in records
    )
    return Comparison(
        title=report.title,
        findings=report.findings,
        tables=tuple(table for section in report.sections for table in section.all_tables),
        notes=(report.subtitle, *(remark.text for remark in report.remarks)),
        rows=rows,
    )


def exported(comparison: Comparison, form: str) -> str:
    """The comparison as ``csv``, ``json`` (its figures) or ``markdown`` (what is said, and tables)."""
    match form:
        case "csv":
            return _csv(comparison.rows)
        case "json":
            said = [{"statement": finding.statement, "evidence": finding.evidence} for finding in comparison.findings]
            values = {"title": comparison.title, "findings": said, "notes": comparison.notes, "rows": comparison.rows}
            return json.dumps(values, indent=1, ensure_ascii=False) + "\n"
        case "markdown":
            return "\n".join(_markdown(comparison)) + "\n"
    raise ValueError(f"no form {form!r}")


def _csv(rows: Sequence[Row]) -> str:
    """The rows under the names of their columns; a value that is not known is empty."""
    target = io.StringIO()
    writer = csv.DictWriter(target, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return target.getvalue()


def _markdown(comparison: Comparison) -> Iterator[str]:
    """What is said, then the tables that are not folded."""
    yield from (f"# {escaped(comparison.title)}", "")
    for finding in comparison.findings:
        yield f"- {escaped_block(finding.statement)}"
    for table in comparison.tables:
        if table.folded:
            continue
        yield from ("", f"## {escaped(table.title)}", "")
        yield from markdown_table(table)
    for note in comparison.notes:
        yield from ("", escaped_block(note))


def markdown_table(table: Table) -> Iterator[str]:
    """The lines of a table without its title, and its note after it; the texts of the table are escaped."""
    yield _line(map(escaped, table.columns))
    figures = [bool(table.rows) and table.rows[0][index].figure for index in range(len(table.columns))]
    yield "|" + "|".join("---:" if figure else "---" for figure in figures) + "|"
    for row in table.rows:
        yield _line(map(_cell, row))
    if table.note:
        yield from ("", escaped_block(table.note))


def _cell(cell: Cell) -> str:
    text = escaped(f"{cell.text} {cell.detail}")
    return f"**{text}**" if cell.tone is Tone.BEST else text


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
