"""``python -m tests.unit.bench.upkeep.strategies RESULTS.json [COMMITS [PLOT.svg]]``: a table under changes, by how it is kept.

Counters alone: after every tenth commit the table is read whole and with the three filters of the events workload, as
a fresh process would; what upkeep has moved so far is bytes that it read and wrote, of data files, and for a policy
as it estimates them. The table is a thousandth of a large one, and so are the target size and the cost of an open.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

import engine
from bench.measure.histories import commit_by_position, compact
from bench.upkeep.passes import run_pass
from bench.upkeep.policy import Policy
from bench.workloads.events import Events

_SCALE = {"write.target-file-size-bytes": str(512 << 10), "read.split.open-file-cost": str(4 << 10)}
_RETENTION = {"history.expire.max-snapshot-age-ms": "0", "history.expire.min-snapshots-to-keep": "20"}
_ASKED_EVERY = 10
_SHOWN = {
    "bytes read by four queries": "storage_bytes_read",
    "requests of four queries": "requests",
    "files of a scan": "files",
    "bytes moved by upkeep so far": "upkeep_bytes",
}


def strategies() -> dict[str, Callable[[engine.Table, int], int]]:
    """How a table is kept: takes it after a commit, and says how many bytes that moved."""
    return {
        "no upkeep": lambda _table, _commit: 0,
        "compaction every 10 commits": partial(_compacted, every=10),
        "compaction every 50 commits": partial(_compacted, every=50),
        "policy": _by_policy,
    }


def _compacted(table: engine.Table, commit: int, *, every: int) -> int:
    if commit % every:
        return 0
    before = _live_bytes(table)
    compact(table)
    return before + _live_bytes(table)


def _by_policy(table: engine.Table, _commit: int) -> int:
    return sum(each.work_bytes for each in run_pass(table, Policy.load(), execute=True) if each.decision == "done")


def _live_bytes(table: engine.Table) -> int:
    return sum(table.inspect.files()["file_size_in_bytes"].to_pylist())


def history(place: str, events: Events, keep: Callable[[engine.Table, int], int]) -> list[dict[str, Any]]:
    """Commit all batches, keep the table after each, and ask it after some."""
    properties = {"format-version": "3", **_SCALE, **_RETENTION}
    table = engine.load_catalog(place).create_table("db.t", events.schema, properties=properties)
    told, moved = [], 0
    for batch in range(events.batches + 1):
        commit_by_position(table, events, batch)
        if batch:
            moved += keep(table, batch)
        table.refresh()
        if batch % _ASKED_EVERY == 0:
            told.append(
                {"commit": batch, "upkeep_bytes": moved, "snapshots": len(table.snapshots), **_asked(table, events)}
            )
    return told


def _asked(table: engine.Table, events: Events) -> dict[str, int]:
    counters = engine.Counters()
    fresh = engine.load_table(table.metadata_location)
    rows = sum(
        fresh.scan(filter=each, counters=counters).to_arrow().num_rows for each in (None, *events.filters.values())
    )
    found = counters.as_dict()
    requests = sum(value for name, value in found.items() if name.startswith("storage_requests_"))
    files = table.inspect.files().num_rows
    return {"rows": rows, "requests": requests, "files": files, "storage_bytes_read": found["storage_bytes_read"]}


def plot(results: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Four panels over commits, a line for each strategy."""
    figure = Figure(figsize=(9, 6.2), layout="constrained")
    for axis, (title, name) in zip(figure.subplots(2, 2).flat, _SHOWN.items(), strict=True):
        for strategy, told in results.items():
            axis.plot([each["commit"] for each in told], [each[name] for each in told], label=strategy, linewidth=1.5)
        axis.set_title(title, fontsize=10, loc="left")
        axis.set_xlabel("commits", fontsize=8)
        axis.set_ylim(bottom=0)
        axis.spines[["top", "right"]].set_visible(False)
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9)
    figure.savefig(path, metadata={"Date": None})


def main(results_path: str, commits: str = "200", plot_path: str | None = None) -> int:
    """Run all strategies, and write what came of each."""
    events = Events(keys=20_000, batches=int(commits), changes=1_000)
    results: dict[str, list[dict[str, Any]]] = {}
    for name, keep in strategies().items():
        with tempfile.TemporaryDirectory() as place:
            results[name] = history(place, events, keep)
        rows = [[each["rows"] for each in told] for told in results.values()]
        assert rows.count(rows[0]) == len(rows)
        Path(results_path).write_text(json.dumps(results, indent=1), encoding="utf-8")
        sys.stdout.write(f"{name}: {results[name][-1]}\n")
    if plot_path is not None:
        plot(results, Path(plot_path))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
