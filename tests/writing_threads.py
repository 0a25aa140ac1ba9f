"""Data files written by one thread and by one for each processor, interleaved: seconds of both, and their ratio. The
files are compared byte for byte.

python -m tests.writing_threads [ROWS [ROUNDS]]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

import icebench
from icebench.bench.workloads.tpcds import Tpcds
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.write.data_files import write_data_files
from icebench.engine.write.locations import FileNames

_BATCH = 250_000
_NARROW = ("ss_item_sk", "ss_quantity", "ss_net_paid")
_MONTHS = [("ss_sold_date_sk", "truncate[30]")]


def store_sales(rows: int) -> pa.Table:
    workload = Tpcds(scale=max(rows / 2_800_000, 0.01), seed=42)
    ends = [*range(_BATCH, rows, _BATCH), rows]
    return pa.Table.from_batches(
        [workload.batch("store_sales", start, end) for start, end in zip([0, *ends], ends, strict=False)]
    )


def written(rows: pa.Table, table: icebench.Table, threads: int) -> tuple[float, Mapping[str, bytes]]:
    """The seconds that writing takes, and the files by name, which are deleted."""
    names = FileNames(operation_id=uuid.UUID(int=1))
    began = time.perf_counter()
    files = write_data_files(rows, metadata=table.metadata, store=table.store, names=names, runner=LocalRunner(threads))
    seconds = time.perf_counter() - began
    found = {file.file_path: table.store.read(file.file_path) for file in files}
    for location in found:
        table.store.delete(location)
    return seconds, found


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    sales = store_sales(rows).combine_chunks()
    cases: tuple[tuple[str, pa.Table, list[tuple[str, str]]], ...] = (
        ("store_sales", sales, []),
        ("store_sales in months", sales, _MONTHS),
        ("three columns of it", sales.select(_NARROW), []),
    )
    processors = LocalRunner().threads
    with tempfile.TemporaryDirectory() as folder:
        catalog = icebench.load_catalog(str(Path(folder)))
        for number, (what, given, spec) in enumerate(cases):
            table = catalog.create_table(f"db.t{number}", given.schema, partition_spec=spec)
            times: dict[int, list[float]] = {1: [], processors: []}
            for turn in range(rounds + 1):
                made = {}
                for threads, seconds in times.items():
                    taken, made[threads] = written(given, table, threads)
                    if turn:  # the first one warms both
                        seconds.append(taken)
                if made[1] != made[processors]:
                    raise AssertionError(f"{what}: {processors} threads write other files than one")
            one, many = (statistics.median(seconds) for seconds in times.values())
            ratio = statistics.median(m / o for o, m in zip(*times.values(), strict=True))
            sys.stdout.write(
                f"{rows:,} rows, {what}, {len(made[1])} files: 1 thread {one * 1e3:,.0f} ms, {processors} threads "
                f"{many * 1e3:,.0f} ms, {ratio:.2f}\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
