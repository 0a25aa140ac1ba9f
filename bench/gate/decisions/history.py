"""The history: what each measured revision took and counted, and where its series changed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import t

from icebench.bench.gate.decisions.counter_kinds import Kind, kind_of
from icebench.bench.gate.decisions.time_verdict import lower_bound, upper_bound
from icebench.bench.statistics.change_points import change_points
from icebench.bench.statistics.claims import hodges_lehmann

TIME = "processor time"
"""The quantity of series of ratios; all others are counters."""
_LEVEL = 0.025
_FEWEST = 6
"""Samples that have an interval of 95 %."""
_PRIOR = 6
"""Degrees of freedom of the deviation that is typical of a case."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A case of a revision: what it took and counted, or its error.

    Args:
        ratio: Its processor time divided by the reference's, the median of `samples`; None if it could not be run.
        samples: The ratio in each pair of processes.
        counters: Exact ones.
        error: Why it could not be run; empty otherwise.
    """

    ratio: float | None = None
    samples: tuple[float, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    error: str = ""

    @property
    def log(self) -> float:
        """The natural logarithm of the ratio: Hodges and Lehmann's estimate, which varies less than the median.

        Raises:
            ValueError: It could not be run.
        """
        if self.ratio is None:
            raise ValueError("no ratio")
        return hodges_lehmann(np.log(self.samples)) if self.samples else math.log(self.ratio)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of the ratio, 95 % by the signed-rank test; None for fewer than six samples."""
        if len(self.samples) < _FEWEST:
            return None
        logs = np.log(self.samples)
        return math.exp(lower_bound(logs, _LEVEL)), math.exp(upper_bound(logs, _LEVEL))


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A measured revision.

    Args:
        revision: The full commit id.
        number: How many commits lead to it, itself included, by which revisions are ordered.
        date: When it was committed, ISO 8601 in UTC.
        subject: The first line of its message.
        reference: The full commit id of the revision that it was interleaved with.
        pairs: How many pairs of processes, of the case that had the most.
        environment: The processor, the interpreter and the libraries that it was measured with.
        cases: By name.
        error: Why no case could be run; empty otherwise.
    """

    revision: str
    number: int
    date: str
    subject: str
    reference: str
    pairs: int
    environment: Mapping[str, str] = field(default_factory=dict)
    cases: Mapping[str, Measured] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Change:
    """A step of a series, between two measured revisions.

    Args:
        after: The last revision before it.
        at: The first revision with it.
        before: The value before: of ratios the level.
        now: The value from there on.
        confidence: That there is a change at all, from 0 to 1; 1 for counters, which are exact.
    """

    after: Entry
    at: Entry
    before: float
    now: float
    confidence: float = 1.0

    @property
    def size(self) -> str:
        """How much, as a share of the value before."""
        return f"{self.now / self.before - 1:+.1%}" if self.before else f"+{self.now:g}"

    @property
    def other_causes(self) -> tuple[str, ...]:
        """What else was another between the two: the processor, the interpreter, libraries. Interleaving cancels most
        of what a machine does, but not what it does to one of two engines alone."""
        then, now = self.after.environment, self.at.environment
        return tuple(sorted(name for name in then.keys() & now.keys() if then[name] != now[name]))


@dataclass(frozen=True, kw_only=True)
class Series:
    """One quantity of a case over the revisions that have it."""

    case: str
    quantity: str
    entries: Sequence[Entry]
    values: Sequence[float]
    changes: Sequence[Change]


def comparable(entries: Sequence[Entry]) -> list[list[Entry]]:
    """The entries of each reference and digest of the cases, oldest revision first; those that are measured now last.

    Ratios to one reference say nothing about ratios to another, and neither do those of other cases. A revision that no
    case could be run of, which has no digest, is with the newest of its reference.
    """
    found: dict[tuple[str, str], list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: (not entry.cases, entry.number)):
        key = entry.reference, entry.environment.get("cases", "")
        if not entry.cases:
            key = next((other for other in reversed(found) if other[0] == entry.reference), key)
        found.setdefault(key, []).append(entry)
    ordered = [sorted(own, key=lambda entry: entry.number) for own in found.values()]
    return sorted(ordered, key=lambda own: own[-1].number)


def series_of(entries: Sequence[Entry]) -> list[Series]:
    """All series of comparable entries, ordered by case, time first; times are natural logarithms of ratios.

    A counter that changes nowhere is in no series. One that a case lacks and another case of the revision has is 0.
    """
    names = sorted({name for entry in entries for name in entry.cases})
    return [series for name in names for series in _series(name, entries)]


def _series(name: str, ordered: Sequence[Entry]) -> Iterator[Series]:
    ran = [entry for entry in ordered if name in entry.cases and not entry.cases[name].error]
    if timed := [entry for entry in ran if entry.cases[name].ratio is not None]:
        yield _times(name, timed)
    known = {entry.revision: {c for case in entry.cases.values() for c in case.counters} for entry in ran}
    for counter in sorted({c for entry in ran for c in entry.cases[name].counters}):
        if kind_of(counter) is Kind.AVOIDED:
            continue
        have = [entry for entry in ran if counter in known[entry.revision]]
        values = [entry.cases[name].counters.get(counter, 0) for entry in have]
        changes = [
            Change(after=have[i - 1], at=have[i], before=values[i - 1], now=values[i])
            for i in range(1, len(have))
            if values[i] != values[i - 1]
        ]
        if changes:
            yield Series(case=name, quantity=counter, entries=have, values=values, changes=changes)


def _times(name: str, entries: Sequence[Entry]) -> Series:
    logs = [entry.cases[name].log for entry in entries]
    changes = [
        Change(
            after=entries[found.index - 1],
            at=entries[found.index],
            before=found.before,
            now=found.now,
            confidence=found.confidence,
        )
        for found in change_points(logs, _errors([entry.cases[name] for entry in entries]))
    ]
    return Series(case=name, quantity=TIME, entries=entries, values=logs, changes=changes)


def _errors(measured: Sequence[Measured]) -> list[float] | None:
    """The standard error of the logarithm of each ratio, by its interval; None if no ratio has one.

    Six pairs may agree by chance, and are measured no further then. So each deviation is averaged with what is typical
    of the case, which those without an interval have.
    """
    deviations = [_deviation(each) for each in measured]
    known = [deviation for deviation in deviations if deviation is not None]
    if not known:
        return None
    typical = float(np.median(known))
    return [
        _moderated(deviation, len(each.samples), typical) for each, deviation in zip(measured, deviations, strict=True)
    ]


def _moderated(deviation: float | None, count: int, typical: float) -> float:
    freedom, own = (0, 0.0) if deviation is None else (count - 1, deviation)
    return math.sqrt((freedom * own**2 + _PRIOR * typical**2) / (freedom + _PRIOR) / max(count, 1))


def _deviation(measured: Measured) -> float | None:
    """Of the logarithm of the ratio of a pair."""
    if measured.interval is None:
        return None
    low, high = map(math.log, measured.interval)
    count = len(measured.samples)
    return (high - low) / 2 / float(t.ppf(1 - _LEVEL, count - 1)) * math.sqrt(count)
