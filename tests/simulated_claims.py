"""How often a claim is made of two that are equal, and of two that differ: simulated, with noise as runs have it.

    python -m tests.simulated_claims [--claims N] [--like RUN.jsonl]

`tests.twins` has the same of real runs, a few hundred claims; here there are as many as one waits for. Each machine of
`MACHINES` is one that was seen: what `--like` prints of a run file stands beside what is printed of them. Ends with 1
where more than 1 % of the claims between equals name a winner.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from icebench.bench.execution.run_file import read_run
from icebench.bench.report.compare import Records, series_of
from icebench.bench.statistics.claims import FALSE_CLAIMS, Floats, Series, effect_of

IN_A_REPORT = 45
"""Claims of a run of the default experiment, by which Holm's method divides at first."""
FEWEST = 200
"""Claims of a shape of many cases, of which others have more."""
RATIOS = (1.1, 1.5, 2.0, 5.0)
BURST = 4
"""Samples that a burst of stolen time lasts, in the mean: of whatever case comes next."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What disturbs logarithms of samples.

    Args:
        noise: Of each sample: the scale of Student's t with 3 degrees of freedom.
        uneven: The deviation of the logarithm of that scale from case to case.
        shared: Of all cases of a competitor in a round: the scale of t with 4.
        stolen: The share of samples in a burst.
        burst: How much slower one makes them: the mean of an exponential distribution.
        favour: Of a competitor for the life of a process: the scale of t with 4.
    """

    noise: float
    uneven: float
    shared: float
    stolen: float
    burst: float
    favour: float


MACHINES = {
    "calm": Machine(noise=0.03, uneven=0.3, shared=0.01, stolen=0.02, burst=0.3, favour=0.015),
    "as usual": Machine(noise=0.10, uneven=0.4, shared=0.04, stolen=0.08, burst=0.3, favour=0.02),
    "busy": Machine(noise=0.18, uneven=0.5, shared=0.12, stolen=0.15, burst=0.5, favour=0.04),
    "overloaded": Machine(noise=0.30, uneven=0.7, shared=0.15, stolen=0.25, burst=0.8, favour=0.06),
}


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Of a claim; `fewest` are the rounds that the slower of two has at least in each case."""

    cases: int
    rounds: int = 6
    fewest: int = 6
    processes: int = 1


SHAPES = {
    "planning": Shape(cases=40),
    "filtered": Shape(cases=12, fewest=3),
    "scans": Shape(cases=3, fewest=3),
    "a filter": Shape(cases=1),
    "scans, 3 processes": Shape(cases=3, processes=3),
}


def samples(random: np.random.Generator, machine: Machine, shape: Shape) -> Floats:
    """Logarithms of the samples of two equals: of shape (cases, 2, processes, rounds), each round in an order drawn."""
    logs = np.empty((shape.cases, 2, shape.processes, shape.rounds))
    scale = machine.noise * np.exp(random.normal(0, machine.uneven, (shape.cases, 1)))
    for process in range(shape.processes):
        favour = random.standard_t(4, 2) * machine.favour
        for place in range(shape.rounds):
            stolen = np.empty(2 * shape.cases)
            stolen[random.permutation(stolen.size)] = list(_bursts(random, machine, stolen.size))
            own = scale * random.standard_t(3, (shape.cases, 2)) + stolen.reshape(shape.cases, 2)
            logs[:, :, process, place] = own + random.standard_t(4, 2) * machine.shared + favour
    return logs


def _bursts(random: np.random.Generator, machine: Machine, count: int) -> Iterator[float]:
    begins = machine.stolen / (1 - machine.stolen) / BURST
    burst = random.exponential(machine.burst) if random.random() < machine.stolen else 0.0
    for chance in random.random(count):
        yield burst
        if chance < (1 / BURST if burst else begins):
            burst = 0.0 if burst else random.exponential(machine.burst)


def p_values(random: np.random.Generator, machine: Machine, shape: Shape, ratios: Sequence[float]) -> list[float]:
    """Of a claim where the head takes each of the ratios, under the same noise."""
    logs = samples(random, machine, shape)
    rounds = random.integers(shape.fewest, shape.rounds + 1, shape.cases)
    every = np.array([(p, r) for p in range(shape.processes) for r in range(shape.rounds)])
    kept = [every[:, 1] < number for number in rounds]
    values = np.exp(logs.reshape(shape.cases, 2, -1))
    return [
        effect_of(
            [
                (Series(base, every), Series(ratio * head[have], every[have]))
                for (base, head), have in zip(values, kept, strict=True)
            ]
        ).p_value
        for ratio in ratios
    ]


def spread(logs: Sequence[Floats]) -> str:
    """How far the samples of a case are from its median."""
    apart = np.concatenate([np.ravel(own - np.median(own, axis=-1, keepdims=True)) for own in logs])
    ends = np.quantile(apart, [0.05, 0.95])
    return f"deviation {apart.std():.2f}, median {1.48 * np.median(abs(apart)):.2f}, {ends[0]:+.2f} to {ends[1]:+.2f}"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulated_claims", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--claims", type=int, default=3500, metavar="N", help="between equals in one case, on each machine"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--like", type=Path, metavar="RUN", help="print the noise of this run, and end")
    options = parser.parse_args(arguments)
    if options.like is not None:
        timed = Records(read_run(options.like).records).where(unit="s").competing
        sys.stdout.write(f"{spread([np.log(series_of(r).values) for r in timed.all if min(r.samples) > 0])}\n")
        return 0
    random = np.random.default_rng(options.seed)
    wrong = made = 0
    for name, machine in MACHINES.items():
        sys.stdout.write(f"\n{name}: {spread([samples(random, machine, SHAPES['planning'])])}\n")
        for words, shape in SHAPES.items():
            count = max(FEWEST, options.claims // (shape.cases * shape.processes))
            equal = [p_values(random, machine, shape, (1.0,))[0] for _ in range(count)]
            other = [p_values(random, machine, shape, RATIOS) for _ in range(count // 4)]
            shares = np.mean(np.array(other) <= FALSE_CLAIMS / IN_A_REPORT, axis=0)
            alone, among = (
                float(np.mean(np.array(equal) <= level)) for level in (FALSE_CLAIMS, FALSE_CLAIMS / IN_A_REPORT)
            )
            powers = ", ".join(f"{ratio}x {share:.2f}" for ratio, share in zip(RATIOS, shares, strict=True))
            sys.stdout.write(f"  {words}: equal {alone:.4f} alone, {among:.5f} among {IN_A_REPORT}; {powers}\n")
            sys.stdout.flush()
            wrong, made = wrong + round(alone * len(equal)), made + len(equal)
    sys.stdout.write(f"\n{wrong} of {made} claims between equals name a winner, each alone in its report\n")
    return int(wrong > FALSE_CLAIMS * made)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
