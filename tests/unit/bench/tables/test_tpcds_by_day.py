"""Facts by day have the rows that they had: in one order, or in a file for each day."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icebench
from icebench.bench.progress import silent
from icebench.bench.tables.cache import DatasetCache
from icebench.bench.tables.tpcds_by_day import find_or_arrange
from icebench.bench.tables.tpcds_tables import NAMESPACE, TpcdsDatabase, write_table
from icebench.bench.workloads.definitions import DayOrder, TpcdsTablesWorkload
from icebench.bench.workloads.dsdgen import FACTS

ROWS, DAYS = 300_000, 50


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TpcdsDatabase:
    """A table of facts, of which every file has every day, and one of others."""
    monkeypatch.setattr("icebench.bench.tables.tpcds_by_day.FACTS", {"inventory": FACTS["inventory"]})
    days = [None if number % 60 == 0 else number % DAYS for number in range(ROWS)]
    Random(1).shuffle(days)
    raw = tmp_path / "it's.parquet"
    pq.write_table(pa.table({FACTS["inventory"]: pa.array(days, pa.int32()), "id": range(ROWS)}), raw)
    catalog = icebench.load_catalog(str(tmp_path / "wh"))
    catalog.create_namespace(NAMESPACE)
    location = write_table(catalog, "inventory", raw, 3)
    return TpcdsDatabase(locations={"inventory": location, "item": "elsewhere"}, raw={"inventory": raw})


@pytest.mark.parametrize(("order", "files", "of_a_day"), [("sorted", 3, 1), ("partitioned", DAYS + 1, 1)])
def test_rows_stay_and_days_are_together(
    made: TpcdsDatabase, tmp_path: Path, order: DayOrder, files: int, of_a_day: int
) -> None:
    workload = TpcdsTablesWorkload(scale=1, files=3, by_day=(order,))
    cache = DatasetCache(tmp_path / "cache")
    found = find_or_arrange(workload, made, cache, silent, order)
    assert found["item"] == "elsewhere"
    before, after = (icebench.load_table(each["inventory"]) for each in (made.locations, found))
    assert after.scan().to_arrow().sort_by("id").equals(before.scan().to_arrow().sort_by("id"))
    assert len(before.scan(filter="inv_date_sk = 7").plan().files) == 3
    assert len(after.scan().plan().files) == files
    assert len(after.scan(filter="inv_date_sk = 7").plan().files) == of_a_day
    assert not list((tmp_path / "cache").rglob("inventory.parquet"))
    assert find_or_arrange(workload, made, cache, silent, order) == found


def test_a_workload_counts_its_tables() -> None:
    assert TpcdsTablesWorkload(scale=1, files=1).tables_made(1) == 1
    assert TpcdsTablesWorkload(scale=1, files=1, by_day=("sorted", "partitioned"), refreshes=2).tables_made(1) == 5
