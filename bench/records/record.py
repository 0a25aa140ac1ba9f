"""One metric of one case as reports show it, derived from what was recorded; and what was skipped or went wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name

from icebench.bench.statistics.process_spread import ASSUMED, ProcessSpread
from icebench.bench.statistics.summary import summarize

Places = tuple[tuple[int, int], ...]
_OVER_PROCESSES = "icebench.bench.statistics.over_processes:interval_over_processes"


@dataclass(frozen=True, kw_only=True)
class Record:
    """A series of samples.

    `case` is the case's label: its filter, deletes, or what else sets it apart from others of its layout; `detail` says
    what names stand for; `cache` is the case's. The metrics are named in ``docs/design/measuring.md``. `places` has the
    process and round of each sample: two records of one workload are compared in the pairs that both have. `summary` is
    derived from the samples by `icebench.bench.statistics`; `counters` are exact, never clocks; `checksum` identifies
    the rows that were delivered, equal for every engine that is right; `query` is the case's, in the engine's own
    words; `spread` is what is known of processes of the machine; `of_two` says that samples are what a case takes more
    than its base in the same round, or that as a share of the base.
    """

    workload: str
    layout: str
    engine: str
    engine_version: str
    measurement: str
    case: str
    metric: str
    unit: str
    samples: tuple[float, ...]
    places: Places = ()
    summary: Mapping[str, float | int | None] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    checksum: str | None = None
    cache: str = "none"
    query: str = ""
    detail: Mapping[str, str] = field(default_factory=dict)
    spread: ProcessSpread = ASSUMED
    of_two: bool = False

    def __post_init__(self) -> None:
        if not self.places:
            object.__setattr__(self, "places", tuple((0, ordinal) for ordinal in range(len(self.samples))))
        if not self.summary:
            object.__setattr__(self, "summary", self._summed_up())

    def _summed_up(self) -> dict[str, float | int | None]:
        """The order statistics. Rounds of several processes are not as many independent samples: their interval is over
        processes, by what loads SciPy, which a process of one need not wait for."""
        found = summarize(self.samples).as_dict()
        if found["ci_low"] is not None and len({process for process, _ in self.places}) > 1:
            found["ci_low"], found["ci_high"], found["confidence"] = resolve_name(_OVER_PROCESSES)(
                self.samples, self.places, self.spread, unit=self.unit, of_two=self.of_two
            )
        return found

    @property
    def key(self) -> tuple[str, str, str, str, str, str, str]:
        """What makes a record unique in its run: workload, layout, engine, measurement, case, cache, metric."""
        return (self.workload, self.layout, self.engine, self.measurement, self.case, self.cache, self.metric)


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """Something that was asked for and not measured, and why. `workload`, `layout` and `case` are "*" where all are
    meant, and the workload is in runs of before it was recorded."""

    engine: str
    measurement: str
    reason: str
    workload: str = "*"
    layout: str = "*"
    case: str = "*"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Something that went wrong; a run with a failure has failed. `kind` is the class of the error, `workload` as for
    `Skipped`."""

    kind: str
    message: str
    engine: str = "*"
    measurement: str = "*"
    workload: str = "*"
    layout: str = "*"
    case: str = "*"

    @property
    def table(self) -> str:
        """The layout, after the workload's name where that is known and another one."""
        return ", ".join(dict.fromkeys(name for name in (self.workload, self.layout) if name != "*")) or "*"

    def __str__(self) -> str:
        where = "/".join(part for part in (self.table, self.measurement, self.case, self.engine) if part != "*")
        return f"{where}: {self.message}" if where else self.message
