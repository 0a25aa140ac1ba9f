"""A table under changes, by how it is kept: what queries read, and what upkeep moves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import engine
from bench.measure.histories import commit_by_position, compact
from bench.upkeep.passes import run_pass
from bench.upkeep.policy import Policy
from bench.workloads.events import Events

# A thousandth of a large table: its files, and what opening one costs.
PROPERTIES = {
    "format-version": "3", "write.target-file-size-bytes": str(512 << 10), "read.split.open-file-cost": str(4 << 10),
    "history.expire.max-snapshot-age-ms": "0", "history.expire.min-snapshots-to-keep": "20",
}  # fmt: skip
Keep = Callable[[engine.Table, int], int]
"""Takes a table after a commit of that number, and gives the bytes of data files that this moved."""


def compacted_every(commits: int) -> Keep:
    def keep(table: engine.Table, commit: int) -> int:
        if commit % commits:
            return 0
        before = live_bytes(table)
        compact(table)
        return before + live_bytes(table)

    return keep


def by_policy(table: engine.Table, _commit: int) -> int:
    return sum(each.work_bytes for each in run_pass(table, Policy.load(), execute=True) if each.decision == "done")


def live_bytes(table: engine.Table) -> int:
    return sum(table.inspect.files()["file_size_in_bytes"].to_pylist())


def history(place: Path, events: Events, keep: Keep) -> tuple[list[list[int]], int]:
    """Rows, bytes read, requests and files of four queries by a fresh process, after every tenth commit; bytes moved
    by upkeep."""
    table = engine.load_catalog(str(place)).create_table("db.t", events.schema, properties=PROPERTIES)
    told, moved = [], 0
    for batch in range(events.batches + 1):
        commit_by_position(table, events, batch)
        moved += keep(table, batch) if batch else 0
        table.refresh()
        if batch % 10 == 0:
            counters, fresh = engine.Counters(), engine.load_table(table.metadata_location)
            queries = [fresh.scan(filter=f, counters=counters) for f in (None, *events.filters.values())]
            rows = sum(query.to_arrow().num_rows for query in queries)
            found = counters.as_dict()
            requests = sum(value for name, value in found.items() if name.startswith("storage_requests_"))
            told.append([rows, found["storage_bytes_read"], requests, table.inspect.files().num_rows])
    return told, moved


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_upkeep_pays_for_itself(tmp_path: Path) -> None:
    """``pytest -s -m soak`` prints the figures of docs/design/upkeep.md. Counters alone."""
    strategies: dict[str, Keep] = {
        "no upkeep": lambda _table, _commit: 0,
        "compaction every 50 commits": compacted_every(50),
        "compaction every 10 commits": compacted_every(10),
        "default policy after every commit": by_policy,
    }
    found = {}
    for number, (name, keep) in enumerate(strategies.items()):
        told, moved = history(tmp_path / str(number), Events(keys=20_000, batches=200, changes=1_000), keep)
        figures = np.array(told)
        _, size, requests, files = figures.mean(axis=0)
        print(f"| {name} | {size / 1e6:.1f} MB | {requests:.0f} | {files:.0f} | {moved / 1e6:.0f} MB |")  # noqa: T201
        found[name] = figures
    rows = [figures[:, 0].tolist() for figures in found.values()]
    assert rows.count(rows[0]) == len(rows)
    assert found["default policy after every commit"][:, 1].mean() < found["compaction every 50 commits"][:, 1].mean()
