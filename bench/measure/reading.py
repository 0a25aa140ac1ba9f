"""Reading in Arrow: scans of several tables side by side, and what one costs more than another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from bench.engines.checksum import Checksum
from bench.engines.engine import Ability, AnyEngine
from bench.engines.registry import ENGINES
from bench.errors import Disagreement
from bench.measure.cpu_time import CpuMeter
from bench.measure.interleave import Case, interleave_unevenly
from bench.measure.metadata_planning import Patience
from bench.measure.opened import Opened
from bench.measure.recorder import CaseId, Evidence
from bench.measure.scans import checked_scans, right_engines
from bench.measure.subject import Bench

NAME = "reading"
SCAN, CPU = "scan_time", "scan_cpu"
MORE_TIME, MORE_CPU = "scan_time_added", "scan_cpu_added"

Key = tuple[str, str]
"""Engine and case."""


@dataclass(frozen=True, kw_only=True)
class ReadingSubject:
    """Scans that belong together: they are interleaved, and their differences are between scans of one round.

    Args:
        name: Under which they are recorded, as the layout.
        scans: Case -> the table's metadata file.
        columns: What is scanned.
        engines: Names of those that can read these tables.
        base: The case that the others are held against; None where only engines are compared.
        same_rows: Whether every case must deliver the rows of the base.
        rows: Case -> how many rows it must deliver, where that is known.
    """

    name: str
    scans: Mapping[str, str]
    columns: Sequence[str]
    engines: Sequence[str]
    base: str | None = None
    same_rows: bool = False
    rows: Mapping[str, int]


def measure_reading(bench: Bench, subject: ReadingSubject, patience: Patience) -> None:
    """Record `scan_time` and `scan_cpu` of every case and engine, and against the base `scan_time_added` and
    `scan_cpu_added`, shares of the base's scan in the same round. Engines that deliver other rows are failures."""
    engines = {name: bench.engines[name] for name in subject.engines if name in bench.engines}
    engines = {name: engine for name, engine in engines.items() if Ability.SCAN in engine.abilities}
    scans: dict[Key, Opened] = {}
    checksums: dict[Key, Checksum] = {}
    for done, (case, location) in enumerate(subject.scans.items()):
        bench.progress(NAME, f"{subject.name}: {case}, checking rows", done, 2 * len(subject.scans))
        for name, (opened, checksum) in _checked(bench, subject, case, location, engines).items():
            scans[name, case] = opened
            checksums[name, case] = checksum
    bench.progress(NAME, f"{subject.name}: scanning", len(subject.scans), 2 * len(subject.scans))
    _time(bench, subject, scans, checksums, patience)


def _checked(
    bench: Bench, subject: ReadingSubject, case: str, location: str, engines: Mapping[str, AnyEngine]
) -> dict[str, tuple[Opened, Checksum]]:
    """The engines that deliver the right rows of a case."""
    id_ = CaseId(layout=subject.name, measurement=NAME, case=case)
    opened, checksums = checked_scans(bench, engines, location, subject.columns, id_)
    right = right_engines(bench, id_, location, subject.columns, checksums)
    expected = subject.rows.get(case)
    for name in sorted(right):
        if expected is not None and checksums[name].rows != expected:
            bench.recorder.fail(id_.of(name), Disagreement(f"delivers {checksums[name].rows} rows, not {expected}"))
            right.discard(name)
    return {name: (opened[name], checksums[name]) for name in opened if name in right}


def _time(
    bench: Bench,
    subject: ReadingSubject,
    scans: Mapping[Key, Opened],
    checksums: Mapping[Key, Checksum],
    patience: Patience,
) -> None:
    if subject.same_rows and subject.base is not None:
        scans = {key: opened for key, opened in scans.items() if _same(bench, subject, key, checksums)}
    meters = {key: CpuMeter(in_java=ENGINES[key[0]].needs_spark) for key in scans}
    rounds = {}
    for key, opened in scans.items():
        start = patience.clock()
        _scan(opened, subject.columns)()
        rounds[key] = patience.rounds(patience.clock() - start)
    named = {" ".join(key): key for key in scans}
    timings = interleave_unevenly(
        {
            name: Case(name, meters[key].metered(partial(_scan, scans[key], subject.columns)))
            for name, key in named.items()
        },
        rounds={name: rounds[key] for name, key in named.items()},
        warmups=patience.often.warmups,
        random=bench.random,
        executor=bench.executor,
    )
    for name, error in timings.errors.items():
        engine, case = named[name]
        bench.recorder.fail(CaseId(layout=subject.name, measurement=NAME, case=case, engine=engine), error)
    seconds = {named[name]: values for name, values in timings.seconds.items()}
    cpu = {key: meters[key].seconds[-len(values) :] for key, values in seconds.items()}
    for engine, case in seconds:
        id_ = CaseId(layout=subject.name, measurement=NAME, case=case, engine=engine)
        rows = checksums[engine, case].rows
        evidence = Evidence(
            counters={"rows_returned": rows},
            checksum=checksums[engine, case].text,
            detail={"columns": f"{len(subject.columns)}: {', '.join(subject.columns)}"[:200]},
        )
        for metric, added, samples in ((SCAN, MORE_TIME, seconds), (CPU, MORE_CPU, cpu)):
            bench.recorder.record(id_, metric, "s", samples[engine, case], evidence)
            base = samples.get((engine, subject.base or ""))
            if case != subject.base and base is not None:
                # Slower scans have fewer rounds, which are the first.
                pairs = list(zip(samples[engine, case], base, strict=False))
                bench.recorder.record(id_, added, "ratio", [(own - b) / b for own, b in pairs if b > 0], evidence)


def _same(bench: Bench, subject: ReadingSubject, key: Key, checksums: Mapping[Key, Checksum]) -> bool:
    """Whether an engine delivers the rows of the base in this case too."""
    engine, case = key
    base = checksums.get((engine, subject.base or ""))
    difference = None if base is None else checksums[key].difference(base)
    if difference is not None:
        id_ = CaseId(layout=subject.name, measurement=NAME, case=case, engine=engine)
        bench.recorder.fail(id_, Disagreement(f"delivers other rows than from {subject.base}: {difference}"))
    return difference is None


def _scan(opened: Opened, columns: Sequence[str]) -> Callable[[], object]:
    return lambda: opened.engine.scan(opened.handle, columns, opened.filter)
