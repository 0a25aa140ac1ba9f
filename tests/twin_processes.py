"""What an engine and itself differ by from one process to the next: a lower bound of what engines do.

    python -m tests.twin_processes [--processes N] [--rounds N]

Each process opens two catalogs of the gate's small tables and runs cases of the gate on both, interleaved in an order
that is drawn. Samples are processor time: what a machine does besides is noise of rounds, and no favour of a process.
Prints the deviation that the processes show, and what their rounds explain of it.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

import icebench
from icebench.bench.gate.cases.tables import Scale, build
from icebench.bench.gate.cases.time_cases import catalog_for
from icebench.bench.gate.cases.work import cases
from icebench.bench.statistics.claims import Series, between_processes
from icebench.bench.statistics.process_spread import Observed, fitted
from tests.tidy.source import REPOSITORY

CASES = (
    "scan/partitioned/metrics-filter",
    "scan/vectors/no-filter",
    "scan/large/decimals",
    "plan/many/cold/metrics-filter",
    "plan/many/warm/metrics-filter",
)
_WARM = 3

Logs = Mapping[str, Sequence[Sequence[float]]]
"""Case -> the natural logarithms of seconds, round by round, of the engine and of its twin."""


def race(warehouse: str, rounds: int, seed: int) -> Logs:
    """The samples of this process."""
    random, known = Random(seed), cases()
    found: dict[str, list[list[float]]] = {}
    for name in CASES:
        with ExitStack() as open_:
            catalogs = [open_.enter_context(catalog_for(warehouse, name)) for _ in range(2)]
            logs: list[list[float]] = [[], []]
            for number in range(_WARM + rounds):
                for side in random.sample([0, 1], 2):
                    timed = known[name].prepare(catalogs[side], icebench.Counters())
                    start = time.process_time()
                    kept = timed()
                    seconds = time.process_time() - start
                    del kept
                    if number >= _WARM:
                        logs[side].append(round(math.log(seconds), 3))
            found[name] = logs
    return found


def observed_in(processes: Sequence[Logs]) -> list[Observed]:
    """What processes differ by, case by case."""

    def series(name: str, side: int) -> Series:
        values = [math.exp(log) for own in processes for log in own[name][side]]
        places = [(number, place) for number, own in enumerate(processes) for place in range(len(own[name][side]))]
        return Series(np.array(values), np.array(places))

    found = (between_processes([(series(name, 0), series(name, 1))]) for name in processes[0])
    return [each for each in found if each is not None]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.twin_processes", description=__doc__)
    parser.add_argument("--processes", type=int, default=30, metavar="N")
    parser.add_argument("--rounds", type=int, default=24, metavar="N")
    parser.add_argument("--one", nargs=2, metavar=("WAREHOUSE", "SEED"), help="be one of the processes")
    options = parser.parse_args(arguments)
    if options.one is not None:
        warehouse, seed = options.one
        sys.stdout.write(json.dumps(race(warehouse, options.rounds, int(seed)), separators=(",", ":")))
        return 0
    with TemporaryDirectory() as warehouse:
        with closing(icebench.load_catalog(warehouse)) as catalog:
            build(catalog, Scale())
        command = [sys.executable, "-m", "tests.twin_processes", "--rounds", str(options.rounds), "--one", warehouse]
        made = [
            subprocess.run([*command, str(seed)], check=True, cwd=REPOSITORY, capture_output=True, text=True).stdout
            for seed in range(options.processes)
        ]
    observed = observed_in([json.loads(each) for each in made])
    for name, each in zip(CASES, observed, strict=True):
        between, within = math.sqrt(each.between), math.sqrt(each.within)
        sys.stdout.write(f"{name}: {between:.2%} between processes, of which rounds explain {within:.2%}\n")
    variance, freedom = fitted(observed)
    sys.stdout.write(f"the rest: {math.sqrt(max(0.0, variance)):.2%}, of {freedom:.0f} degrees of freedom\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
