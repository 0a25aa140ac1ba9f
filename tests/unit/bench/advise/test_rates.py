from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import icebench
from icebench.bench.advise import timing
from icebench.bench.advise.candidates import partitionings, todays_layout
from icebench.bench.advise.estimate import Estimator
from icebench.bench.advise.planned import Reading, StoredColumns
from icebench.bench.advise.queries import Query
from icebench.bench.advise.rates import ASSUMED, Amounts, Rates, TimedRead, TimedRewrite, fit, rewrite_seconds
from icebench.bench.advise.rewriting import rewrite
from icebench.bench.advise.sample import take_sample
from icebench.bench.advise.statements import icebench_commands
from icebench.bench.advise.timing import time_reads
from icebench.bench.advise.trial import time_rewrites, try_layouts
from icebench.bench.costs.object_store import LOCAL, SAME_REGION
from icebench.bench.layouts.layout import TARGET_SIZE, Layout, Term
from icebench.bench.report.advice import rates_text

TRUTH = Rates(query=6e-3, manifest=1e-3, file=1.5e-3, row_group=6e-4, byte=6e-9, value=1.2e-8)
"""Three times what is assumed."""
DAYS = 60


def _reads(truth: Rates, count: int, *, noise: float = 0.05) -> list[TimedRead]:
    rng = np.random.default_rng(3)
    found = []
    for _ in range(count):
        files, size = float(rng.integers(1, 60)), float(rng.integers(100_000, 20_000_000))
        amounts: Amounts = (1, float(rng.integers(1, 30)), files, files * rng.integers(1, 4), size, size * rng.random())
        found.append(TimedRead(amounts=amounts, seconds=truth.seconds(amounts) * rng.normal(1, noise)))
    return found


@pytest.fixture
def table(tmp_path: Path) -> icebench.Table:
    """Sixty days, in one file far below the target size."""
    count = 6_000
    rng = np.random.default_rng(5)
    seconds = rng.integers(0, DAYS * 86_400, count).astype("timedelta64[s]")
    rows = pa.table({"at": np.datetime64("2026-01-01", "us") + seconds, "key": rng.permutation(count)})
    made = icebench.load_catalog(str(tmp_path / "wh")).create_table("db.t", rows.schema)
    made.append(rows)
    return made


@pytest.mark.parametrize("truth", [TRUTH, ASSUMED, replace(TRUTH, query=2e-3, file=8e-3, byte=1e-9)])
def test_a_machine_of_other_rates_is_recognised(truth: Rates) -> None:
    found = fit(_reads(truth, 60))
    for each in _reads(truth, 300, noise=0.0):
        assert found.seconds(each.amounts) == pytest.approx(each.seconds, rel=0.1)
    assert found.file + found.row_group == pytest.approx(truth.file + truth.row_group, rel=0.3)
    assert found.error is not None
    assert 0.03 < found.error < 0.1


def test_a_read_that_was_disturbed_weighs_little() -> None:
    reads = _reads(TRUTH, 40)
    found = fit([*reads, *(replace(each, seconds=20 * each.seconds) for each in reads[:3])])
    for each in reads[3:]:
        assert found.seconds(each.amounts) == pytest.approx(each.seconds, rel=0.25)
    assert found.error is not None
    assert found.error > 0.1  # and is said


def test_reads_of_the_table_itself_decide_how_fast_all_are() -> None:
    """Half as long again as those of smaller tables; one of them was disturbed."""
    reads = _reads(TRUTH, 40, noise=0)
    slower = [replace(each, seconds=1.5 * each.seconds) for each in reads[:9]]
    own = [*slower, replace(slower[0], seconds=20 * slower[0].seconds)]
    found = fit(reads[9:], own)
    assert found.reads == 41
    for each in reads:
        assert found.seconds(each.amounts) == pytest.approx(1.5 * each.seconds, rel=0.1)
    assert fit(reads[9:], slower).error == pytest.approx(0, abs=0.1)  # of these reads, not of the others


def test_amounts_that_go_together_share_their_seconds() -> None:
    """A row group in each file, and one manifest: the sums are known, not their parts."""
    reads = []
    for files, size in [(1, 1e6), (4, 1e6), (16, 2e6), (64, 1e6), (1, 4e7), (8, 2e7), (2, 1e5), (32, 3e7), (1, 1e5)]:
        amounts: Amounts = (1, 1, files, files, size, size)
        reads.append(TimedRead(amounts=amounts, seconds=TRUTH.seconds(amounts)))
    found = fit(reads)
    assert found.file + found.row_group == pytest.approx(TRUTH.file + TRUTH.row_group, rel=0.05)
    assert found.query + found.manifest == pytest.approx(TRUTH.query + TRUTH.manifest, rel=0.1)
    assert found.decoding == pytest.approx(1 / (TRUTH.byte + TRUTH.value), rel=0.05)
    assert min(found.file, found.row_group, found.byte, found.value) > 0


def test_too_few_reads_are_said() -> None:
    few = fit(_reads(TRUTH, 5))
    assert few == Rates(reads=5)
    assert rates_text(few) == "reads: 2 ms a query, 700 µs a file, 200 MB/s, as assumed: 5 timed reads are too few"
    known = rates_text(Rates(query=3e-3, file=8e-4, row_group=3e-4, decoding=310e6, error=0.204, reads=40))
    assert known == "reads: 3 ms a query, 1.1 ms a file, 310 MB/s, as measured on this machine (±20.4 %)"


def test_a_store_is_waited_for_besides() -> None:
    one = Reading(files=1, row_groups=1, bytes_read=1e6, values=1e6)
    many = replace(one, files=100, row_groups=100)
    here, there = (one.seconds(profile, TRUTH) for profile in (LOCAL, SAME_REGION))
    assert here == pytest.approx(TRUTH.seconds(one.amounts))
    assert there > here + 4 * SAME_REGION.latency_seconds
    files = 99 * (TRUTH.file + TRUTH.row_group)
    assert many.seconds(LOCAL, TRUTH) - here == pytest.approx(files)
    assert one.seconds(SAME_REGION, replace(TRUTH, byte=1e-7)) > there


def test_reads_count_after_a_warm_one(table: icebench.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = []
    monkeypatch.setattr(timing, "read_rows", lambda _, query: columns.append(query.columns))
    ticks = iter(1e-6 * n**3 for n in range(100))
    query = Query(name="q", filter="key < 100", columns=("key",))
    all_columns, one_column, filtered = time_reads(table, [replace(query, columns=("at", "key"))], clock=ticks.__next__)
    assert columns == [("at", "key")] * 4 + [("at",)] * 4 + [("at", "key")] * 4
    # Of each: one tick for the budget, and pairs about the three reads, of which the first is the shortest.
    least = [1e-6 * ((first + 1) ** 3 - first**3) for first in (2, 9, 16)]
    assert [each.seconds for each in (all_columns, one_column, filtered)] == pytest.approx(least)
    assert filtered.amounts == StoredColumns(table).reading(replace(query, columns=("at", "key"))).amounts
    assert all_columns.amounts[5] == 2 * one_column.amounts[5] == 12_000
    assert not time_reads(table, [query], most_bytes=1)
    slow = iter(float(n) for n in range(100))
    assert not time_reads(table, [query], clock=slow.__next__)  # the time is over


def test_days_of_a_small_table_are_tried_where_files_count(table: icebench.Table) -> None:
    queries = [Query(name="q", filter="at < timestamp '2026-01-05 00:00:00'", columns=("key",), ranges=("at",))]
    estimator = Estimator(take_sample(table, rows=6_000, read_bytes=1 << 30), queries)
    today = todays_layout(table)
    by_day, by_month, by_hour = ((Term(column="at", transform=each),) for each in ("day", "month", "hour"))
    tried = partitionings(estimator, queries, today, counts_files=True)
    assert by_day in tried
    assert by_month in tried
    assert by_hour not in tried  # 1,440
    assert partitionings(estimator, queries, today) == [()]
    everything = Query(name="all", columns=("key",))
    estimator = Estimator(estimator.sample, [everything])
    costs = [
        estimator.readings(estimator.estimate(Layout(name="l", partition=each)))[0].seconds(LOCAL, TRUTH)
        for each in ((), by_month, by_day)
    ]
    for fewer, more in pairwise(costs):
        assert fewer < more
    assert costs[2] - costs[0] == pytest.approx((DAYS - 1) * (TRUTH.file + TRUTH.row_group))


def test_what_a_rewrite_takes_for_its_rows_alone_grows_with_them() -> None:
    """0.2 seconds whatever there is, 10 ms a file, 100 ns a comparison of rows."""
    known = [
        TimedRewrite(files=files, rows=rows, seconds=0.2 + 0.01 * files + 1e-7 * rows * math.log2(rows))
        for files, rows in [(1, 50_000), (1, 200_000), (60, 200_000), (60, 200_000), (4, 200_000)]
    ]
    expected = 0.2 + 0.01 * 60 + 1e-7 * 3e6 * math.log2(3e6)
    assert rewrite_seconds(known, known[2], files=60, rows=3e6) == pytest.approx(expected, rel=0.1)
    slow = replace(known[3], seconds=1.5 * known[3].seconds)
    found = rewrite_seconds([*known[:3], slow, known[4]], slow, files=60, rows=3e6)
    assert found == pytest.approx(1.5 * expected, rel=0.2)


def test_a_trial_is_rewritten_as_the_table_would_be(table: icebench.Table) -> None:
    sample = take_sample(table, rows=6_000, read_bytes=1 << 30)
    today = todays_layout(table)
    query = Query(name="q", filter="at < timestamp '2026-01-05 00:00:00'", columns=("key",))
    layout = Layout(
        name="l",
        partition=(Term(column="at", transform="month"),),
        sort=(Term(column="key"),),
        properties={TARGET_SIZE: "20000"},
    )
    (trial,) = try_layouts([layout], sample, [query], today=today)
    assert trial.build_seconds > 0
    sorts = time_rewrites(today, sample, "key")
    assert [(each.files, each.rows) for each in sorts] == [(1, 1_500), (1, 6_000)] * 2
    assert len(trial.reads) == 2 + 1 - 1  # of all columns, which are the first, and of the query
    commands = icebench_commands(layout, today, table, ())
    rewrite(table, layout, today)
    assert [(f.name, str(f.transform)) for f in table.spec.fields] == [("at_month", "month")]
    assert "spec.add_field('at', 'month')" in commands[0]
    stored = StoredColumns(table)
    assert (len(stored.sizes), stored.sizes.sum()) == (trial.files, pytest.approx(trial.data_bytes, rel=0.02))
    assert stored.reading(query).bytes_read == pytest.approx(trial.readings[0].bytes_read, rel=0.02)
    rewrite(table, replace(layout, partition=(), properties={}), todays_layout(table))
    assert not table.spec.fields


def test_what_partitions_take_grows_with_the_rows_also_where_all_have_few_files() -> None:
    """Measured: sorts into a file, and rewrites into six partitions, which take twice as long."""
    sorts = [TimedRewrite(files=1, rows=rows, seconds=s) for rows, s in [(48_000, 0.12), (192_000, 0.29)] * 2]
    into_partitions = [TimedRewrite(files=6, rows=192_000, seconds=s) for s in (0.75, 0.94, 0.42, 0.54)]
    found = rewrite_seconds([*sorts, *into_partitions], into_partitions[3], files=6, rows=1_152_000)
    assert 5 * 0.54 < found < 7 * 0.54  # six times the rows
