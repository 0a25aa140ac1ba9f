"""A table under measurement, and what a measurement needs besides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from bench.engines.engine import Ability, AnyEngine
from bench.measure.brute.truth import truth_at
from bench.measure.interleave import Executor
from bench.measure.oracle import Answer
from bench.measure.progress import Progress
from bench.measure.recorder import CaseId, Recorder


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One table.

    Args:
        layout: The name under which it is recorded.
        metadata_location: The table that planning, pruning and decimals measure.
        filters: Name -> SQL text.
        decimal_columns: The columns of the decimals measurement.
        delete_columns: The columns that the deletes measurement scans.
        without_deletes: The table whose scan is what deletes are compared with; None when there is none.
        with_deletes: Variant -> the same data files with deletes.
        deleted_rows: Variant -> rows that its deletes take away, where that is known from elsewhere than an engine.
    """

    layout: str
    metadata_location: str
    filters: Mapping[str, str]
    decimal_columns: tuple[str, ...]
    delete_columns: tuple[str, ...] = ()
    without_deletes: str | None = None
    with_deletes: Mapping[str, str] = field(default_factory=dict)
    deleted_rows: Mapping[str, int] = field(default_factory=dict)


class Truth(Protocol):
    """What knows the rows of a table."""

    def answer(self, columns: Sequence[str]) -> Answer: ...


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What every measurement works with. `engines` are those that could be made, by name; `truth` gives what is in the
    table of a metadata file, and may raise NoTruth."""

    engines: Mapping[str, AnyEngine]
    recorder: Recorder
    executor: Executor
    random: Random
    progress: Progress
    truth: Callable[[str], Truth] = truth_at

    def able(self, ability: Ability, subject: Subject, measurement: str) -> dict[str, AnyEngine]:
        """The engines with an ability; the others are recorded as skipped."""
        for name, engine in self.engines.items():
            if ability not in engine.abilities:
                reason = f"{name} offers no {ability.value}"
                self.recorder.skip(CaseId(layout=subject.layout, measurement=measurement, engine=name), reason)
        return {name: engine for name, engine in self.engines.items() if ability in engine.abilities}
