"""Planning on tables that are metadata alone: cold, from what an engine keeps, in a fresh process, and in memory.

Every plan is held against what the bounds of the files leave room for, which is known from how the files were made. A
plan that lacks a file is a failure. One that has more is looser than bounds allow, and its records say by how much.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bench.engines.engine import Ability, AnyEngine, Plan
from bench.engines.inflate import Inflate
from bench.engines.registry import ENGINES
from bench.errors import Disagreement, EngineFailed
from bench.experiment import Repetitions
from bench.measure.cpu_time import CpuMeter
from bench.measure.fresh_plan import PLANNERS
from bench.measure.interleave import Case, interleave_unevenly
from bench.measure.opened import Opened, try_each
from bench.measure.recorder import CaseId, Evidence
from bench.measure.subject import Bench
from bench.workloads.metadata_files import MetadataFiles, ordinal_of

NAME = "planning"
EVERYTHING = "all"
"""The case without a filter."""

# An engine that tells only the number of files (Polars) answers a question that it was asked before from the answer, so
# that its second plan is none.
COLD, WARM, FRESH, MEMORY = "latency_cold", "latency_warm", "latency_fresh", "memory_peak"
CPU_COLD, CPU_WARM, CPU_FRESH = "cpu_cold", "cpu_warm", "cpu_fresh"

FRESH_CASES = ("all", "metric")
_FRESH_TIMEOUT_SECONDS = 600


@dataclass(frozen=True, kw_only=True)
class MetadataSubject:
    """A table under measurement.

    Args:
        name: Under which it is recorded, as the layout.
        metadata_location: The table.
        files: What its manifests describe.
        engines: Names of those that are measured on it.
        fresh: Whether plans in fresh processes are measured.
    """

    name: str
    metadata_location: str
    files: MetadataFiles
    engines: Sequence[str]
    fresh: bool


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long a case may take.

    Args:
        often: Rounds for engines that are quick enough.
        warm_seconds: Each engine plans again and again for this long before anything is recorded: virtual machines
            compile what has run often.
        case_seconds: An engine runs fewer rounds where it would take longer than this in all, but at least one.
        clock: Monotonic seconds.
    """

    often: Repetitions
    warm_seconds: float
    case_seconds: float
    clock: Callable[[], float] = time.perf_counter

    def rounds(self, seconds: float) -> int:
        """How many rounds for an engine that takes so long for one."""
        return max(1, min(self.often.repetitions, int(self.case_seconds / max(seconds, 1e-9))))


@dataclass(frozen=True, kw_only=True)
class _Ready:
    """An engine that planned right: how, what it counted, and how long one plan takes it when warmed up."""

    opened: Opened
    counters: Mapping[str, int]
    seconds: float


def measure_metadata(bench: Bench, subject: MetadataSubject, patience: Patience) -> None:
    """Record `latency_cold` and `latency_warm` of every filter and of none, with the processor time that they took,
    `cpu_cold` and `cpu_warm`; `latency_fresh`, `cpu_fresh` and `memory_peak` where the subject asks for them."""
    engines = {name: bench.engines[name] for name in subject.engines if name in bench.engines}
    filters: dict[str, str | None] = {EVERYTHING: None, **subject.files.filters()}
    total = len(filters) * (2 if subject.fresh else 1)
    for done, (name, text) in enumerate(filters.items()):
        bench.progress(NAME, f"{subject.name}: {name}", done, total)
        case = CaseId(layout=subject.name, measurement=NAME, case=name)
        if name == "partition":
            # Engines skip manifests here, and the floor does not.
            engines = {key: value for key, value in engines.items() if key != Inflate.name}
        ready = try_each(engines, partial(_readied, subject, name, text, patience), bench.recorder, case)
        _timed(bench, case, ready, patience, text)
    if subject.fresh:
        for done, name in enumerate(FRESH_CASES, len(filters)):
            bench.progress(NAME, f"{subject.name}: {name}, fresh processes", done, total)
            case = CaseId(layout=subject.name, measurement=NAME, case=name)
            _fresh(bench, case, subject, filters[name], patience)


def _readied(subject: MetadataSubject, case: str, text: str | None, patience: Patience, engine: AnyEngine) -> _Ready:
    """Plan once and look at the plan, then plan until the engine is warm."""
    opened = Opened.of(engine, subject.metadata_location, text)
    start = patience.clock()
    plan = engine.plan(opened.handle, opened.filter)
    first = patience.clock() - start
    beyond = _checked(engine, plan, subject.files, None if case == EVERYTHING else case)
    counters = {**plan.counters, **({} if beyond is None else {"files_beyond_bounds": beyond})}
    del plan
    seconds = [first]
    end = patience.clock() + patience.warm_seconds
    # Where one plan outlasts the patience, there is no time for more that are not recorded.
    while first < patience.case_seconds and (len(seconds) == 1 or patience.clock() < end):
        fresh = opened.afresh()
        start = patience.clock()
        engine.plan(fresh.handle, fresh.filter)
        seconds.append(patience.clock() - start)
    return _Ready(opened=opened, counters=counters, seconds=min(seconds))


def _checked(engine: AnyEngine, plan: Plan, files: MetadataFiles, filter: str | None) -> int | None:
    """How many files the plan has that bounds rule out; None for the floor, which plans nothing.

    Raises:
        Disagreement: The plan lacks a file, or has other deletes than it must.
    """
    if engine.name == Inflate.name:
        return None
    kept = files.kept(filter)
    if Ability.PLAN in engine.abilities:
        planned = np.zeros(files.files, np.bool_)
        planned[[ordinal_of(path) for path in plan.files]] = True
        if missing := int((kept & ~planned).sum()):
            raise Disagreement(f"does not plan {missing} of {int(kept.sum())} files that may hold matching rows")
        beyond = int((planned & ~kept).sum())
    else:
        beyond = plan.counters["files_planned"] - int(kept.sum())
        if beyond < 0:
            raise Disagreement(f"plans {-beyond} files too few, of {int(kept.sum())} that may hold matching rows")
    pairs = plan.counters.get("delete_pairs")
    if pairs is not None and beyond == 0 and pairs != files.delete_pairs(filter):
        raise Disagreement(f"matches {pairs} deletes to data files, and bounds leave {files.delete_pairs(filter)}")
    return beyond


def _timed(bench: Bench, case: CaseId, ready: Mapping[str, _Ready], patience: Patience, text: str | None) -> None:
    # An engine for which one plan is too long keeps nothing that would make the next one shorter.
    able = {name: each for name, each in ready.items() if Ability.PLAN in each.opened.engine.abilities}
    warm = {name: each for name, each in able.items() if each.seconds < patience.case_seconds}
    for metric, cpu_metric, chosen, prepare in ((COLD, CPU_COLD, ready, _cold), (WARM, CPU_WARM, warm, _warm)):
        warmups = patience.often.warmups if metric == WARM else 0
        meters = {name: CpuMeter(in_java=_in_java(name)) for name in chosen}
        cases = {name: Case(name, meters[name].metered(partial(prepare, each.opened))) for name, each in chosen.items()}
        rounds = {name: patience.rounds(each.seconds) for name, each in chosen.items()}
        timings = interleave_unevenly(
            cases, rounds=rounds, warmups=warmups, random=bench.random, executor=bench.executor
        )
        bench.recorder.fail_each(case, timings.errors)
        for name, seconds in timings.seconds.items():
            evidence = Evidence(counters=ready[name].counters, detail={"filter": text or ""})
            bench.recorder.record(case.of(name), metric, "s", seconds, evidence)
            bench.recorder.record(case.of(name), cpu_metric, "s", meters[name].seconds[-len(seconds) :], evidence)


def _in_java(engine: str) -> bool:
    return engine in ENGINES and ENGINES[engine].needs_spark


def _cold(opened: Opened) -> Callable[[], object]:
    fresh = opened.afresh()
    return lambda: fresh.engine.plan(fresh.handle, fresh.filter)


def _warm(opened: Opened) -> Callable[[], object]:
    return lambda: opened.engine.plan(opened.handle, opened.filter)


def _fresh(bench: Bench, case: CaseId, subject: MetadataSubject, text: str | None, patience: Patience) -> None:
    """Time from starting a process to its finished plan, and the memory that the plan took, engines in turn."""
    samples: dict[str, list[tuple[float, dict[str, Any]]]] = {
        name: [] for name in subject.engines if name in PLANNERS and name in bench.engines
    }
    kept = int(subject.files.kept(None if case.case == EVERYTHING else case.case).sum())
    for ordinal in range(patience.often.repetitions):
        for name in bench.random.sample(sorted(samples), len(samples)):
            if ordinal and ordinal >= patience.rounds(samples[name][0][0]):
                continue
            try:
                seconds, answer = _process(name, subject.metadata_location, text)
                if answer["files"] < kept:
                    raise Disagreement(f"a fresh process plans {answer['files']} files, fewer than {kept}")
            except (Disagreement, EngineFailed) as error:
                bench.recorder.fail(case.of(name), error)
                del samples[name]
                continue
            samples[name].append((seconds, answer))
    for name, taken in samples.items():
        evidence = Evidence(detail={"filter": text or ""})
        bench.recorder.record(case.of(name), FRESH, "s", [seconds for seconds, _ in taken], evidence)
        bench.recorder.record(case.of(name), CPU_FRESH, "s", [answer["cpu_seconds"] for _, answer in taken], evidence)
        if peaks := [float(answer["peak_bytes"]) for _, answer in taken if answer["peak_bytes"] is not None]:
            bench.recorder.record(case.of(name), MEMORY, "bytes", peaks, evidence)


def _process(
    name: str, location: str, text: str | None, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, dict[str, Any]]:
    """Seconds from starting the process to its answer, and the answer."""
    command = [sys.executable, "-m", "bench.measure.fresh_plan", name, location, *([] if text is None else [text])]
    start = clock()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        seconds = clock() - start
        _, errors = process.communicate(timeout=_FRESH_TIMEOUT_SECONDS)
    if process.returncode or not line:
        raise EngineFailed(f"a fresh process failed: {errors.strip().splitlines()[-1] if errors.strip() else line}")
    answer: dict[str, Any] = json.loads(line)
    return seconds, answer
