"""Which knob matters: main effects and interactions of the axes that a run varied."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from icebench.bench.execution.pace import FEWEST_BUILDS
from icebench.bench.layouts.axes import Axes
from icebench.bench.records.record import Record
from icebench.bench.report.charts import DotChart, DotPanel, DotRow, Point
from icebench.bench.report.compare import Records, median, series_of
from icebench.bench.report.findings import reach
from icebench.bench.report.layouts import READ
from icebench.bench.report.model import Cell, Finding, Section, Table, Tone, plain
from icebench.bench.report.quantities import factor, listed, times
from icebench.bench.statistics.claims import LEAST_EFFECT, Effect, contrast_of
from icebench.bench.statistics.designs import Term, terms_of

_METRICS = (
    ("filtered", "scan_time_cold", "Cold filtered read"),
    ("filtered", "scan_time_warm", "Warm filtered read"),
    ("planning", "latency_cold", "Cold plan"),
    ("decimals", "scan_time_cold", "Cold full scan"),
    ("decimals", "scan_time_warm", "Warm full scan"),
    ("build", "build_cpu_seconds", "Build"),
    ("build", "build_bytes_on_disk", "Size"),
)
_EXPLANATION = (
    "How many times as long, or as much, it takes with one value of a knob as with its first, in the mean over the "
    "values of the others; for two knobs, how many times the effect of one is what it is without the other. Ratios of "
    "the same rounds, pooled over filters, with 95% intervals over rounds and processes; building in processor time. "
    "Bytes are counted: they have no interval."
)
Effects = dict[str, Effect | float]
"""Name of a quantity -> its ratio, with an interval or without."""


@dataclass(frozen=True)
class Knobs:
    """The section, and the effects of which some may be claimed, by layout and knob."""

    section: Section
    found: Mapping[str, Sequence[tuple[Term, Effects]]]

    @property
    def p_values(self) -> list[float]:
        """Of all effects on time."""
        return [effect.p_value for *_, effect in self._timed()]

    def findings(self, least: float) -> list[Finding]:
        """What was counted, and the effects on time whose p-value is at most `least`, largest first."""
        return list(_findings(self.found, list(self._timed()), least))

    def _timed(self) -> Iterator[tuple[str, Term, str, Effect]]:
        for layout, own in self.found.items():
            for term, effects in own:
                yield from ((layout, term, words, e) for words, e in effects.items() if isinstance(e, Effect))


def knobs_of(records: Records, axes: Axes) -> Knobs | None:
    """The effects of what was varied; None where nothing was, or not all of it was measured."""
    if not axes.values:
        return None
    terms, names = terms_of(axes.levels, axes.design), axes.combinations()
    found: dict[str, list[tuple[Term, Effects]]] = {}
    layouts = records.names("layout")
    for layout in axes.layouts or _bases(layouts):
        tried = [axes.name_of(layout, combination) for combination in names]
        if set(tried) <= set(layouts):
            found[layout] = [(term, _effects_of(records, tried, term)) for term in terms]
    if not found:
        return None
    columns = list(dict.fromkeys(words for own in found.values() for _, effects in own for words in effects))
    section = Section(
        key="knobs",
        title="Which knob matters",
        explanation=_EXPLANATION,
        charts=tuple(_charts(found)),
        tables=tuple(_table(layout, own, columns) for layout, own in found.items()),
        opening=True,
    )
    return Knobs(section, found)


def _bases(layouts: Sequence[str]) -> tuple[str, ...]:
    """What may have been varied: a layout's own name, too, may end in parentheses."""
    ends = ((layout, found.start()) for layout in layouts for found in re.finditer(r" \(|\Z", layout))
    return tuple(dict.fromkeys(layout[:end] for layout, end in ends))


def _effects_of(records: Records, tried: Sequence[str], term: Term) -> Effects:
    found: Effects = {}
    for measurement, metric, words in _METRICS:
        own = records.where(measurement=measurement, metric=metric).competing
        for engine in own.engines[:1]:
            cases = list(_complete(own.where(engine=engine), tried))
            if not cases or min(min(r.samples) for case in cases for r in case) <= 0:
                continue
            if cases[0][0].unit == "bytes":
                found[words] = _product(term, [median(record) for record in cases[0]])
            elif min(len(r.samples) for case in cases for r in case) < FEWEST_BUILDS and measurement == "build":
                continue
            elif (effect := contrast_of([[series_of(r) for r in case] for case in cases], term.weights)) is not None:
                found[words] = effect
                if all(READ in record.counters for case in cases for record in case):
                    ratios = [_product(term, [float(record.counters[READ]) for record in case]) for case in cases]
                    found[f"{words}, bytes"] = float(np.exp(np.mean(np.log(ratios))))
    return found


def _product(term: Term, values: Sequence[float]) -> float:
    return float(np.exp(np.dot(term.weights, np.log(values))))


def _complete(records: Records, tried: Sequence[str]) -> Iterator[list[Record]]:
    """The cases that every combination has."""
    for case in records.names("case"):
        own = [records.one(case=case, layout=name) for name in tried]
        if all(own):
            yield [record for record in own if record is not None]


def _counted(layout: str, own: Sequence[tuple[Term, Effects]]) -> Iterator[Finding]:
    """For each exact quantity, the knobs that change it by more than `LEAST_EFFECT`, largest effect first."""
    counted: dict[str, dict[Term, float]] = {}
    for term, effects in own:
        for words, effect in effects.items():
            if isinstance(effect, float) and abs(np.log(effect)) > LEAST_EFFECT:
                counted.setdefault(words, {})[term] = effect
    for words, ratios in counted.items():
        ranked = sorted(ratios.items(), key=lambda each: -abs(np.log(each[1])))
        said = [_said(term, ratio) for term, ratio in ranked]
        yield Finding(statement=f"{words} on {layout}: {listed(said)}.", evidence="Counted, not timed.")


def _said(term: Term, ratio: float) -> str:
    """An effect, and what else it may be of."""
    against = f" as with {term.against}" if term.against else "; the one changes the other's effect"
    others = (f" (or {times(ratio**power)} with {name})" for name, power in term.aliases)
    return f"{times(ratio)} with {term.name}{''.join(others)}{against}"


def _table(layout: str, own: Sequence[tuple[Term, Effects]], columns: Sequence[str]) -> Table:
    rows = tuple(
        (
            plain(term.label, f"against {term.against}" if term.against else "interaction"),
            *(_cell(effects.get(name)) for name in columns),
        )
        for term, effects in own
    )
    return Table(title=f"Effects on {layout}", columns=("Knob", *columns), rows=rows)


def _cell(effect: Effect | float | None) -> Cell:
    if effect is None:
        return Cell(text="-", detail="not measured")
    if isinstance(effect, float):
        return Cell(text=times(effect))
    tone = Tone.PLAIN if effect.differs else Tone.DOUBTFUL
    return Cell(text=times(effect.ratio), detail=f"[{factor(effect.low)}, {factor(effect.high)}]", tone=tone)


def _charts(found: dict[str, list[tuple[Term, Effects]]]) -> Iterator[DotChart]:
    timed = [point.series for own in found.values() for _, effects in own for point in _points(effects)]
    series = tuple(dict.fromkeys(timed))
    if not series:
        return
    panels = tuple(
        DotPanel(
            title=layout,
            rows=tuple(
                DotRow(label=term.label, points=tuple(_points(effects)))
                for term, effects in own
                if any(_points(effects))
            ),
        )
        for layout, own in found.items()
    )
    yield DotChart(
        caption="How many times as long with a knob as without: 1 is no effect.",
        axis="times (logarithmic)",
        log=True,
        series=series,
        panels=panels,
    )


def _points(effects: Effects) -> Iterator[Point]:
    for name, effect in effects.items():
        if isinstance(effect, Effect):
            yield Point(series=name, value=effect.ratio, low=effect.low, high=effect.high)


def _findings(
    found: Mapping[str, Sequence[tuple[Term, Effects]]], timed: Sequence[tuple[str, Term, str, Effect]], least: float
) -> Iterator[Finding]:
    """What was counted; then the significant effects on time, largest first."""
    for layout, own in found.items():
        yield from _counted(layout, [(term, effects) for term, effects in own if not term.is_interaction])
    claimed = sorted((own for own in timed if own[3].p_value <= least), key=lambda own: -abs(np.log(own[3].ratio)))
    for layout, term, words, effect in claimed:
        yield Finding(
            statement=f"{words} on {layout}: {_said(term, effect.ratio)}.",
            evidence=f"95% interval {factor(effect.low)} to {factor(effect.high)}.",
        )
    if timed and not claimed:
        bounds = reach(effect for *_, effect in timed)
        yield Finding(statement=f"The effect of the varied knobs on time is inconclusive: {bounds}.")
