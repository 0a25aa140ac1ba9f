"""What the figures say, in sentences: derived from records, never written by hand."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bench.measure.record import Record
from bench.report.compare import Ratio, Records, best, bounds, confidence, median, ratio
from bench.report.model import Finding
from bench.report.quantities import count, listed, quantity, signed_percent, times


def findings_of(records: Records) -> tuple[Finding, ...]:
    """The findings of a run: what went wrong first, then layouts, then engines, measurement by measurement."""
    planning = records.where(measurement="planning").competing
    scans = records.where(measurement="decimals", metric="scan_time")
    return (
        *_lost_files(records.where(measurement="pruning", metric="recall")),
        *_layouts_by_filter(records.where(measurement="pruning"), planning.where(metric="latency_cold")),
        *_layouts_by_scan(scans),
        *_engines(planning.where(metric="latency_cold"), "Cold planning"),
        *_engines(planning.where(metric="latency_warm"), "Warm planning"),
        *_engines(scans, "Scanning the decimal columns"),
        *_deletes(records.where(measurement="deletes", metric="delete_cost_ratio")),
        *_engines(records.where(measurement="commits", metric="latency_commit"), "Committing described files"),
    )


def _lost_files(recalls: Records) -> Iterator[Finding]:
    for record in recalls.all:
        if median(record) != 1:
            yield Finding(
                statement=f"{record.engine} loses rows: for {record.case} on {record.layout} it does not plan "
                "every file that holds a matching row.",
                evidence=f"Recall is {median(record):.6f} and must be exactly 1.",
            )


def _layouts_by_filter(pruning: Records, planning: Records) -> Iterator[Finding]:
    """For each filter, the layout of which the least is read, and how much less that is."""
    for case in pruning.names("case"):
        of_case = pruning.where(case=case)
        engine = next(iter(of_case.engines))
        own = of_case.where(engine=engine)
        planned = {r.layout: median(r) for r in own.where(metric="bytes_planned_share").all}
        if not planned:
            planned = {r.layout: median(r) for r in own.where(metric="files_planned_share").all}
        if len(planned) < 2:
            continue
        ranked = sorted(planned, key=lambda layout: planned[layout])
        first, others = ranked[0], ranked[1:]
        if planned[first] == planned[others[-1]]:
            statement = (
                f"For {case} no layout prunes better: each reads {quantity(planned[first], 'ratio')} of the table."
            )
        else:
            rest = _grouped((quantity(planned[layout], "ratio"), layout) for layout in others)
            statement = (
                f"For {case}, {first} reads least: {quantity(planned[first], 'ratio')} of the table, against {rest}."
            )
        text = own.all[0].detail.get("filter")
        evidence = [f"{text}."] if text else []
        evidence += _truth(own, first)
        evidence += _planning_there(planning.where(case=case, engine=engine), first, others[-1])
        yield Finding(statement=statement, evidence=" ".join(evidence))


def _grouped(figures: Iterable[tuple[str, str]]) -> str:
    """Equal figures told once: ``20% with b, 100% with c and d``."""
    groups: dict[str, list[str]] = {}
    for figure, layout in figures:
        groups.setdefault(figure, []).append(layout)
    return listed([f"{figure} with {listed(layouts)}" for figure, layouts in groups.items()])


def _truth(own: Records, layout: str) -> Iterator[str]:
    needed = own.one(metric="files_matching_share", layout=layout)
    wasted = own.one(metric="wasted_files_share", layout=layout)
    if needed is not None and wasted is not None:
        yield (
            f"Perfect pruning of {layout} would plan {quantity(median(needed), 'ratio')} of its files; of the planned "
            f"ones {quantity(median(wasted), 'ratio')} hold no match."
        )


def _planning_there(planning: Records, layout: str, other: str) -> Iterator[str]:
    here, there = planning.one(layout=layout), planning.one(layout=other)
    found = None if here is None or there is None else ratio(there, here)
    if here is not None and found is not None and found.differs:
        yield f"Planning it takes {_with_interval(found)} the time that it takes on {other} ({here.engine}, cold)."


def _layouts_by_scan(scans: Records) -> Iterator[Finding]:
    """Which layout is scanned fastest in full, for the engine that scans fastest."""
    for case in scans.names("case"):
        fastest = best(scans.where(case=case).all)
        if fastest is None:
            continue
        own = scans.where(case=case, engine=fastest.engine)
        others = sorted((r for r in own.all if r is not fastest), key=median)
        ratios = [(r.layout, found) for r in others if (found := ratio(fastest, r)) is not None]
        if ratios:
            told = [(layout, f"{times(found.estimate)} as long on {layout}", found.differs) for layout, found in ratios]
            intervals = "; ".join(f"{layout} {_with_interval(found)}" for layout, found in ratios)
            yield Finding(
                statement=_ranked("A full scan of decimals", "on", fastest.layout, told, verb="it takes "),
                evidence=f"{fastest.engine}: {intervals}.",
            )


def _ranked(what: str, preposition: str, first: str, others: Sequence[tuple[str, str, bool]], *, verb: str = "") -> str:
    """Who is fastest, who is slower by how much, and who cannot be told apart.

    Args:
        what: Is fast or slow.
        preposition: Between that and a name.
        first: The fastest.
        others: Name, how much slower in words, and whether an interval supports it.
        verb: Before the words of the slower ones.
    """
    slower = [words for _, words, differs in others if differs]
    alike = [name for name, _, differs in others if not differs]
    if not slower:
        return f"{what} takes about as long {preposition} {listed([first, *alike])}: they cannot be told apart."
    apart = f"; {listed(alike)} cannot be told apart from it" if alike else ""
    return f"{what} is fastest {preposition} {first}; {verb}{listed(slower)}{apart}."


@dataclass(frozen=True)
class _Standing:
    """An engine against the reference over all cases that both have."""

    engine: str
    ratios: tuple[Ratio, ...]

    @property
    def mean(self) -> float:
        """Geometric: the only mean of ratios that does not depend on which engine is the reference."""
        return math.exp(sum(math.log(r.estimate) for r in self.ratios) / len(self.ratios))

    @property
    def range(self) -> str:
        low, high = (times(f(r.estimate for r in self.ratios)) for f in (min, max))
        return low if low == high else f"{low} to {high}"

    @property
    def told_apart(self) -> int:
        return sum(r.differs for r in self.ratios)


def _engines(records: Records, what: str) -> Iterator[Finding]:
    """How engines stand to the fastest, over all cases."""
    engines = records.engines
    if len(engines) < 2:
        return
    cases = [found for _, _, found in records.cases()]
    totals = {e: _standing(cases, engines[0], e) for e in engines[1:]}
    fastest = min(engines, key=lambda e: 1.0 if e == engines[0] else totals[e].mean if totals[e].ratios else math.inf)
    standings = sorted(
        (s for e in engines if e != fastest and (s := _standing(cases, fastest, e)).ratios), key=lambda s: s.mean
    )
    if not standings:
        return
    told = [(s.engine, f"{s.engine} takes {times(s.mean)} as long", s.told_apart > 0) for s in standings]
    evidence = [
        f"{s.engine} {s.range} in {count(len(s.ratios), 'case')}, told apart from {fastest} in {s.told_apart}"
        for s in standings
    ]
    yield Finding(
        statement=_ranked(what, "with", fastest, told),
        evidence="Geometric means of paired ratios. " + "; ".join(evidence) + ".",
    )


def _standing(cases: Iterable[Records], reference: str, engine: str) -> _Standing:
    ratios = []
    for found in cases:
        base, head = found.one(engine=reference), found.one(engine=engine)
        if base is not None and head is not None and (against := ratio(base, head)) is not None:
            ratios.append(against)
    return _Standing(engine, tuple(ratios))


def _deletes(costs: Records) -> Iterator[Finding]:
    """What each variant of deletes adds to a scan, by engine, over the layouts."""
    for case in costs.names("case"):
        of_case = costs.where(case=case)
        by_engine = {e: sorted(of_case.where(engine=e).all, key=median) for e in of_case.engines}
        ranked = sorted(by_engine.items(), key=lambda item: median(item[1][-1]))
        told = listed([f"{_span(found)} with {engine}" for engine, found in ranked])
        worst = listed([f"{engine} {_cost(found[-1])}" for engine, found in ranked])
        layouts = "Over all layouts; the worst" if len(of_case.names("layout")) > 1 else "That is"
        yield Finding(statement=f"Deletes ({case}) make a scan longer by {told}.", evidence=f"{layouts}: {worst}.")


def _span(found: Sequence[Record]) -> str:
    low, high = signed_percent(median(found[0])), signed_percent(median(found[-1]))
    return low if low == high else f"{low} to {high}"


def _cost(record: Record) -> str:
    ends = bounds(record)
    sure = (
        f" ({confidence(record):.0%} interval {signed_percent(ends[0])} to {signed_percent(ends[1])})" if ends else ""
    )
    return f"{signed_percent(median(record))}{sure} on {record.layout}"


def _with_interval(found: Ratio) -> str:
    if found.low is None or found.high is None or found.confidence is None:
        return times(found.estimate)
    return f"{times(found.estimate)} ({found.confidence:.0%} interval {found.low:.2f} to {found.high:.2f})"
