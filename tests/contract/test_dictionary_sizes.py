"""What the decision about dictionaries saves and costs: the figures of docs/design/parquet.md."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import icebench
from icebench.bench.workloads.events import Events
from icebench.bench.workloads.log import Log
from icebench.bench.workloads.wide import Wide
from icebench.engine.formats.parquet import parquet_writer

ROWS = {
    "log": (Log(rows=600_000).batch, 50_000),
    "wide": (Wide(rows=10_000, columns=59).batch, 10_000),
    "events": (Events(keys=50_000, batches=1, changes=600_000).rows, 50_000),
}


@pytest.mark.soak
@pytest.mark.parametrize("name", ROWS)
def test_files_are_smaller_with_the_decision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """``pytest -s -m soak`` prints bytes, and processor time of an append, without the decision and with it."""
    batch, rows = ROWS[name]
    data = pa.Table.from_batches([batch(0, rows)])
    seconds, sizes = np.empty((2, 7)), [0, 0]
    with closing(icebench.load_catalog(str(tmp_path))) as catalog:
        catalog.create_namespace("db")
        for turn in range(seconds.shape[1]):
            for decided in (0, 1):
                with monkeypatch.context() as changed:
                    if not decided:
                        changed.setattr(parquet_writer, "dictionary_columns", lambda *_, default, **__: default)
                    table = catalog.create_table(f"db.t{turn}_{decided}", data.schema)
                    begun = time.process_time()
                    table.append(data)
                    seconds[decided, turn] = time.process_time() - begun
                sizes[decided] = sum(table.inspect.files()["file_size_in_bytes"].to_pylist())
    before, after = np.median(seconds, axis=1)
    figures = f"{sizes[0]:,} | {sizes[1]:,} ({sizes[1] / sizes[0] - 1:+.0%}) | {after / before:.2f}"
    print(f"| {name}, {rows:,} rows | {figures} |")  # noqa: T201 - the figures of record
    assert sizes[1] < sizes[0]
