"""How `icebench gate --base` ends for revisions that are equal, and for one that is slower in one case: simulated, by
the gate's own rules, with noise as pairs of processes have it.

    python -m tests.simulated_gate [--decisions N]

`icebench calibrate` has the same of real processes, which take minutes each; here there are as many as one waits for.
Ends with 1 where more than 1 % of the decisions between equals are a regression.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from icebench.bench.gate.cases.time_cases import TIMED
from icebench.bench.gate.decisions.time_verdict import CONFIRMING, LOOKS, Stand, confirm, overall, screen
from icebench.bench.statistics.claims import Floats

FALSE_ALARMS = 0.01
RATIOS = (1.05, 1.1, 1.2)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What disturbs the logarithm of a pair's ratio.

    Args:
        noise: The scale of Student's t with 3 degrees of freedom.
        uneven: The deviation of the logarithm of that scale from case to case.
        stalled: The share of pairs in which one side is disturbed.
        stall: How much slower that makes it: the mean of an exponential distribution.
    """

    noise: float
    uneven: float = 0.4
    stalled: float = 0.05
    stall: float = 0.3


MACHINES = {
    "quiet": Machine(noise=0.015),
    "as measured, load 11": Machine(noise=0.03),
    "busier": Machine(noise=0.06, stalled=0.1),
    "overloaded": Machine(noise=0.12, stalled=0.15),
}


def logs_of(random: np.random.Generator, machine: Machine, scale: float, effect: float, pairs: int) -> Floats:
    """Logarithms of ratios of so many pairs of a case."""
    stalls = random.exponential(machine.stall, pairs) * random.choice([-1, 1], pairs)
    return effect + scale * random.standard_t(3, pairs) + stalls * (random.random(pairs) < machine.stalled)


def decide(random: np.random.Generator, machine: Machine, effects: Sequence[float]) -> tuple[Stand, list[int]]:
    """The verdict on cases with these effects, and how many pairs each case took."""
    scales = machine.noise * np.exp(random.normal(0, machine.uneven, len(effects)))
    stands, pairs = [], []
    for scale, effect in zip(scales, effects, strict=True):
        stand, count = _looked(logs_of(random, machine, scale, effect, LOOKS[-1]), LOOKS, screen)
        stands.append(stand)
        pairs.append(count)
    suspects = [number for number, stand in enumerate(stands) if stand is Stand.SUSPECTED]
    rule = partial(confirm, suspects=len(suspects))
    for number in suspects:
        logs = logs_of(random, machine, scales[number], effects[number], CONFIRMING[-1])
        stands[number], count = _looked(logs, CONFIRMING, rule)
        pairs[number] += count
    return overall({str(number): stand for number, stand in enumerate(stands)}), pairs


def _looked(logs: Floats, looks: Sequence[int], rule: Callable[[Sequence[float]], Stand]) -> tuple[Stand, int]:
    found = ((rule(list(logs[:look])), look) for look in looks)
    return next((stand, look) for stand, look in found if stand is not Stand.UNDECIDED)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulated_gate", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--decisions", type=int, default=3000, metavar="N", help="between equals, on each machine")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    random = np.random.default_rng(options.seed)
    worst = 0.0
    for name, machine in MACHINES.items():
        for ratio in (1.0, *RATIOS):
            count = options.decisions if ratio == 1 else options.decisions // 10
            effects = [math.log(ratio), *[0.0] * (len(TIMED) - 1)]
            found = [decide(random, machine, effects) for _ in range(count)]
            ends = Counter(stand for stand, _ in found)
            taken = [sum(pairs) / len(pairs) for _, pairs in found]
            if ratio == 1:
                worst = max(worst, ends[Stand.REGRESSED] / count)
            shares = ", ".join(f"{stand.value} {ends[stand] / count:.4f}" for stand in sorted(ends))
            sys.stdout.write(
                f"{name}, one case of {len(TIMED)} at {ratio}x: {shares}; "
                f"pairs of a case {np.mean(taken):.1f}, {np.quantile(taken, 0.95):.1f} in one decision of twenty\n"
            )
            sys.stdout.flush()
    return int(worst > FALSE_ALARMS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
