"""What two threads, and reading neighbours as one, gain with small local files."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import icebench
from icebench.engine.read import joining
from icebench.engine.runtime.local import LocalRunner


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("columns", [4, 22])
@pytest.mark.parametrize("rows", [500, 2_000, 9_400])
def test_threads_read_the_same_of_small_local_files(tmp_path: Path, rows: int, columns: int) -> None:
    """``pytest -m soak -s`` prints the figures of docs/design/reading.md: one thread's share of two threads' time and
    of their processor time."""
    random, files = np.random.default_rng(1), 61
    values = {f"n{number}": random.integers(0, 1 << 40, files * rows) for number in range(columns - 1)}
    data = pa.table({"part": np.repeat(np.arange(files), rows), **values})
    with closing(icebench.load_catalog(str(tmp_path))) as catalog:
        catalog.create_namespace("db")
        catalog.create_table("db.t", data.schema, partition_spec=[("part", "identity")]).append(data)
        table, seconds = catalog.load_table("db.t"), np.empty((2, 2, 9))

        def read(turn: int, threads: int) -> pa.Table:
            begun = time.perf_counter(), time.process_time()
            found = table.scan(filter="n1 >= 0", runner=LocalRunner(threads)).to_arrow()
            seconds[threads - 1, :, turn] = time.perf_counter() - begun[0], time.process_time() - begun[1]
            return found

        for turn in range(seconds.shape[-1]):
            assert read(turn, 1).equals(read(turn, 2))
    one, two = np.median(seconds, axis=-1)
    clock, processor = one / two
    print(f"| {files} files of {rows:,} rows, {columns} columns | {clock:.2f} | {processor:.2f} |")  # noqa: T201


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("filter", [None, "n1 < 54975581388"], ids=["scan", "filter"])
def test_joined_files_read_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filter: str | None, threads: int
) -> None:
    """``pytest -m soak -s`` prints the figures of docs/design/reading.md: what reading neighbours as one takes, as a
    share of what reading them one by one takes."""
    random, files, rows = np.random.default_rng(1), 61, 9_400
    values = {f"n{number}": random.integers(0, 1 << 40, files * rows) for number in range(6)}
    data = pa.table({"part": np.repeat(np.arange(files), rows), **values})
    with closing(icebench.load_catalog(str(tmp_path))) as catalog:
        catalog.create_table("db.t", data.schema, partition_spec=[("part", "identity")]).append(data)
        table, seconds = catalog.load_table("db.t"), np.empty((2, 2, 15))

        def read(turn: int, most: int) -> pa.Table:
            with monkeypatch.context() as patch:
                patch.setattr(joining, "_MOST_FILES", most)
                begun = time.perf_counter(), time.process_time()
                found = table.scan(filter=filter, runner=LocalRunner(threads)).to_arrow()
                seconds[int(most == 1), :, turn] = time.perf_counter() - begun[0], time.process_time() - begun[1]
            return found

        for turn in range(seconds.shape[-1]):
            assert read(turn, 16).equals(read(turn, 1))
    clock, processor = np.median(seconds[0] / seconds[1], axis=-1)
    name = "scan" if filter is None else "a filter that keeps 5 %"
    print(f"| {name}, {threads} thread{'s'[: threads - 1]} | {clock:.2f} | {processor:.2f} |")  # noqa: T201
