"""The history as a report: small multiples of processor time, then each case with its change points."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from rich.console import Console
from rich.table import Table as Grid

from icebench.bench.gate.recorded_revisions import TIME, Change, Entry, Series, in_order
from icebench.bench.report.charts import Level, SeriesChart, SeriesPanel
from icebench.bench.report.model import Cell, Fact, Finding, Report, Section, Table, plain
from icebench.bench.report.quantities import count, digits, times

_BLOCKS = "\N{LOWER ONE EIGHTH BLOCK}▂▃▄▅▆▇\N{FULL BLOCK}"
_TICKS = 6
_COLUMNS = ("Revisions", "Quantity", "Before", "Now", "Change", "Confidence")


def build_history(entries: Sequence[Entry], series: Sequence[Series], *, command: str) -> Report:
    """The report of the history.

    Args:
        entries: Of the history, at least one.
        series: Of its entries.
        command: Prints the history again.
    """
    ordered = in_order(entries)
    timed = [each for each in series if each.quantity == TIME]
    overview = overview_chart(ordered, timed)
    sections = (
        []
        if overview is None
        else [
            Section(
                key="overview",
                title="Processor time of all cases",
                explanation="Each point is a revision: its processor time divided by that of the reference, which was "
                "interleaved with it; the median of several pairs of processes. Below 1 is faster than the "
                "reference. Thick lines are levels; dotted ones are change points.",
                charts=(overview,),
                opening=True,
            )
        ]
    )
    for number, (case, found) in enumerate(groupby(series, lambda each: each.case)):
        sections.append(_section(f"case-{number}", case, list(found), ordered))
    broken = [entry for entry in ordered if entry.error or any(case.error for case in entry.cases.values())]
    if broken:
        sections.append(_broken(broken))
    first, last = ordered[0], ordered[-1]
    return Report(
        title="icebench: history",
        subtitle=f"{count(len(ordered), 'revision')} from {first.date[:10]} to {last.date[:10]}",
        source="results/history.jsonl",
        findings=tuple(_findings(timed)),
        remarks=(),
        sections=tuple(sections),
        facts=tuple(_facts(ordered)),
        reproduce=(command,),
    )


def overview_chart(ordered: Sequence[Entry], timed: Sequence[Series]) -> SeriesChart | None:
    """Small multiples of the processor time of all cases; None where nothing was timed."""
    if not timed:
        return None
    return _chart("Processor time by revision, divided by that of the reference.", ordered, timed, titled_by="case")


def print_history(out: Console, series: Sequence[Series], *, long: bool) -> None:
    """Sparklines of processor time, then the change points by revision; of counters how many unless `long`."""
    grid = Grid("case", "processor time / reference", "oldest", "newest", "revisions", box=None)
    for each in series:
        if each.quantity == TIME:
            ends = (times(math.exp(each.values[0])), times(math.exp(each.values[-1])))
            grid.add_row(each.case, sparkline(each.values), *ends, str(len(each.values)))
    out.print(grid)
    found = sorted(((change, each) for each in series for change in each.changes), key=lambda it: it[0].at.number)
    for _, group in groupby(found, lambda it: it[0].at.revision):
        changes = list(group)
        at = changes[0][0].at
        out.print(f"\n{at.revision[:9]} {at.date[:16]} {at.subject}", style="bold", markup=False, soft_wrap=True)
        counted = [(change, each) for change, each in changes if each.quantity != TIME]
        for change, each in changes if long else [it for it in changes if it[1].quantity == TIME]:
            before, now = _values(change, each)
            line = f"  {each.case}: {each.quantity} {before} -> {now} ({change.size})"
            line += f", confidence {_percent(change, each)}" if each.quantity == TIME else ""
            out.print(f"{line}, since {change.after.revision[:9]}", markup=False, soft_wrap=True)
        if counted and not long:
            more = sum(change.now > change.before for change, _ in counted)
            cases = len({each.case for _, each in counted})
            out.print(f"  counters of {count(cases, 'case')}: {more} up, {len(counted) - more} down", style="dim")


def sparkline(values: Sequence[float]) -> str:
    """A block for each value, from the least to the greatest."""
    low, high = min(values), max(values)
    if high == low:
        return _BLOCKS[0] * len(values)
    return "".join(_BLOCKS[round((value - low) / (high - low) * (len(_BLOCKS) - 1))] for value in values)


def _section(key: str, case: str, found: Sequence[Series], ordered: Sequence[Entry]) -> Section:
    rows = tuple(
        (
            plain(f"{change.after.revision[:9]}..{change.at.revision[:9]}", change.at.subject),
            plain(each.quantity),
            *(Cell(text=text) for text in (*_values(change, each), change.size, _percent(change, each))),
        )
        for each in found
        for change in each.changes
    )
    caption = f"{case}: processor time divided by that of the reference, and the counters that changed."
    return Section(
        key=key,
        title=case,
        explanation=f"{count(len(rows), 'change point')} in {count(len(found), 'series', 'series')}. A change is "
        "between two measured revisions; icebench bisect finds the commit. Counters are exact: any difference is "
        "a change.",
        charts=(_chart(caption, ordered, found, titled_by="quantity"),),
        tables=(Table(title="Change points", columns=_COLUMNS, rows=rows, folded=len(rows) > 12),) if rows else (),
    )


def _chart(caption: str, ordered: Sequence[Entry], found: Sequence[Series], *, titled_by: str) -> SeriesChart:
    places = {entry.revision: place for place, entry in enumerate(ordered)}
    step = max(1, math.ceil(len(ordered) / _TICKS))
    return SeriesChart(
        caption=caption,
        axis="revision, oldest first",
        ticks=tuple((places[entry.revision], entry.revision[:7]) for entry in ordered[::step]),
        panels=tuple(_panel(each, places, getattr(each, titled_by)) for each in found),
    )


def _panel(each: Series, places: dict[str, int], title: str) -> SeriesPanel:
    is_time = each.quantity == TIME
    values = [math.exp(value) if is_time else value for value in each.values]
    own = [places[entry.revision] for entry in each.entries]
    starts = [0, *(own.index(places[change.at.revision]) for change in each.changes), len(own)]
    notes = ["", *(change.size for change in each.changes)]
    levels = [
        Level(start=own[i], stop=own[j - 1], value=sorted(values[i:j])[(j - i) // 2], note=note)
        for (i, j), note in zip(pairwise(starts), notes, strict=True)
    ]
    return SeriesPanel(title=title, points=tuple(zip(own, values, strict=True)), levels=tuple(levels), log=is_time)


def _values(change: Change, each: Series) -> tuple[str, str]:
    shown = times if each.quantity == TIME else digits
    return shown(change.before), shown(change.now)


def _percent(change: Change, each: Series) -> str:
    if each.quantity != TIME:
        return "exact"
    return "over 99.9 %" if change.confidence > 0.999 else f"{math.floor(1000 * change.confidence) / 10:g} %"


def _findings(timed: Sequence[Series]) -> Iterator[Finding]:
    found = [(change, each) for each in timed for change in each.changes]
    for change, each in sorted(found, key=lambda it: -abs(math.log(it[0].now / it[0].before)))[:12]:
        before, now = _values(change, each)
        yield Finding(
            statement=f"{each.case}: {change.size} at {change.at.revision[:9]}, {change.at.subject}",
            evidence=f"{before} of the reference's processor time before, {now} after; the last revision before is "
            f"{change.after.revision[:9]}; confidence {_percent(change, each)}.",
        )


def _broken(entries: Sequence[Entry]) -> Section:
    rows = tuple(
        (plain(entry.revision[:9], entry.subject), plain(name or "all"), plain(error))
        for entry in entries
        for name, error in [
            *([("", entry.error)] if entry.error else []),
            *((name, case.error) for name, case in entry.cases.items() if case.error),
        ]
    )
    return Section(
        key="not-run",
        title="What could not be run",
        explanation="Cases of today that an engine of then cannot run, and revisions that cannot be built, with what "
        "they said.",
        tables=(Table(title="Errors", columns=("Revision", "Case", "Error"), rows=rows, folded=len(rows) > 12),),
    )


def _facts(ordered: Sequence[Entry]) -> Iterator[Fact]:
    yield Fact("Reference", ordered[-1].reference)
    yield Fact("Pairs of processes", ", ".join(sorted({str(entry.pairs) for entry in ordered})))
    environments = {tuple(sorted(entry.environment.items())): entry for entry in ordered if entry.environment}
    for key, entry in environments.items():
        yield Fact(f"As of {entry.revision[:9]}", ", ".join(f"{name} {value}" for name, value in key))
