"""Scans checked once, outside timing: every engine must deliver the rows that the table has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from bench.engines.checksum import Checksum
from bench.engines.engine import AnyEngine
from bench.errors import BenchError, Disagreement
from bench.experiment import Repetitions
from bench.measure.interleave import Case, Timings, interleave
from bench.measure.opened import Opened, try_each
from bench.measure.oracle import NoTruth
from bench.measure.recorder import CaseId, Recorder
from bench.measure.subject import Bench


def checked_scans(
    bench: Bench, engines: Mapping[str, AnyEngine], location: str, columns: Sequence[str], case: CaseId
) -> tuple[dict[str, Opened], dict[str, Checksum]]:
    """Every engine's open table and the checksum of its rows; engines that fail are recorded and left out."""
    opened = try_each(engines, lambda engine: Opened.of(engine, location, None), bench.recorder, case)
    checksums = try_each(
        {name: engines[name] for name in opened},
        lambda engine: engine.checksum(opened[engine.name].handle, columns, opened[engine.name].filter),
        bench.recorder,
        case,
    )
    return {name: opened[name] for name in checksums}, checksums


def right_engines(
    bench: Bench, case: CaseId, location: str, columns: Sequence[str], checksums: Mapping[str, Checksum]
) -> set[str]:
    """The engines whose rows are the table's; the others are recorded as failures.

    Where the truth cannot be had, which is recorded as skipped, all engines must deliver the same rows: if they do not,
    nobody can say who is wrong, every engine is a failure and none is given.
    """
    if not checksums:
        return set()
    try:
        truth = bench.truth(location).answer(columns)
    except NoTruth as reason:
        bench.recorder.skip(case.of("oracle"), f"engines are held against each other only: {reason}")
        return _unanimous(bench.recorder, case, checksums)
    except BenchError as error:
        bench.recorder.fail(case.of("oracle"), error)
        return set()
    faults = {engine: truth.fault_of(checksum) for engine, checksum in checksums.items()}
    for engine, fault in faults.items():
        if fault is not None:
            bench.recorder.fail(case.of(engine), Disagreement(f"delivers wrong rows: {fault}"))
    return {engine for engine, fault in faults.items() if fault is None}


def _unanimous(recorder: Recorder, case: CaseId, checksums: Mapping[str, Checksum]) -> set[str]:
    first = next(iter(checksums.values()), None)
    how = next((found for c in checksums.values() if first is not None and (found := first.difference(c))), None)
    if how is None:
        return set(checksums)
    answers = "; ".join(f"{name}: {checksum.rows} rows" for name, checksum in sorted(checksums.items()))
    for engine in checksums:
        recorder.fail(case.of(engine), Disagreement(f"engines deliver different rows ({how}; {answers})"))
    return set()


def time_scans(
    bench: Bench,
    scans: Mapping[str, Opened],
    columns: Sequence[str],
    often: Repetitions,
    *,
    after_round: Callable[[int, int], None],
) -> Timings:
    """Seconds of each named scan, interleaved; `after_round` is told how many rounds of how many are done."""
    return interleave(
        [Case(name, partial(_scan, opened, columns)) for name, opened in scans.items()],
        repetitions=often.repetitions,
        warmups=often.warmups,
        random=bench.random,
        executor=bench.executor,
        after_round=after_round,
    )


def _scan(opened: Opened, columns: Sequence[str]) -> Callable[[], object]:
    return lambda: opened.engine.scan(opened.handle, columns, opened.filter)
