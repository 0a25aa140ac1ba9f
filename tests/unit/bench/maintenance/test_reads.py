"""How much was read in vain: by simulated histories, and what deciding by it costs."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import icebench
from icebench.bench.maintenance import reads as module
from icebench.bench.maintenance.policy import Policy
from icebench.bench.maintenance.reads import TAG, Reads, _age_of_deletes, _Commit

DAY_MS = 86_400_000


def commits_of(totals: list[int], kept: int) -> list[_Commit]:
    """The newest `kept` of commits that left so many deletes, newest first."""
    made = [
        _Commit(number=number, timestamp_ms=number, is_maintenance=False, deletes=each)
        for number, each in enumerate(totals, 1)
    ]
    return made[::-1][:kept]


@given(st.lists(st.lists(st.integers(0, 5), max_size=4) | st.just("compacted"), min_size=1, max_size=20))
def test_the_age_of_deletes_is_that_of_each_of_them(steps: list[list[int] | str]) -> None:
    """Deletes are kept one by one with the commit that they came with; a compaction takes all."""
    alive: list[int] = []
    totals = []
    for number, step in enumerate(steps, 1):
        alive = [] if isinstance(step, str) else [*alive, *[number] * sum(step)]
        totals.append(len(alive))
    ages = [len(steps) + 1 - each for each in alive]
    assert _age_of_deletes(commits_of(totals, len(totals))) == pytest.approx(sum(ages) / len(ages) if ages else 0.0)


@pytest.mark.parametrize("kept", [3, 10, 50])
def test_deletes_from_before_the_oldest_snapshot_came_evenly(kept: int) -> None:
    even = [10 * n for n in range(1, 101)]
    exact = _age_of_deletes(commits_of(even, 100))
    assert _age_of_deletes(commits_of(even, kept)) == pytest.approx(exact, rel=0.02)
    # Nothing is known of how they came: those commits count that are there.
    assert _age_of_deletes(commits_of([7] * 100, kept)) == kept
    # No more commits than there were.
    late = [*[0] * 90, *range(91, 101)]
    assert _age_of_deletes(commits_of(late, 5)) <= 100


@pytest.mark.parametrize("work", [3.0, 40.0, 700.0, 9000.0])
def test_deciding_by_what_was_paid_costs_what_the_best_fixed_rule_does(work: float) -> None:
    """A cause that grows by one with each commit, and one read a commit."""

    def total(every: int) -> float:
        return work / every + sum(range(every)) / every

    age = next(n for n in itertools.count(1) if n * Reads(1.0, 0.0).in_vain(1.0, (n + 1) / 2) >= work)
    assert total(age) == pytest.approx(min(total(n) for n in range(1, 1000)))


def committed(place: Path, **properties: str) -> icebench.Table:
    schema = pa.schema([("id", pa.int64())])
    table = icebench.load_catalog(str(place)).create_table("db.t", schema, properties=properties)
    for number in range(4):
        table.append(pa.table({"id": [number]}))
    return table


@pytest.mark.parametrize("version", ["1", "2"])
def test_reads_of_a_commit(tmp_path: Path, version: str) -> None:
    table = committed(tmp_path, **{"format-version": version})
    assert Reads.of(table, Policy.parse({"reads": 6}), 0).per_commit == 6
    table.append(pa.table({"id": [9]}), snapshot_properties={TAG: "compaction"})
    table.append(pa.table({"id": [9]}), snapshot_properties={TAG: "manifests"})
    assert Reads.of(table, Policy.parse({"reads": 6}), 0).per_commit == 4, "two of six are no commits of others"
    empty = icebench.load_catalog(str(tmp_path)).create_table("db.empty", pa.schema([("id", pa.int64())]))
    assert Reads.of(empty, Policy.parse({"reads": 6}), 0) == Reads(0.0, 0.0)


def test_commits_before_an_upgrade_are_numbered_without_a_gap(tmp_path: Path) -> None:
    table = committed(tmp_path, **{"format-version": "1"})
    table.upgrade_format(2)
    for number in range(3):
        table.append(pa.table({"id": [number]}))
    numbers = [each.number for each in module._history(table)]
    assert numbers == [3, 2, 1, 0, -1, -2, -3]


def test_reads_of_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = committed(tmp_path)
    policy = Policy.parse({"reads_per_day": 100})
    real = module._history

    def slowed(own: icebench.Table) -> Any:
        found = list(real(own))
        return [replace(each, timestamp_ms=each.number * DAY_MS // 4) for each in found]

    monkeypatch.setattr(module, "_history", slowed)
    assert Reads.of(table, policy, 0).per_commit == pytest.approx(25)
    table.maintenance.expire_snapshots(retain_last=1, older_than=2**52)
    table.refresh()
    assert Reads.of(table, policy, DAY_MS * 3).per_commit == pytest.approx(200), "two days since the only snapshot"
