"""The cases of `icebench.bench.gate.cases.work`: processor time, peak memory, exact counters, pruning effectiveness,
and Spark."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path

import icebench
from icebench.bench.engines.engine import normalised
from icebench.bench.engines.spark_scan import run_to_noop
from icebench.bench.gate.cases.count_cases import run_cases
from icebench.bench.gate.cases.time_cases import TIMED, build_tables, catalog_for
from icebench.bench.gate.cases.work import cases
from icebench.bench.spark_session import SparkSettings, spark_session
from icebench.bench.truth.effectiveness import effectiveness
from icebench.bench.truth.rows import truth_at

COUNTERS = {
    "storage_requests_read": "requests",
    "storage_requests_range_read": "requests",
    "file_system_calls": "calls",
    "function_calls": "calls",
    "entries_decoded": "entries",
    "parquet_values_decoded": "values",
    "parquet_bytes_inflated": "bytes",
    "arrow_bytes_allocated": "bytes",
}
"""The counters that are followed, with their units; the gate follows all."""

FIGURES = {"files_planned": "files", "false_positive_rate": "ratio", "recall": "ratio"}
"""Of a plan against the files that hold a matching row, with their units."""

PRUNED = (
    "scan/partitioned/partition-filter",
    "scan/partitioned/metrics-filter",
    "scan/partitioned/both-filters",
    "scan/partitioned/unprunable",
    "scan/vectors/metrics-filter",
)
ON_SPARK = (
    "scan/partitioned/metrics-filter",
    "scan/large/decimals",
    "scan/positions/no-filter",
    "scan/vectors/no-filter",
    "scan/equality/no-filter",
)


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What `setup_cache` leaves for every benchmark: small, and picklable.

    Args:
        warehouse: The tables.
        figures: Case -> counters, and the figures of its plan, by name.
    """

    warehouse: str
    figures: dict[str, dict[str, float]]


class Prepares:
    """What all benchmarks have: the tables and what is counted, made once for all of them.

    asv compares results of one `version` only; it changes when what is timed does.
    """

    version = "2"
    timeout = 600.0

    def setup_cache(self) -> Prepared:
        """The tables, in asv's directory, and all that has no clock; asv runs it once, as all classes have the same."""
        warehouse = str(Path.cwd() / "tables")
        build_tables(warehouse)
        figures = {name: dict(asdict(result)["counters"]) for name, result in run_cases(lambda n: n in TIMED).items()}
        for name in PRUNED:
            figures[name] = {**figures.get(name, {}), **pruning_of(warehouse, name)}
        return Prepared(warehouse=warehouse, figures=figures)


def pruning_of(warehouse: str, case: str) -> dict[str, float]:
    """The figures of the plan of a scan, against the truth by brute force."""
    rows = cases()[case].rows
    assert rows is not None
    with closing(icebench.load_catalog(warehouse)) as catalog:
        scan = rows(catalog)
        truth = truth_at(catalog.load_table(("gate", case.split("/")[1])).metadata_location)
        planned = [normalised(path) for path in scan.plan().files["file_path"].to_pylist()]
    sizes = {path: file.size_bytes for path, file in truth.files.items()}
    found = effectiveness(sizes, planned, truth.matching(scan.filter))
    return {"files_planned": len(planned), **asdict(found)}


class Cases(Prepares):
    """One case a benchmark; `icebench gate --base` has the statistics to fail a change by."""

    params = (list(TIMED),)
    param_names = ("case",)
    # By the clock a busy machine is three times as slow from one revision to the next.
    timer: Callable[[], float] = time.process_time
    number = 1
    rounds = 2
    repeat = (5, 20, 2.0)
    warmup_time = 0.5

    def setup(self, prepared: Prepared, case: str) -> None:
        """What is not measured; asv does this before every run."""
        self.open = ExitStack()
        catalog = self.open.enter_context(catalog_for(prepared.warehouse, case))
        self.timed = cases()[case].prepare(catalog, icebench.Counters())

    def teardown(self, prepared: Prepared, case: str) -> None:
        """Let go of the catalog, and of tables that the case made."""
        self.open.close()

    def time_case(self, prepared: Prepared, case: str) -> None:
        """One run."""
        self.timed()

    def peakmem_case(self, prepared: Prepared, case: str) -> None:
        """The peak of the process."""
        self.timed()


class Pruning(Prepares):
    """Planned files against the files that hold a matching row; lower is better for all but recall."""

    params = (list(PRUNED),)
    param_names = ("case",)


class Spark(Prepares):
    """The same scans through Spark, from an opened catalog to its ``noop`` sink."""

    params = (list(ON_SPARK),)
    param_names = ("case",)
    number = 1
    rounds = 1
    repeat = (3, 10, 10.0)
    # Long enough for the JVM to have compiled what it runs.
    warmup_time = 2.0

    def setup(self, prepared: Prepared, case: str) -> None:
        """A scan that has not run, and the process's session."""
        self.session = spark_session(SparkSettings.from_environment())
        self.catalog = icebench.load_catalog(prepared.warehouse)
        rows = cases()[case].rows
        assert rows is not None
        self.scan = rows(self.catalog)

    def teardown(self, prepared: Prepared, case: str) -> None:
        """Let go of the catalog."""
        self.catalog.close()

    def time_scan(self, prepared: Prepared, case: str) -> None:
        """Plan and read."""
        run_to_noop(self.scan.to_spark(self.session))


def _following(figure: str, unit: str) -> object:
    def track(_: Prepares, prepared: Prepared, case: str) -> float:
        return prepared.figures[case].get(figure, 0)

    track.__doc__ = f"Exact {figure}."
    track.__name__ = f"track_{figure}"
    track.unit = unit  # type: ignore[attr-defined]
    return track


for _class, _figures in ((Cases, COUNTERS), (Pruning, FIGURES)):
    for _name, _unit in _figures.items():
        setattr(_class, f"track_{_name}", _following(_name, _unit))
