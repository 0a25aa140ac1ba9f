"""Maintenance by policy: what is decided, in which order, and that nothing is due twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icebench
from icebench.bench.errors import ConfigError
from icebench.bench.maintenance.decisions import find_candidates
from icebench.bench.maintenance.passes import Decision, run_pass
from icebench.bench.maintenance.policy import ACTIONS, DEFAULT_POLICY, Policy
from icebench.engine.maintenance.maintenance import Maintenance
from icebench.errors import ValidationFailed
from tests.unit.bench.cli.test_main import exit_code

EVERYTHING = {"reads": 1e9, "actions": {"orphans": True}}
"""So many reads that all pays."""


def neglected(place: Path, **properties: str) -> icebench.Table:
    """Small files, deletes, old snapshots."""
    # Opens are cheap, so that nothing is beneath notice beside them.
    given = {"history.expire.max-snapshot-age-ms": "0", "read.split.open-file-cost": "1000", **properties}
    table = icebench.load_catalog(str(place)).create_table(
        "db.t", pa.schema([("id", pa.int64()), ("x", pa.string())]), properties=given
    )
    for start in range(6):
        table.append(pa.table({"id": list(range(start, 600, 6)), "x": ["text"] * 100}))
    table.delete("id = 3", "merge-on-read")
    return table


def decide(table: icebench.Table, policy: dict[str, Any], *, execute: bool) -> dict[str, Decision]:
    ticks = iter(range(1000))
    found = list(run_pass(table, Policy.parse(policy), execute=execute, clock=lambda: float(next(ticks))))
    assert sorted(each.action for each in found) == sorted(ACTIONS)
    return {each.action: each for each in found}


@pytest.mark.parametrize("declared", [False, True])
def test_what_is_done_is_no_longer_due(tmp_path: Path, declared: bool) -> None:
    clustering = {"icebench.clustering.strategy": "zorder", "icebench.clustering.keys": "id, x"}
    table = neglected(tmp_path, **(clustering if declared else {}))
    before = sorted(table.scan().to_arrow()["id"].to_pylist())
    snapshots = len(table.snapshots)
    plan = decide(table, EVERYTHING, execute=False)
    assert len(table.refresh().snapshots) == snapshots
    due = {name for name, each in plan.items() if each.decision == "do"}
    assert due >= {"compaction", "deletes", "snapshots"} | ({"clustering"} if declared else set())
    decided_later = ["decided again once the actions above are done" in plan[name].why for name in plan if name in due]
    assert decided_later == [False, *[True] * (len(due) - 1)]
    done = decide(table, EVERYTHING, execute=True)
    assert {each.decision for each in done.values()} <= {"done", "skip"}
    assert done["snapshots"].decision == "done"
    table.refresh()
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == before
    assert table.inspect.files().num_rows == 1
    again = decide(table, EVERYTHING, execute=True)
    assert {name: each.decision for name, each in again.items() if each.decision != "skip"} == {}


def test_the_most_gain_per_byte_comes_first(tmp_path: Path) -> None:
    table = neglected(tmp_path)
    found = find_candidates(table, table.maintenance.profile(), Policy.parse(EVERYTHING))
    rates = [each.gain_bytes / max(each.work_bytes, 1) for each in found if each.action != "manifests"]
    assert rates == sorted(rates, reverse=True)
    assert len(found) > 2


def test_compaction_comes_before_manifests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It leaves a manifest of what it removed; one pass does all, and what is left is no reason."""
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", pa.schema([("id", pa.int64())]))
    for start in range(30):
        table.append(pa.table({"id": [start]}))
    command = ["maintain", "run", tmp_path, "db.t"]
    assert exit_code(*command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[:3:2]] == [["do", "compaction"], ["do", "manifests"]]
    assert lines[1].split(";")[0].strip() == "a read opens 29 files fewer (an open counts as 4 MB)"
    assert "saves" not in lines[1] + lines[3]
    assert exit_code(*command, "--execute") == 0
    assert {each.decision for each in decide(table, EVERYTHING, execute=False).values()} == {"skip"}
    assert not table.refresh().maintenance.profile().reasons


def test_what_saves_less_than_it_moves_is_left(tmp_path: Path) -> None:
    table = neglected(tmp_path, **{"read.split.open-file-cost": "1"})
    plan = decide(table, {"reads": 0.001}, execute=False)
    assert plan["deletes"].decision == "skip"
    assert "readers have paid 1 B for the lack of it, opens included, and it moves " in plan["deletes"].why


@pytest.mark.parametrize("what", ["bytes", "seconds", "dollars"])
def test_budgets_are_kept(tmp_path: Path, what: str) -> None:
    table = neglected(tmp_path)
    policy = {**EVERYTHING, "costs": {"bytes_per_second": 1.0, "dollars_per_hour": 3600.0}}
    plan = [each for each in decide(table, policy, execute=False).values() if each.decision == "do"]
    # One second and one dollar for each byte, so that one limit serves all three.
    limit = max(each.work_bytes for each in plan)
    assert all(each.seconds == each.work_bytes == pytest.approx(each.dollars) for each in plan)
    chosen = decide(table, {**policy, "budget": {what: limit}}, execute=False)
    assert 0 < sum(each.work_bytes for each in chosen.values() if each.decision == "do") <= limit
    (refused, *_) = [each for each in chosen.values() if "the budget allows" in each.why]
    assert what in refused.why


def test_a_failed_action_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = neglected(tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise ValidationFailed("another writer was there")

    monkeypatch.setattr(Maintenance, "rewrite_data_files", refuse)
    done = decide(table, EVERYTHING, execute=True)
    assert done["compaction"].decision == "failed"
    assert "another writer was there" in done["compaction"].why
    assert (done["manifests"].decision, done["snapshots"].decision) == ("done", "done")


def with_delete_files(place: Path, version: int) -> icebench.Table:
    """One large data file, position-delete files and equality-delete files."""
    given = {"read.split.open-file-cost": "1000000", "write.delete.granularity": "partition", "format-version": "2"}
    schema = pa.schema([("id", pa.int64()), ("x", pa.string())])
    table = icebench.load_catalog(str(place)).create_table("db.t", schema, properties=given)
    table.append(pa.table({"id": range(2000), "x": [f"text {i * 7919}" for i in range(2000)]}))
    for start in range(6):
        table.delete(f"id = {start}", "merge-on-read")
    for start in range(10, 14):
        stream = table.keyed_stream(["id"])
        stream.delete(pa.table({"id": [start]}))
        stream.commit()
    if version == 3:
        table.upgrade_format(3)
    return table


@pytest.mark.parametrize("version", [2, 3])
def test_delete_files_are_rewritten_before_data_files(tmp_path: Path, version: int) -> None:
    """They move fewer bytes. The rows stay, and nothing is due again."""
    table = with_delete_files(tmp_path, version)
    before = sorted(table.scan().to_arrow()["id"].to_pylist())
    actions = {"compaction": False, "deletes": False, "manifests": False, "snapshots": False}
    policy = {"reads": 100, "actions": actions}
    found = find_candidates(table, table.maintenance.profile(), Policy.parse(policy))
    assert [each.action for each in found] == ["position_deletes", "equality_deletes"]
    assert all(each.decision == "do" for each in decide(table, policy, execute=False).values() if each.gain_bytes)
    done = decide(table, policy, execute=True)
    assert done["position_deletes"].decision == done["equality_deletes"].decision == "done"
    table.refresh()
    profile = table.maintenance.profile()
    assert profile.deletes.equality.files == 0
    assert profile.deletes.positions.files + profile.deletes.vectors.files <= (2 if version == 2 else 1)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == before
    assert {each.decision for each in decide(table, policy, execute=True).values()} == {"skip"}


@pytest.mark.parametrize("granularity", ["file", "partition"])
@pytest.mark.parametrize(("partitions", "deletes", "due"), [(3, 2, False), (2, 5, True), (1, 4, False), (1, 5, True)])
def test_delete_files_that_a_rewrite_leaves_are_not_due(
    tmp_path: Path, partitions: int, deletes: int, granularity: str, *, due: bool
) -> None:
    """Which it takes depends on how many a partition has; what is due is rewritten, and is not due again."""
    given = {"read.split.open-file-cost": "1000000", "write.delete.granularity": "partition", "format-version": "2"}
    schema = pa.schema([("id", pa.int64()), ("part", pa.int64())])
    table = icebench.load_catalog(str(tmp_path)).create_table(
        "db.t", schema, partition_spec=[("part", "identity")], properties=given
    )
    table.append(pa.table({"id": range(600), "part": [i % partitions for i in range(600)]}))
    for start in range(deletes):
        table.delete(f"id between {start * 10} and {start * 10 + 5}", "merge-on-read")
    assert len(table.inspect.delete_files()) == partitions * deletes
    table.set_properties({"write.delete.granularity": granularity})
    policy = {"reads": 100, "actions": {"position_deletes": True, "compaction": False, "deletes": False}}
    done = decide(table, policy, execute=True)["position_deletes"]
    assert done.decision == ("done" if due else "skip")
    if due:
        assert done.result is not None
        assert (done.result["removed_delete_files"], done.result["added_delete_files"]) == (
            partitions * deletes,
            partitions,
        )
    table.set_properties({"somebody": "else"})  # the tag of the snapshot is not why it is not due
    table.append(pa.table({"id": [1000], "part": [0]}))
    assert decide(table, policy, execute=True)["position_deletes"].decision == "skip"


def test_statistics_are_due_where_they_are_asked_for_and_stale(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("x", pa.string())])
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", schema, partition_spec=[("x", "identity")])
    policy = {"actions": {"table_statistics": True, "partition_statistics": True}, "statistics": {"changed_share": 0.2}}
    assert {each.decision for each in decide(table, policy, execute=True).values()} == {"skip"}

    def append(rows: int) -> set[str]:
        """What a pass computes after so many new rows."""
        table.append(pa.table({"id": range(rows), "x": ["a"] * rows}))
        done = decide(table, policy, execute=True)
        return {name for name, each in done.items() if each.decision == "done" and name.endswith("statistics")}

    both = {"table_statistics", "partition_statistics"}
    assert append(100) == both
    assert append(20) == set()
    assert append(1) == both
    table.append(pa.table({"id": range(100), "x": ["a"] * 100}))
    plan = decide(table, {}, execute=False)
    assert plan["table_statistics"].why == plan["partition_statistics"].why == "not in the policy"
    assert decide(table, {**policy, "budget": {"bytes": 1}}, execute=True)["table_statistics"].decision == "skip"


def test_the_default_policy_says_what_the_defaults_are() -> None:
    assert Policy.load() == Policy.parse({})
    assert all(name in DEFAULT_POLICY.read_text() for name in ACTIONS)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"raeds": 3}, r"definition: unknown key 'raeds' \(did you mean 'reads'\?\)"),
        ({"actions": {"deletions": True}}, r"actions: unknown key 'deletions' \(did you mean 'deletes'\?\)"),
        ({"budget": {"bytes": "much"}}, r"budget.bytes: must be a number, not 'much'"),
        ({"costs": {"storage": "mars"}}, r"costs.storage: unknown storage 'mars'"),
    ],
)
def test_wrong_policies_are_refused(policy: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Policy.parse(policy)


def test_the_command_plans_then_executes_and_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = neglected(tmp_path / "wh")
    log, policy = tmp_path / "log.jsonl", tmp_path / "policy.toml"
    policy.write_text("reads = 1e9\n")
    command = ["maintain", "run", tmp_path / "wh", "db.t", "--policy", policy, "--log", log]
    assert exit_code(*command) == 0
    captured = capsys.readouterr()
    assert "do      deletes" in captured.out
    assert "nothing was changed; --execute does it" in captured.err
    assert exit_code(*command, "--execute") == 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(lines) == 2 * len(ACTIONS)
    assert {line["table"] for line in lines} == {"db.t"}
    (done,) = [line for line in lines if line["decision"] == "done" and line["action"] == "snapshots"]
    assert done["result"]["snapshot_ids"] > 0
    assert len(table.refresh().snapshots) < 7
    policy.write_text("reads = [\n")
    assert exit_code(*command) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_log_that_cannot_be_written_is_refused_before_anything_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = neglected(tmp_path / "wh")
    before = table.metadata_location
    command = ["maintain", "run", tmp_path / "wh", "db.t", "--execute", "--log", tmp_path / "no" / "log.jsonl"]
    assert exit_code(*command) == 2
    assert "log.jsonl" in capsys.readouterr().err
    assert table.refresh().metadata_location == before
