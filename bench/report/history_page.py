"""The history as a page: each reference's series drawn, where they changed, and every revision in a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from icebench.bench.gate.decisions.history import TIME, Change, Entry, Measured, Series
from icebench.bench.report.charts import HistoryChart, HistoryPanel, HistoryPoint, Level
from icebench.bench.report.model import Cell, Fact, Finding, Report, Section, Table, plain
from icebench.bench.report.quantities import count, digits, times


@dataclass(frozen=True, kw_only=True)
class ComparableHistory:
    """What was measured of the same cases beside one reference: revisions, oldest first, and their series."""

    entries: Sequence[Entry]
    series: Sequence[Series]


def history_report(found: Sequence[ComparableHistory], command: str) -> Report:
    """The page of all series, those that are measured now first; `command` makes it again."""
    newest = found[-1].entries
    return Report(
        title="Processor time over revisions",
        subtitle=f"{count(sum(len(own.entries) for own in found), 'revision')}, the newest of {newest[-1].date[:10]}.",
        source="results/asv",
        findings=tuple(_finding(change, each) for own in reversed(found) for change, each in _changes(own)),
        remarks=(),
        sections=tuple(_section(own) for own in reversed(found)),
        facts=tuple(Fact(name, text) for name, text in sorted(newest[-1].environment.items())),
        facts_title="The newest revision's environment",
        reproduce=(command,),
    )


def shown_confidence(confidence: float) -> str:
    """Rounded down: ``98.7 %``, ``over 99.9 %``."""
    return "over 99.9 %" if confidence > 0.999 else f"{math.floor(1000 * confidence) / 10:g} %"


def shown_causes(change: Change) -> str:
    """What else may have caused it, to be appended: ``; cpu changed, too``."""
    return f"; {', '.join(change.other_causes)} changed, too" if change.other_causes else ""


def shown_digest(entries: Sequence[Entry]) -> str:
    """Of the cases of comparable entries; empty if it is not known."""
    return next((entry.environment["cases"] for entry in entries if "cases" in entry.environment), "")


def shown_ratio(case: Measured) -> str:
    """With its interval, where it has one: ``1.02x [0.99, 1.05]``."""
    if case.ratio is None:
        return "cannot run"
    ends = "" if case.interval is None else f" [{', '.join(f'{end:.2f}' for end in case.interval)}]"
    return f"{times(math.exp(case.log))}{ends}"


def _changes(own: ComparableHistory) -> list[tuple[Change, Series]]:
    """Of processor time, the newest first."""
    found = [(change, each) for each in own.series if each.quantity == TIME for change in each.changes]
    return sorted(found, key=lambda it: -it[0].at.number)


def _finding(change: Change, series: Series) -> Finding:
    at, after = change.at, change.after
    return Finding(
        statement=f"{series.case}: {times(change.before)} to {times(change.now)} ({change.size}) at {_named(at)}.",
        evidence=f"Confidence {shown_confidence(change.confidence)}; the revision measured before is "
        f"{_named(after)}{shown_causes(change)}.",
    )


def _named(entry: Entry) -> str:
    return f"{entry.revision[:9]} of {entry.date[:10]}, {entry.subject!r}"


def _section(own: ComparableHistory) -> Section:
    reference, digest = own.entries[-1].reference[:9], shown_digest(own.entries)
    timed = [each for each in own.series if each.quantity == TIME]
    charts = (_chart(own.entries, timed, reference),) if timed else ()
    return Section(
        key=f"beside-{reference}-{digest}" if digest else f"beside-{reference}",
        title=f"Reference {reference}{f', cases {digest}' if digest else ''}",
        explanation="Processor time divided by that of the reference, which runs interleaved with each revision: less "
        "is faster. A level is what revisions between two changes have in common.",
        charts=charts,
        tables=(_revisions(own.entries, [each.case for each in timed]), *_counters(own.series), *_errors(own.entries)),
        opening=True,
    )


def _chart(entries: Sequence[Entry], timed: Sequence[Series], reference: str) -> HistoryChart:
    places = {entry.revision: place for place, entry in enumerate(entries)}
    return HistoryChart(
        caption=f"Processor time by revision, as a multiple of the processor time of {reference}.",
        x_axis="revision, with the date of its commit (UTC); all are in the table below",
        y_axis=f"processor time / that of {reference}",
        revisions=tuple(f"{entry.date[:10]}\n{entry.revision[:9]}" for entry in entries),
        panels=tuple(
            HistoryPanel(
                title=each.case,
                points=tuple(_point(places[entry.revision], entry, entry.cases[each.case]) for entry in each.entries),
                levels=tuple(_levels(each, places)),
            )
            for each in timed
        ),
    )


def _point(place: int, entry: Entry, case: Measured) -> HistoryPoint:
    low, high = case.interval or (None, None)
    return HistoryPoint(
        place=place,
        value=math.exp(case.log),
        low=low,
        high=high,
        text=f"{shown_ratio(case)}, {entry.revision[:9]} of {entry.date[:16]}: {entry.subject}",
    )


def _levels(series: Series, places: dict[str, int]) -> Iterator[Level]:
    """From change to change; a series without any has none that was estimated."""
    for number, change in enumerate(series.changes):
        first, last = places[change.at.revision], places[series.entries[-1].revision]
        if number + 1 < len(series.changes):
            last = places[series.changes[number + 1].after.revision]
        if not number:
            start = places[series.entries[0].revision]
            yield Level(first=start, last=places[change.after.revision], value=change.before)
        yield Level(first=first, last=last, value=change.now, note=change.size)


def _revisions(entries: Sequence[Entry], names: Sequence[str]) -> Table:
    return Table(
        title="Revisions, the newest first",
        columns=("revision", "subject", *names, "pairs"),
        rows=tuple(
            (
                _revision(entry),
                plain(entry.subject),
                *(_ratio(entry.cases.get(name)) for name in names),
                Cell(text=str(entry.pairs)),
            )
            for entry in reversed(entries)
        ),
        note="With the dates of their commits (UTC), and ratios with 95 % intervals where there are six pairs.",
    )


def _revision(entry: Entry) -> Cell:
    return plain(entry.revision[:9], entry.date[:16].replace("T", " "))


def _ratio(case: Measured | None) -> Cell:
    if case is None or case.ratio is None:
        return Cell(text="cannot run" if case else "")
    text, _, ends = shown_ratio(case).partition(" ")
    return Cell(text=text, detail=ends)


def _counters(series: Sequence[Series]) -> Iterator[Table]:
    changes = [(change, each) for each in series if each.quantity != TIME for change in each.changes]
    if changes:
        yield Table(
            title="Exact counters that changed, the newest first",
            columns=("revision", "subject", "case", "counter", "before", "now"),
            rows=tuple(
                (
                    _revision(change.at),
                    *map(plain, (change.at.subject, each.case, each.quantity.replace("_", " "))),
                    Cell(text=digits(change.before)),
                    Cell(text=digits(change.now)),
                )
                for change, each in sorted(changes, key=lambda it: -it[0].at.number)
            ),
            folded=True,
        )


def _errors(entries: Sequence[Entry]) -> Iterator[Table]:
    """Revisions that could not be built, and cases that an engine of then cannot run."""
    rows = tuple(
        (_revision(entry), *map(plain, (entry.subject, name, error)))
        for entry in reversed(entries)
        for name, error in (("all cases", entry.error), *((name, case.error) for name, case in entry.cases.items()))
        if error
    )
    if rows:
        yield Table(
            title="What could not be run, the newest first",
            columns=("revision", "subject", "case", "error"),
            rows=rows,
            folded=True,
        )
