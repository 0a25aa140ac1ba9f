"""The history: what each measured revision took and counted, a line of JSON each, and where its series changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from icebench.bench.errors import ConfigError
from icebench.bench.gate.kinds import Kind, kind_of
from icebench.bench.statistics.change_points import change_points

TIME = "processor time"
"""The quantity of series of ratios; all others are counters."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A case of a revision: ln of its processor time divided by the reference's, and its exact counters; or `error`."""

    log_ratio: float | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A measured revision.

    Args:
        revision: The full commit id.
        number: How many commits lead to it, itself included, by which revisions are ordered.
        date: When it was committed, ISO 8601 in UTC.
        subject: The first line of its message.
        reference: The full commit id of the revision that it was interleaved with.
        pairs: How many pairs of processes.
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
        before: The value before: of ratios the median.
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


@dataclass(frozen=True, kw_only=True)
class Series:
    """One quantity of a case over the revisions that have it."""

    case: str
    quantity: str
    entries: Sequence[Entry]
    values: Sequence[float]
    changes: Sequence[Change]


def encode(entry: Entry) -> str:
    """The line of an entry, with its line feed."""
    return json.dumps(asdict(entry), sort_keys=True, separators=(",", ":")) + "\n"


def decode(text: str, name: str) -> list[Entry]:
    """The entries of a file of this name, one a line.

    Raises:
        ConfigError: A damaged line, with its number.
    """
    lines = text.split("\n")
    if lines.pop():
        raise ConfigError("damaged: it does not end in a line feed", path=f"{name}, line {len(lines) + 1}")
    return [_entry(line, f"{name}, line {number}") for number, line in enumerate(lines, 1)]


def _entry(line: str, where: str) -> Entry:
    try:
        fields: dict[str, Any] = json.loads(line)
        made = Entry(**{**fields, "cases": {name: Measured(**case) for name, case in fields["cases"].items()}})
        texts = (made.revision, made.date, made.subject, made.reference, made.error)
        ratios = [case.log_ratio for case in made.cases.values()]
        counts = [made.number, *(count for case in made.cases.values() for count in case.counters.values())]
        sound = (
            all(isinstance(text, str) for text in texts)
            and all(ratio is None or isinstance(ratio, float) for ratio in ratios)
            and all(type(count) is int for count in counts)
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(f"damaged: {error}", path=where) from error
    if not sound:
        raise ConfigError("damaged: a value of the wrong type", path=where)
    return made


def series_of(entries: Sequence[Entry]) -> list[Series]:
    """All series, ordered by case, time first; of a revision that was measured again, the last measurement counts.

    A counter that changes nowhere is in no series. One that a case lacks and another case of the revision has is 0.

    Raises:
        ConfigError: Revisions were measured against different references.
    """
    ordered = in_order(entries)
    if len(references := {entry.reference for entry in ordered}) > 1:
        raise ConfigError(f"measured against {len(references)} references: {', '.join(sorted(references))}")
    names = sorted({name for entry in ordered for name in entry.cases})
    return [series for name in names for series in _series(name, ordered)]


def in_order(entries: Sequence[Entry]) -> list[Entry]:
    """The last measurement of each revision, oldest revision first."""
    latest = {entry.revision: entry for entry in entries}
    return sorted(latest.values(), key=lambda entry: entry.number)


def _series(name: str, ordered: Sequence[Entry]) -> Iterator[Series]:
    ran = [entry for entry in ordered if name in entry.cases and not entry.cases[name].error]
    timed = [(entry, ratio) for entry in ran if (ratio := entry.cases[name].log_ratio) is not None]
    if timed:
        yield _times(name, [entry for entry, _ in timed], [ratio for _, ratio in timed])
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


def _times(name: str, entries: Sequence[Entry], logs: Sequence[float]) -> Series:
    changes = [
        Change(
            after=entries[found.index - 1],
            at=entries[found.index],
            before=found.before,
            now=found.now,
            confidence=found.confidence,
        )
        for found in change_points(logs)
    ]
    return Series(case=name, quantity=TIME, entries=entries, values=logs, changes=changes)
