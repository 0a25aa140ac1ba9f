"""Two runs side by side: whether they can be compared, what their counters say, and what their clocks may."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from icebench.bench.execution.environment import facts_of
from icebench.bench.execution.measurement import kind_of
from icebench.bench.execution.run_file import Run
from icebench.bench.records.record import Record
from icebench.bench.report.compare import between, median, table_names
from icebench.bench.report.findings import least_sure, reach
from icebench.bench.report.model import Cell, Comparison, Finding, Row, Table, Tone, plain
from icebench.bench.report.quantities import count, factor, listed, quantity, times
from icebench.bench.report.remarks import is_timed
from icebench.bench.statistics.claims import Effect

PARTS = ("definition", "dataset", "environment", "outcome")
"""In what two runs may differ so that they are not compared, unless it is to be ignored."""

_NAMES = ("name", "description")
"""Keys of a definition that decide nothing."""
_OF_ROWS = ("workload", "table", "layouts", "layout")
"""Those that decide rows and files."""
_INPUTS_OF_ROWS = ("workloads", "layouts")
"""Parts of what a definition names that decide them."""
_SHOWN = 3
_ROWS = 8
"""Of the summary."""

_CAUTION = (
    "Two runs share no rounds. An interval covers the rounds and processes of both, and an assumed drift of the "
    "machine of 10%; engines that did not change show the real drift. Differences below "
    "about 1.5x can only be measured within one run."
)


_Group = tuple[str, str, str, str]
"""Workload, engine, measurement and metric of the cases that have one effect."""


@dataclass(frozen=True)
class Difference:
    """Why two runs are not comparable: one of `PARTS`, and what differs."""

    part: str
    what: str

    def __str__(self) -> str:
        return f"{self.part} ({self.what})"


def differences(base: Run, head: Run) -> tuple[Difference, ...]:
    """Everything that keeps the runs from being compared. Versions of engines and the revision do not: they are what
    one compares. Neither does a Spark session that only one of the runs needed."""
    return (
        *_of_definitions(base, head),
        *_of_inputs(base, head),
        *_of_rows(base, head),
        *_of_machines(base, head),
        *_of_outcomes(base, head),
    )


def compare_runs(base: Run, head: Run) -> Comparison:
    """The cases that both runs have."""
    pairs = pairs_of(base, head)
    timed = [pair for pair in pairs if is_timed(pair[0])]
    groups: dict[_Group, list[tuple[Record, Record]]] = {}
    for pair in timed:
        groups.setdefault((pair[0].workload, pair[0].engine, pair[0].measurement, pair[0].metric), []).append(pair)
    effects = {name: effect for name, own in groups.items() if (effect := between(own)) is not None}
    sure = least_sure([effect.p_value for effect in effects.values()])
    pooled = _pooled(groups, effects, sure)
    alone = len(base.records) + len(head.records) - 2 * len(pairs)
    return Comparison(
        title=f"{head.run_id} against {base.run_id}: {count(len(pairs), 'series', 'series')} that both have, {alone:,} "
        "that one has",
        findings=(*_counted(pairs), *_timed(effects, sure)),
        tables=(replace(pooled, rows=pooled.rows[:_ROWS]), pooled, _each(timed)),
        notes=(*_versions(base, head), _CAUTION),
        rows=tuple(_rows(timed)),
    )


def pairs_of(base: Run, head: Run) -> list[tuple[Record, Record]]:
    """The series that both runs have, in the order of the second."""
    before = {r.key: r for r in base.records}
    return [(before[r.key], r) for r in head.records if r.key in before]


def has_several_measurements(pairs: Iterable[tuple[Record, Record]]) -> bool:
    """Whether cases and metrics do not say which measurement they are of, as several have a scan of everything."""
    return len({head.measurement for _, head in pairs}) > 1


def _of_definitions(base: Run, head: Run) -> Iterator[Difference]:
    asked = [_flat(run.environment.get("definition") or {}) for run in (base, head)]
    for path, was, now in _changes(*asked):
        root = path.partition(".")[0]
        if root not in _NAMES:
            yield Difference("dataset" if root in _OF_ROWS else "definition", f"{path}: {was} -> {now}")


def _of_inputs(base: Run, head: Run) -> Iterator[Difference]:
    """Other content of what both definitions name; nothing is known of a run that has not recorded it."""
    was, now = (run.environment.get("inputs") for run in (base, head))
    if was is None or now is None:
        return
    layouts = [each.get("layouts", {}) for each in (was, now)]
    shared = layouts[0].keys() & layouts[1].keys()  # of others the definitions differ
    asked = [{**each, "layouts": {name: each["layouts"][name] for name in sorted(shared)}} for each in (was, now)]
    for path, *_ in _changes(*map(_flat, asked)):
        root = path.partition(".")[0]
        yield Difference("dataset" if root in _INPUTS_OF_ROWS else "definition", f"{path}: other content")


def _of_rows(base: Run, head: Run) -> Iterator[Difference]:
    was = {m.case: m.evidence.checksum for m in base.measured}
    of_rows = [m for m in head.measured if not kind_of(m.case.measurement).checksums_files]
    other = [m.case for m in of_rows if was.get(m.case, m.evidence.checksum) != m.evidence.checksum]
    if other:
        yield Difference("dataset", f"other rows in {count(len(other), 'case')}, such as {other[0]}")


def _of_machines(base: Run, head: Run) -> Iterator[Difference]:
    found = []
    for part in ("hardware", "software"):
        was, now = facts_of(part, base.environment, head.environment)
        found += [f"{path}: {one} -> {other}" for path, one, other in _changes(_flat(was), _flat(now))]
    for what in found:
        yield Difference("environment", what)


def _of_outcomes(base: Run, head: Run) -> Iterator[Difference]:
    for run in (base, head):
        if run.failed or not run.complete:
            yield Difference("outcome", f"{run.run_id} {'failed' if run.failed else 'was interrupted'}")


def _flat(values: object, path: str = "") -> dict[str, object]:
    """Leaf values by their path."""
    if isinstance(values, Mapping):
        parts = values.items()
    elif isinstance(values, list) and any(isinstance(value, Mapping) for value in values):
        parts = dict(enumerate(values)).items()
    else:
        return {path: values}
    return {k: v for name, value in parts for k, v in _flat(value, f"{path}.{name}".strip(".")).items()}


def _changes(was: Mapping[str, object], now: Mapping[str, object]) -> Iterator[tuple[str, object, object]]:
    for path in dict.fromkeys((*was, *now)):
        one, other = was.get(path, "absent"), now.get(path, "absent")
        if one != other:
            yield path, one, other


def _counted(pairs: Sequence[tuple[Record, Record]]) -> Iterator[Finding]:
    """What is exact: counters, of which one that a case lacks is 0, as engines count what they do. One statement for
    each counter."""
    changed: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
    seen = set()
    tables = table_names(head for _, head in pairs)
    for base, head in pairs:
        how = head.measurement if head.cache == "none" else f"{head.measurement}, {head.cache}"
        where = (f"{head.case} on {tables[head.workload, head.layout]}", how)
        for name in base.counters.keys() | head.counters.keys():
            seen.add((head.engine, name, where))
            was, now = (record.counters.get(name, 0) for record in (base, head))
            if was != now:
                changed.setdefault((head.engine, name), {})[where] = f"{was:,} to {now:,} in {where[0]}, {where[1]}"
    for (engine, name), cases in sorted(changed.items()):
        shown = list(cases.values())[:_SHOWN]
        more = f", and {count(len(cases) - _SHOWN, 'more case')}" if len(cases) > _SHOWN else ""
        yield Finding(statement=f"{engine}: {name} went from {'; '.join(shown)}{more}.")
    if seen and not changed:
        yield Finding(statement=f"All {len(seen):,} exact counters are equal.")


def _several(groups: Iterable[_Group]) -> bool:
    """Whether there are several workloads, which are named then."""
    return len({workload for workload, *_ in groups}) > 1


def _timed(effects: Mapping[_Group, Effect], sure: float) -> Iterator[Finding]:
    several = _several(effects)
    for (workload, engine, measurement, metric), effect in effects.items():
        if effect.p_value <= sure:
            word = "longer" if effect.ratio > 1 else "shorter"
            where = f"{workload}, {engine}" if several else engine
            yield Finding(
                statement=f"{where}, {measurement}: {metric} is {word}, {times(effect.ratio)} "
                f"(95% interval {factor(effect.low)} to {factor(effect.high)})."
            )
    if effects and sure < 0:
        yield Finding(
            statement=f"The difference in time between the two runs is inconclusive: {reach(effects.values())}."
        )


def _pooled(
    groups: Mapping[_Group, Sequence[object]],
    effects: Mapping[_Group, Effect],
    sure: float,
) -> Table:
    """Significant ones first, then those furthest from 1."""
    rows, named = [], slice(None) if _several(effects) else slice(1, None)
    for name, effect in sorted(effects.items(), key=lambda own: (own[1].p_value > sure, -abs(math.log(own[1].ratio)))):
        differs = effect.p_value <= sure
        claim = ("longer" if effect.ratio > 1 else "shorter") if differs else "inconclusive"
        interval = f"{factor(effect.low)} to {factor(effect.high)}"
        tone = Tone.DOUBTFUL if differs else Tone.PLAIN
        cases = Cell(text=str(len(groups[name])))
        rows.append(
            (
                *map(plain, name[named]),
                cases,
                Cell(text=times(effect.ratio), tone=tone),
                Cell(text=interval),
                plain(claim),
            )
        )
    return Table(
        title="Second run / first run, pooled over cases",
        columns=(*("Workload", "Engine", "Measurement", "Metric")[named], "Cases", "Ratio", "95% interval", "Claim"),
        rows=tuple(rows),
    )


def _each(timed: Sequence[tuple[Record, Record]]) -> Table:
    tables = table_names(head for _, head in timed)
    caches = Counter((*head.key[:-2], head.metric) for _, head in timed)
    named = ("Measurement",) if has_several_measurements(timed) else ()
    rows = tuple(
        (
            plain(f"{head.case}, {head.cache}" if caches[*head.key[:-2], head.metric] > 1 else head.case),
            *(plain(head.measurement) for _ in named),
            plain(tables[head.workload, head.layout]),
            plain(head.engine),
            plain(head.metric),
            Cell(text=quantity(median(base), base.unit), record=base),
            Cell(text=quantity(median(head), head.unit), record=head),
            Cell(text=times(median(head) / median(base)) if median(base) > 0 else "-"),
        )
        for base, head in timed
    )
    columns = ("Case", *named, "Layout", "Engine", "Metric", "First run", "Second run", "Ratio of medians")
    return Table(title="Every case", columns=columns, rows=rows)


def _versions(base: Run, head: Run) -> Iterator[str]:
    """What changed of what is compared."""
    for part in ("engines", "git"):
        was, now = (_flat(run.environment.get(part) or {}) for run in (base, head))
        if changes := [f"{path} {one} -> {other}" for path, one, other in _changes(was, now)]:
            yield f"{part.capitalize()}: {listed(changes)}."


def _rows(timed: Sequence[tuple[Record, Record]]) -> Iterator[Row]:
    for base, head in timed:
        effect = between([(base, head)])
        yield {
            "workload": head.workload,
            "layout": head.layout,
            "engine": head.engine,
            "measurement": head.measurement,
            "case": head.case,
            "cache": head.cache,
            "metric": head.metric,
            "unit": head.unit,
            "first": median(base),
            "second": median(head),
            "ratio": None if effect is None else effect.ratio,
            "low": None if effect is None else effect.low,
            "high": None if effect is None else effect.high,
        }
