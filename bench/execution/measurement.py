"""What the harness knows of a measurement: one declaration, by which definitions are parsed, cases created and counted,
figures named, and the report's section and findings made.

docs/guide/extending.md adds one from another package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from icebench.bench.definition import Definition
from icebench.bench.errors import ConfigError
from icebench.bench.execution.pace import BUILD as OF_BUILDING
from icebench.bench.plugins import Registry
from icebench.bench.records.case import Case, Measured
from icebench.bench.workloads.gives import Gives

if TYPE_CHECKING:  # who reads a run's file waits for none of these: they bring engines, Arrow and Spark
    from icebench.bench.engines.engine import AnyEngine
    from icebench.bench.execution.context import Context
    from icebench.bench.execution.trial import Measurement
    from icebench.bench.workloads.workload import Workload

ANY = "*"
"""In `MeasurementKind.series`: any cache."""

_SERIES = ("time", "cpu", "memory")
SCAN_SERIES: Mapping[str, tuple[str, str, str]] = {
    "cold": ("scan_time_cold", "scan_cpu_cold", "scan_memory_cold"),
    "warm": ("scan_time_warm", "scan_cpu_warm", "scan_memory_warm"),
}
"""`MeasurementKind.series` of measurements that are scans."""
COLD_AND_WARM = (
    "Cold: the timed part opens the table anew, and nothing of it is cached in the engine. Warm: the handle of a scan "
    "just before."
)
"""What sections of scans say about their metrics."""

Figure = tuple[float, float]
"""What a case took in a round, and what its base took in the same."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """What a section says about a metric.

    Args:
        name: Of the metric.
        title: Of its table; empty where it is only drawn.
        caption: Of its chart; empty where it is only tabulated.
        unit: Of the chart.
        more_is_better: Whether a greater value is better, which the caption says; for metrics that are only drawn.
        added: The metric of what a case adds to its base, in a table before its own.
        folded: Whether its table is only for looking things up.
        counted: Whether ratios of rounds are meaningless: it is exact, or depends on earlier runs.
    """

    name: str
    title: str = ""
    caption: str = ""
    unit: str = "s"
    more_is_better: bool = False
    added: str = ""
    folded: bool = False
    counted: bool = False


def cold_and_warm(*metrics: Metric) -> tuple[Metric, ...]:
    """Each metric of cold scans, then of warm ones; names, titles and captions say which."""
    return tuple(_of_cache(metric, cache) for metric in metrics for cache in SCAN_SERIES)


def _of_cache(metric: Metric, cache: str) -> Metric:
    return replace(
        metric,
        name=f"{metric.name}_{cache}",
        title=metric.title and f"{metric.title}, {cache}",
        caption=metric.caption and f"{cache.capitalize()}. {metric.caption}",
        added=metric.added and metric.added.replace("*", cache),
    )


@dataclass(frozen=True, kw_only=True)
class SectionText:
    """What a section of a report is made from.

    Args:
        title: Of the section.
        explanation: What was measured.
        metrics: In their order.
        case: What a case is: a filter, a scan.
        added: Title of the tables of `Metric.added`, in which ``{}`` stands for the metric's own title; and what the
            values are a share of.
        against_own: Whether each table of timings is followed by one of ratios to this project's engine.
        summary: ``module:function`` that makes the first tables from the section's records; empty without.
    """

    title: str
    explanation: str
    metrics: Sequence[Metric]
    case: str = "Case"
    added: tuple[str, str] = ("", "")
    against_own: bool = False
    summary: str = ""


@dataclass(frozen=True, kw_only=True)
class Race:
    """A finding: which engine is fastest, by how much, and what is inconclusive.

    Args:
        what: What they do; the sentence begins with it.
        metric: By which they are compared.
        between: What is compared: engines, over all cases; layouts, for the engine that is fastest, case by case; or
            each case and the one that is named ``none``, for every engine.
        cases: Prefix of the names of the cases that are compared, each with itself; empty for all.
    """

    what: str
    metric: str
    between: Literal["engines", "layouts", "base"] = "engines"
    cases: str = ""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The parts of a definition that determine how many cases there are.

    Args:
        engines: Their names.
        planners: How many of them show their plans.
        filters: How many filters a table is read with.
        options: What `MeasurementKind.parse` returned for the definition.
    """

    engines: tuple[str, ...]
    planners: int
    filters: int
    options: Any = None


def races_of_scans(what: str, between: Literal["engines", "layouts", "base"] = "engines") -> tuple[Race, ...]:
    """The race of cold scans and that of warm ones; ``{}`` in `what` stands for ``cold`` or ``warm``."""
    said = {cache: what.format(cache) for cache in SCAN_SERIES}
    return tuple(
        Race(what=said[cache][0].upper() + said[cache][1:], metric=names[0], between=between)
        for cache, names in SCAN_SERIES.items()
    )


class MeasurementKind:
    """A measurement. Most kinds differ in the attributes only; the methods do what most kinds need.

    Attributes:
        name: In definitions and records.
        description: One line, for lists.
        suits: What it can be made on.
        made_by: ``module:function`` that creates the measurements of a subject, in place of `measurements`.
        is_usual: Whether it is made if a definition names no measurements.
        timed: Whether it has repetitions; False if everything is counted.
        seconds: Duration of one execution at scale 1, half of which is the same at any smaller scale; for estimates.
        series: Cache of a case -> the metrics of its wall time, processor time and memory; `ANY` for those not named,
            and without that ``time``, ``cpu`` and ``memory``.
        units: Of further figures of cases and samples, where they are neither shares nor seconds.
        differences: Metrics that are differences of two timings: their scatter says nothing about themselves.
        section: What the report says; or ``module:function`` that draws it from records; None without a section.
        races: Findings, in their order.
        faults: ``module:function`` that returns findings of what went wrong, from all records of a workload; empty
            without.
        findings: ``module:function`` that returns further findings, likewise.
        rows_counter: The counter of matching rows: zero in a filter's case is worth a remark. Empty if there is none.
        checksums_files: Whether its checksums are of files, which have other names whenever they are written.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    suits: ClassVar[frozenset[Gives]] = frozenset({Gives.ROWS})
    made_by: ClassVar[str] = ""
    is_usual: ClassVar[bool] = True
    timed: ClassVar[bool] = True
    seconds: ClassVar[float] = 0.5
    series: ClassVar[Mapping[str, tuple[str, str, str]]] = {ANY: _SERIES}
    units: ClassVar[Mapping[str, str]] = {}
    differences: ClassVar[frozenset[str]] = frozenset()
    section: ClassVar[SectionText | str | None] = None
    races: ClassVar[Sequence[Race]] = ()
    faults: ClassVar[str] = ""
    findings: ClassVar[str] = ""
    rows_counter: ClassVar[str] = ""
    checksums_files: ClassVar[bool] = False

    def fits(self, workload: Workload) -> bool:
        """Whether it can be made on a workload."""
        return workload.gives in self.suits

    def parse(self, values: Definition) -> Any:  # noqa: ANN401 - its own
        """Options from its own table of a definition, for `Context`; the experiment reads repetitions, warmups and
        layouts.

        Raises:
            ConfigError: A key, type or value is wrong.
        """
        return None

    def inputs(self, options: Any) -> Mapping[str, Any]:  # noqa: ANN401 - as above
        """The content of files that the options were read from, as JSON values: runs of other content are others."""
        return {}

    def floors(self, workload: Workload) -> Mapping[str, AnyEngine]:
        """What is measured beside the engines without being one, by name."""
        return {}

    def measurements(self, subject: object, context: Context) -> Iterator[Measurement]:
        """The measurements of a subject that a workload yields, after creating everything that they need.

        Raises:
            ConfigError: The options do not suit the subject.
            DatasetFailed: A table could not be made.
        """
        found: Iterator[Measurement] = resolve_name(self.made_by)(subject, context)
        return found

    def cases(self, workload: Workload, asked: Asked) -> int:
        """The number of cases: of one table if the workload is arranged in layouts, else of the whole workload."""
        return len(asked.engines)

    def executions(self, workload: Workload, asked: Asked) -> Iterator[tuple[int, float]]:
        """Pairs of a number of `cases` and the duration of each, as for `seconds`."""
        yield self.cases(workload, asked), self.seconds

    def names(self, case: Case) -> tuple[str, str, str]:
        """The metrics of a case's wall time, processor time and memory."""
        return self.series.get(case.cache) or self.series.get(ANY) or _SERIES

    def further(self, measured: Measured) -> Iterator[tuple[str, str, Mapping[tuple[int, int], float]]]:
        """Metric, unit and values by process and round, of what follows from a case's samples."""
        return iter(())

    def against(
        self, pairs: Mapping[tuple[int, int], tuple[Figure, Figure]], case: Case
    ) -> Iterator[tuple[str, str, Mapping[tuple[int, int], float]]]:
        """The same for a case's extra cost over its base, which has the same cache, from wall time and processor time
        of both in each round."""
        wall, cpu, _ = self.names(case)
        for name, own in ((f"{wall}_added", 0), (f"{cpu}_added", 1)):
            yield name, "ratio", shares({place: figures[own] for place, figures in pairs.items()})


def shares(pairs: Mapping[tuple[int, int], Figure]) -> dict[tuple[int, int], float]:
    """What each adds to its base, as a share of the base."""
    return {place: (own - base) / base for place, (own, base) in pairs.items() if base > 0}


BUILDER = "icebench"
"""The engine that builds tables, whichever are measured on them."""
_OWN = "icebench.bench.measurements"

MEASUREMENTS: Registry[MeasurementKind] = Registry(
    "icebench.measurements",
    "measurement",
    {
        "planning": f"{_OWN}.planning:KIND",
        "pruning": f"{_OWN}.pruning:KIND",
        "decimals": f"{_OWN}.decimals:KIND",
        "deletes": f"{_OWN}.deletes:KIND",
        "filtered": f"{_OWN}.filtered:KIND",
        "remote": f"{_OWN}.remote:KIND",
        "writing": f"{_OWN}.writing:KIND",
        "commits": f"{_OWN}.commits:KIND",
        "maintenance": f"{_OWN}.maintenance:KIND",
        "reading": f"{_OWN}.reading:KIND",
        "queries": f"{_OWN}.queries:KIND",
    },
    MeasurementKind,
)
"""What can be measured, in the order of reports."""


class _Unknown(MeasurementKind):
    """What is assumed of a measurement that is not known here: a run's file may come from a machine with other
    packages."""

    name = "unknown"
    description = "a measurement of a package that is not here"
    section = SectionText(
        title="Unknown measurement",
        explanation="The package of this measurement is not here, or is broken: its times are shown as they are.",
        metrics=(Metric(name="time", title="Time"), Metric(name="cpu", title="Processor time")),
    )


_UNKNOWN = _Unknown()


def kind_of(name: str) -> MeasurementKind:
    """The measurement of that name, or what is assumed of one that is not known here."""
    if name == BUILD.name:
        return BUILD
    try:
        return MEASUREMENTS[name]
    except (ConfigError, KeyError):
        return _UNKNOWN


class _Build(MeasurementKind):
    """What building a table takes: recorded with every table that is generated, timed where there are several."""

    name = OF_BUILDING
    description = "what building a table takes"
    series: ClassVar[Mapping[str, tuple[str, str, str]]] = {ANY: ("build_seconds", "build_cpu_seconds", "build_memory")}
    units: ClassVar[Mapping[str, str]] = {
        "build_compaction_seconds": "s",
        "build_bytes_written": "bytes",
        "build_bytes_compacted": "bytes",
        "build_bytes_on_disk": "bytes",
        "build_files": "files",
        "build_manifests": "manifests",
    }


BUILD = _Build()
