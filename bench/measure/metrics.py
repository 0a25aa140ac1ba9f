"""From cases and samples to the named series that reports show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from icebench.bench.measure.case import Case, Cost, Measured, Sample
from icebench.bench.measure.record import Record

Value = Callable[[Cost], float | None]

_SCAN = ("scan_time", "scan_cpu", "scan_memory")
_NAMES: Mapping[tuple[str, str], tuple[str, str, str]] = {
    ("planning", "cold"): ("latency_cold", "cpu_cold", "memory_cold"),
    ("planning", "warm"): ("latency_warm", "cpu_warm", "memory_warm"),
    ("planning", "fresh"): ("latency_fresh", "cpu_fresh", "memory_peak"),
    ("reading", "fresh"): ("scan_fresh", "scan_cpu_first", "memory_peak"),
    ("commits", "none"): ("latency_commit", "cpu_commit", "memory_commit"),
    ("maintenance", "none"): ("upkeep_time", "upkeep_cpu", "upkeep_memory"),
    ("maintenance", "fresh"): ("upkeep_time", "upkeep_cpu", "memory_peak"),
}
"""Measurement and cache -> names of wall time, processor time and memory; the others are scans."""

_UNITS: Mapping[str, str] = {
    "build_seconds": "s",
    "build_cpu_seconds": "s",
    "build_compaction_seconds": "s",
    "build_bytes_written": "bytes",
    "build_bytes_compacted": "bytes",
    "build_bytes_on_disk": "bytes",
    "build_files": "files",
    "build_manifests": "manifests",
    "bytes_written": "bytes",
    "files_written": "files",
    "files_deleted": "files",
}
"""Of figures that are no shares, and of further ones of samples that are no seconds."""

_COSTS: tuple[tuple[str, Value], ...] = (
    ("s", lambda cost: cost.wall),
    ("s", lambda cost: cost.cpu),
    ("bytes", lambda cost: cost.memory),
)


def records_of(measured: Iterable[Measured]) -> tuple[Record, ...]:
    """The series of every case: costs of its samples, costs held against its base's, rates, and counted figures."""
    found = {each.case: each for each in measured}
    return tuple(record for each in found.values() for record in _of_case(each, found))


def _of_case(measured: Measured, others: Mapping[Case, Measured]) -> Iterator[Record]:
    case, samples = measured.case, measured.samples
    for name, figure in measured.evidence.figures.items():
        yield _record(measured, name, _UNITS.get(name, "ratio"), {(0, 0): figure})
    if not samples:
        return
    names = _NAMES.get((case.measurement, case.cache), _SCAN)
    for name, (unit, value) in zip(names, _COSTS, strict=True):
        values = {s.place: v for s in samples if (v := value(s.cost)) is not None}
        if values:
            yield _record(measured, name, unit, values)
    for name in samples[0].cost.more:
        yield _record(
            measured, name, _UNITS.get(name, "s"), {s.place: s.cost.more[name] for s in samples if name in s.cost.more}
        )
    rows = measured.evidence.counters.get("rows_returned", 0)
    if case.measurement == "decimals" and rows and all(s.cost.wall > 0 for s in samples):
        yield _record(measured, "rows_per_second", "rows/s", {s.place: rows / s.cost.wall for s in samples})
    base = others.get(measured.evidence.base) if measured.evidence.base is not None else None
    if base is not None and base.samples:
        yield from _against(measured, base)


def _against(measured: Measured, base: Measured) -> Iterator[Record]:
    """What a case costs more than its base, in the rounds that both have."""
    by_place = {s.place: s for s in base.samples}
    pairs: dict[tuple[int, int], tuple[Sample, Sample]] = {
        s.place: (s, by_place[s.place]) for s in measured.samples if s.place in by_place
    }
    wall = {place: (own.cost.wall, other.cost.wall) for place, (own, other) in pairs.items()}
    cpu = {place: (own.cost.cpu, other.cost.cpu) for place, (own, other) in pairs.items()}
    if measured.case.measurement == "deletes":
        series = {"delete_cost_ratio": wall}
        if wall:
            yield _record(measured, "delete_cost", "s", {place: own - other for place, (own, other) in wall.items()})
    else:
        series = {"scan_time_added": wall, "scan_cpu_added": cpu}
    for name, values in series.items():
        shares = {place: (own - other) / other for place, (own, other) in values.items() if other > 0}
        if shares:
            yield _record(measured, name, "ratio", shares)


def _record(measured: Measured, metric: str, unit: str, values: Mapping[tuple[int, int], float]) -> Record:
    case, evidence = measured.case, measured.evidence
    return Record(
        workload=case.workload,
        layout=case.layout,
        engine=case.engine,
        engine_version=measured.engine_version,
        measurement=case.measurement,
        case=case.label,
        metric=metric,
        unit=unit,
        samples=tuple(float(value) for value in values.values()),
        places=tuple(values),
        counters=dict(evidence.counters),
        checksum=evidence.checksum,
        detail=dict(evidence.detail),
    )
