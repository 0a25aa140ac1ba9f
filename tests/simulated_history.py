"""How often `icebench history` finds a planted step of processor time, and how often it finds one that is not there.

    python -m tests.simulated_history [--histories N]

Histories are made of the pairs of processes that were recorded, by the function that the command calls: of new
revisions, each with the noise of a recorded one, and of the recorded ones as they are. A step is found if a change is
reported within one revision of it. Of series without a step there is the share with a change, and with one of more
than each of `CONFIDENCES`. Ends with 1 where these are more than the confidences say.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from icebench.bench.cli.history_store import read_history
from icebench.bench.gate.decisions.history import TIME, Entry, Measured, series_of
from icebench.bench.statistics.claims import Floats

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT / "results" / "asv" / "results"
REVISIONS = ("47e50c24", "fe446914", "30757085", "34232fa7", "ca7306db", "4a981ee4", "71486120")
"""Those whose noise is used: the reference and six beside it, of which all pairs are kept."""
CONFIDENCES = (0.9, 0.95, 0.99)
STEPS = (0.05, 0.10)
_NEAR = 1
_FEWEST = 2
"""Revisions on each side of a step: with one alone it might be a stall."""
_PAIRS = 6


@dataclass(frozen=True, kw_only=True)
class Noise:
    """What disturbs the ratio of a revision besides the noise of its pairs.

    Args:
        between: The deviation of its logarithm from revision to revision, which all pairs of a revision share.
        stalled: The share of revisions that are off by 15 % in all pairs.
    """

    between: float = 0.0
    stalled: float = 0.0


NOISES = {
    "as recorded": Noise(),
    "and 1 % between revisions": Noise(between=0.01),
    "and 3 % between revisions": Noise(between=0.03),
    "and one revision of twenty off by 15 %": Noise(stalled=0.05),
}


@dataclass
class Rates:
    """Of series of processor time with a planted step, or without one."""

    series: int = 0
    found: int = 0
    others: int = 0
    sure: dict[float, int] = field(default_factory=lambda: dict.fromkeys(CONFIDENCES, 0))

    def add(self, changes: Mapping[int, float], place: int | None) -> None:
        """Count the changes of a series: the positions of their first revisions, and their confidences. `sure` counts
        the series without a step that have a change of more than that confidence."""
        near = place is not None and any(abs(change - place) <= _NEAR for change in changes)
        self.series += 1
        self.found += near
        self.others += len(changes) - near if place is not None else bool(changes)
        for level in self.sure:
            self.sure[level] += place is None and any(confidence > level for confidence in changes.values())

    @property
    def is_honest(self) -> bool:
        """Whether no more series without a step have a change than confidences say: two standard errors beyond."""
        return all(
            count / self.series <= (1 - level) + 2 * math.sqrt(level * (1 - level) / self.series)
            for level, count in self.sure.items()
        )


def recorded() -> list[Entry]:
    """The `REVISIONS`, oldest first."""
    found = [entry for entry in read_history(RECORDED) if entry.reference.startswith(REVISIONS[0])]
    return [entry for entry in sorted(found, key=lambda entry: entry.number) if entry.revision.startswith(REVISIONS)]


def residuals(entries: Sequence[Entry]) -> dict[str, list[Floats]]:
    """Of each case, by revision: the logarithms of the ratios of its pairs, less that of the revision's."""
    found: dict[str, list[Floats]] = {}
    for entry in entries:
        for name, case in entry.cases.items():
            if len(case.samples) >= _PAIRS:
                found.setdefault(name, []).append(np.log(case.samples) - case.log)
    return found


def made(random: np.random.Generator, noises: Mapping[str, Sequence[Floats]], noise: Noise, length: int) -> list[Entry]:
    """A history without a step: each revision has as many pairs as a recorded one, drawn from its own."""
    return [
        _entry(number, {name: _measured(random, own, noise) for name, own in noises.items()})
        for number in range(length)
    ]


def _measured(random: np.random.Generator, noises: Sequence[Floats], noise: Noise) -> Measured:
    own = noises[int(random.integers(len(noises)))]
    shared = random.normal(0, noise.between) + random.choice([-0.15, 0.15]) * (random.random() < noise.stalled)
    logs = random.choice(own, own.size) + shared
    return Measured(ratio=math.exp(float(np.median(logs))), samples=tuple(np.exp(logs).tolist()))


def _entry(number: int, cases: Mapping[str, Measured]) -> Entry:
    return Entry(
        revision=f"{number:040x}",
        number=number,
        date="2026-01-01T00:00:00+00:00",
        subject=f"change {number}",
        reference="f" * 40,
        pairs=15,
        cases=cases,
    )


def planted(entries: Sequence[Entry], case: str, place: int, factor: float) -> list[Entry]:
    """The history in which a case takes so many times as long from a place among its revisions on."""
    changed = []
    for entry in entries:
        own = entry.cases.get(case)
        if own is None or own.ratio is None:
            changed.append(entry)
            continue
        place -= 1
        if place < 0:
            samples = tuple(sample * factor for sample in own.samples)
            own = replace(own, ratio=own.ratio * factor, samples=samples)
        changed.append(replace(entry, cases={**entry.cases, case: own}))
    return changed


def changes_of(entries: Sequence[Entry]) -> dict[str, dict[int, float]]:
    """The positions of the first revisions with another level of processor time, with their confidences, by case."""
    return {
        series.case: {series.entries.index(change.at): change.confidence for change in series.changes}
        for series in series_of(entries)
        if series.quantity == TIME
    }


def rates(histories: int, noise: Noise, step: float, *, length: int = 40, seed: int = 1) -> Rates:
    """Of so many made histories, with a step in each case, up or down, at a random place; without one if it is 0."""
    random = np.random.default_rng(seed)
    noises = residuals(recorded())
    found = Rates()
    for _ in range(histories):
        entries = made(random, noises, noise, length)
        places = {name: int(random.integers(_FEWEST, length - _FEWEST + 1)) for name in noises}
        for name, place in places.items():
            entries = planted(entries, name, place, (1 + step) ** random.choice([-1, 1]))
        for name, changes in changes_of(entries).items():
            found.add(changes, places[name] if step else None)
    return found


def rates_of_copies(step: float, seeds: Sequence[int] = ()) -> Rates:
    """Of copies of the recorded history, a step up or down at each place that is not near a change of its own.

    Args:
        step: As a share.
        seeds: A copy for each, whose pairs are drawn from those of the revision; without any the history as it is.
    """
    entries = recorded()
    known = changes_of(entries)
    found = Rates()
    for copy in [_redrawn(np.random.default_rng(seed), entries) for seed in seeds] or [entries]:
        for name, own in known.items():
            count = sum(name in entry.cases and not entry.cases[name].error for entry in copy)
            for place in range(_FEWEST, count - _FEWEST + 1):
                if any(abs(place - change) <= _NEAR for change in own):
                    continue
                for factor in (1 + step, 1 / (1 + step)):
                    changes = changes_of(planted(copy, name, place, factor))[name]
                    found.add({change: sure for change, sure in changes.items() if change not in own}, place)
    return found


def _redrawn(random: np.random.Generator, entries: Sequence[Entry]) -> list[Entry]:
    def drawn(case: Measured) -> Measured:
        samples = random.choice(case.samples, len(case.samples)).tolist() if case.samples else ()
        return replace(case, ratio=float(np.median(samples)) if samples else case.ratio, samples=tuple(samples))

    return [
        replace(entry, cases={name: drawn(case) for name, case in sorted(entry.cases.items())}) for entry in entries
    ]


def lines(histories: int) -> Iterator[tuple[str, Rates | None, Sequence[Rates]]]:
    """A line of the table: what it is of, the rates without a step, and those with one."""
    for length in (7, 10, 40):
        for name, noise in NOISES.items():
            steps = [rates(histories, noise, step, length=length) for step in (0.0, *STEPS)]
            yield f"{length} revisions, {name}", steps[0], steps[1:]
    for name, seeds in (("as they are", ()), ("pairs drawn again", range(histories))):
        yield f"the {len(recorded())} recorded, {name}", None, [rates_of_copies(step, seeds) for step in STEPS]


def main(arguments: Sequence[str]) -> int:
    summary = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m tests.simulated_history", description=summary)
    parser.add_argument("--histories", type=int, default=100, metavar="N", help="of five cases, for each figure")
    options = parser.parse_args(arguments)
    is_honest = True
    for name, without, steps in lines(options.histories):
        cells = [""] if without is None else [f"{without.others / without.series:.3f}", _sure(without)]
        cells += [f"{rates.found / rates.series:.3f}, {rates.others / rates.series:.3f}" for rates in steps]
        sys.stdout.write(f"| {name} | {' | '.join(cells)} |\n")
        sys.stdout.flush()
        is_honest = is_honest and (without is None or without.is_honest)
    return int(not is_honest)


def _sure(rates: Rates) -> str:
    return ", ".join(f"{count / rates.series:.3f} over {level:.0%}" for level, count in rates.sure.items())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
