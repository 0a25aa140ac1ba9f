from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import icebench
from icebench.bench.cli.gate import HASH_SEEDS, runs_of_fresh_processes
from icebench.bench.engines.checksum import checksum_of
from icebench.bench.gate.cases import count_cases
from icebench.bench.gate.cases.count_cases import NO_ROWS, CaseFailed, run_cases
from icebench.bench.gate.cases.library_calls import probed
from icebench.bench.gate.cases.planned_work import planned_checksum
from icebench.bench.gate.cases.tables import (
    DATE,
    EQUALITY_ITEMS,
    ITEM,
    PAID,
    SMALL_ROWS,
    TABLES,
    TICKET,
    Scale,
    sales,
)
from icebench.bench.gate.cases.work import ROWS, Case, cases
from icebench.bench.gate.decisions.baseline import Baseline, decode, encode
from icebench.bench.gate.decisions.counter_verdict import admissible
from tests.tidy.source import REPOSITORY

# What the filters mean, by Arrow's own evaluation: it shares nothing with the engine's plans.
MEANINGS = {
    "no-filter": pc.scalar(True),
    "one-column": pc.scalar(True),
    "decimals": pc.scalar(True),
    "partition-filter": (pc.field(DATE) >= 2451100) & (pc.field(DATE) < 2451190),
    "metrics-filter": pc.field(TICKET) <= 300,
    "row-group-filter": pc.field(TICKET) <= 300,
    "both-filters": (pc.field(DATE) < 2451000) & (pc.field(TICKET) <= 900),
    "unprunable": pc.field(PAID) > Decimal("5000.00"),
    "nothing": pc.field(ITEM) == -1,
    "few-rows": pc.field(TICKET) <= 20,
    "struct-filter": pc.field("place", "zip") == 7,
    "text-filter": pc.starts_with(pc.field("name"), "abc-"),
}
LEFT = {
    "": pc.scalar(True),
    # A row whose customer is unknown is not deleted.
    "rows": ~pc.coalesce(pc.field("ss_customer_sk") <= 200, False),
    "items": ~pc.field(ITEM).isin(list(EQUALITY_ITEMS)),
}
SCANS = sorted(name for name in cases() if name.startswith("scan/") and not name.endswith("/count"))
DECIMALS = [field.name for field in sales(0, 1).schema if pa.types.is_decimal(field.type)]
_DELETED = ~LEFT["rows"]


def _paid(rows: pa.Table, paid: pa.Array | pa.ChunkedArray) -> pa.Table:
    place = rows.column_names.index(PAID)
    return rows.set_column(place, rows.field(PAID), paid)


CHANGED: dict[str, Callable[[pa.Table], pa.Table]] = {
    "append": lambda rows: rows,
    "append-merging-manifests": lambda rows: pa.concat_tables([rows, rows]),
    "append-conflict": lambda rows: pa.concat_tables([rows, rows.slice(0, 500), rows.slice(0, 500)]),
    "delete-conflict": lambda rows: pa.concat_tables([rows.filter(~_DELETED), rows.slice(0, 500)]),
    "add-deletes": lambda rows: rows.filter(~pc.field(ITEM).isin([3, 4])),
    "delete-partition": lambda rows: rows.filter(
        ~pc.coalesce((pc.field(DATE) >= 2451000) & (pc.field(DATE) < 2451600), False)
    ),
    **dict.fromkeys(
        ("delete-positions", "delete-vectors", "delete-copy-on-write"), lambda rows: rows.filter(~_DELETED)
    ),
    "update": lambda rows: pa.concat_tables(
        [
            rows.filter(~_DELETED),
            _paid(hit := rows.filter(_DELETED), pa.array([Decimal(1)] * len(hit), hit.schema.field(PAID).type)),
        ]
    ),
    "upsert": lambda rows: pa.concat_tables(
        [_paid(rows.slice(0, 500), rows.column(PAID)[:500].take(list(range(500))[::-1])), rows.slice(500)]
    ),
    "overwrite": lambda rows: pa.concat_tables([rows.filter(pc.field(TICKET) > 300), rows.slice(0, 500)]),
    "overwrite-partitions": lambda rows: rows.slice(0, 500),  # they are of all partitions
    **dict.fromkeys(("rewrite-data-files", "rewrite-manifests", "expire-snapshots"), lambda rows: rows),
}
"""What each change leaves of the rows of the table before it."""
BASELINE = decode((REPOSITORY / "results" / "baselines" / "counters.json").read_text())
PLANS_OF_MANY = [
    f"{how}/{filter}"
    for how in ("cold", "warm", "disk-cache")
    for filter in ("no-filter", "metrics-filter", "partition-filter")
]
# A case of each kind, to be counted now: `icebench gate`, which `make check` runs, counts all.
CHOSEN = (
    "changelog/positions",
    "commit/delete-conflict",
    "fresh/first-plan",
    "open/many",
    "plan/many/cold/no-filter",
    "scan/nested/text-filter",
    "scan/partitioned/both-filters",
    "scan/vectors/no-filter",
)


def test_a_cache_on_disk_is_removed_once_the_plan_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with count_cases.built(Scale(rows=480, files=20)) as (_, catalog):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        timed = cases()["plan/many/disk-cache/no-filter"].prepare(catalog, icebench.Counters())
        timed()
        assert len(list(tmp_path.iterdir())) == 1
        del timed
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", SCANS)
def test_every_scan_returns_the_rows_that_brute_force_finds(name: str) -> None:
    _, table, filter = name.split("/")
    rows = pa.concat_tables(list(TABLES[table].appends(Scale().rows)))
    expected = rows.filter(MEANINGS[filter]).filter(LEFT[TABLES[table].deletes])
    found = BASELINE.cases[name]
    assert found.counters["rows_returned"] == expected.num_rows
    columns = {
        "one-column": [ITEM],
        "struct-filter": ["id", "place"],
        "text-filter": ["id", "name"],
    }.get(filter, {"large": DECIMALS, "nested": rows.column_names}.get(table, ROWS))
    assert found.checksum == checksum_of(expected.to_batches(), columns).text


@pytest.mark.parametrize("name", sorted(CHANGED))
def test_every_commit_leaves_the_rows_that_brute_force_finds(name: str) -> None:
    expected = CHANGED[name](sales(0, SMALL_ROWS))
    checksum = checksum_of(expected.to_batches(), expected.column_names).text
    assert BASELINE.cases[f"commit/{name}"].checksum == checksum


def test_answers_have_a_checksum() -> None:
    without = {name for name, case in BASELINE.cases.items() if case.checksum == NO_ROWS}
    assert {name.split("/")[0] for name in without} == {"fresh", "profile"}
    commits = {name.removeprefix("commit/") for name in BASELINE.cases if name.startswith("commit/")}
    assert commits - CHANGED.keys() == {"add-files"}


def test_the_plans_of_one_table_have_a_checksum_for_each_filter() -> None:
    found = {name: BASELINE.cases[f"plan/many/{name}"].checksum for name in PLANS_OF_MANY}
    assert len(set(found.values())) == 3
    for how in ("warm", "disk-cache"):
        for filter in ("no-filter", "metrics-filter", "partition-filter"):
            assert found[f"{how}/{filter}"] == found[f"cold/{filter}"]


def test_a_plan_that_loses_a_file_or_a_delete_has_another_checksum() -> None:
    with count_cases.built(Scale(rows=480, files=20)) as (_, catalog):
        plan = catalog.load_table("gate.many").scan().plan()
        files = plan.files.to_pylist()
        known = planned_checksum(plan)
        assert planned_checksum(replace(plan, files=plan.files.take(list(reversed(range(20)))))) == known
        assert planned_checksum(replace(plan, files=plan.files.slice(1))) != known
        assert any(row["deletes"] for row in files)
        held = plan.files.column("deletes").combine_chunks()
        bare = pa.ListArray.from_arrays(pa.array([0] * (len(files) + 1), pa.int32()), held.values)
        without = plan.files.drop_columns("deletes").append_column("deletes", bare)
        assert planned_checksum(replace(plan, files=without)) != known
    with count_cases.built(Scale(rows=480, files=20)) as (_, catalog):
        assert planned_checksum(catalog.load_table("gate.many").scan().plan()) == known, "another folder"


def test_the_cases_make_every_stage_work() -> None:
    for counter in (
        "manifests_skipped_by_summary",
        "entries_skipped_by_partition",
        "entries_skipped_by_metrics",
        "row_groups_skipped",
        "delete_files_loaded",
        "delete_keys_applied",
        "delete_positions_applied",
        "rows_deleted",
        "storage_requests_range_read",
        "files_written",
        "parquet_values_decoded",
        "arrow_bytes_peak",
    ):
        assert any(case.counters.get(counter, 0) > 0 for case in BASELINE.cases.values()), counter


def test_who_loses_a_race_commits_again_without_reading_or_writing_rows_again() -> None:
    alone, raced = (BASELINE.cases[f"commit/delete-{name}"].counters for name in ("copy-on-write", "conflict"))
    assert (alone["commit_attempts"], raced["commit_attempts"]) == (1, 2)
    assert raced["rows_decoded"] == alone["rows_decoded"]
    assert raced["files_written"] == alone["files_written"] + 1
    assert raced["storage_requests_read"] > alone["storage_requests_read"]
    assert BASELINE.cases["commit/append-conflict"].counters["commit_attempts"] == 2


def test_a_plan_asks_for_as_many_manifests_at_once_as_it_has_threads() -> None:
    found = BASELINE.cases["plan/hundred/rounds"].counters
    assert found["manifests_decoded"] > 100
    assert 0 < found["request_rounds"] < found["storage_requests_read"] / 5


def test_a_retry_sleeps_and_nothing_else_does() -> None:
    found = {name: case.counters["sleeps"] for name, case in BASELINE.cases.items() if "sleeps" in case.counters}
    assert found == {"commit/append-conflict": 1, "commit/delete-conflict": 1}


def test_a_changelog_has_the_rows_that_were_added_and_those_that_were_deleted() -> None:
    rows = pa.concat_tables(list(TABLES["positions"].appends(Scale().rows)))
    deleted = rows.num_rows - rows.filter(LEFT["rows"]).num_rows
    assert deleted > 0
    assert BASELINE.cases["changelog/positions"].counters["rows_returned"] == rows.num_rows + deleted


def test_a_scan_of_one_column_decodes_one_column() -> None:
    one, four = (BASELINE.cases[f"scan/partitioned/{name}"].counters for name in ("one-column", "no-filter"))
    rows = one["rows_returned"]
    assert one["parquet_values_decoded"] == rows
    assert four["parquet_values_decoded"] == 4 * rows
    assert 4 * one["parquet_column_chunks_decoded"] == four["parquet_column_chunks_decoded"]
    assert 0 < one["parquet_bytes_inflated"] < four["parquet_bytes_inflated"]


def test_columns_that_are_decoded_and_dropped_are_counted(tmp_path: Any) -> None:
    import pyarrow.parquet as pq  # local import: as the engine has it, while it is counted

    path = tmp_path / "file.parquet"
    pq.write_table(pa.table({"a": range(1_000), "b": range(1_000), "c": range(1_000)}), path, row_group_size=400)
    with probed() as all_columns:
        pq.ParquetFile(path).reader.read_row_group(0).select(["a"])
    with probed() as first_batch:
        batches: Iterator[pa.RecordBatch] = pq.ParquetFile(path).reader.iter_batches(
            100, row_groups=[1], column_indices=[0, 2], use_threads=False
        )
        next(batches)
    names = ("parquet_column_chunks_decoded", "parquet_values_decoded")
    assert [all_columns[name] for name in names] == [3, 1_200]
    assert [first_batch[name] for name in names] == [2, 200]
    assert 4 * first_batch["parquet_bytes_inflated"] <= all_columns["parquet_bytes_inflated"]
    assert all_columns["arrow_bytes_peak"] >= 400 * 8
    assert pq.ParquetFile is not None
    assert pq.ParquetFile.__name__ == "ParquetFile"


@pytest.mark.slow
def test_counts_are_the_same_in_every_process_whatever_its_hash_seed() -> None:
    """A baseline is only accepted from processes with all `HASH_SEEDS`."""
    runs = runs_of_fresh_processes(HASH_SEEDS[:2], CHOSEN)
    assert admissible(runs) == ()
    answers = {name: BASELINE.cases[name].checksum for name in CHOSEN}
    assert [{name: case.checksum for name, case in run.cases.items()} for run in runs] == [answers] * 2


def test_a_baseline_is_of_a_process_for_each_hash_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def answers(command: list[str], *, env: dict[str, str], **_: Any) -> subprocess.CompletedProcess[str]:
        seen = encode(Baseline(environment={"seed": env["PYTHONHASHSEED"]}))
        return subprocess.CompletedProcess(command, 0, stdout=seen, stderr="")

    monkeypatch.setattr(subprocess, "run", answers)
    seeds = [run.environment["seed"] for run in runs_of_fresh_processes()]
    assert seeds == [str(seed) for seed in HASH_SEEDS]
    assert len(set(seeds)) == 5


def test_a_case_that_raises_anything_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(_catalog: icebench.Catalog, _counters: icebench.Counters) -> Any:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(count_cases, "built", lambda: nullcontext(("", None)))
    monkeypatch.setattr(count_cases, "cases", lambda: {"open/dead": Case("open/dead", dies)})
    with pytest.raises(CaseFailed, match=r"^open/dead: ZeroDivisionError: division by zero$"):
        run_cases(lambda name: name == "open/dead")
