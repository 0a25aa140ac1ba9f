import hashlib
import itertools
import pickle
import subprocess
import sys

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.workloads.schemas import TABLES
from icebench.bench.workloads.tpcds import Tpcds

WORKLOADS = (Tpcds(0.002, seed=7), Tpcds(0.002, seed=8, skew=0.8, wide_decimals=True))


@given(
    workload=st.sampled_from(WORKLOADS),
    table=st.sampled_from(TABLES),
    cuts=st.lists(st.floats(0, 1), max_size=6),
)
def test_any_split_gives_the_same_rows(workload: Tpcds, table: str, cuts: list[float]) -> None:
    rows = min(workload.row_count(table), 3_000)
    bounds = sorted({0, rows, *(int(cut * rows) for cut in cuts)})
    parts = [workload.batch(table, start, stop) for start, stop in itertools.pairwise(bounds)]
    whole = workload.batch(table, 0, rows)
    assert pa.Table.from_batches(parts).combine_chunks().equals(pa.Table.from_batches([whole]))


@pytest.mark.parametrize("table", TABLES)
def test_an_empty_range_is_an_empty_batch(table: str) -> None:
    rows = WORKLOADS[1].row_count(table)
    for place in (0, rows):
        batch = WORKLOADS[1].batch(table, place, place)
        assert batch.num_rows == 0
        assert batch.schema == WORKLOADS[1].schema(table)


def checksum(batch: pa.RecordBatch) -> str:
    return hashlib.sha256(repr(batch.to_pylist()).encode()).hexdigest()[:16]


# Data sets are named by their definition, and their layouts and baselines by the data: a change here is a change of all
# of them. When it is meant, say so in the commit and let baselines be made anew.
FROZEN = {
    "store_sales": "bfb98b028dbcaac549969a09deaf78aa",
    "store_returns": "6eeead111416702bd9eb0575d5f76594",
    "catalog_sales": "56ce3d51f8ae789071a9d643500f37b7",
    "catalog_returns": "5e84492591619bbd1872a5aea7ac3a3b",
    "web_sales": "d14e780f9fe4d8ec96e3e7764f4d678f",
    "web_returns": "f676501d3aab0453eefd8afa5045ff96",
    "inventory": "e06443d422a091efc6a405cf100e9b79",
}


@pytest.mark.parametrize("table", FROZEN)
def test_rows_never_change(table: str) -> None:
    workload = Tpcds(1.0, wide_decimals=True)
    rows = workload.row_count(table)
    count = min(200, rows)
    batches = workload.batch(table, 0, count), workload.batch(table, rows - count, rows)
    assert checksum(batches[0]) + checksum(batches[1]) == FROZEN[table]


def test_seeds_give_different_data() -> None:
    first, second = (Tpcds(0.01, seed=seed).batch("store_sales", 0, 500) for seed in (1, 2))
    for name in set(first.schema.names) - {"ss_ticket_number"}:
        assert not first.column(name).equals(second.column(name)), name


def test_a_workload_is_a_value() -> None:
    assert Tpcds(0.1) == Tpcds(0.1, seed=42, skew=0.0, wide_decimals=False)
    assert pickle.loads(pickle.dumps(Tpcds(0.1, seed=3))) == Tpcds(0.1, seed=3)


@pytest.mark.parametrize(("start", "stop"), [(-1, 1), (2, 1), (0, 287 + 1)])
def test_rows_out_of_range_are_refused(start: int, stop: int) -> None:
    with pytest.raises(ValueError, match="not in store_returns, which has rows 0 to 287"):
        Tpcds(0.001).batch("store_returns", start, stop)


def test_arguments_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="scale factor"):
        Tpcds(0)
    with pytest.raises(ValueError, match="skew"):
        Tpcds(1, skew=-0.5)
    for call in (Tpcds(1).row_count, Tpcds(1).schema):
        # A table that store_sales points to but nobody generates is no table of the workload.
        with pytest.raises(ValueError, match="no such table: 'promotion'"):
            call("promotion")


def test_delete_ranges_depend_on_seed_and_refresh() -> None:
    assert Tpcds(1, seed=1).delete_ranges() == Tpcds(10, seed=1).delete_ranges(0)
    assert Tpcds(1, seed=1).delete_ranges() != Tpcds(1, seed=2).delete_ranges()
    assert Tpcds(1, seed=1).delete_ranges() != Tpcds(1, seed=1).delete_ranges(1)


def test_rows_are_made_without_spark() -> None:
    program = (
        "import icebench.bench.workloads.tpcds as t, sys\n"
        "t.Tpcds(0.01).batch('store_sales', 0, 10)\n"
        "assert 'pyspark' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
