"""The cases of the gate as asv benchmarks: processor time, peak memory, and exact counters in their units."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import engine
from bench.cases.counters import run_cases
from bench.cases.timing import TIMED, build_tables, catalog_for
from bench.cases.work import cases
from bench.gate.baseline import CaseResult

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

Prepared = tuple[str, dict[str, dict[str, int]]]


class Cases:
    """One case a benchmark; `icebench gate --base` has the statistics to fail a change by."""

    version = "1"
    timeout = 600.0
    params = (list(TIMED),)
    param_names = ("case",)
    number = 1
    rounds = 2
    repeat = (5, 20, 2.0)
    warmup_time = 0.5

    def setup_cache(self) -> Prepared:
        """The tables, in asv's directory, and what every case counts."""
        warehouse = str(Path.cwd() / "tables")
        build_tables(warehouse)
        counted: dict[str, CaseResult] = run_cases(lambda name: name in TIMED)
        return warehouse, {name: dict(asdict(result)["counters"]) for name, result in counted.items()}

    def setup(self, prepared: Prepared, case: str) -> None:
        """What is not measured; asv does this before every run."""
        self.open = ExitStack()
        catalog = self.open.enter_context(catalog_for(prepared[0], case))
        self.timed = cases()[case].prepare(catalog, engine.Counters())

    def teardown(self, prepared: Prepared, case: str) -> None:
        """Let go of the catalog, and of tables that the case made."""
        self.open.close()

    def time_case(self, prepared: Prepared, case: str) -> None:
        """One run."""
        self.timed()

    def peakmem_case(self, prepared: Prepared, case: str) -> None:
        """The peak of the process."""
        self.timed()


def _following(counter: str) -> object:
    def track(_: Cases, prepared: Prepared, case: str) -> int:
        return prepared[1][case].get(counter, 0)

    track.__doc__ = f"Exact counter {counter}, on the gate's own small tables."
    track.__name__ = f"track_{counter}"
    track.unit = COUNTERS[counter]  # type: ignore[attr-defined]
    return track


for _counter in COUNTERS:
    setattr(Cases, f"track_{_counter}", _following(_counter))
