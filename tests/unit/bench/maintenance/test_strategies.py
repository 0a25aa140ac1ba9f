"""A table under changes, by how it is kept: what its readers and its maintenance read and write together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pytest
from matplotlib.figure import Figure

import icebench
from icebench.bench.maintenance import passes
from icebench.bench.maintenance.policy import Policy
from icebench.bench.trials.histories import commit_by_position, compact, refresh
from icebench.bench.workloads.dated_sales import DatedSales
from icebench.bench.workloads.events import Events
from icebench.bench.workloads.refreshes import Refreshes
from icebench.bench.workloads.tpcds import Tpcds
from icebench.engine.storage.counting import CountingStore

OPEN_BYTES = 4 << 10
# A thousandth of a large table: its files, and what opening one costs.
PROPERTIES = {
    "format-version": "3",
    "write.target-file-size-bytes": str(512 << 10),
    "read.split.open-file-cost": str(OPEN_BYTES),
}
EVENTS = Events(keys=20_000, batches=200, changes=1_000)
REFRESHES = Refreshes(sales=DatedSales.of(Tpcds(scale=0.01, seed=1)), batches=100, share=0.002)
RULES = (5, 10, 20, 50, 100)
RATES = (0.03, 0.3, 3.0)
"""Reads of the whole table for each commit."""
EVERY = 3
"""The table is read after every third commit, so that each fixed rule is seen at all its moments."""


class Changes(Protocol):
    """What happens to a table, in batches; the first is what is there before."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def batches(self) -> int: ...


def append(table: icebench.Table, events: Events, batch: int) -> None:
    table.append(pa.Table.from_batches([events.rows(*events.span(batch))]))


WORKLOADS: Mapping[str, tuple[Changes, Callable[..., None]]] = {
    "appends": (EVENTS, append),
    "changes by key": (EVENTS, commit_by_position),
    "refresh sets": (REFRESHES, refresh),
}


@dataclass
class Kept:
    """Bytes of one history, each request counted as `OPEN_BYTES` more.

    Args:
        a_read: Of a read of the whole table, mean over the commits.
        moved: By maintenance.
        examined: By the passes that looked for what is due.
        rows: Those of each read.
    """

    a_read: float
    moved: int
    examined: int
    rows: list[int]

    def total(self, rate: float, commits: int) -> float:
        return self.a_read * rate * commits + self.moved


def cost(counters: icebench.Counters) -> int:
    found = counters.as_dict()
    requests = sum(value for name, value in found.items() if name.startswith("storage_requests_"))
    return found.get("storage_bytes_read", 0) + found.get("storage_bytes_written", 0) + OPEN_BYTES * requests


@contextmanager
def counted(table: icebench.Table, counters: icebench.Counters) -> Iterator[None]:
    """Count all that the table's handle does with storage."""
    plain, table._store = table._store, CountingStore(table._store, counters)
    try:
        yield
    finally:
        table._store = plain


def history(place: Path, changes: Changes, commit: Callable[..., None], keep: Callable[..., None]) -> Kept:
    """Commit all batches, and keep the table after each."""
    table = icebench.load_catalog(str(place)).create_table("db.t", changes.schema, properties=PROPERTIES)
    moved, examined, read, rows = icebench.Counters(), icebench.Counters(), [], []
    for batch in range(changes.batches + 1):
        commit(table, changes, batch)
        if batch:
            with counted(table, examined):
                keep(table, batch, moved)
        table.refresh()
        if batch % EVERY == 1:
            one = icebench.Counters()
            rows.append(icebench.load_table(table.metadata_location).scan(counters=one).to_arrow().num_rows)
            read.append(cost(one))
    return Kept(sum(read) / len(read), cost(moved), cost(examined) - cost(moved), rows)


def compacted_every(commits: int) -> Callable[..., None]:
    def keep(table: icebench.Table, commit: int, moved: icebench.Counters) -> None:
        if commit % commits == 0:
            with counted(table, moved):
                compact(table)

    return keep


def by_policy(rate: float, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A pass after every commit; expiry is left out, as the fixed rules do not do it either."""
    policy, carry_out = Policy.parse({"reads": rate, "actions": {"snapshots": False}}), passes._carry_out

    def keep(table: icebench.Table, _: int, moved: icebench.Counters) -> None:
        def own(*arguments: object) -> object:
            with counted(table, moved):
                return carry_out(*arguments)  # type: ignore[arg-type]

        with monkeypatch.context() as patched:
            patched.setattr(passes, "_carry_out", own)
            list(passes.run_pass(table, policy, execute=True))

    return keep


def plot(found: Mapping[str, Mapping[float, Mapping[str, float]]], path: Path) -> None:
    """A panel for each workload with a line for each rate: costs in times of the best fixed rule's."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    for axis, (workload, rates) in zip(figure.subplots(1, len(found), sharey=True), found.items(), strict=True):
        for (rate, costs), marker in zip(rates.items(), "osv", strict=True):
            best = min(value for name, value in costs.items() if name != "policy")
            values = [value / best for value in costs.values()]
            (line,) = axis.plot(range(len(RULES)), values[:-1], marker=marker, label=f"{rate:g} reads a commit")
            axis.plot([len(RULES)], values[-1:], marker=marker, color=line.get_color(), linestyle="none")
        axis.axhline(1, color="grey", linewidth=0.7)
        axis.set(title=workload, xlabel="compaction every … commits", yscale="log", yticks=[1, 2, 5, 10])
        axis.set_xticks(range(len(RULES) + 1), [*map(str, RULES), "policy"])
        axis.yaxis.set_major_formatter("{x:g}x")
        axis.spines[["top", "right"]].set_visible(False)
    figure.supylabel("total cost, of the best rule's", fontsize=9)
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(path, metadata={"Date": None})


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_the_policy_costs_as_little_as_the_best_fixed_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``pytest -s -m soak`` prints the figures of docs/design/maintenance.md, and where the plot is. Counters alone."""
    found: dict[str, dict[float, dict[str, float]]] = {}
    for workload, (changes, commit) in WORKLOADS.items():
        ways = {f"every {rule}": compacted_every(rule) for rule in RULES}
        ways |= {f"policy, {rate:g}": by_policy(rate, monkeypatch) for rate in RATES}
        kept = {}
        for number, (name, keep) in enumerate(ways.items()):
            kept[name] = history(tmp_path / f"{workload}-{number}", changes, commit, keep)
            print(workload, name, kept[name].a_read, kept[name].moved, kept[name].examined)  # noqa: T201
        assert all(each.rows == kept["every 5"].rows for each in kept.values())
        found[workload] = {
            rate: {
                **{f"every {rule}": kept[f"every {rule}"].total(rate, changes.batches) for rule in RULES},
                "policy": kept[f"policy, {rate:g}"].total(rate, changes.batches),
            }
            for rate in RATES
        }
        for rate, costs in found[workload].items():
            best = min(value for name, value in costs.items() if name != "policy")
            print(f"| {workload}, {rate:g} |", *(f"{value / best:.2f}x |" for value in costs.values()))  # noqa: T201
    plot(found, tmp_path / "longevity.svg")
    print(tmp_path / "longevity.svg")  # noqa: T201
    for rates in found.values():
        for costs in rates.values():
            assert costs["policy"] <= 1.1 * min(value for name, value in costs.items() if name != "policy")
