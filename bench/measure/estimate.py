"""What a run will take, before it starts: cases, minutes and bytes on disk."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import repeat
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from icebench.bench.engines.registry import ENGINES
from icebench.bench.errors import CorruptRecords
from icebench.bench.experiment import UNTIMED, Experiment
from icebench.bench.measure.commits import WRITERS
from icebench.bench.measure.reading import DELETE_ENGINES
from icebench.bench.measure.run_file import Run, read_run
from icebench.bench.workloads.definitions import (
    DescribedWorkload,
    EventsWorkload,
    MaintenanceWorkload,
    ReadingWorkload,
    RowsWorkload,
    TableWorkload,
    Workload,
)

_VALUES = 2_880_404 * 24
"""Of store_sales at scale 1."""
_MAINTAINED_ROWS = 1_000_000
_SAMPLE_VALUES = 1 << 19
_FEWEST_SAMPLED = 500
"""Rows, of a wide table: of fewer, columns are more headers than values."""
_BUILD_SECONDS = 40.0
"""To write it on two cores."""
_SECONDS = {"planning": 0.02, "decimals": 0.8, "deletes": 0.5, "filtered": 0.15, "reading": 0.5, "commits": 0.2,
            "maintenance": 4.0}  # fmt: skip
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
    parts, pace = list(_parts(experiment)), experiment.pace
    seconds = sum(_START[ENGINES[name].needs_spark] for name in experiment.engines)
    for measurement, count, size in parts:
        if measurement in UNTIMED:
            seconds += count * _AROUND
            continue
        once = _SECONDS[measurement] * (1 + size) / 2
        warm = max(pace.warm_seconds / 4, pace.warmups[measurement] * (once + _AROUND))
        seconds += count * (2 * once + warm + pace.rounds(measurement, once) * (once + _AROUND))
    tables = sum(_size(workload) * _tables(workload, experiment) for workload in experiment.workloads)
    unknown = [
        each
        for each in experiment.workloads
        if isinstance(each, DescribedWorkload | MaintenanceWorkload | ReadingWorkload)
    ]
    return Estimate(
        cases=sum(count for _, count, _ in parts),
        seconds=(seconds + tables * _BUILD_SECONDS) * experiment.processes,
        size=None if unknown else round(sum(map(_bytes_made, experiment.workloads, repeat(experiment)))),
        basis="by rule of thumb, right within a factor of three",
    )


def _size(workload: Workload) -> float:
    """Values of its rows, as a share of those of store_sales at scale 1; 1 where that is not known."""
    if isinstance(workload, RowsWorkload):
        return workload.rows.rows * len(workload.rows.schema) / _VALUES
    if isinstance(workload, EventsWorkload):
        return workload.events.first_rows * len(workload.events.schema) / _VALUES
    if isinstance(workload, MaintenanceWorkload):
        return workload.tables.rows / _MAINTAINED_ROWS
    return 1.0


def _tables(workload: Workload, experiment: Experiment) -> int:
    """How many tables are made of it, raw files among them."""
    if isinstance(workload, RowsWorkload):
        return 1 + len(experiment.layouts)
    if isinstance(workload, EventsWorkload):
        # Each history leaves behind what its compactions replaced, and each state has a compacted twin and raw rows.
        histories = len(workload.deletes) * (len(workload.compact_every) + len(workload.policies))
        return histories * (1 + 2 * len(workload.measured))
    return 0


def _bytes_made(workload: Workload, experiment: Experiment) -> float:
    """Of all its tables: as many to a row as the first rows have in Parquet."""
    if isinstance(workload, RowsWorkload):
        rows, batch = workload.rows.rows, workload.rows.batch
    elif isinstance(workload, EventsWorkload):
        rows, batch = workload.events.first_rows, workload.events.rows
    else:
        return 0.0
    columns = len(batch(0, 1).schema)
    sample = pa.Table.from_batches([batch(0, min(rows, max(_FEWEST_SAMPLED, _SAMPLE_VALUES // columns)))])
    sink = pa.BufferOutputStream()
    pq.write_table(sample, sink, compression="zstd", store_decimal_as_integer=True)
    return float(sink.tell()) / len(sample) * rows * _tables(workload, experiment)


def _parts(experiment: Experiment) -> Iterator[tuple[str, int, float]]:
    """Measurement, how many cases of it, and the size of their table."""
    names, layouts = experiment.engines, [layout.name for layout in experiment.layouts]
    engines, planners, deletes = len(names), sum(ENGINES[name].plans for name in names), experiment.deletes
    each = len(deletes.kinds) * len(deletes.spreads) * len(deletes.fractions) * len(deletes.commits)
    for workload in experiment.workloads:
        size = _size(workload)
        if isinstance(workload, DescribedWorkload):
            own = len(workload.engines or names)
            filters = 1 + len(workload.files.filters())
            for name, count in (
                ("planning", own * filters * 2 * len(workload.writers)),
                ("commits", own * len(WRITERS)),
            ):
                if name in experiment.measurements:
                    yield name, count, size
        elif isinstance(workload, EventsWorkload):
            readers = [sum(name in DELETE_ENGINES[kind] for name in names) for kind in workload.deletes]
            states = (len(workload.compact_every) + len(workload.policies)) * len(workload.measured)
            yield "reading", sum(readers) * states * 2 * (1 + len(workload.events.filters)), size
        elif isinstance(workload, MaintenanceWorkload):
            yield "maintenance", engines * len(workload.actions), size
        elif isinstance(workload, ReadingWorkload):
            yield "reading", engines * _READING_CASES, size
        else:
            own_filters = workload.rows.filters if isinstance(workload, RowsWorkload) else ()
            filters = len(experiment.filters or own_filters) or _CHOSEN_FILTERS
            counts = {
                "planning": planners * 2 * (1 + filters),
                "pruning": planners * filters,
                "decimals": engines,
                "deletes": engines * (1 + each + deletes.refresh),
                "filtered": engines * (filters + experiment.filtered_everything),
                "reading": engines,
            }
            for name in experiment.measurements:
                on = [layout for layout in layouts if experiment.measures(name, layout)]
                if name in workload.measurements:
                    yield name, counts[name] * (1 if isinstance(workload, TableWorkload) else len(on)), size
