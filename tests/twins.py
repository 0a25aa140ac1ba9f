"""How often a report names a winner where there is none: an engine against itself under another name, and a layout
against the same layout under another name, in runs of a small experiment.

    python -m tests.twins [--runs N] [--at-once N] [--results DIRECTORY]

Every run is a process of its own, as memory layout and hash seeds favour one of two twins for as long as a process
lives. Prints how many of the claims name a winner, with the exact interval, and which; ends with 1 above 1 %. Runs that
are in the directory already count, too.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scipy import stats

from icebench.bench.costs.costing import Costing
from icebench.bench.definition import Definition
from icebench.bench.engines.icebench import Icebench
from icebench.bench.engines.registry import ENGINES, EngineEntry
from icebench.bench.execution.run_file import Run, read_run
from icebench.bench.experiment import Experiment, parse_values
from icebench.bench.report.build import build_report
from icebench.bench.report.layout_comparison import compare_layouts
from icebench.bench.runs.run import Surroundings, run_experiment
from icebench.bench.statistics.claims import FALSE_CLAIMS
from tests.tidy.source import REPOSITORY

TWIN = "icebench-twin"
LAYOUTS = ("sorted", "sorted-twin")
PAYING = len(LAYOUTS) - 1
"""Claims that a layout pays, which a report is silent of where it is none."""

_COMPARED = re.compile(r"is fastest|fastest are|takes as long|inconclusive")
_WINNER = re.compile(r"is fastest|fastest are|pays over")


class Twin(Icebench):
    """This project's engine again."""

    name = TWIN


TWIN_ENTRY = EngineEntry(name=TWIN, factory="tests.twins:Twin", description="the twin", plans=True)


def experiment(seed: int) -> Experiment:
    """Planning, filtered reads and scans of twelve files, three rounds in one process."""
    if TWIN not in ENGINES:
        ENGINES.add(TWIN, TWIN_ENTRY)
    return parse_values(
        {
            "name": "twins",
            "seed": seed,
            "engines": ["icebench", TWIN],
            "measurements": ["planning", "filtered", "decimals"],
            "repetitions": 3,
            "workload": {"kind": "tpcds", "scale": 0.02},
            "table": {"files": 12},
            "layout": [{"name": name, "sort": ["ss_item_sk"]} for name in LAYOUTS],
            "filters": {
                "one_month": "ss_sold_date >= '2000-11-01' and ss_sold_date < '2000-12-01'",
                "one_item": "ss_item_sk = 77",
            },
            "filtered": {"columns": ["ss_item_sk", "ss_net_paid"]},
        }
    )


def claims(run: Run) -> Iterator[str]:
    """What the report of a run, and the comparison of its layouts, say of who is faster; empty for each layout of which
    it is not said that it pays."""
    costing = Costing.parse(Definition(run.environment["definition"]))
    found = (*build_report(run, results_file="").findings, *compare_layouts(run, (), costing).findings)
    said = list(dict.fromkeys(finding.statement for finding in found))
    paying = [statement for statement in said if "pays over" in statement]
    yield from (statement for statement in said if _COMPARED.search(statement))
    yield from paying
    yield from ("" for _ in range(PAYING - len(paying)))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.twins", description="How often does an equal win?")
    parser.add_argument("--runs", type=int, default=100, metavar="N", help="runs that are made")
    parser.add_argument(
        "--at-once", type=int, default=1, metavar="N", help="runs side by side, which disturb each other"
    )
    parser.add_argument("--results", type=Path, default=REPOSITORY / "results" / "twins", metavar="DIRECTORY")
    parser.add_argument("--seed", type=int, help="only make the run of this seed")
    options = parser.parse_args(arguments)
    if options.seed is not None:
        where = Surroundings(cache=REPOSITORY / "datasets" / "cache", results=options.results / str(options.seed))
        return int(run_experiment(experiment(options.seed), where=where).failed)
    made = len(list(options.results.glob("*/*.jsonl")))
    seeds = range(made, made + options.runs)
    # The first makes the tables.
    for part in (seeds[:1], seeds[1:]):
        with ThreadPoolExecutor(options.at_once) as pool:
            list(pool.map(lambda seed: _run(seed, options.results), part))
    return _report([read_run(path) for path in sorted(options.results.glob("*/*.jsonl"))])


def _run(seed: int, results: Path) -> None:
    command = [sys.executable, "-m", "tests.twins", "--seed", str(seed), "--results", str(results)]
    subprocess.run(command, check=True, cwd=REPOSITORY)


def _report(runs: Sequence[Run]) -> int:
    said = [(run.run_id, claim) for run in runs for claim in claims(run)]
    winners = [(name, claim) for name, claim in said if _WINNER.search(claim)]
    share = stats.binomtest(len(winners), len(said)).proportion_ci(0.95)
    for name, claim in winners:
        sys.stdout.write(f"{name}: {claim}\n")
    sys.stdout.write(
        f"{len(runs)} runs: {len(winners)} of {len(said)} claims name a winner "
        f"({len(winners) / len(said):.2%}, 95% interval {share.low:.2%} to {share.high:.2%})\n"
    )
    return int(len(winners) > FALSE_CLAIMS * len(said))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
