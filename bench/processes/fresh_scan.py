"""Two scans in a process of its own.

Run as ``python -m icebench.bench.processes.fresh_scan READER METADATA_LOCATION [COLUMN ...]``.

Prints one line of JSON: the rows, the processor time of the first scan, which opens the table, and of the second, and
how far the process's resident memory rose above what it was before the first (Linux only; null elsewhere). Batches are
let go as they come.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from icebench.bench.processes.fresh_plan import rise_above, start_of_rise

Columns = Sequence[str] | None
Scans = Iterator[int]
"""Imports and connects what it needs and gives 0; then opens the table and scans it, and scans it again: each gives the
number of rows."""


def main(arguments: list[str], cpu: Callable[[], float] = time.process_time) -> None:
    """Scan twice and print; `cpu` gives the processor seconds of the process."""
    name, location, *columns = arguments
    scans = SCANNERS[name](location, columns or None)
    next(scans)
    before = start_of_rise()
    marks = [cpu()]
    for _ in range(2):
        rows = next(scans)
        marks.append(cpu())
    peak = None if before is None else rise_above(before)
    seconds = {"cpu_seconds": marks[1] - marks[0], "scan_cpu_second": marks[2] - marks[1]}
    answer = {"rows": rows, **seconds, "peak_bytes": peak}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _icebench(location: str, columns: Columns) -> Scans:
    import icebench  # local import: a fresh process imports one engine and no other

    yield 0
    table = icebench.load_table(location)
    while True:
        yield sum(batch.num_rows for batch in table.scan(columns=columns).to_batches())


def _pyiceberg(location: str, columns: Columns) -> Scans:
    from pyiceberg.table import StaticTable  # local import: a fresh process imports one engine and no other

    yield 0
    scan = StaticTable.from_metadata(location).scan(selected_fields=tuple(columns or "*"))
    while True:
        yield sum(batch.num_rows for batch in scan.to_arrow_batch_reader())


def _polars(location: str, columns: Columns) -> Scans:
    # local import: a fresh process imports one engine and no other
    import polars as pl
    import polars_iceberg  # noqa: F401 - without it Polars plans with PyIceberg

    yield 0
    rows = pl.scan_iceberg(f"file://{location}").select(columns or pl.all())
    while True:
        yield sum(batch.height for batch in rows.collect_batches(maintain_order=False))


def _duckdb(location: str, columns: Columns) -> Scans:
    from icebench.bench.engines.duckdb_engine import connected, reader  # local import: it imports DuckDB

    connection = connected()
    yield 0
    while True:  # each query opens the table
        yield sum(batch.num_rows for batch in reader(connection, location, columns))


def _pyarrow(location: str, columns: Columns) -> Scans:
    # local import: a fresh process imports what it needs and no more
    import pyarrow.parquet as pq

    import icebench  # local import: as above

    paths = icebench.load_table(location).scan().plan().files["file_path"].to_pylist()
    yield 0
    while True:
        yield sum(batch.num_rows for path in paths for batch in pq.ParquetFile(path).iter_batches(columns=columns))


SCANNERS: dict[str, Callable[[str, Columns], Scans]] = {
    "icebench": _icebench,
    "pyiceberg": _pyiceberg,
    "polars": _polars,
    "duckdb": _duckdb,
    "pyarrow": _pyarrow,
}
"""Readers that give Arrow batches in a Python process. ``pyarrow`` streams the data files, which knows no deletes: what
reading costs at least."""


if __name__ == "__main__":
    main(sys.argv[1:])
