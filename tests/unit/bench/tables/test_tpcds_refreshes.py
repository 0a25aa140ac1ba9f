"""Refreshes leave the rows as they are, in more files and beside deletes; compaction takes these away."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icebench
from icebench.bench.progress import silent
from icebench.bench.tables.cache import DatasetCache
from icebench.bench.tables.tpcds_refreshes import find_or_refresh, refresh
from icebench.bench.tables.tpcds_tables import NAMESPACE, TpcdsDatabase, write_table
from icebench.bench.workloads.definitions import TpcdsTablesWorkload
from icebench.bench.workloads.dsdgen import FACTS
from icebench.bench.workloads.sales_calendar import date_key

FIRST = date_key(date(1998, 1, 1))
DAYS = (date(2003, 1, 1) - date(1998, 1, 1)) // timedelta(days=1)


def facts(folder: Path, name: str) -> Path:
    """Three rows of each day, and one without."""
    days = [None, *(FIRST + number // 3 for number in range(3 * DAYS))]
    path = folder / f"{name}.parquet"
    random = Random(name)
    texts = [random.randbytes(40).hex() for _ in days]  # so that rows, not footers, are large
    pq.write_table(pa.table({FACTS[name]: pa.array(days, pa.int32()), "id": range(len(days)), "text": texts}), path)
    return path


def rows_of(location: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = icebench.load_table(location).scan().to_arrow().sort_by("id").to_pylist()
    return found


def files_of(location: str) -> tuple[int, int]:
    """Of data, and of deletes."""
    inspect = icebench.load_table(location).inspect
    return len(inspect.data_files()), len(inspect.delete_files())


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TpcdsDatabase:
    """Two tables of facts, and one of others."""
    few = {name: FACTS[name] for name in ("store_sales", "inventory")}
    monkeypatch.setattr("icebench.bench.tables.tpcds_refreshes.FACTS", few)
    raw = {name: facts(tmp_path, name) for name in few}
    catalog = icebench.load_catalog(str(tmp_path / "wh"))
    catalog.create_namespace(NAMESPACE)
    locations = {name: write_table(catalog, name, path, 1) for name, path in raw.items()}
    return TpcdsDatabase(locations={**locations, "item": "elsewhere"}, raw=raw)


def test_a_refresh_loads_days_anew(made: TpcdsDatabase, tmp_path: Path) -> None:
    table = icebench.load_catalog(str(tmp_path / "wh")).load_table(f"{NAMESPACE}.store_sales")
    before = rows_of(table.metadata_location)
    for number in (1, 2):
        refresh(table, FACTS["store_sales"], made.raw["store_sales"], number)
        assert rows_of(table.metadata_location) == before
        assert len(table.inspect.data_files()) == 1 + number
    # Three ranges of two days, three rows of each; the ranges of two refreshes differ.
    sizes = sorted(table.inspect.data_files().column("record_count").to_pylist())
    assert sizes[:-1] == [18, 18]
    deletes = table.inspect.delete_files()
    assert set(deletes.column("content").to_pylist()) == {1}, "positions"
    assert sum(deletes.column("record_count").to_pylist()) == 36


def test_all_facts_are_refreshed_once(made: TpcdsDatabase, tmp_path: Path) -> None:
    workload = TpcdsTablesWorkload(scale=0.01, files=1, refreshes=3)
    cache = DatasetCache(tmp_path / "cache")
    left, compacted = (find_or_refresh(workload, made, cache, silent, compacted=each) for each in (False, True))
    assert left["item"] == compacted["item"] == "elsewhere"
    for name in made.raw:
        assert rows_of(left[name]) == rows_of(compacted[name]) == rows_of(made.locations[name])
        data, deletes = files_of(left[name])
        assert data == 4
        assert deletes > 0
        assert files_of(compacted[name]) == (1, 0)
    assert find_or_refresh(workload, made, cache, silent, compacted=True) == compacted
