"""What a run will take, before it starts: cases, minutes and bytes on disk."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bench.engines.registry import ENGINES
from bench.errors import CorruptRecords
from bench.experiment import UNTIMED, Experiment
from bench.measure.run_file import Run, read_run
from bench.workloads.definitions import DescribedWorkload, EventsWorkload, ReadingWorkload, TableWorkload, TpcdsWorkload

_BYTES = 180e6
"""Of one table of store_sales at scale 1, and of its raw files."""
_BUILD_SECONDS = 40.0
"""To write it on two cores."""
_SECONDS = {"planning": 0.02, "decimals": 0.8, "deletes": 0.5, "filtered": 0.15, "reading": 0.5, "commits": 0.2}
"""One execution at scale 1 (half of it at small scales is the same for any), and of tables of fixed sizes."""
_AROUND = 0.06
"""Seconds around each execution: garbage is collected, a handle opened."""
_START = {True: 15.0, False: 2.0}
"""Seconds to start an engine, with Spark or without."""
_CHOSEN_FILTERS = 8
_READING_CASES = 30


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What a run will take; `basis` says how far that is to be believed.

    Args:
        cases: Timed or counted.
        seconds: From start to end, with what has to be built.
        size: Bytes on disk of tables that are made; None where that is not known.
        basis: In words.
    """

    cases: int
    seconds: float
    size: int | None
    basis: str

    def __str__(self) -> str:
        size = "tables of unknown size" if self.size is None else f"at most {self.size / 1e9:.1f} GB of tables"
        minutes = max(1, math.ceil(self.seconds / 60))
        return f"{self.cases:,} cases, about {minutes:,} min, {size} ({self.basis})"


def estimate(experiment: Experiment, runs: Iterable[Path] = ()) -> Estimate:
    """By the latest of these runs that had the same definition and came to its end at once; else by counting cases.

    Args:
        experiment: What is to be run.
        runs: Files of runs on this machine, the oldest first. One that cannot be read tells nothing.
    """
    counted = _counted(experiment)
    for path in reversed(list(runs)):
        try:
            run = read_run(path)
        except CorruptRecords:
            continue
        if run.environment.get("digest") == experiment.digest and (seconds := _lasted(run, path)) is not None:
            return Estimate(cases=len(run.measured), seconds=seconds, size=counted.size, basis=f"as {run.run_id} took")
    return counted


def _lasted(run: Run, path: Path) -> float | None:
    """Seconds from the start of the run to the last line of its file; None where it was interrupted in between."""
    started, definition = run.environment.get("started"), run.environment.get("definition") or {}
    processes = int(definition.get("processes", 1))
    resumed = any(line["process"] >= processes for line in run.rounds)
    if not run.complete or resumed or started is None:
        return None
    return max(0.0, path.stat().st_mtime - datetime.fromisoformat(started).timestamp())


def _counted(experiment: Experiment) -> Estimate:
    cases = _cases(experiment)
    scale = experiment.scale or 1.0
    seconds = sum(_START[ENGINES[name].needs_spark] for name in experiment.engines)
    for measurement, count in cases.items():
        if measurement in UNTIMED:
            seconds += count * _AROUND
            continue
        once = _SECONDS[measurement] * (1 + scale) / 2
        warm = max(experiment.pace.warm_seconds / 4, experiment.pace.warmups[measurement] * (once + _AROUND))
        rounds = experiment.pace.rounds(measurement, once)
        seconds += count * (2 * once + warm + rounds * (once + _AROUND))
    made = [each for each in experiment.workloads if isinstance(each, TpcdsWorkload)]
    tables = sum(each.scale for each in made) * (1 + len(experiment.layouts))
    unknown = [each for each in experiment.workloads if not isinstance(each, TpcdsWorkload | TableWorkload)]
    return Estimate(
        cases=sum(cases.values()),
        seconds=(seconds + tables * _BUILD_SECONDS) * experiment.processes,
        size=None if unknown else round(tables * _BYTES),
        basis="by rule of thumb, right within a factor of three",
    )


def _cases(experiment: Experiment) -> dict[str, int]:
    """How many cases each measurement has, if every engine can do it."""
    engines, tables = len(experiment.engines), 0
    found: dict[str, int] = dict.fromkeys(experiment.measurements, 0)
    for workload in experiment.workloads:
        if isinstance(workload, DescribedWorkload):
            own = len(workload.engines or experiment.engines)
            filters = 1 + len(workload.files.filters())
            for name, count in (("planning", own * filters * 2 * len(workload.writers)), ("commits", own)):
                if name in found:
                    found[name] += count
        elif isinstance(workload, ReadingWorkload | EventsWorkload):
            found["reading"] = found.get("reading", 0) + engines * _READING_CASES
        else:
            tables += 1 if isinstance(workload, TableWorkload) else len(experiment.layouts)
    filters = len(experiment.filters) or _CHOSEN_FILTERS
    deletes = experiment.deletes
    each = len(deletes.kinds) * len(deletes.spreads) * len(deletes.fractions) * len(deletes.commits)
    variants = 1 + each + deletes.refresh
    of_table = {"planning": 2 * (1 + filters), "pruning": filters, "decimals": 1, "filtered": filters,
                "deletes": variants}  # fmt: skip
    for name in found.keys() & of_table.keys():
        found[name] += tables * engines * of_table[name]
    return found
