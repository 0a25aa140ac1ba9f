"""Processor time of plans and reads of a table that was appended to a file at a time, and of plans of 10,000 files in
more and more manifests: small manifests together, and each alone; the two ways take turns in one process, and give the
same files and rows.

python -m tests.small_manifests [APPENDS [ROUNDS]]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa

import icebench
from icebench.bench.gate.cases.tables import ITEM, PAID, sales
from icebench.bench.tables.cache import DatasetCache
from icebench.bench.tables.metadata_tables import find_or_build
from icebench.bench.workloads.metadata_files import MetadataFiles
from icebench.engine.plan import planner

FILTER, COLUMNS = f"{PAID} > 5000.00", (ITEM, PAID)
ROWS = 9_440
"""Of each append."""
WAYS = {"together": planner._SMALL_BYTES, "alone": 0}
"""Way -> up to which length manifests are small."""


def main(appends: int = 61, rounds: int = 15) -> None:
    with tempfile.TemporaryDirectory() as warehouse:
        catalog = icebench.load_catalog(warehouse)
        table = catalog.create_table("db.t", sales(0, 1).schema)
        for number in range(appends):
            table.append(sales(number * ROWS, (number + 1) * ROWS))
        location = table.metadata_location
        kept = icebench.load_table(location)
        works: dict[str, Callable[[], pa.Table]] = {
            "first plan": lambda: icebench.load_table(location).scan().plan().files,
            "first plan, filter": lambda: icebench.load_table(location).scan(filter=FILTER).plan().files,
            "plan again, filter": lambda: kept.scan(filter=FILTER).plan().files,
            "first read, filter": lambda: icebench.load_table(location).scan(FILTER, columns=COLUMNS).to_arrow(),
        }
        for manifests in (30, 100, 300, 1_000):
            files = MetadataFiles(files=10_000, manifests=manifests)
            described = find_or_build(files, DatasetCache(Path(warehouse)), report=lambda done: None)
            for name, text in (("no filter", None), ("filter", files.filters()["metric"])):
                plan = partial(_planned, described, text)
                works[f"{manifests:,} manifests, {name}"] = plan
        for name, work in works.items():
            sys.stdout.write(f"{name:26} {_compared(work, rounds)}\n")
        catalog.close()


def _planned(location: str, filter: str | None) -> pa.Table:
    return icebench.load_table(location).scan(filter=filter).plan().files


def _compared(work: Callable[[], pa.Table], rounds: int) -> str:
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    given: dict[str, pa.Table] = {}
    for number in range(2 + rounds):  # the first two load code and fill caches
        for way in WAYS if number % 2 else reversed(WAYS):
            planner._SMALL_BYTES = WAYS[way]
            started = time.process_time()
            given[way] = work()
            seconds[way].append(time.process_time() - started)
    assert given["together"].num_rows
    assert given["together"].equals(given["alone"])
    together, alone = (seconds[way][2:] for way in WAYS)
    ratio = statistics.median(own / other for own, other in zip(together, alone, strict=True))
    medians = (f"{1e3 * statistics.median(own):.1f} ms" for own in (together, alone))
    return f"together {next(medians)}, alone {next(medians)}, ratio {ratio:.2f}"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
