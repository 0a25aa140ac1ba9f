"""Whether small local files are read faster by one thread, as `engine.read.reader` has it."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import engine
from engine.read import reader
from engine.runtime.local import LocalRunner


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("columns", [4, 22])
@pytest.mark.parametrize("rows", [500, 2_000, 9_400])
def test_small_local_files_are_read_by_one_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, columns: int
) -> None:
    """``pytest -m soak`` prints the figures of docs/design/reading.md: how many times the time by default two threads
    take, by the clock and of the processor."""
    random, files = np.random.default_rng(1), 61
    values = {f"n{number}": random.integers(0, 1 << 40, files * rows) for number in range(columns - 1)}
    data = pa.table({"part": np.repeat(np.arange(files), rows), **values})
    with closing(engine.load_catalog(str(tmp_path))) as catalog:
        catalog.create_namespace("db")
        catalog.create_table("db.t", data.schema, partition_spec=[("part", "identity")]).append(data)
        table, seconds = catalog.load_table("db.t"), np.empty((2, 2, 9))

        def read(turn: int, *, default: bool) -> pa.Table:
            with monkeypatch.context() as changed:
                if not default:
                    changed.setattr(reader, "_is_small", lambda _: lambda _: False)
                begun = time.perf_counter(), time.process_time()
                found = table.scan(filter="n1 >= 0", runner=None if default else LocalRunner(2)).to_arrow()
                seconds[int(default), :, turn] = time.perf_counter() - begun[0], time.process_time() - begun[1]
                return found

        for turn in range(seconds.shape[-1]):
            assert read(turn, default=False).equals(read(turn, default=True))
    two, own = np.median(seconds, axis=-1)
    clock, processor = two / own
    print(f"| {files} files of {rows:,} rows, {columns} columns | {clock:.2f} | {processor:.2f} |")  # noqa: T201
    # By the clock of a machine that others load, two threads have two turns of it.
    assert processor > 0.8
