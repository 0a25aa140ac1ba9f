"""A run as the measurements record it: two tables' worth of fixed figures, without measuring anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from icebench.bench.execution.run_file import Run
from icebench.bench.records.case import Case, Cost, Evidence, Measured, Sample
from icebench.bench.records.record import Failure, Record, Skipped

LAYOUTS = ("unpartitioned", "monthly", "sorted")
ENGINES = ("icebench", "icebench-spark", "pyiceberg", "iceberg-java")
FILTERS = {
    "one_month": "ss_sold_date >= '2000-11-01' and ss_sold_date < '2000-12-01'",
    "one_item": "ss_item_sk = 77",
}
FILES = 61
# Files that match, and files that are planned, by filter and layout.
TRUTH = {
    ("one_month", "unpartitioned"): (61, 61),
    ("one_month", "monthly"): (1, 1),
    ("one_month", "sorted"): (61, 61),
    ("one_item", "unpartitioned"): (40, 61),
    ("one_item", "monthly"): (38, 61),
    ("one_item", "sorted"): (1, 2),
}
SLOWNESS = {"icebench": 1.0, "icebench-spark": 1.2, "pyiceberg": 18.0, "iceberg-java": 4.5}
# Seven rounds of a machine that is sometimes disturbed.
DRIFT = (1.0, 1.02, 0.98, 1.05, 1.01, 0.99, 1.3)
ENVIRONMENT = {
    "id": "0123456789abcdef",
    "hardware": {"cpu": "Example CPU @ 2.0GHz", "architecture": "x86_64", "cores": 2, "memory_bytes": 8 << 30},
    "software": {
        "os": "Linux-6.1",
        "python": "3.11.9",
        "java": 'openjdk version "17.0.15"',
        "packages": {"pyarrow": "26.0.1", "pyiceberg": "0.12.0"},
        "spark": {"master": "local[2]"},
    },
    "engines": {"icebench": "0.1.0", "pyiceberg": "0.12.0"},
    "git": {"revision": "a" * 40, "dirty": True},
    "experiment": "quick",
    "scale": 0.02,
    "started": "2026-01-01T00:00:00+00:00",
}


def sample_run(*, records: Sequence[Record] | None = None, **changes: object) -> Run:
    """The run; keyword arguments replace its fields, and `records` what would be derived from its samples."""
    run = Run(
        run_id="20260101T000000-sample",
        environment=ENVIRONMENT,
        measured=_measured(),
        skipped=(Skipped(engine="duckdb", measurement="planning", reason="duckdb offers no planning"),),
    )
    made = Run(**{**run.__dict__, **changes})
    if records is not None:
        made.__dict__["records"] = tuple(records)
    return made


def crowded_run() -> Run:
    """A run with more filters than a column holds, names as long as a user's, and engines that plan differently."""
    records = []
    for number in range(7):
        case = (
            f"filter_{number}" if number else "a_long_column_name >= '2000-11-01' and another_column in (1, 2, 3) " * 2
        )
        for layout in ("sorted", "a_layout_with_quite_a_long_name_that_somebody_chose"):
            for place, engine in enumerate(ENGINES):
                samples = [0.002 * SLOWNESS[engine] * w for w in DRIFT]
                records.append(record("planning", case, "latency_cold", "s", samples, layout=layout, engine=engine))
                shares = {"files_planned_share": 0.3 + place / 10, "wasted_files_share": 0.2, "recall": 1.0}
                for metric, value in shares.items():
                    records.append(record("pruning", case, metric, "ratio", [value], layout=layout, engine=engine))
    return sample_run(records=tuple(records))


@cache
def _measured() -> tuple[Measured, ...]:
    return (*_planning(), *_pruning(), *_decimals(), *_deletes())


def measured(case: Case, walls: Sequence[float] = (), **evidence: object) -> Measured:
    """A case whose runs took these seconds by the clock, and as many of the processor."""
    samples = tuple(Sample(process=0, round=r, cost=Cost(wall=wall, cpu=wall)) for r, wall in enumerate(walls))
    return Measured(case=case, engine_version="1.0", evidence=Evidence(**evidence), samples=samples)  # type: ignore[arg-type]


def record(
    measurement: str,
    case: str,
    metric: str,
    unit: str,
    samples: Sequence[float],
    *,
    layout: str = "monthly",
    engine: str = "icebench",
    counters: Mapping[str, int] | None = None,
    detail: Mapping[str, str] | None = None,
) -> Record:
    """One record of the sample run."""
    return Record(
        workload="tpcds",
        layout=layout,
        engine=engine,
        engine_version="1.0",
        measurement=measurement,
        case=case,
        metric=metric,
        unit=unit,
        samples=tuple(samples),
        counters=counters or {},
        detail=detail or {},
    )


def _work(case: str, layout: str) -> dict[str, int]:
    planned = FILES if case == "all" else TRUTH[case, layout][1]
    return {
        "manifests_in_list": 2,
        "manifests_decoded": 2,
        "manifests_skipped_by_summary": 0,
        "manifest_bytes_decoded": 12_345,
        "entries_decoded": FILES,
        "entries_skipped_by_partition": 0,
        "entries_skipped_by_schema_id": 0,
        "entries_skipped_by_metrics": FILES - planned,
        "entries_skipped_by_index": 0,
        "files_planned": planned,
    }


def _case(measurement: str, layout: str, engine: str, **more: str) -> Case:
    return Case(workload="tpcds", layout=layout, engine=engine, measurement=measurement, **more)


def _planning() -> Iterator[Measured]:
    for case, text in {"all": "", **FILTERS}.items():
        for layout in LAYOUTS:
            for engine in ENGINES:
                counters = _work(case, layout) if engine.startswith("icebench") else {}
                for state, share in (("cold", 1.0), ("warm", 0.4)):
                    yield measured(
                        _case("planning", layout, engine, cache=state, filter=case),
                        [0.0021 * share * SLOWNESS[engine] * w for w in DRIFT],
                        counters=counters,
                        detail={"filter": text},
                    )


def _pruning() -> Iterator[Measured]:
    for case, text in FILTERS.items():
        for layout in LAYOUTS:
            matching, planned = TRUTH[case, layout]
            wasted = planned - matching
            figures = {
                "recall": 1.0,
                "false_positive_rate": wasted / (FILES - matching) if matching < FILES else 0.0,
                "wasted_files_share": wasted / planned,
                "files_planned_share": planned / FILES,
                "bytes_planned_share": planned / FILES,
                "files_matching_share": matching / FILES,
            }
            for engine in ENGINES:
                own = _work(case, layout) if engine.startswith("icebench") else {}
                counters = {**own, "files_total": FILES, "files_matching": matching, "files_wasted": wasted}
                found = _case("pruning", layout, engine, filter=case)
                yield measured(found, counters=counters, detail={"filter": text}, figures=figures)


def _decimals() -> Iterator[Measured]:
    for place, layout in enumerate(LAYOUTS):
        for engine, slowness in (("icebench", 1.0), ("pyiceberg", 1.4), ("iceberg-java", 3.1)):
            seconds = [0.021 * slowness * (1 + place / 10) * w for w in DRIFT]
            case = _case("decimals", layout, engine, cache="cold")
            yield measured(case, seconds, counters={"rows_returned": 57_608})


def _deletes() -> Iterator[Measured]:
    added = {"none": 0.0, "1%": 0.03, "10%": 0.08, "refresh": 0.05}
    for layout in LAYOUTS:
        for engine, factor in (("icebench", 1.0), ("iceberg-java", 20.0)):
            base = _case("deletes", layout, engine, configuration="none", cache="cold")
            for name, share in added.items():
                wobble = [share * factor * (1 + i / 20) for i in range(len(DRIFT))]
                seconds = [0.5 * w * (1 + more) for w, more in zip(DRIFT, wobble, strict=True)]
                case = _case("deletes", layout, engine, configuration=name, cache="cold")
                yield measured(case, seconds, base=None if case == base else base)


FAILED = Failure(
    kind="Disagreement",
    message="57,608 rows against 57,607",
    engine="pyiceberg",
    measurement="decimals",
    layout="sorted",
    case="scan",
)
