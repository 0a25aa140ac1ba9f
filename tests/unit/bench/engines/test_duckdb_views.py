"""Tables in DuckDB: small ones are copied before it joins them, large ones state how many rows they have."""

from __future__ import annotations

import gc
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import duckdb
import psutil
import pyarrow as pa
import pytest

import icebench
from icebench.bench.engines import duckdb_views
from icebench.bench.engines.access import TableAccess
from icebench.bench.engines.duckdb_queries import configure
from icebench.bench.engines.duckdb_views import allow_joins, answer_over_copies, columns_read, create_view
from icebench.bench.engines.engine import TookTooLong
from icebench.bench.engines.icebench import Icebench
from icebench.bench.engines.registry import EngineContext
from icebench.bench.truth.queries import Query
from tests.property.empty_tables import COLUMNS, Case
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


def small(tables: Mapping[str, icebench.Table], connection: duckdb.DuckDBPyConnection | None = None) -> list[str]:
    connection = connection or duckdb.connect()
    return [name for name, table in tables.items() if create_view(connection, name, table)]


def test_a_table_is_small_by_its_rows_and_bytes(
    tables: dict[str, icebench.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert small(tables) == ["a", "b"]
    monkeypatch.setattr(duckdb_views, "ROWS", 100)
    assert small(tables) == ["a"]
    monkeypatch.setattr(duckdb_views, "BYTES", 10)
    assert small(tables) == []


@pytest.mark.parametrize(
    "summary",
    [
        {},
        {"total-records": "10"},
        {"total-files-size": "10"},
        {"total-records": "-1", "total-files-size": "10"},
        {"total-records": "1e3", "total-files-size": "10"},
        {"total-records": "9" * 30, "total-files-size": "10"},
    ],
)
def test_a_table_of_which_nothing_credible_is_said_is_not_small(
    tables: dict[str, icebench.Table], monkeypatch: pytest.MonkeyPatch, summary: dict[str, str]
) -> None:
    snapshot = tables["a"].current_snapshot
    assert snapshot is not None
    monkeypatch.setattr(icebench.Table, "current_snapshot", replace(snapshot, summary=summary))
    connection = duckdb.connect()
    assert small({"a": tables["a"]}, connection) == []
    assert connection.execute("select count(*), sum(w) from a where k > 2").fetchall() == [(7, 42)]


def plan_of(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    ((_, plan),) = connection.execute(f"explain {query}").fetchall()
    return str(plan)


def test_duckdb_knows_how_many_rows_a_large_table_has(
    tables: dict[str, icebench.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a join the smaller one is the second, whichever comes first in the query: a table in memory."""
    monkeypatch.setattr(duckdb_views, "ROWS", 1)
    connection = duckdb.connect()
    allow_joins(connection)
    assert small(tables, connection) == []
    gc.collect()
    assert "~2,000 rows" in plan_of(connection, "select k from b where w < 7")
    assert "~10 rows" in plan_of(connection, "select k from a")
    for text in ("a join b", "b join a"):
        (_, plan), *_ = connection.execute(f"explain (format json) select a.w, b.v from {text} using (k)").fetchall()
        (join,) = json.loads(plan)
        while join["name"] != "HASH_JOIN":
            (join,) = join["children"]
        assert [str(side).count("'2000'") > 0 for side in join["children"]] == [True, False]
    assert connection.execute(JOIN).fetchall() == [(5, 5)]


def test_rows_of_all_types_are_those_of_the_scan() -> None:
    """Also where they state how many they are."""
    for version in (2, 3):
        columns = [column for column in COLUMNS if version == 3 or column.type_name in ("uuid", "fixed", "decimal38")]
        table = Case(columns, "no match", version=version).table
        connection = duckdb.connect()
        relation = table.scan().to_duckdb(connection)
        assert relation.to_arrow_table().num_rows > 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(duckdb_views, "ROWS", 0)
            assert not create_view(connection, "t", table)
        view = connection.sql("from t")
        assert (view.columns, view.types) == (relation.columns, relation.types)
        assert view.to_arrow_table().equals(relation.to_arrow_table())


def test_the_filter_of_a_large_table_reaches_its_plan(
    tables: dict[str, icebench.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckdb_views, "ROWS", 1)
    tables["b"].append(pa.table({"k": [5000], "v": [1], "w": [5000]}))
    connection, counters = duckdb.connect(), icebench.Counters()
    assert not create_view(connection, "b", tables["b"], counters)
    assert connection.execute("select v from b where k > 4000 and w > 0").fetchall() == [(1,)]
    assert counters.as_dict()["rows_decoded"] == 1
    assert counters.as_dict()["files_planned"] == 1


@pytest.mark.parametrize("rows", [0, 100, 10_000])
def test_answers_do_not_depend_on_what_is_small(
    tables: dict[str, icebench.Table], engine: Icebench, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(duckdb_views, "ROWS", rows)
    opened = engine.open_tables({name: table.metadata_location for name, table in tables.items()})
    for _ in range(2):
        assert engine.answer(opened, JOIN, ["a", "b"]) == [(5, 5)]
        assert engine.answer(opened, "select max(w) from b", ["b"]) == [(1999,)]
        assert engine.answer(engine.new_session(opened), JOIN, ["a", "b"]) == [(5, 5)]


def executed(query: str, small: list[str], connection: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    return answer_over_copies(connection, query, small, lambda answered: answered.fetchall())


def test_duckdb_knows_how_many_rows_a_small_table_has(tables: dict[str, icebench.Table], engine: Icebench) -> None:
    connection, small = engine.open_tables({name: table.metadata_location for name, table in tables.items()})
    assert small == {"a": "a", "b": "b"}
    ((_, plan),) = executed("explain select k from b", ["b"], connection)
    assert "~2,000 rows" in str(plan)
    ((_, plan),) = executed("explain select k from b", [], connection)
    assert "~2,000 rows" not in str(plan)


def test_a_query_leaves_no_copy_behind(tables: dict[str, icebench.Table], engine: Icebench) -> None:
    opened = engine.open_tables({name: table.metadata_location for name, table in tables.items()})
    for query in (JOIN, "select sum(a.w) from a join b using (k)"):
        engine.answer(opened, query, ["a", "b"])
        assert opened[0].execute("select count(*) from duckdb_tables()").fetchone() == (0,)
    with pytest.raises(duckdb.Error):
        engine.answer(opened, "select cast('x' || w as int) from a join b using (k)", ["a", "b"])
    assert opened[0].execute("select count(*) from duckdb_tables()").fetchone() == (0,)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("with a as (select * from a where k < 3) select count(*) from a", 3),
        ("with a as (select k from memory.main.a where k < 3) select count(*) from a join b using (k)", 3),
        ("select count(*) from A join B on a.K = b.K where a.V = 1", 10),
        ("select count(*) from query('select w as n from a') join b on b.k = n", 10),
        ("select count(*) from a where exists (select 1 from b where b.k = a.k and b.w > 7)", 2),
    ],
)
def test_names_mean_what_they_mean_over_views(
    tables: dict[str, icebench.Table], engine: Icebench, query: str, expected: int
) -> None:
    locations = {name.upper(): table.metadata_location for name, table in tables.items()}
    opened = engine.open_tables(locations)
    for _ in range(2):
        assert engine.answer(opened, query, Query("q", query).tables) == [(expected,)]


def test_streams_do_not_see_the_copies_of_each_other(tables: dict[str, icebench.Table], engine: Icebench) -> None:
    opened = engine.open_tables({name: table.metadata_location for name, table in tables.items()})
    session = engine.new_session(opened)

    def fetch(connection: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
        found = connection.fetchall()
        assert engine.answer(session, "select count(*), sum(w) from a join b using (k, w)", ["a", "b"]) == [(10, 45)]
        return found

    assert answer_over_copies(opened[0], JOIN, ["a", "b"], fetch) == [(5, 5)]


def test_copying_is_within_the_time_of_a_query(
    tables: dict[str, icebench.Table], engine: Icebench, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = engine.open_tables({name: table.metadata_location for name, table in tables.items()})
    copy = duckdb_views._copy

    def slow(*arguments: object) -> None:
        copy(*arguments)  # type: ignore[arg-type]
        opened[0].execute("select count(*) from range(100_000_000_000)")

    monkeypatch.setattr(duckdb_views, "_copy", slow)
    with pytest.raises(TookTooLong):
        engine.answer(opened, JOIN, ["a", "b"], 0.2)
    monkeypatch.undo()
    assert engine.answer(opened, JOIN, ["a", "b"], 60) == [(5, 5)]


def test_a_copy_of_times_that_duckdb_rounds_has_the_rows_of_their_scan(tmp_path: Path, engine: Icebench) -> None:
    catalog = icebench.load_catalog(str(tmp_path / "wh"))
    catalog.create_namespace("db")
    rows = pa.table({"t": pa.array([1, 1000, 1001], pa.timestamp("ns", "UTC"))})
    table = catalog.create_table("db.a", rows.schema, properties={"format-version": "3"})
    table.append(rows)
    opened = engine.open_tables({"a": table.metadata_location, "b": table.metadata_location})
    assert engine.answer(opened, "select count(*) from a where t > '1970-01-01'", ["a"]) == [(2,)]
    assert engine.answer(opened, "select count(*) from a, b where a.t > '1970-01-01'", ["a", "b"]) == [(6,)]


@pytest.mark.parametrize("rows", [0, 100, 10_000])
def test_the_command_joins_small_tables_and_large_ones(
    tables: dict[str, icebench.Table],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    rows: int,
) -> None:
    monkeypatch.setattr(duckdb_views, "ROWS", rows)
    query = "select count(*) as n, sum(y.v) as s from db.a x join b y on x.k = y.k where x.w < 5"
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    assert exit_code("sql", query, catalog, "db.a", "db.b", "--warehouse", tmp_path, "--format", "csv") == 0
    assert capsys.readouterr().out == "n,s\n5,5\n"


def test_the_command_copies_what_it_joins_and_nothing_else(
    tables: dict[str, icebench.Table], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Counters tell: a copy is of all rows. The help of a mistyped name is that of all columns."""
    place = (f"sqlite:///{tmp_path}/catalog.db", "db.a", "db.b", "--warehouse", tmp_path, "--format", "csv")

    def said(query: str, expected: int = 0) -> str:
        assert exit_code("sql", query, *place) == expected
        return capsys.readouterr().err

    assert "rows_decoded" not in said("select 1 as x")
    assert "rows_decoded 10;" in f"{said('select max(w) as x from a').replace(',', ';').strip()};"
    assert "rows_decoded 2,010" in said("select count(*) as x from db.a join b using (k) where a.k = 1")
    assert "Falling back" not in said("explain select k from a join b using (k)")
    assert '"a.w"' in said("select wx from a join b on a.k = b.k", 2)
    (next(tmp_path.rglob("db/a/data/*.parquet"))).unlink()
    said("select count(w) as x from b")
    assert "bug" not in said("select count(*) as x from a join b using (k)", 2)


def test_duckdb_leaves_half_of_the_memory_to_others() -> None:
    """By default it takes four fifths, and the system ends a run whose query fills them."""
    with duckdb.connect() as connection:
        configure(connection)
        text = connection.execute("select current_setting('memory_limit')").fetchone()
    assert text is not None
    number, unit = text[0].split()
    share = float(number) * 1024 ** "KMGT".index(unit[0]) * 1024 / psutil.virtual_memory().total
    assert 0.45 < share < 0.55
