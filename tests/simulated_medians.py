"""How often the interval of a median has what it is about: simulated, with processes that differ.

    python -m tests.simulated_medians [--runs N] [--seed N]

Rounds differ by 2 %, and processes by the 4 % that claims assume (`icebench.bench.statistics.process_spread`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from icebench.bench.records.record import Record
from icebench.bench.statistics.process_spread import ASSUMED
from icebench.bench.statistics.summary import summarize

NOISE = 0.02
"""The deviation of the logarithm of a sample."""
ROUNDS = 6
PROCESSES = (1, 2, 3, 5)


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Shares of runs.

    Args:
        promised: What order statistics of all samples together claim.
        pooled: How often their interval has the true median.
        recorded: How often that of a record has it.
        of_process: How often that of a record has the median of its first process.
        width: The median width of the interval of a record, as a share of the true median.
    """

    promised: float
    pooled: float
    recorded: float
    of_process: float
    width: float


def coverage(random: np.random.Generator, processes: int, runs: int) -> Coverage:
    """Of as many runs, whose true median is 1."""
    places = tuple((process, number) for process in range(processes) for number in range(ROUNDS))
    hits, widths, promised = [], [], 0.0
    for _ in range(runs):
        favours = random.normal(0, ASSUMED.deviation, processes)
        samples = np.exp(np.repeat(favours, ROUNDS) + random.normal(0, NOISE, len(places)))
        pooled = summarize(samples.tolist())
        low, high = ends_of(record_of(tuple(samples.tolist()), places))
        assert pooled.ci_low is not None
        assert pooled.ci_high is not None
        hits.append((pooled.ci_low <= 1 <= pooled.ci_high, low <= 1 <= high, low <= np.exp(favours[0]) <= high))
        widths.append(high - low)
        promised = pooled.confidence
    shares = np.mean(hits, axis=0).tolist()
    return Coverage(
        promised=promised,
        pooled=shares[0],
        recorded=shares[1],
        of_process=shares[2],
        width=float(np.median(widths)),
    )


def record_of(
    samples: tuple[float, ...], places: tuple[tuple[int, int], ...], *, unit: str = "s", of_two: bool = False
) -> Record:
    """A record of samples; arguments as its own."""
    return Record(
        workload="w",
        layout="l",
        engine="e",
        engine_version="1",
        measurement="filtered",
        case="all",
        metric="scan_time_cold",
        unit=unit,
        samples=samples,
        places=places,
        of_two=of_two,
    )


def ends_of(record: Record) -> tuple[float, float]:
    """Its interval."""
    low, high = record.summary["ci_low"], record.summary["ci_high"]
    assert low is not None
    assert high is not None
    return low, high


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulated_medians", description=__doc__)
    parser.add_argument("--runs", type=int, default=4000, metavar="N", help="of each number of processes")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    write = sys.stdout.write
    write(
        "| processes | all samples together: promised, had | over processes: had | its width | median of a process |\n"
    )
    write("|---|---|---|---|---|\n")
    for processes in PROCESSES:
        found = coverage(np.random.default_rng(options.seed), processes, options.runs)
        write(
            f"| {processes} | {found.promised:.1%}, {found.pooled:.1%} | {found.recorded:.1%} | {found.width:.1%} "
            f"| {found.of_process:.1%} |\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
