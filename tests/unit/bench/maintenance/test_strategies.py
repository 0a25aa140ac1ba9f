"""A table under changes, by how it is kept: what queries read, and what maintenance moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import icebench
from icebench.bench.maintenance.passes import run_pass
from icebench.bench.maintenance.policy import Policy
from icebench.bench.trials.histories import commit_by_position, compact
from icebench.bench.workloads.events import Events

# A thousandth of a large table: its files, and what opening one costs.
PROPERTIES = {
    "format-version": "3",
    "write.target-file-size-bytes": str(512 << 10),
    "read.split.open-file-cost": str(4 << 10),
    "history.expire.max-snapshot-age-ms": "0",
    "history.expire.min-snapshots-to-keep": "20",
}
Keep = Callable[[icebench.Table, int], int]
"""Takes a table after a commit of that number, and gives the bytes of data files that this moved."""


def compacted_every(commits: int) -> Keep:
    def keep(table: icebench.Table, commit: int) -> int:
        if commit % commits:
            return 0
        before = live_bytes(table)
        compact(table)
        return before + live_bytes(table)

    return keep


def by_policy(table: icebench.Table, _commit: int) -> int:
    return sum(each.work_bytes for each in run_pass(table, Policy.load(), execute=True) if each.decision == "done")


def live_bytes(table: icebench.Table) -> int:
    return sum(table.inspect.files()["file_size_in_bytes"].to_pylist())


TITLES = (
    "bytes read by four queries",
    "requests of four queries",
    "files of a scan",
    "bytes moved by maintenance so far",
)


def history(place: Path, events: Events, keep: Keep) -> np.ndarray[Any, Any]:
    """A row after every tenth commit: rows, bytes read and requests of four queries by a fresh process, files of the
    table, bytes moved by maintenance so far."""
    table = icebench.load_catalog(str(place)).create_table("db.t", events.schema, properties=PROPERTIES)
    figures, moved = [], 0
    for batch in range(events.batches + 1):
        commit_by_position(table, events, batch)
        moved += keep(table, batch) if batch else 0
        table.refresh()
        if batch % 10 == 0:
            counters, fresh = icebench.Counters(), icebench.load_table(table.metadata_location)
            queries = [fresh.scan(filter=f, counters=counters) for f in (None, *events.filters.values())]
            rows = sum(query.to_arrow().num_rows for query in queries)
            found = counters.as_dict()
            requests = sum(value for name, value in found.items() if name.startswith("storage_requests_"))
            figures.append([rows, found["storage_bytes_read"], requests, table.inspect.files().num_rows, moved])
    return np.array(figures)


def plot(found: Mapping[str, np.ndarray[Any, Any]], path: Path) -> None:
    """A panel for each figure over commits, with a line for each way."""
    figure = Figure(figsize=(9, 6.2), layout="constrained")
    for number, (axis, title) in enumerate(zip(figure.subplots(2, 2).flat, TITLES, strict=True), 1):
        for name, figures in found.items():
            axis.plot(10 * np.arange(len(figures)), figures[:, number], label=name, linewidth=1.5)
        axis.set_title(title, fontsize=10, loc="left")
        axis.set_xlabel("commits", fontsize=8)
        axis.set_ylim(bottom=0)
        axis.spines[["top", "right"]].set_visible(False)
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    figure.savefig(path, metadata={"Date": None})


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_maintenance_pays_for_itself(tmp_path: Path) -> None:
    """``pytest -s -m soak`` prints the figures of docs/design/maintenance.md, and where the plot is. Counters alone."""
    strategies: dict[str, Keep] = {
        "no maintenance": lambda _table, _commit: 0,
        "compaction every 50 commits": compacted_every(50),
        "compaction every 10 commits": compacted_every(10),
        "default policy after every commit": by_policy,
    }
    found = {}
    for number, (name, keep) in enumerate(strategies.items()):
        figures = history(tmp_path / str(number), Events(keys=20_000, batches=200, changes=1_000), keep)
        _, size, requests, files, _ = figures.mean(axis=0)
        last = f"at the end {figures[-1, 1] / 1e6:.1f} MB, {figures[-1, 2]}, {figures[-1, 3]}"
        moved = figures[-1, 4] / 1e6
        print(f"| {name} | {size / 1e6:.1f} MB | {requests:.0f} | {files:.0f} | {moved:.0f} MB | {last}")  # noqa: T201
        found[name] = figures
    plot(found, tmp_path / "longevity.svg")
    print(tmp_path / "longevity.svg")  # noqa: T201
    rows = [figures[:, 0].tolist() for figures in found.values()]
    assert rows.count(rows[0]) == len(rows)
    assert found["default policy after every commit"][:, 1].mean() < found["compaction every 50 commits"][:, 1].mean()
