from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bench.cases.counters import DATE, DELETED, ITEM, PAID, SCANS, SIZES, TABLES, TICKET, ScanCase, run_cases
from bench.cli.gate import HASH_SEEDS, runs_of_fresh_processes
from bench.engines.checksum import checksum_of
from bench.gate.baseline import CaseResult
from bench.gate.verdict import admissible

# What the filters mean, by Arrow's own evaluation: it shares nothing with the engine's plans.
MEANINGS = {
    None: pc.scalar(True),
    f"{DATE} >= 2451100 and {DATE} < 2451190": (pc.field(DATE) >= 2451100) & (pc.field(DATE) < 2451190),
    f"{TICKET} <= 300": pc.field(TICKET) <= 300,
    f"{DATE} < 2451000 and {TICKET} <= 900": (pc.field(DATE) < 2451000) & (pc.field(TICKET) <= 900),
    f"{PAID} > 5000.00": pc.field(PAID) > Decimal("5000.00"),
    f"{ITEM} = -1": pc.field(ITEM) == -1,
    # A row whose customer is unknown is not deleted.
    f"not ({DELETED})": ~pc.coalesce(pc.field("ss_customer_sk") <= 200, False),
}


@pytest.fixture(scope="module")
def results() -> dict[str, CaseResult]:
    return run_cases()


@pytest.fixture(scope="module")
def rows() -> Mapping[str, pa.Table]:
    return {case.name: pa.concat_tables(list(case.appends())) for case in TABLES}


@pytest.mark.parametrize("case", SCANS, ids=lambda case: f"{case.table}-{case.name}")
@pytest.mark.parametrize("kind", ["scan", "scan-with-deletes"])
def test_every_scan_returns_the_rows_that_brute_force_finds(
    results: dict[str, CaseResult], rows: Mapping[str, pa.Table], case: ScanCase, kind: str
) -> None:
    expected = rows[case.table].filter(MEANINGS[case.filter])
    if kind == "scan-with-deletes":
        expected = expected.filter(MEANINGS[f"not ({DELETED})"])
    found = results[f"{case.table}/{kind}/{case.name}"]
    assert found.counters["rows_returned"] == expected.num_rows
    assert found.checksum == checksum_of(expected.to_batches(), case.columns).text


def test_the_cases_make_every_stage_of_pruning_work(results: dict[str, CaseResult]) -> None:
    for counter in (
        "manifests_skipped_by_summary", "entries_skipped_by_partition", "entries_skipped_by_metrics",
        "row_groups_skipped", "delete_files_loaded", "rows_deleted", "storage_requests_read", "commit_attempts",
        "files_written",
    ):  # fmt: skip
        assert any(case.counters.get(counter, 0) > 0 for case in results.values()), counter


def test_no_size_is_gated(results: dict[str, CaseResult]) -> None:
    assert not any(SIZES in counter for case in results.values() for counter in case.counters)


def test_a_second_run_in_the_same_process_counts_the_same(results: dict[str, CaseResult]) -> None:
    assert run_cases() == results


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_counts_are_the_same_in_every_process_whatever_its_hash_seed(results: dict[str, CaseResult]) -> None:
    runs = runs_of_fresh_processes()
    assert len(runs) == len(HASH_SEEDS) == 5
    assert admissible([results, *runs]) == ()
