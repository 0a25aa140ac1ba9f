"""Scans as frames of other libraries, and rows from them."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import icebench
from icebench.engine.frames.duckdb_source import ScanDataset
from icebench.errors import Invalid, NotInstalled, Unsupported
from tests.steps import CountedName, steps

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us")),
        ("d", pa.decimal128(9, 2)),
        ("n", pa.struct([("a", pa.int64()), ("b", pa.string())])),
        ("u", pa.uuid()),
        ("e", pa.decimal128(38, 36)),
    ]
)


def row(number: int) -> dict[str, Any]:
    moment = dt.datetime.fromisoformat("2020-01-01") + dt.timedelta(days=number)
    return {
        "id": number,
        "x": [float("nan"), 1.5, None][number % 3],
        "s": None if number % 7 == 0 else f"s{number:02}",
        "day": moment.date(),
        "ts": moment,
        "d": Decimal(number).scaleb(-2),
        "n": {"a": number % 4, "b": "b"},
        "u": uuid.UUID(int=number).bytes,
        "e": Decimal(f"{number}.{'1' * 36}"),
    }


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> icebench.Table:
    """Four files of 25 rows, one of them with deleted rows."""
    made = icebench.load_catalog(str(tmp_path_factory.mktemp("frames"))).create_table("db.t", SCHEMA)
    for first in range(0, 100, 25):
        made.append(pa.Table.from_pylist([row(n) for n in range(first, first + 25)], SCHEMA))
    made.delete("id in (3, 4)", "merge-on-read")
    return made


FILTERS: list[tuple[Any, str, int]] = [
    (pl.col("id") > 80, "id > 80", 1),
    ((pl.col("id") < 10) | (pl.col("id") == 99), "id < 10 or id = 99", 2),
    ((pl.col("s").str.starts_with("s0")) & pl.col("x").is_not_null(), "s like 's0%' and x is not null", 1),
    (
        pl.col("day").is_between(dt.date(2020, 1, 9), dt.date(2020, 2, 1)),
        "day > '2020-01-08' and day <= '2020-02-01'",
        2,
    ),
    (pl.col("ts") >= dt.datetime.fromisoformat("2020-03-20"), "ts >= '2020-03-20'", 1),
    (pl.col("id").is_in([1, 3, 30]), "id in (1, 3, 30)", 2),
    (pl.col("d") < Decimal("0.05"), "d < 0.05", 1),
    (pl.col("e") == Decimal(f"7.{'1' * 36}"), f"e = 7.{'1' * 36}", 1),
    ((pl.col("x") > 1) & (pl.col("id") < 30), "x > 1 and id < 30", 2),
    (~(pl.col("id") == 5) & pl.col("s").is_null(), "id != 5 and s is null", 4),
    (pl.col("s").str.len_chars() + pl.col("id") == 10, "length(s) + id = 10", 4),
    (pl.col("n").struct.field("a") == 2, "n.a = 2", 4),
]


@pytest.mark.parametrize(("filter", "text", "files"), FILTERS)
def test_both_find_the_same_rows_and_prune(table: icebench.Table, filter: Any, text: str, files: int) -> None:
    expected = sorted(table.scan(text).to_arrow()["id"].to_pylist())
    counters = icebench.Counters()
    lazy = table.scan(counters=counters).to_polars()
    assert sorted(lazy.filter(filter).select("id").collect()["id"]) == expected
    assert counters.as_dict()["files_planned"] <= files
    counters = icebench.Counters()
    relation = table.scan(counters=counters).to_duckdb()
    assert sorted(n for (n,) in relation.filter(text).project("id").fetchall()) == expected


def test_duckdb_pushes_filters_and_columns(table: icebench.Table) -> None:
    counters = icebench.Counters()
    relation = table.scan(counters=counters).to_duckdb(duckdb.connect())
    assert relation.filter("id > 80 and s is not null").aggregate("count(*), min(day)").fetchall()[0][0] == 16
    assert counters.as_dict()["files_planned"] == 1
    assert table.scan(limit=30).to_duckdb().filter("id > 60").aggregate("count(*)").fetchall() == [(25,)]
    assert table.scan(columns=["n.b", "id"]).to_duckdb().filter("id = 30").fetchall() == [(30, {"b": "b"})]


def test_polars_reads_what_it_needs(table: icebench.Table) -> None:
    counters = icebench.Counters()
    lazy = table.scan(counters=counters).to_polars()
    assert lazy.head(7).collect()["id"].to_list() == [75, 76, 77, 78, 79, 80, 81]
    assert counters.as_dict()["rows_decoded"] <= 50
    assert lazy.filter(pl.col("id") > 50).head(3).collect().shape == (3, 9)
    assert lazy.filter(pl.col("x").is_in([float("nan"), 7.0])).collect().height == table.scan("x is nan").count()
    assert lazy.select("s", "id").collect().columns == ["s", "id"]
    assert (
        lazy.collect()["n"].struct.field("a").sum() == lazy.select(pl.col("n").struct.field("a").sum()).collect().item()
    )
    assert table.scan(limit=10).to_polars().filter(pl.col("id") > 8).collect()["id"].to_list() == list(range(75, 85))
    assert table.scan("id < 2").to_pandas()["s"].to_list()[1:] == ["s01"]


def test_pandas_refuses_dates_outside_the_years_of_python(tmp_path: Path) -> None:
    day = pa.array([4_000_000], pa.int32()).cast(pa.date32())
    instant = pa.array([2**58]).cast(pa.timestamp("us"))
    rows = pa.table({"id": [1], "at": instant, "day": day, "n": pa.StructArray.from_arrays([instant], ["at"])})
    made = icebench.load_catalog(str(tmp_path)).create_table("db.far", rows.schema)
    made.append(rows)
    for name in ("day", "n"):
        with pytest.raises(icebench.errors.Unsupported, match=f"column '{name}' .*year 1"):
            made.scan(columns=["id", name]).to_pandas()
    assert str(made.scan(columns=["at"]).to_pandas()["at"].to_numpy()[0]) == "11103-08-29T17:22:31.711744"


def test_polars_filters_columns_that_readers_compute(table: icebench.Table) -> None:
    counters = icebench.Counters()
    lazy = table.scan(columns=["id", "_pos", "_file"], counters=counters).to_polars()
    assert sorted(lazy.filter((pl.col("_pos") > 20) & (pl.col("id") < 25)).collect()["id"]) == [21, 22, 23, 24]
    assert counters.as_dict()["files_planned"] == 1
    assert lazy.filter((pl.col("_pos") > 22) | (pl.col("id") == 0)).collect().height == 9
    assert lazy.filter(pl.col("_file").str.starts_with("no")).select("id").collect().height == 0


@pytest.mark.parametrize("text", [None, "id >= 2", "x is not null"])
@pytest.mark.parametrize("limit", [0, 1, 24, 60, 98, 1000])
def test_a_limit_stops_reading(table: icebench.Table, text: str | None, limit: int) -> None:
    whole = table.scan(text).to_arrow()
    counters = icebench.Counters()
    scan = table.scan(text, limit=limit, counters=counters)
    assert scan.to_arrow()["id"] == whole["id"].slice(0, limit)
    assert scan.count() == min(limit, whole.num_rows)
    if limit == 24 and text is None:
        assert counters.as_dict()["rows_decoded"] == 2 * 25, "once for the rows and once to count them"


def test_a_sample_has_other_rows_for_other_seeds(table: icebench.Table) -> None:
    scan, whole = table.scan(), table.scan().to_arrow()["id"].to_pylist()
    drawn = [scan.sample(20, seed=seed)["id"].to_pylist() for seed in range(40)]
    assert all(len(set(each)) == 20 and [n for n in whole if n in each] == each for each in drawn)
    assert scan.sample(20, seed=3)["id"].to_pylist() == drawn[3]
    assert len({tuple(each) for each in drawn}) == 40
    assert {n for each in drawn for n in each} == set(whole)
    assert scan.sample(1000)["id"].to_pylist() == whole
    assert scan.sample(0).num_rows == 0


NAN_OR_LESS = [
    "x <= {}",
    "n.a > 1 and x <= {}",
    "x between 1 and {}",
    "x <= {} and s > '(true'",
    "(x <= {} or x = 1) and id > 9",
    "not (x <= {})",
]


@pytest.mark.parametrize("text", NAN_OR_LESS)
def test_duckdb_never_delivers_nulls_for_a_comparison_with_nan(table: icebench.Table, text: str) -> None:
    connection, condition = duckdb.connect(), text.format("'nan'::double")
    connection.from_arrow(table.scan().to_arrow()).create("own")
    expected = connection.execute(f"select id from own where {condition} order by id").fetchall()
    assert table.scan().to_duckdb(connection).filter(condition).project("id").order("id").fetchall() == expected


def test_duckdb_joins_on_nan(tmp_path: Path) -> None:
    rows = pa.table(
        {"id": range(4), "x": [float("nan"), 1.5, 2.5, None], "s": [{"f": 0.5}] * 4, "l": [[1.5]] * 4, "y": [1.5] * 4}
    )
    made = icebench.load_catalog(str(tmp_path)).create_table("db.t", rows.schema)
    made.append(rows)
    connection = duckdb.connect()
    made.scan().to_duckdb(connection).create_view("t")
    join = "select a.id, a.l from t a join t b on a.x = b.x {} order by 1"
    assert connection.execute(join.format("")).fetchall() == [(0, [1.5]), (1, [1.5]), (2, [1.5])]
    for more in ("where a.y > 0", "where a.s.f > 0"):
        with pytest.raises(duckdb.Error, match="set disabled_optimizers = 'join_filter_pushdown'"):
            connection.execute(join.format(more))
    connection.execute("set disabled_optimizers = 'join_filter_pushdown'")
    assert len(connection.execute(join.format("where a.y > 0 and a.s.f > 0")).fetchall()) == 3


def test_what_is_no_filter_of_the_engine_is_refused(table: icebench.Table) -> None:
    """For DuckDB does not test it again, and pyarrow does not compare NaN as DuckDB does."""
    with pytest.raises(Unsupported, match="match_substring_regex in the pyarrow filter"):
        ScanDataset(table.scan()).scanner(["s"], pc.match_substring_regex(pc.field("s"), "^s0[12]$"))


@pytest.mark.parametrize("limit", [None, 100])
@pytest.mark.parametrize(
    "text",
    [
        "_pos >= 1 and x > 1",
        "_pos between 7 and 9 and id < 30",
        "x in ('nan'::double, 1.5) and x > 1",
        'x > 1 and "several\nlines\'" < 90',
    ],
)
def test_duckdb_tests_what_the_plan_cannot_as_in_its_own_tables(
    table: icebench.Table, tmp_path: Path, text: str, limit: int | None
) -> None:
    rows = table.scan(columns=["id", "x"]).to_arrow()
    rows = rows.append_column("several\nlines'", rows["id"])
    made = icebench.load_catalog(str(tmp_path)).create_table("db.t", rows.schema)
    made.append(rows)
    scan = made.scan(columns=["id", "x", "several\nlines'", "_pos"], limit=limit)
    connection = duckdb.connect()
    connection.from_arrow(scan.to_arrow()).create("own")
    expected = connection.execute(f"select id from own where {text} order by id").fetchall()
    assert scan.to_duckdb(connection).filter(text).project("id").order("id").fetchall() == expected


MANY_SCANS = """
import sys
import duckdb
import pyarrow as pa
import icebench
pa.set_io_thread_count(1)
connection = duckdb.connect(config={"threads": 4})
icebench.load_table(sys.argv[1]).scan().to_duckdb(connection).create_view("t")
counts = ", ".join(f"(select count(x) from t where x % 4 = {i})" for i in range(4))
print(*connection.execute(f"select {counts}").fetchone())
"""


def test_a_query_may_have_more_scans_than_arrow_has_threads(tmp_path: Path) -> None:
    made = icebench.load_catalog(str(tmp_path)).create_table("db.t", pa.schema([("x", pa.int64())]))
    numbers = np.random.default_rng(1).integers(0, 1 << 60, 400_000)  # too large for files to be read whole
    for half in np.split(numbers, 2):
        made.append(pa.table({"x": half}))
    command = [sys.executable, "-c", MANY_SCANS, made.metadata_location]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert [int(each) for each in done.stdout.split()] == np.bincount(numbers % 4).tolist()


@pytest.mark.parametrize("limit", [None, 6])
@pytest.mark.parametrize("text", ["x > 1", "x <> 1", "x = 0", "x <= 0", "x in (0.0, 1)", "x = 'nan'", "y > 1"])
def test_duckdb_compares_nan_and_zeros_as_in_its_own_tables(tmp_path: Path, text: str, limit: int | None) -> None:
    values = [float("nan"), 1.0, -0.0, 0.0, None, 2.0]
    rows = pa.table({"id": range(6), "x": values, "y": pa.array(values, pa.float32())})
    made = icebench.load_catalog(str(tmp_path)).create_table("db.t", rows.schema)
    made.append(rows)
    connection = duckdb.connect()
    connection.execute("create table own as select * from rows")
    expected = connection.execute(f"select id from own where {text} order by id").fetchall()
    relation = made.scan(limit=limit).to_duckdb(connection).filter(text).project("id").order("id")
    assert relation.fetchall() == expected


@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">="])
def test_duckdb_compares_nanoseconds_with_a_zone_as_the_microseconds_that_it_shows(
    tmp_path: Path, operator: str
) -> None:
    numbers = [-2001, -2000, -1999, -1001, -1000, -999, -1, 0, 1, 999, 1000, 1001, 1999, 2000, None]
    zoned = pa.array(numbers, pa.timestamp("ns", "UTC"))
    rows = pa.table({"id": range(len(numbers)), "tz": zoned, "s": pa.StructArray.from_arrays([zoned], ["tz"])})
    made = icebench.load_catalog(str(tmp_path)).create_table("db.t", rows.schema, properties={"format-version": "3"})
    made.append(rows)
    connection = duckdb.connect()
    connection.execute("create table own as select * from rows")
    made.scan().to_duckdb(connection).create_view("t")
    for microseconds in range(-3, 4):
        for column in ("tz", "s.tz"):
            query = f"select id from {{}} where {column} {operator} make_timestamptz({microseconds}) order by id"
            expected = connection.execute(query.format("own")).fetchall()
            assert connection.execute(query.format("t")).fetchall() == expected, query
    either = pc.field("tz").isin(pa.array([-1, 2], pa.timestamp("us", "UTC"))) | pc.field("id").is_null()
    kept = ScanDataset(made.scan()).scanner(["id", "tz"], either).to_reader().read_all()
    assert kept["id"].to_pylist() == [2, 3, 4, 13]


def test_duckdb_compares_booleans_and_texts_with_true(tmp_path: Path) -> None:
    made = icebench.load_catalog(str(tmp_path)).create_table("db.t", pa.schema([("b", pa.bool_()), ("s", pa.string())]))
    made.append(pa.table({"b": [True, False, None], "s": ["(true and ", 'or "true)', "true"]}))
    relation = made.scan().to_duckdb()
    for text, count in [("b = true", 1), ("b <= true and s <> 'true'", 2), ("s = '(true and '", 1), ("s > 'or \"'", 2)]:
        assert len(relation.filter(text).fetchall()) == count, text


def test_a_column_whose_name_begins_with_another_is_another(tmp_path: Path) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table(
        "db.t", pa.schema([("a", pa.int64()), ("a.b", pa.int64())])
    )
    table.append(pa.table({"a": [1], "a.b": [2]}))
    scan = table.scan(columns=["a", "a.b"])
    assert scan.narrowed(columns=["a"]).to_arrow().to_pylist() == [{"a": 1}]
    assert scan.narrowed(columns=["a.b"]).to_arrow().to_pylist() == [{"a.b": 2}]


@pytest.mark.parametrize("is_selected", [False, True])
def test_narrowing_is_linear_in_columns(tmp_path: Path, *, is_selected: bool) -> None:
    catalog = icebench.load_catalog(str(tmp_path))

    def work(count: int) -> int:
        names = [CountedName(f"c{i}") for i in range(count)]
        table = catalog.create_table(f"db.t{count}", pa.schema([(str(name), pa.int64()) for name in names]))
        scan = table.scan(columns=names if is_selected else None)
        return steps(lambda: scan.narrowed(columns=names))

    assert work(400) < 6 * work(100)


def test_what_cannot_be_is_refused(table: icebench.Table) -> None:
    with pytest.raises(Unsupported, match="after the limit"):
        table.scan(limit=3).narrowed("id = 1")
    with pytest.raises(Invalid, match="no column 'no'"):
        table.scan().narrowed(columns=["no"])
    with pytest.raises(Invalid, match="a limit of -1"):
        table.scan(limit=-1)
    with pytest.raises(Invalid, match="a sample of -1"):
        table.scan().sample(-1)


@pytest.mark.parametrize("package", ["pandas", "polars", "duckdb"])
def test_a_missing_package_is_named(table: icebench.Table, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, f"{package}.io.plugins", None)
    with pytest.raises(NotInstalled, match=f"{package} is not installed: pip install"):
        getattr(table.scan(), f"to_{package}")()


def test_rows_come_from_anything_with_an_arrow_stream(tmp_path: Path) -> None:
    catalog = icebench.load_catalog(str(tmp_path))
    made = catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("s", pa.string())]))
    made.append(pd.DataFrame({"id": [1], "s": ["pandas"]}, index=[7]))
    made.append(pl.DataFrame({"s": ["polars"], "id": [2]}))
    made.append(duckdb.sql("select 3::bigint as id, 'duckdb' as s"))
    made.append(pa.record_batch({"id": [4], "s": ["batch"]}))
    made.upsert(pl.DataFrame({"id": [4, 5], "s": ["new", "new"]}), on=["id"], mode="copy-on-write")
    made.overwrite(pd.DataFrame({"id": [1], "s": ["again"]}), "id = 1")
    found = {r["id"]: r["s"] for r in made.scan().to_arrow().to_pylist()}
    assert found == {1: "again", 2: "polars", 3: "duckdb", 4: "new", 5: "new"}
    for wrong in ([1], {"id": [1]}, pl.LazyFrame({"id": [1]}), None):
        with pytest.raises(Invalid, match=f"not {type(wrong).__name__}"):
            made.append(wrong)
    assert [entry.snapshot_id for entry in made.history()] == [s.snapshot_id for s in made.snapshots]
