"""What the kept runs of a machine show of its processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path

from icebench.bench.errors import CorruptRecords
from icebench.bench.execution.measurement import MEASUREMENTS
from icebench.bench.execution.run_file import Run, read_environment, read_run
from icebench.bench.report.compare import Records, series_of
from icebench.bench.statistics.claims import between_processes
from icebench.bench.statistics.process_spread import Observed, estimated

MOST_RUNS = 20
"""The newest of its machine and of several processes: a machine changes, and each is read whole."""


def with_spread(run: Run, kept: Sequence[Path]) -> Run:
    """The run, with the spread of processes that the newest kept runs of its machine show, its own included.

    Args:
        run: Of one process or several.
        kept: Run files, the oldest first. Those of another machine, of one process, that failed, or that cannot be
            read are left out.
    """
    found: dict[str, list[Observed]] = {}
    for path in islice((path for path in reversed(kept) if _begins_alike(path, run)), MOST_RUNS):
        if own := _observed_of(path):
            found[path.name] = own
    observed = [each for own in found.values() for each in own]
    return replace(run, spread=estimated(observed, len(found)))


def _begins_alike(path: Path, run: Run) -> bool:
    """Whether a run file is of the same machine and of several processes, by its first line."""
    try:
        environment = read_environment(path)
        several = int((environment.get("definition") or {}).get("processes", 1)) > 1
        return several and environment.get("hardware") == run.environment.get("hardware") is not None
    except (CorruptRecords, OSError, ValueError, TypeError, AttributeError):
        return False


def _observed_of(path: Path) -> list[Observed]:
    try:
        run = read_run(path)
    except CorruptRecords:
        return []
    return [] if run.failed else list(observed_of(Records(run.records)))


def observed_of(records: Records) -> Iterator[Observed]:
    """What the processes of a run differ by: of each engine and the next one, for all that engines are compared by."""
    metrics = [(name, r.metric) for name, kind in MEASUREMENTS.items() for r in kind.races if r.between == "engines"]
    for _, of_workload in records.by_workload():
        for name, metric in metrics:
            own = of_workload.where(measurement=name, metric=metric).competing
            for base, head in pairwise(own.engines):
                both = [(of.one(engine=base), of.one(engine=head)) for _, _, of in own.cases()]
                cases = [
                    (series_of(first), series_of(second))
                    for first, second in both
                    if first is not None and second is not None and min(*first.samples, *second.samples) > 0
                ]
                if cases and (found := between_processes(cases)) is not None:
                    yield found
