"""One plan in a process of its own: ``python -m icebench.bench.processes.fresh_plan ENGINE METADATA [FILTER]``.

Prints one line of JSON when the plan is there: how many files it has, the processor time of the process so far, and how
far its resident memory rose above what it was before planning (Linux only; null elsewhere). Who started the process has
the clock. Only what a user of the engine would import is imported.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

from icebench.bench.processes.linux_processes import restart_peak, status_bytes

Planner = Callable[[], int]
"""Plans, and gives the number of files; the plan lives until the process has said how much memory it took."""


def main(arguments: list[str], cpu: Callable[[], float] = time.process_time) -> None:
    """Plan and print; `cpu` gives the processor seconds of the process."""
    name, location, *rest = arguments
    plan = PLANNERS[name](location, rest[0] if rest else None)
    before = start_of_rise()
    files = plan()
    cpu_seconds = cpu()
    peak = None if before is None else rise_above(before)
    sys.stdout.write(json.dumps({"files": files, "cpu_seconds": cpu_seconds, "peak_bytes": peak}) + "\n")
    sys.stdout.flush()


def _icebench(location: str, filter: str | None) -> Planner:
    import icebench  # local import: a fresh process imports one engine and no other

    table = icebench.load_table(location)
    kept = []

    def plan() -> int:
        kept.append(table.scan(filter=filter).plan())
        return len(kept[0].files)

    return plan


def _icebench_executors(location: str, filter: str | None) -> Planner:
    import icebench  # local import: a fresh process imports one engine and no other
    from icebench.bench.spark_session import SparkSettings, spark_session  # local import: it imports PySpark

    spark = spark_session(SparkSettings(master="local[2]"))
    table = icebench.load_table(location)
    kept = []

    def plan() -> int:
        kept.append(table.scan(filter=filter).plan(spark, mode="distributed"))
        return len(kept[0].files)

    return plan


def _pyiceberg(location: str, filter: str | None) -> Planner:
    # local import: a fresh process imports one engine and no other
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(location)
    kept = []

    def plan() -> int:
        kept.append(list(table.scan(row_filter=filter or AlwaysTrue()).plan_files()))
        return len(kept[0])

    return plan


def _polars(location: str, filter: str | None) -> Planner:
    # local import: a fresh process imports one engine and no other
    import polars as pl
    import polars_iceberg  # noqa: F401 - without it Polars plans with PyIceberg

    # local import: it imports Polars
    from icebench.bench.engines.polars_engine import planned_files

    rows = pl.scan_iceberg(f"file://{location}")
    chosen = rows if filter is None else rows.filter(pl.sql_expr(filter))
    return lambda: planned_files(chosen.explain())


PLANNERS: dict[str, Callable[[str, str | None], Planner]] = {
    "icebench": _icebench,
    "icebench-executors": _icebench_executors,
    "pyiceberg": _pyiceberg,
    "polars": _polars,
}
"""Engines that plan in a Python process. The filter's text must be one that all of them read alike.

``icebench-executors`` is icebench with its manifests left to executors of a Spark session, which is there before the
planning begins: its process is the driver; Spark's virtual machine and workers are not counted. No experiment has it.
"""


def start_of_rise() -> int | None:
    """Resident bytes now, from which the peak is counted from now on; None where the system does not report it."""
    try:
        return restart_peak()
    except OSError:
        return None


def rise_above(before: int) -> int:
    """How far resident memory has risen above what it was at `start_of_rise`, in bytes."""
    return status_bytes("VmHWM") - before


if __name__ == "__main__":
    main(sys.argv[1:])
