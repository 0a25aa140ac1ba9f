"""From cases and samples to the named series that reports show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from icebench.bench.execution.measurement import Figure, kind_of
from icebench.bench.records.case import Case, Cost, Measured, Sample
from icebench.bench.records.record import Record
from icebench.bench.statistics.process_spread import ASSUMED, ProcessSpread

Value = Callable[[Cost], float | None]

_COSTS: tuple[tuple[str, Value], ...] = (
    ("s", lambda cost: cost.wall),
    ("s", lambda cost: cost.cpu),
    ("bytes", lambda cost: cost.memory),
)


def records_of(measured: Iterable[Measured], spread: ProcessSpread = ASSUMED) -> tuple[Record, ...]:
    """The series of every case: costs of its samples, costs compared with its base's, rates, and counted figures.

    Args:
        measured: The cases.
        spread: What is known of processes of the machine.
    """
    found = {each.case: each for each in measured}
    made = (record for each in found.values() for record in _of_case(each, found))
    return tuple(r if r.spread == spread else replace(r, spread=spread, summary={}) for r in made)


def _of_case(measured: Measured, others: Mapping[Case, Measured]) -> Iterator[Record]:
    case, samples, kind = measured.case, measured.samples, kind_of(measured.case.measurement)
    for name, figure in measured.evidence.figures.items():
        yield _record(measured, name, kind.units.get(name, "ratio"), {(0, 0): figure})
    if not samples:
        return
    names = kind.names(case)
    for name, (unit, value) in zip(names, _COSTS, strict=True):
        values = {s.place: v for s in samples if (v := value(s.cost)) is not None}
        if values:
            yield _record(measured, name, unit, values)
    for name in samples[0].cost.more:
        yield _record(
            measured,
            name,
            kind.units.get(name, "s"),
            {s.place: s.cost.more[name] for s in samples if name in s.cost.more},
        )
    for name, unit, figures in kind.further(measured):
        yield _record(measured, name, unit, figures)
    base = others.get(measured.evidence.base) if measured.evidence.base is not None else None
    if base is not None and base.samples:
        for name, unit, figures in kind.against(_pairs(samples, base.samples), case):
            if figures:
                yield _record(measured, name, unit, figures, of_two=True)


def _pairs(samples: Iterable[Sample], base: Iterable[Sample]) -> dict[tuple[int, int], tuple[Figure, Figure]]:
    """Wall time and processor time of a case and of its base, in the rounds that both have."""
    by_place = {s.place: s.cost for s in base}
    return {
        s.place: ((s.cost.wall, other.wall), (s.cost.cpu, other.cpu))
        for s in samples
        if (other := by_place.get(s.place)) is not None
    }


def _record(
    measured: Measured, metric: str, unit: str, values: Mapping[tuple[int, int], float], *, of_two: bool = False
) -> Record:
    case, evidence = measured.case, measured.evidence
    return Record(
        workload=case.workload,
        layout=case.layout,
        engine=case.engine,
        engine_version=measured.engine_version,
        measurement=case.measurement,
        case=case.label,
        cache=case.cache,
        query=evidence.query,
        metric=metric,
        unit=unit,
        samples=tuple(float(value) for value in values.values()),
        places=tuple(values),
        counters=dict(evidence.counters),
        checksum=evidence.checksum,
        detail=dict(evidence.detail),
        of_two=of_two,
    )
