import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.engines.checksum import checksum_of
from icebench.bench.workloads.log import STATUSES, Log
from icebench.bench.workloads.popularity import CIRCLE, zipf_arcs

ROWS = 50_000
LOG = Log(rows=ROWS)


@pytest.fixture(scope="module")
def rows() -> pa.RecordBatch:
    batch = LOG.batch(0, ROWS)
    batch.validate(full=True)
    return batch


@given(st.lists(st.integers(0, 300), max_size=4), st.integers(0, 2**64))
def test_any_division_gives_the_same_rows(cuts: list[int], seed: int) -> None:
    made = Log(rows=300, seed=seed)
    parts = [made.batch(start, stop) for start, stop in pairwise([0, *sorted(cuts), 300])]
    assert pa.Table.from_batches(parts).combine_chunks() == pa.Table.from_batches([made.batch(0, 300)]).combine_chunks()


def test_the_rows_stay_what_they_are(rows: pa.RecordBatch) -> None:
    assert checksum_of([rows], LOG.schema.names).text == "c467d446cca1cb54b495"


def test_requests_have_ids_and_pages_of_their_own(rows: pa.RecordBatch) -> None:
    ids = rows.column("request_id").to_pylist()
    assert len(set(ids)) == ROWS
    assert {(found.version, found.variant) for found in map(uuid.UUID, ids[:1000])} == {(4, uuid.RFC_4122)}
    assert rows.column("url").slice(0, 10_000).unique().__len__() > 9_500
    assert rows.column("user_agent").unique().__len__() > ROWS * 0.95


def test_a_url_is_of_its_host_and_half_have_a_session(rows: pa.RecordBatch) -> None:
    urls = [urlsplit(text) for text in rows.column("url").to_pylist()]
    assert [url.netloc for url in urls] == rows.column("host").to_pylist()
    assert sum(bool(url.query) for url in urls) / ROWS == pytest.approx(0.5, abs=0.01)


def test_statuses_come_in_their_shares_and_only_unmodified_pages_have_no_size(rows: pa.RecordBatch) -> None:
    seen = Counter(rows.column("status").to_pylist())
    assert set(seen) == set(STATUSES)
    for status, share in STATUSES.items():
        expected = ROWS * share / 1_000
        assert abs(seen[status] - expected) < 6 * np.sqrt(expected)
    assert rows.filter(pc.is_null(rows.column("bytes"))).column("status").unique().to_pylist() == [304]
    assert rows.column("bytes").null_count == seen[304]


def test_hosts_come_by_zipfs_law(rows: pa.RecordBatch) -> None:
    seen = sorted(Counter(rows.column("host").to_pylist()).values(), reverse=True)
    expected = zipf_arcs(LOG.hosts, LOG.skew)[:10] / CIRCLE * ROWS
    assert np.abs(np.array(seen[:10]) - expected).max() < 6 * np.sqrt(expected[0])


@pytest.mark.parametrize("late", [0.0, 0.01, 0.3])
def test_times_are_in_order_but_for_the_late(late: float) -> None:
    times = Log(rows=20_000, late=late).batch(0, 20_000).column("logged_at").to_pylist()
    first = datetime(2025, 1, 1, tzinfo=UTC).replace(tzinfo=None)
    behind = [first + n * timedelta(days=30) / 20_000 - time for n, time in enumerate(times)]
    assert max(behind) <= timedelta(hours=6)
    assert min(behind) > -timedelta(days=30) / 20_000
    assert sum(lag > timedelta(seconds=0) for lag in behind) / 20_000 == pytest.approx(late, abs=0.01)


def test_the_filters_keep_what_they_are_named_for(rows: pa.RecordBatch) -> None:
    shares = {"one_hour": 1 / 720, "errors": 0.008}
    duckdb = pytest.importorskip("duckdb", reason="needs the extra 'peers'")
    found = {}
    with duckdb.connect() as connection:
        connection.register("log", rows)
        for name, text in LOG.filters.items():
            found[name] = connection.sql(f"select count(*) from log where {text}").fetchall()[0][0]
    assert found["one_request"] == 1
    assert 0 < found["url_prefix"] < ROWS / 100
    for name, share in shares.items():
        assert found[name] == pytest.approx(ROWS * share, rel=0.25)
