"""What a run will take, before it starts: cases, minutes and bytes on disk."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from icebench.bench.engines.registry import ENGINES
from icebench.bench.errors import CorruptRecords
from icebench.bench.execution.environment import hardware
from icebench.bench.execution.measurement import MEASUREMENTS, Asked
from icebench.bench.execution.pace import BUILD
from icebench.bench.execution.run_file import Run, read_environment, read_run
from icebench.bench.execution.runner import AROUND_SECONDS
from icebench.bench.experiment import Experiment
from icebench.bench.workloads.definitions import RowsWorkload
from icebench.bench.workloads.rows import Rows
from icebench.bench.workloads.workload import Workload
from icebench.engine.display import size_text

_SAMPLE_VALUES = 1 << 19
_FEWEST_SAMPLED = 500
"""Rows, of a wide table: of fewer, columns are more headers than values."""
_BUILD_SECONDS = 40.0
"""To write a table of scale 1 on two cores, until its files have the size that is wanted."""
_ONE_BUILD_SECONDS = 16.0
"""To write it once."""
_START, _START_SPARK = 2.0, 13.0
"""Seconds to start an engine, and a Spark session, which engines share but for those in processes of their own."""
_CHOSEN_FILTERS = 8
_MEGABYTE = 1 << 20


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
        size = "tables of unknown size" if self.size is None else f"at most {_size(self.size)} of tables"
        minutes = math.ceil(self.seconds / 60)
        wait = f"{minutes:,} min" if minutes > 1 else f"{max(1, math.ceil(self.seconds))} s"
        return f"{self.cases:,} cases, about {wait}, {size} ({self.basis})"


def estimate(experiment: Experiment, runs: Iterable[Path] = ()) -> Estimate:
    """By the latest of these runs that had the same definition and came to its end at once; else by counting cases.

    Args:
        experiment: What is to be run.
        runs: Files of runs, the oldest first. One that cannot be read, or is of another machine, is left out.
    """
    counted, here = _counted(experiment), hardware()
    for path in reversed(list(runs)):
        try:
            environment = read_environment(path)
            if not experiment.is_of(environment) or environment.get("hardware") != here:
                continue
            run = read_run(path)
        except CorruptRecords:
            continue
        if (seconds := _lasted(run)) is not None:
            return Estimate(cases=len(run.measured), seconds=seconds, size=counted.size, basis=f"as {run.run_id} took")
    return counted


def total_of(estimates: Sequence[Estimate]) -> Estimate:
    """What several runs take, one after the other."""
    sizes = [each.size for each in estimates]
    return Estimate(
        cases=sum(each.cases for each in estimates),
        seconds=sum(each.seconds for each in estimates),
        size=None if None in sizes else sum(size for size in sizes if size is not None),
        basis=f"{len(estimates)} runs",
    )


def _size(size: int) -> str:
    return size_text(math.ceil(size / _MEGABYTE) * _MEGABYTE)


def _lasted(run: Run) -> float | None:
    """Seconds from the start of the run to its end; None where it was interrupted in between."""
    started, definition = run.environment.get("started"), run.environment.get("definition") or {}
    processes = int(definition.get("processes", 1))
    resumed = any(line["process"] >= processes for line in run.rounds)
    if resumed or started is None or run.finished is None:
        return None
    return max(0.0, (datetime.fromisoformat(run.finished) - datetime.fromisoformat(started)).total_seconds())


def _counted(experiment: Experiment) -> Estimate:
    parts, pace = list(_parts(experiment)), experiment.pace
    engines = [ENGINES[name] for name in experiment.engines]
    sessions = sum(each.needs_spark and each.own_process for each in engines)
    sessions += any(each.needs_spark and not each.own_process for each in engines)
    seconds = _START * len(engines) + _START_SPARK * sessions
    for name, count, once in parts:
        kind = MEASUREMENTS[name]
        if not kind.timed:
            seconds += count * AROUND_SECONDS
            continue
        warm = max(pace.warm_seconds / 4, pace.warmups[name] * (once + AROUND_SECONDS))
        seconds += count * (2 * once + warm + pace.rounds(name, once) * (once + AROUND_SECONDS))
    layouts, workloads = len(experiment.layouts), experiment.workloads
    tables = sum(workload.size * _tables_built(workload, layouts) for workload in workloads)
    seconds += sum(_built(workload, experiment) for workload in workloads)
    known = all(workload.known_bytes for workload in workloads)
    return Estimate(
        cases=sum(count for _, count, _ in parts),
        # Further processes find the tables that the first one made.
        seconds=seconds * experiment.processes + tables * _BUILD_SECONDS,
        size=round(sum(_bytes_made(workload, layouts) for workload in workloads)) if known else None,
        basis="by rule of thumb, right within a factor of three",
    )


def _tables_built(workload: Workload, layouts: int) -> int:
    """Raw files of rows are written in a hundredth of the time that a table takes."""
    return layouts if isinstance(workload, RowsWorkload) else workload.tables_made(layouts)


def _built(workload: Workload, experiment: Experiment) -> float:
    """Seconds to build the table of each layout again and again, once unrecorded."""
    if not (isinstance(workload, RowsWorkload) and experiment.times_builds):
        return 0.0
    once = _ONE_BUILD_SECONDS * workload.size
    return len(experiment.layouts) * (1 + experiment.pace.rounds(BUILD, once)) * once


def _bytes_made(workload: Workload, layouts: int) -> float:
    """Of all its tables: as many to a row as the first rows have in Parquet."""
    match workload.generated:
        case None:
            return 0.0
        case Rows() as made:
            rows, batch = made.rows, made.batch
        case made:
            rows, batch = made.first_rows, made.rows
    columns = len(batch(0, 1).schema)
    sample = pa.Table.from_batches([batch(0, min(rows, max(_FEWEST_SAMPLED, _SAMPLE_VALUES // columns)))])
    sink = pa.BufferOutputStream()
    pq.write_table(sample, sink, compression="zstd", store_decimal_as_integer=True)
    return float(sink.tell()) / len(sample) * rows * workload.tables_made(layouts)


def _parts(experiment: Experiment) -> Iterator[tuple[str, int, float]]:
    """Measurement, how many cases of it, and the seconds of one execution."""
    planners = sum(ENGINES[name].plans for name in experiment.engines)
    for workload in experiment.workloads:
        arranged = isinstance(workload, RowsWorkload)
        own = workload.rows.filters if isinstance(workload, RowsWorkload) else ()
        filters = len(experiment.filters or own) or _CHOSEN_FILTERS
        for name in experiment.measurements:
            kind = MEASUREMENTS[name]
            if kind.fits(workload):
                asked = Asked(
                    engines=experiment.engines, planners=planners, filters=filters, options=experiment.options[name]
                )
                on = sum(experiment.measures(name, layout.name) for layout in experiment.layouts) if arranged else 1
                for count, seconds in kind.executions(workload, asked):
                    yield name, count * on, seconds * (1 + workload.size) / 2
