"""What has one figure, and the executions that give it: see docs/design/harness.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

EVERYTHING = "all"
"""The filter of a case that has none."""
NONE = "none"
"""The configuration without what the others of its measurement have: deletes."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A case; in a message about many, "*" stands for all.

    Args:
        workload: Whose rows, or files; cases are interleaved and compared within it.
        layout: How they are arranged, varied knobs included, or the name of an existing table.
        configuration: What else varies, such as deletes; empty where nothing does.
        cache: ``cold``, ``warm``, ``disk`` (with what an earlier plan left there), ``fresh`` (a new process), or
            ``none`` where nothing is cached.
        filter: Its name.
        engine: The engine that is measured.
        measurement: One of `icebench.bench.execution.measurement.MEASUREMENTS`.
    """

    workload: str = "*"
    layout: str = "*"
    configuration: str = ""
    cache: str = "none"
    filter: str = EVERYTHING
    engine: str = "*"
    measurement: str = "*"

    def of(self, engine: str) -> Case:
        """The same case of one engine."""
        return replace(self, engine=engine)

    @property
    def label(self) -> str:
        """What sets it apart in reports from others of its layout, engine and measurement."""
        return self.configuration or self.filter

    def __str__(self) -> str:
        return "/".join(part for part in (self.layout, self.measurement, self.label, self.engine) if part != "*")


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a case did, timing apart; equal in every process of a run.

    Args:
        counters: Exact counts of work.
        checksum: Identifies the rows that were delivered.
        detail: What names stand for.
        figures: Shares of counts, such as recall.
        base: The case that it is compared with in the same round; None without one.
        query: The query in the engine's own language (`icebench.bench.engines.engine.Quotable`); empty if it is not
            known.
        table: The metadata file that was queried; empty if the query is, or if the file is gone after the run.
    """

    counters: Mapping[str, int] = field(default_factory=dict)
    checksum: str | None = None
    detail: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    base: Case | None = None
    query: str = ""
    table: str = ""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one execution took: seconds by the clock, seconds of all processors, the rise of resident bytes at its peak
    (None where the system does not report it), and further figures by metric."""

    wall: float
    cpu: float
    memory: int | None = None
    more: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One recorded execution. Samples of one workload with the same process and round are pairs."""

    process: int
    round: int
    cost: Cost

    @property
    def place(self) -> tuple[int, int]:
        """Process and round."""
        return self.process, self.round


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A case with everything that is known of it."""

    case: Case
    engine_version: str
    evidence: Evidence
    samples: tuple[Sample, ...] = ()
