"""Small tables, which DuckDB reads whole before it joins them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import icebench
from icebench.bench.engines import small_tables
from icebench.bench.engines.access import TableAccess
from icebench.bench.engines.icebench import Icebench
from icebench.bench.engines.registry import EngineContext
from icebench.bench.engines.small_tables import columns_read, is_small
from tests.unit.bench.cli.test_main import exit_code
from tests.unit.bench.execution.scripted import no_spark

ROWS = {"a": 10, "b": 2000}
JOIN = "select count(*), sum(b.v) from a join b on a.k = b.k where a.w < 5"


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, icebench.Table]:
    """Two, of as many rows as `ROWS` says: k, v, w, of one value each row."""
    catalog = icebench.load_catalog(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    made = {}
    for name, rows in ROWS.items():
        numbers = list(range(rows))
        table = pa.table({"k": numbers, "v": [1] * rows, "w": numbers})
        made[name] = catalog.create_table(f"db.{name}", table.schema)
        made[name].append(table)
    return made


@pytest.fixture
def engine() -> Icebench:
    return Icebench(EngineContext(spark=no_spark, access=TableAccess()))


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        (
            "select a.x, count(*) from t a join u using (Id) where y > 1 order by z",
            {"a", "x", "t", "u", "id", "y", "z"},
        ),
        ('select "odd name" * 2 from t', {"odd name", "t"}),
        ("select * from t", None),
        ("select t.* from t", None),
        ("select count(*) from t natural join u", None),
        ("select t from t", None),
        ("select max(x) from t as y where y is not null", None),
        ("from t", None),
        ("select columns('a.*') from t", None),
        ("pivot t on x using sum(y)", None),
        ("select x from (pivot t on x using sum(y))", None),
        ("explain select x from t", None),
        ("summarize t", None),
        ("no sql at all (", None),
    ],
)
def test_columns_that_a_query_may_read(query: str, columns: set[str] | None) -> None:
    assert columns_read(query) == (None if columns is None else frozenset(columns))


def test_a_table_is_small_by_its_rows_and_bytes(
    tables: dict[str, icebench.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all(map(is_small, tables.values()))
    monkeypatch.setattr(small_tables, "ROWS", 100)
    assert [is_small(tables[name]) for name in "ab"] == [True, False]
    monkeypatch.setattr(small_tables, "BYTES", 10)
    assert not is_small(tables["a"])


def test_a_table_of_which_nothing_is_said_is_not_small(
    tables: dict[str, icebench.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = tables["a"].current_snapshot
    assert snapshot is not None
    monkeypatch.setattr(icebench.Table, "current_snapshot", replace(snapshot, summary={}))
    assert not is_small(tables["a"])


@pytest.mark.parametrize("rows", [0, 100, 10_000])
def test_answers_do_not_depend_on_what_is_small(
    tables: dict[str, icebench.Table], engine: Icebench, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(small_tables, "ROWS", rows)
    opened = engine.open_tables({name: table.metadata_location for name, table in tables.items()})
    for _ in range(2):
        assert engine.answer(opened, JOIN, ["a", "b"]) == [(5, 5)]
        assert engine.answer(opened, "select max(w) from b", ["b"]) == [(1999,)]
        assert engine.answer(engine.new_session(opened), JOIN, ["a", "b"]) == [(5, 5)]


def test_duckdb_knows_how_many_rows_a_small_table_has(tables: dict[str, icebench.Table], engine: Icebench) -> None:
    opened = engine.open_tables({name: table.metadata_location for name, table in tables.items()})
    engine.answer(opened, JOIN, ["a", "b"])
    plan = opened[0].execute("explain select k from b").fetchone()[1]
    assert "~2,000 rows" in plan


def test_each_query_reads_small_tables_anew(tables: dict[str, icebench.Table], engine: Icebench) -> None:
    """So that what they take is within its time."""
    locations = {name: table.metadata_location for name, table in tables.items()}
    opened = engine.open_tables(locations)
    connection: duckdb.DuckDBPyConnection = opened[0]
    engine.answer(opened, JOIN, ["a", "b"])
    connection.execute("insert into a values (7, 1, 0)")
    assert connection.execute("select count(*) from a").fetchone() == (11,)
    assert engine.answer(opened, JOIN, ["a", "b"]) == [(5, 5)]


@pytest.mark.parametrize("rows", [0, 100, 10_000])
def test_the_command_joins_small_tables_and_large_ones(
    tables: dict[str, icebench.Table],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    rows: int,
) -> None:
    monkeypatch.setattr(small_tables, "ROWS", rows)
    query = "select count(*) as n, sum(y.v) as s from db.a x join b y on x.k = y.k where x.w < 5"
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    assert exit_code("sql", query, catalog, "db.a", "db.b", "--warehouse", tmp_path, "--format", "csv") == 0
    assert capsys.readouterr().out == "n,s\n5,5\n"
