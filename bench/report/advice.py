"""Advice as a report, in a terminal, and as values for other programs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

import icebench
from icebench.bench.advise.advice import Advice, Effect, Recommendation, storage_dollars
from icebench.bench.advise.candidates import todays_layout
from icebench.bench.advise.rates import Rates
from icebench.bench.advise.statements import icebench_commands, spark_statements
from icebench.bench.costs.object_store import LOCAL, Profile
from icebench.bench.report.charts import DotChart, DotPanel, DotRow, Point, ScatterChart, ScatterPoint
from icebench.bench.report.console import opening_rows
from icebench.bench.report.line_counts import height
from icebench.bench.report.model import Cell, Fact, Finding, Report, Section, Table, plain
from icebench.bench.report.profile import Place
from icebench.bench.report.quantities import MEGABYTE, count, digits, duration, quantity
from icebench.bench.report.wrapping import Command, Hanging

_UNITS = {"seconds": "s", "bytes": "bytes", "dollars": "$"}
_SHOWN_UNUSED = 3
_SHOWN_QUERIES = 5
_DAY = 86_400
_TODAY, _ADVISED = "today", "advised"


def statements(each: Recommendation, table: icebench.Table, place: Place) -> tuple[list[str], list[str]]:
    """What to run: with this project, and in Spark SQL."""
    today = todays_layout(table)
    sql = spark_statements(each.layout, today, place.table, procedures=place.procedures)
    return icebench_commands(each.layout, today, table, place.words), sql


def storage_text(profile: Profile) -> str:
    """Where figures hold."""
    return "local files" if profile == LOCAL else f"S3, {profile.name.replace('-', ' ')}"


def rates_text(rates: Rates) -> str:
    """What reads take on this machine."""
    figures = (
        f"reads: {quantity(rates.query, 's')} a query, {quantity(rates.file + rates.row_group, 's')} a file, "
        f"{rates.decoding / 1e6:,.0f} MB/s"
    )
    if rates.error is None:
        return f"{figures}, as assumed: {count(rates.reads, 'timed read')} are too few"
    return f"{figures}, as measured on this machine (±{digits(100 * rates.error)} %)"


def _named(each: Recommendation, advice: Advice) -> str:
    """The layout, and what becomes of the files."""
    after = max(1, round(each.files))
    return f"{each.layout.name}; {count(advice.files, 'file')} become {after:,}"


def headline(each: Recommendation, advice: Advice) -> str:
    """The recommendation in a line."""
    unit = _UNITS[advice.options.minimize]
    saved = f"{digits(100 * each.gain)} % less"
    return (
        f"{_named(each, advice)}: a query takes {quantity(each.before, unit)} today, "
        f"{quantity(each.after, unit)} then ({saved})"
    )


def evidence(each: Recommendation, advice: Advice) -> Iterator[str]:
    """What the gain costs, when it pays, how sure it is, and what gets worse."""
    low = 100 * (1 - each.worst / each.before) if each.before else 0.0
    rows = f"{advice.sample_rows:,} of {advice.table_rows:,.0f} rows"
    sure = (
        "measured on all rows"
        if each.confidence == "measured"
        else (f"confidence {each.confidence}: at least {digits(low)} % less, by {rows}")
    )
    rewrite = each.rewrite
    yield (
        f"Rewrite: reads {quantity(rewrite.bytes_read, 'bytes')}, writes {quantity(rewrite.bytes_written, 'bytes')}, "
        f"{quantity(rewrite.seconds, 's')}, {digits(rewrite.dollars)} $; {sure}"
    )
    days = each.break_even_days
    pays = "never in seconds" if days is None else f"after {duration(days * _DAY)}"
    storage = storage_dollars(each, advice)
    sign = "+" if storage >= 0 else "-"
    yield (
        f"Pays {pays} at {advice.options.queries_per_day:,.0f} queries a day; storage "
        f"{digits(100 * (each.data_bytes / advice.data_bytes - 1))} % ({sign}{digits(abs(storage))} $ a month)"
    )
    yield from _likeness(each, advice)
    if each.worse:
        listed = ", ".join(_change(effect) for effect in each.worse[:_SHOWN_QUERIES])
        more = len(each.worse) - _SHOWN_QUERIES
        yield f"Worse: {listed}{f', {more} more' if more > 0 else ''}"


def _likeness(each: Recommendation, advice: Advice) -> Iterator[str]:
    """Which recommendations are no better or worse for queries, as far as the model says."""
    best, *others = advice.recommendations
    if each is not best and each.is_much_like(best):
        yield (
            f"Much the same as 1 for queries: rewrite {quantity(each.rewrite.seconds, 's')} in place of "
            f"{quantity(best.rewrite.seconds, 's')}"
        )
    alike = [number for number, other in enumerate(others, 2) if other.is_much_like(best)]
    if each is best and alike:
        which = ", ".join(map(str, alike))
        yield f"Much the same for queries, and rewritten or stored for less: {which}"


def _change(effect: Effect) -> str:
    before, after = (quantity(r.bytes_read, "bytes") for r in (effect.before, effect.after))
    return f"{effect.query.name} {before} -> {after}"


def advice_lines(
    advice: Advice, table: icebench.Table, place: Place, console: Console, *, lines: int
) -> Iterator[RenderableType]:
    """What to print, in at most `lines` lines: the best layout in full, then the others as far as there is room."""
    unit = _UNITS[advice.options.minimize]
    parts: list[RenderableType] = [
        Text(
            f"{advice.table}: {count(len(advice.queries.queries), 'query', 'queries')}, {advice.tried:,} layouts "
            f"tried; a query takes {quantity(advice.cost, unit)} today, modelled for "
            f"{storage_text(advice.options.profile)}",
            style="bold",
        )
    ]
    parts.append(Hanging("", rates_text(advice.rates), "dim"))
    unused = sorted(advice.queries.unused, key=lambda left: left.is_understood)
    notes = [
        f"{'not used' if left.is_understood else 'not understood, left out'}: {left}" for left in unused[:_SHOWN_UNUSED]
    ]
    if len(unused) > _SHOWN_UNUSED:
        notes.append(f"not used: {len(unused) - _SHOWN_UNUSED} more (--json lists them)")
    if advice.queries.others:
        others = count(advice.queries.others, "statement that does", "statements that do")
        notes.append(f"left out: {others} not read the table")
    parts += [Hanging("", line, "dim") for line in notes]
    if not advice.recommendations:
        parts.append(Text("No layout that was tried is better than today's."))
    blocks: list[list[RenderableType]] = []
    for number, each in enumerate(advice.recommendations, 1):
        block: list[RenderableType] = [Hanging(f"{number}. ", headline(each, advice), "bold")]
        block += [Hanging("   ", line) for line in evidence(each, advice)]
        if number == 1:
            block.append(Padding(opening_rows(_by_query(each), _SHOWN_QUERIES), (0, 0, 0, 3), expand=False))
        own, sql = statements(each, table, place)
        block += [Command(line, 3) for line in (*sql, *own)]
        blocks.append(block)
    left = lines - 1 - height(console, *parts)
    for block in blocks:
        for shown in (block, [part for part in block if not isinstance(part, Padding)], block[:1]):
            if (needed := height(console, *shown)) <= left:
                parts += shown
                left -= needed
                break
    yield from parts
    yield Text("--html FILE shows all, --json prints it", style="dim")


def _by_query(each: Recommendation) -> Table:
    """What each query reads today and with the layout, what is read most first."""
    rows = tuple(
        (
            plain(effect.query.name, effect.query.filter or "all rows"),
            Cell(text=digits(effect.query.weight)),
            Cell(text=digits(effect.before.files)),
            Cell(text=digits(effect.after.files)),
            *(Cell(text=quantity(r.bytes_read, "bytes")) for r in (effect.before, effect.after, effect.worst)),
        )
        for effect in _most_read_first(each)
    )
    columns = ("query", "weight", "files today", "then", "bytes today", "then", "at most")
    return Table(title="By query", columns=columns, rows=rows)


def _most_read_first(each: Recommendation) -> list[Effect]:
    return sorted(each.effects, key=lambda effect: -effect.query.weight * effect.before.bytes_read)


def advice_values(advice: Advice, table: icebench.Table, place: Place) -> dict[str, Any]:
    """All figures, as JSON values."""
    return {
        "table": advice.table,
        "minimized": advice.options.minimize,
        "profile": advice.options.profile.name,
        "cost": advice.cost,
        "rates": vars(advice.rates),
        "layouts_tried": advice.tried,
        "sample_rows": advice.sample_rows,
        "table_rows": advice.table_rows,
        "data_bytes": advice.data_bytes,
        "queries": [vars(query) for query in advice.queries.queries],
        "unused": [vars(each) for each in advice.queries.unused],
        "others": advice.queries.others,
        "recommendations": [_values(each, advice, table, place) for each in advice.recommendations],
    }


def _values(each: Recommendation, advice: Advice, table: icebench.Table, place: Place) -> dict[str, Any]:
    own, sql = statements(each, table, place)
    trial = each.trial
    return {
        "layout": each.layout.name,
        "before": each.before,
        "after": each.after,
        "worst": each.worst,
        "confidence": each.confidence,
        "rewrite": vars(each.rewrite),
        "data_bytes": each.data_bytes,
        "files": each.files,
        "storage_dollars_per_month": storage_dollars(each, advice),
        "break_even_days": each.break_even_days,
        "effects": [
            {"query": e.query.name, "before": vars(e.before), "after": vars(e.after), "worst": vars(e.worst)}
            for e in each.effects
        ],
        "worse": [effect.query.name for effect in each.worse],
        "trial": {
            "files": trial.files,
            "data_bytes": trial.data_bytes,
            "build_seconds": trial.build_seconds,
            "rows": trial.rows,
            "storage_bytes": trial.storage_bytes,
            "requests": trial.requests,
        },
        "spark_sql": sql,
        "commands": own,
    }


def advice_report(advice: Advice, table: icebench.Table, place: Place) -> Report:
    """The page."""
    unit = _UNITS[advice.options.minimize]
    sections = [_front(advice)]
    for number, each in enumerate(advice.recommendations, 1):
        own, sql = statements(each, table, place)
        sections.append(_effects(each, number, (("With icebench", tuple(own)), ("In Spark SQL", tuple(sql)))))
    best = (
        "no layout that was tried is better than today's"
        if not advice.recommendations
        else headline(advice.recommendations[0], advice)
    )
    return Report(
        title=f"Advice for {advice.table}, modelled for {storage_text(advice.options.profile)}",
        subtitle=best,
        source=f"{advice.table}, snapshot {table.current_snapshot.snapshot_id if table.current_snapshot else 'none'}",
        findings=tuple(_findings(advice)),
        remarks=(),
        sections=tuple(section for section in sections if section is not None),
        facts=(
            Fact("Queries", f"{len(advice.queries.queries)}, weights {digits(advice.queries.total_weight)} in all"),
            Fact("Sample", f"{advice.sample_rows:,} of {advice.table_rows:,.0f} rows"),
            Fact("Data files", quantity(advice.data_bytes, "bytes")),
            Fact("Layouts tried", f"{advice.tried:,}"),
            Fact("Minimized", f"{advice.options.minimize} of a query, {storage_text(advice.options.profile)}"),
            Fact("A query today", quantity(advice.cost, unit)),
            Fact("Rates", rates_text(advice.rates)),
        ),
        facts_title="How it was found",
        reproduce=(shlex.join(["icebench", "advise", *place.reading]),),
    )


def _findings(advice: Advice) -> Iterator[Finding]:
    for each in advice.recommendations:
        yield Finding(statement=f"{headline(each, advice)}.", evidence=f"{'. '.join(evidence(each, advice))}.")
    if not advice.recommendations:
        yield Finding(statement="No layout that was tried is better than today's.")
    for left in advice.queries.unused:
        what = "Not taken into account" if left.is_understood else "Not understood, and left out"
        yield Finding(statement=f"{what}: {left.text} of {left.query}.", evidence=f"{left.reason}.")


def _front(advice: Advice) -> Section | None:
    if not advice.recommendations:
        return None
    scale, axis = (
        (1 / MEGABYTE, "MB of a query")
        if advice.options.minimize == "bytes"
        else (1.0, f"{advice.options.minimize} of a query")
    )
    points = [ScatterPoint(label=_TODAY, x=0.0, y=advice.cost * scale, joined=True)]
    points += [
        ScatterPoint(label=each.layout.name, x=each.rewrite.seconds, y=each.after * scale, joined=True)
        for each in advice.recommendations
    ]
    caption = "Seconds to rewrite the table against the cost of a query. No layout is beaten in both, and in storage."
    return Section(
        key="front",
        title="What may be chosen",
        explanation="Less is better on both axes.",
        opening=True,
        charts=(ScatterChart(caption=caption, x_axis="seconds to rewrite", y_axis=axis, points=tuple(points)),),
    )


def _effects(each: Recommendation, number: int, commands: tuple[tuple[str, tuple[str, ...]], ...]) -> Section:
    dots = []
    for effect in _most_read_first(each):
        before, after, worst = (r.bytes_read / MEGABYTE for r in (effect.before, effect.after, effect.worst))
        advised = Point(series=_ADVISED, value=after, low=min(after, worst), high=max(after, worst))
        dots.append(DotRow(label=effect.query.name, points=(Point(series=_TODAY, value=before), advised)))
    return Section(
        key=f"effects-{number}",
        title=f"{number}. {each.layout.name}",
        explanation="What each query reads today and with the layout; the interval is what the sample leaves open.",
        charts=(
            DotChart(
                caption="MB read by each query.",
                axis="MB",
                log=False,
                series=(_TODAY, _ADVISED),
                panels=(DotPanel(title="", rows=tuple(dots)),),
            ),
        ),
        tables=(_by_query(each),),
        commands=commands,
    )
