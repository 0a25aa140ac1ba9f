"""Which of two is faster, and when that may be said.

A *claim* names a winner out of two competitors, by one statistic pooled over all cases that both ran. Samples have two
levels: rounds, whose noise pairing takes away for the most part, and processes, whose memory layout, hash seeds and
compiled code favour one competitor for as long as they live. Repeating rounds in one process does not average that
away, and is why an engine used to win against its own twin: the interval is therefore over both levels.

1. Within a process and case: the Hodges-Lehmann estimate of ln(head / base) over the rounds that both have.
2. Over cases: the mean, a geometric mean of ratios. How far cases of a round share what disturbs it is seen: the noise
   is that of the rounds' means over cases, a variance clustered by rounds (Liang and Zeger 1986), and at least what it
   would be if they shared nothing.
3. Over processes: Student's t, its variance moderated by what is known beforehand (Smyth 2004, "Linear models and
   empirical Bayes methods"): as if `_PROCESSES` more processes had been seen, or fewer where the noise of few rounds is
   most of it (Satterthwaite's degrees of freedom). So one process alone can claim what is far beyond what processes
   differ by, and nothing else.

Priors, in standard deviations of logarithms:

| of | deviation | counts as | from |
|---|---|---|---|
| rounds of a case | `_ROUND`, 10 % | 2 rounds | assumed |
| a ratio between processes | `process_spread.ASSUMED`, 4 % | `_PROCESSES`, 8 | assumed, or kept runs |
| the same, besides | `_RESTLESS`, 1 % of the variance of a round | - | assumed |
| the machine's speed between two runs | `_RUN_DEVIATION`, 10 % | - | assumed |

The null hypothesis is not "equal" (nothing is) but "within `LEAST_EFFECT`". Claims that are read together are corrected
by Holm's method: a report is believed as a whole, so the chance of *any* false claim in it is what is bounded, and
Holm's bound holds however claims depend on one another (they share engines, rounds and machine). Benjamini and
Yekutieli bound only the share of false ones, at a price of ln(claims), for a list of claims that is far longer.

That two are equal is said of each pair by itself (`Effect.is_equal`): two one-sided tests at (1 - `CONFIDENCE`) / 2,
uncorrected.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from icebench.bench.statistics.process_spread import ASSUMED, Observed, ProcessSpread

LEAST_EFFECT = math.log(1.05)
"""Ratios up to 1.05 are of no interest."""

FALSE_CLAIMS = 0.01
"""How likely a report may be to make any false claim."""

CONFIDENCE = 0.95
"""Of the interval of an effect."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Prior:
    """A standard deviation of logarithms that is expected, and how many observations the expectation counts for."""

    deviation: float
    weight: float

    def variance(self, observed: float, count: float) -> float:
        """The moderated variance, where `count` degrees of freedom observed one."""
        return (self.weight * self.deviation**2 + count * observed) / (self.weight + count)


_ROUND = _Prior(0.1, 2)
_PROCESSES = 8
"""How many processes more than were seen the spread of processes counts for: a machine's is an average, and competitors
differ in theirs."""
_RESTLESS = 0.1**2
"""What processes differ by besides, as a share of the variance of a round: no number of cases averages it away."""
_RUN_DEVIATION = 0.1
"""What the speed of a machine, which pairs of one run share, differs by between two runs."""
_FEWEST_PAIRS = 6
"""Fewer often agree by chance: the variance is then the mean of the paired and the unpaired estimate."""
_STALL = 3 / 0.6745
"""Three standard deviations, in median absolute deviations."""
_OF_ESTIMATE = math.pi / 3
"""How many times the samples of a mean a Hodges-Lehmann estimate needs."""


def assumptions(spread: ProcessSpread = ASSUMED) -> str:
    """What claims assume beforehand, in words, and where the spread of processes is from."""
    return (
        f"That one takes more than {math.expm1(LEAST_EFFECT):.0%} longer than another; the chance that a report makes "
        f"any false claim is at most {FALSE_CLAIMS:.0%}. That two are equal is no claim of this kind: it is said where "
        f"the {CONFIDENCE:.0%} interval is within {math.expm1(LEAST_EFFECT):.0%} of 1, of each pair by itself, and of "
        f"pairs at that limit about {(1 - CONFIDENCE) / 2:.1%} are called equal. "
        f"Assumed: rounds of a case differ by {_ROUND.deviation:.0%} "
        f"(as if {_ROUND.weight:g} more had been seen), two runs by {_RUN_DEVIATION:.0%}. Processes differ by {spread} "
        f"(as if {_PROCESSES} more had been seen), and by a tenth of what rounds do. One process claims little "
        "below 1.5x, however many rounds it has; more processes do."
    )


@dataclass(frozen=True)
class Series:
    """Positive samples, and for each its process and round, of shape (n, 2); and what is known of processes of the
    machine that they were taken on, the same of all series that are compared."""

    values: Floats
    rounds: NDArray[np.int64]
    spread: ProcessSpread = ASSUMED


@dataclass(frozen=True, kw_only=True)
class Effect:
    """How many times the base the head takes.

    Args:
        ratio: The estimate.
        low: Lower end of its interval.
        high: Upper end.
        p_value: How likely a ratio at least so far from 1 is where the true one is within `LEAST_EFFECT`.
        processes: How many the estimate is over.
        error: The standard error of the ratio's logarithm.
        freedom: The degrees of freedom of that.
    """

    ratio: float
    low: float
    high: float
    p_value: float
    processes: int
    error: float = 0.0
    freedom: float = math.inf

    @property
    def differs(self) -> bool:
        """Whether the interval leaves out 1: what one looks at beside others differs more easily than one may claim."""
        return not self.low <= 1 <= self.high

    @property
    def is_equal(self) -> bool:
        """Whether the whole interval is within `LEAST_EFFECT`. Inconclusive does not mean equal."""
        return max(-math.log(self.low), math.log(self.high)) <= LEAST_EFFECT

    @property
    def inverse(self) -> Effect:
        """How many times the head the base takes."""
        return replace(self, ratio=1 / self.ratio, low=1 / self.high, high=1 / self.low)


@dataclass(frozen=True)
class _Cell:
    """ln(head / base) in one case and process; its variance, were it alone, with the degrees of freedom of that; and by
    how much each round moves it."""

    case: int
    process: int
    centre: float
    variance: float
    freedom: float
    moved: Mapping[tuple[int, int], float] = field(default_factory=dict)


def effect_of(cases: Sequence[tuple[Series, Series]]) -> Effect:
    """The pooled effect over cases, each a base and a head.

    Args:
        cases: At least one; of series that share no round, all samples of one are compared with all of the other.

    Raises:
        ValueError: No cases, or a sample is not positive.
    """
    if not cases:
        raise ValueError("no cases")
    cells = [cell for case, (base, head) in enumerate(cases) for cell in _cells(case, base, head)]
    return _paired(cells, cases[0][0].spread)


def between_processes(cases: Sequence[tuple[Series, Series]]) -> Observed | None:
    """What the processes of one run show of the spread of a ratio, pooled over cases; None of fewer than two.

    Args:
        cases: As for `effect_of`, with rounds that both have.
    """
    cells = [cell for case, (base, head) in enumerate(cases) for cell in _contrasts(case, (base, head), (-1.0, 1.0))]
    processes = sorted({cell.process for cell in cells})
    if len(processes) < 2:
        return None
    apart = _by_process(cells).apart
    # What rounds are expected to differ by has no part in this: more noise than there is would hide the spread.
    seen = [_seen_of_rounds([cell for cell in cells if cell.process == process])[0] for process in processes]
    within = float(np.mean(seen)) * _OF_ESTIMATE + _restless(cells)
    return Observed(between=float(np.var(apart, ddof=1)), within=within, freedom=len(apart) - 1)


def contrast_of(cases: Sequence[Sequence[Series]], weights: Sequence[float]) -> Effect | None:
    """The pooled ratio that a contrast of several competitors estimates: the product of what each takes to the power of
    its weight, in the rounds that all of them have. Weights of -1 and 1 give what `effect_of` gives.

    Args:
        cases: Of each, a series of every competitor.
        weights: One for each competitor; their sum is 0.

    Returns:
        None where no case has a round that all competitors have.

    Raises:
        ValueError: A sample is not positive.
    """
    used = [index for index, weight in enumerate(weights) if weight]
    kept = [[case[index] for index in used] for case in cases]
    found = [list(_contrasts(number, case, [weights[index] for index in used])) for number, case in enumerate(kept)]
    cells = [replace(cell, case=number) for number, own in enumerate(filter(None, found)) for cell in own]
    # What a process favours is of each competitor: two of weight 1 differ by the spread.
    size = math.sqrt(sum(weight**2 for weight in weights) / 2)
    return _paired(cells, cases[0][0].spread, size) if cells else None


def _paired(cells: Sequence[_Cell], spread: ProcessSpread, size: float = 1.0) -> Effect:
    centre, error, freedom, processes = _over_processes(cells, spread, size)
    return _effect(centre, error, freedom, processes)


@dataclass(frozen=True, kw_only=True)
class _ByProcess:
    """Of each process: how far its cells are from those of all, in the mean; the variance that rounds give that; and
    the degrees of freedom of it."""

    centre: float
    apart: list[float]
    within: list[float]
    freedom: list[float]


def _by_process(cells: Sequence[_Cell]) -> _ByProcess:
    cases = sorted({cell.case for cell in cells})
    of_case = {c: float(np.mean([x.centre for x in cells if x.case == c])) for c in cases}
    own = [[x for x in cells if x.process == process] for process in sorted({cell.process for cell in cells})]
    rounds = [_of_rounds(each) for each in own]
    return _ByProcess(
        centre=float(np.mean(list(of_case.values()))),
        apart=[float(np.mean([cell.centre - of_case[cell.case] for cell in each])) for each in own],
        within=[variance for variance, _ in rounds],
        freedom=[freedom for _, freedom in rounds],
    )


def _restless(cells: Sequence[_Cell]) -> float:
    return _RESTLESS * float(np.mean([cell.variance * (cell.freedom + 1) for cell in cells]))


def _over_processes(
    cells: Sequence[_Cell], spread: ProcessSpread, size: float = 1.0
) -> tuple[float, float, float, int]:
    """The mean over cases, its standard error with its degrees of freedom, and the number of processes that it is over;
    `size` is how many times a ratio of two what processes favour is expected to be."""
    found = _by_process(cells)
    count = len(found.apart)
    observed = float(np.var(found.apart, ddof=1)) if count > 1 else 0.0
    favour, noise = (size * spread.deviation) ** 2 + _restless(cells), float(np.mean(found.within))
    weight = (favour + noise) ** 2 / (favour**2 / _PROCESSES + noise**2 / sum(found.freedom))
    weight = min(weight, _PROCESSES)
    variance = _Prior(math.sqrt(favour + noise), weight).variance(observed, count - 1)
    return found.centre, math.sqrt(variance / count), weight + count - 1, count


def _of_rounds(cells: Sequence[_Cell]) -> tuple[float, float]:
    """The variance that rounds give the mean over the cells of one process, and its degrees of freedom: at least what
    is expected of rounds."""
    observed, rounds = _seen_of_rounds(cells)
    return _moderated(observed * rounds, rounds - 1) / rounds * _OF_ESTIMATE, _ROUND.weight + rounds - 1


def _seen_of_rounds(cells: Sequence[_Cell]) -> tuple[float, float]:
    """The variance of the mean over the cells of one process that its rounds show, and how many rounds they have."""
    places = {place for cell in cells for place in cell.moved}
    moved = [sum(cell.moved.get(place, 0.0) for cell in cells) for place in places]
    freedom = float(np.mean([cell.freedom for cell in cells]))
    rounds = freedom + 1
    together = sum(value**2 for value in moved) * rounds / max(freedom, 1)
    return max(together, sum(cell.variance for cell in cells)) / len(cells) ** 2, rounds


def _effect(centre: float, error: float, freedom: float, processes: int) -> Effect:
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom)) * error
    return Effect(
        ratio=math.exp(centre),
        low=math.exp(centre - reach),
        high=math.exp(centre + reach),
        # Twice: the winner is named after looking at the figures.
        p_value=min(1.0, 2 * float(stats.t.sf((abs(centre) - LEAST_EFFECT) / error, freedom))),
        processes=processes,
        error=error,
        freedom=freedom,
    )


def effect_between(cases: Sequence[tuple[Series, Series]]) -> Effect:
    """The pooled effect over cases of a base run and a head run, whose rounds have nothing to do with each other.

    Nothing pairs two runs, and all processes of a run share its hour: so the interval is over rounds and processes of
    both, and over what the machine's speed is taken to differ by between two hours, which no repetition within a run
    makes less.

    Args:
        cases: At least one; of each the series of the base and of the head.

    Raises:
        ValueError: No cases, or a sample is not positive.
    """
    if not cases:
        raise ValueError("no cases")
    (base, base_variance, base_count), (head, head_variance, head_count) = (
        _level([case[side] for case in cases]) for side in (0, 1)
    )
    return _effect(
        head - base,
        math.sqrt(_RUN_DEVIATION**2 + base_variance + head_variance),
        _PROCESSES + base_count + head_count - 2,
        min(base_count, head_count),
    )


def level_of(series: Series) -> tuple[float, float, float]:
    """The logarithm of what one competitor takes, its standard error, and the degrees of freedom of that.

    Raises:
        ValueError: A sample is not positive.
    """
    centre, error, freedom, _ = _over_processes(list(_contrasts(0, (series,), (1.0,))), series.spread)
    return centre, error, freedom


def _level(cases: Sequence[Series]) -> tuple[float, float, int]:
    """The mean logarithm over the cases of one run, its variance, and the number of processes that it is over."""
    cells = [cell for case, series in enumerate(cases) for cell in _contrasts(case, (series,), (1.0,))]
    centre, error, _, processes = _over_processes(cells, cases[0].spread)
    return centre, error**2, processes


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values, each corrected for all of them; in their order."""
    adjusted = [1.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(np.argsort(p_values, kind="stable")):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = highest
    return adjusted


def hodges_lehmann(differences: Floats) -> float:
    """The median of the averages of all pairs of at least one difference, each with itself included."""
    rows, columns = np.triu_indices(differences.size)
    return float(np.median((differences[rows] + differences[columns]) / 2))


def _cells(case: int, base: Series, head: Series) -> Iterator[_Cell]:
    paired = list(_contrasts(case, (base, head), (-1.0, 1.0)))
    yield from paired
    if not paired:
        logs = (np.log(head.values)[:, None] - np.log(base.values)[None, :]).ravel()
        each = [(_variance(np.log(s.values)), len(s.values)) for s in (base, head)]
        noise = sum(_moderated(variance, count - 1) / count for variance, count in each)
        yield _Cell(case, -1, float(np.median(logs)), noise, sum(count - 1 for _, count in each))


def _contrasts(case: int, competitors: Sequence[Series], weights: Sequence[float]) -> Iterator[_Cell]:
    """The weighted sums of logarithms over the rounds that all competitors have, process by process."""
    if min(series.values.min() for series in competitors) <= 0:
        raise ValueError("ratios need positive samples")
    logs = [dict(zip(map(tuple, s.rounds.tolist()), np.log(s.values), strict=True)) for s in competitors]
    shared = sorted(set.intersection(*(set(own) for own in logs)))
    for process in sorted({process for process, _ in shared}):
        rounds = [key for key in shared if key[0] == process]
        terms = np.array([[w * own[key] for key in rounds] for w, own in zip(weights, logs, strict=True)])
        sums = terms.sum(axis=0)
        centre, number = hodges_lehmann(sums), len(rounds)
        held = _without_stalls(sums - centre)
        variance = _variance(held)
        if number < _FEWEST_PAIRS:
            variance = (variance + sum(map(_variance, terms))) / 2
        moved = dict(zip(rounds, (held / number).tolist(), strict=True))
        yield _Cell(case, process, centre, variance / number, number - 1, moved)


def _variance(logs: Floats) -> float:
    return float(np.var(logs, ddof=1)) if len(logs) > 1 else 0.0


def _without_stalls(distances: Floats) -> Floats:
    """Distances from the estimate; of six and more none beyond `_STALL`: a stall, which the estimate leaves out, is no
    reason to doubt the other rounds. The median deviation of few is too small by n / (n - 0.8) (Croux, Rousseeuw 1992).
    """
    count = len(distances)
    if count < _FEWEST_PAIRS:
        return distances
    deviation = float(np.median(np.abs(distances - np.median(distances))))  # SciPy's looks at its arguments for longer
    reach = _STALL * deviation * count / (count - 0.8)
    return np.clip(distances, -reach, reach)


def _moderated(variance: float, freedom: float) -> float:
    """The variance of a round. Expected calm makes a storm no smaller."""
    return max(variance, _ROUND.variance(variance, freedom))
