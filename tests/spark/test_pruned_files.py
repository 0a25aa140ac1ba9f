"""Queries over views that skip files by their own filters: the rows are those of a table that Spark holds itself."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import icebench
from icebench.spark import prune_files, register_view

ROWS = 240
ZONE = "America/New_York"
BEGIN = dt.datetime(2024, 10, 28, tzinfo=dt.UTC)  # the clocks there go back on November 3
WORDS = ["", "a", "ab", "b%", "b_c", "Zoë", "zz", "z\0y", "'"]


def values() -> pa.Table:
    draw = random.Random(5)
    moments = [BEGIN + dt.timedelta(minutes=61 * place) for place in range(ROWS)]
    floats = [place / 8 - 12 for place in range(ROWS)]
    floats[::17] = [float("nan")] * len(floats[::17])
    floats[5:9] = [0.0, -0.0, float("inf"), float("-inf")]
    columns = {
        "id": pa.array(range(ROWS), pa.int64()),
        "small": pa.array([place // 7 - 9 for place in range(ROWS)], pa.int32()),
        "single": pa.array(floats, pa.float32()),
        "double": pa.array(floats, pa.float64()),
        "price": pa.array([Decimal(place * 37 - 900) / 100 for place in range(ROWS)], pa.decimal128(9, 2)),
        "word": pa.array([WORDS[place * len(WORDS) // ROWS] + str(draw.randrange(3)) for place in range(ROWS)]),
        "day": pa.array([moment.date() for moment in moments]),
        "at": pa.array([moment.replace(tzinfo=None) for moment in moments], pa.timestamp("us")),
        "zoned": pa.array(moments, pa.timestamp("us", tz="UTC")),
        "flag": pa.array([place > 200 for place in range(ROWS)]),
    }
    lacking = {
        name: pa.array([None if name != "id" and draw.random() < 0.06 else value for value in column.to_pylist()]).cast(
            column.type
        )
        for name, column in columns.items()
    }
    return pa.table(lacking)


TABLE = values()
DAYS = pa.table(
    {
        "key": pa.array([None, *range(0, ROWS, 8)], pa.int64()),
        "date": pa.array([None, *(TABLE["day"][place].as_py() for place in range(0, ROWS, 8))], pa.date32()),
        "kind": pa.array(["none", *(f"kind {place % 7}" for place in range(0, ROWS, 8))]),
    }
)
BY_KEY = [8, 16, 50, 77]
MIXED = TABLE.filter(
    pa.array([place not in BY_KEY and not (place % 10 == 3 and 96 <= place < 168) for place in range(ROWS)])
)
"""The rows of a table some of whose files have deletes by key, others by position, and others none."""


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> icebench.Catalog:
    """With a table of many files, some of which have deletes."""
    catalog = icebench.load_catalog(str(tmp_path_factory.mktemp("warehouse")))
    table = catalog.create_table("db.t", TABLE.schema, partition_spec=[("zoned", "day")])
    for begin in range(0, ROWS, 60):
        table.append(TABLE.slice(begin, 60))
    table.delete("id % 10 = 3", "merge-on-read")
    days = catalog.create_table("db.days", DAYS.schema)
    days.append(DAYS)
    plain = catalog.create_table("db.plain", TABLE.schema)
    for begin in range(0, ROWS, 24):
        plain.append(TABLE.slice(begin, 24))
    mixed = catalog.create_table("db.mixed", TABLE.schema)
    for begin in range(0, ROWS, 24):
        if begin == 96:
            stream = mixed.keyed_stream(["id"])
            stream.delete(pa.table({"id": BY_KEY}))
            stream.commit()
        mixed.append(TABLE.slice(begin, 24))
    mixed.delete("id % 10 = 3 and id >= 96 and id < 168", "merge-on-read")
    return catalog


@pytest.fixture(scope="module")
def session(spark: SparkSession, catalog: icebench.Catalog) -> Iterator[SparkSession]:
    """A session with the views ``kept``, of the table, and ``known``, of its rows alone."""
    session = spark.newSession()
    register_view(session, "kept", catalog.load_table("db.t").scan())
    left = TABLE.filter(pa.array([place % 10 != 3 for place in range(ROWS)]))
    session.createDataFrame(left).createOrReplaceTempView("known")
    for name, rows in (("plain", TABLE), ("days", DAYS), ("mixed", MIXED)):
        register_view(session, name, catalog.load_table(f"db.{name}").scan())
        session.createDataFrame(rows).createOrReplaceTempView(f"known_{name}")
    session.conf.set("spark.sql.session.timeZone", ZONE)  # by which PySpark would not convert an hour that comes twice
    yield session
    for name in ("kept", "known", "other", "plain", "days", "mixed", "known_plain", "known_days", "known_mixed"):
        session.catalog.dropTempView(name)


def opened(frame: DataFrame) -> int:
    """How many files of tables a query reads, at most."""
    optimized = frame._jdf.queryExecution().optimizedPlan()
    subqueries = optimized.subqueriesAll()
    found = 0
    for plan in (optimized, *(subqueries.apply(place) for place in range(subqueries.size()))):
        leaves = plan.collectLeaves()
        for leaf in (leaves.apply(place) for place in range(leaves.size())):
            if leaf.getClass().getSimpleName() == "LogicalRelation":
                found += leaf.relation().location().rootPaths().size()
    return found


def literal(draw: random.Random, name: str) -> str:
    """A value of a column, or one near it, in SQL."""
    value = TABLE[name][draw.randrange(ROWS)].as_py()
    if value is None:
        value = TABLE[name].drop_null()[0].as_py()
    match name:
        case "word":
            return repr(value) if "'" not in value and "\0" not in value else "'b%1'"
        case "single" | "double":
            return f"double('{value}')" if draw.random() < 0.5 else f"float('{value}')"
        case "price":
            return str(value + draw.choice([0, 0, Decimal("0.004")]))
        case "day":
            return f"date '{value}'"
        case "at":
            return f"timestamp_ntz '{value + dt.timedelta(seconds=draw.choice([0, 1]))}'"
        case "zoned":
            zone = draw.choice(["", "+00:00", " Europe/Berlin"])
            return f"timestamp '{value.replace(tzinfo=None)}{zone}'"
        case "flag":
            return str(value).lower()
    return str(value + draw.choice([0, 0, 1]))


def condition(draw: random.Random, depth: int = 2) -> str:
    if depth and draw.random() < 0.6:
        parts = [condition(draw, depth - 1) for _ in range(2)]
        return f"({parts[0]} {draw.choice(['and', 'and', 'or'])} {parts[1]})"
    name = draw.choice(TABLE.column_names)
    match draw.randrange(9):
        case 0:
            return f"{name} is {draw.choice(['', 'not '])}null"
        case 1:
            many = ", ".join(literal(draw, name) for _ in range(draw.choice([2, 3, 14])))
            return f"{name} {draw.choice(['', 'not '])}in ({many})"
        case 2:
            pattern = draw.choice(["a%", "b%", "z%", "%1", "ab0", "b!%%"])
            return f"word {draw.choice(['', 'not '])}like '{pattern}' escape '!'"
        case 3:
            return f"cast({draw.choice(['zoned', 'at'])} as date) {draw.choice('<=>')} {literal(draw, 'day')}"
        case 4:
            return f"not ({condition(draw, 0)})"
        case 5:
            return f"{literal(draw, name)} {draw.choice(['<', '>=', '<=>', '='])} {name}"
        case 6:
            return f"{name} between {literal(draw, name)} and {literal(draw, name)}"
    return f"{name} {draw.choice(['=', '<', '<=', '>', '>=', '<=>', '!='])} {literal(draw, name)}"


def ids(frame: DataFrame) -> list[int]:
    return sorted(row[0] for row in frame.collect())


def test_any_filter_gives_the_rows_of_a_table_without_files(session: SparkSession) -> None:
    draw, fewer = random.Random(29), 0
    for _ in range(40):
        first, second = condition(draw), condition(draw)
        text = f"select id from NAME where {first}"
        if draw.random() < 0.3:
            text += f" union all select id + 1000 from NAME where {second}"
        elif draw.random() < 0.3:
            text += f" and id >= (select min(small) from NAME where {second})"
        query = session.sql(text.replace("NAME", "kept"))
        pruned = prune_files(query)
        assert ids(pruned) == ids(session.sql(text.replace("NAME", "known"))), text
        fewer += opened(pruned) < opened(query)
    assert fewer > 15


@pytest.mark.parametrize(
    ("where", "files"),
    [
        ("zoned >= '2024-11-05' and zoned < '2024-11-06'", 2),  # a day there is in two of UTC
        ("cast(zoned as date) = '2024-11-05'", 2),
        ("zoned = timestamp '2024-11-03 01:30:00 America/New_York'", 1),
        ("id in (0, 1, 2)", 1),
        ("ID in (0, 1, 2) and Zoned is not null", 1),
        (f"id in ({', '.join(map(str, range(20)))})", 2),
        (f"id in ({', '.join(map(str, range(20)))}, null)", 18),
        ("word like 'zz%' and id < 100", 0),
        ("single > 17.5 and not isnan(single)", 13),
        ("flag and day is not null", 4),
        ("id < 24 or id > 230", 5),
        ("upper(word) = 'A1'", 18),
        ("id = null", 0),
    ],
)
def test_files_that_are_opened(session: SparkSession, where: str, files: int) -> None:
    pruned = prune_files(session.sql(f"select id from kept where {where}"))
    assert opened(pruned) == files
    assert ids(pruned) == ids(session.sql(f"select id from known where {where}"))


def test_all_readings_of_a_view_keep_their_rows(session: SparkSession) -> None:
    """Those in subqueries, in common table expressions, and in joins with itself."""
    for text, least, most in [
        ("select a.id from NAME a join NAME b on a.id = b.id + 100 where a.id < 110 and b.id < 24", 2, 16),
        ("with c as (select * from NAME where id < 30) select x.id from c x join c y using (id)", 2, 6),
        ("select id from NAME where id < 10 and exists (select 1 from NAME where word = 'zz1')", 2, 24),
        ("select count(*) from NAME where id > (select avg(id) from NAME)", 36, 54),
        ("select id from NAME where id < 24 and id > (select min(small) from NAME where id > 230)", 8, 15),
        ("select id from NAME where id < 24 and id in (select id + 1 from NAME where id < 10)", 4, 4),
    ]:
        pruned = prune_files(session.sql(text.replace("NAME", "kept")))
        assert ids(pruned) == ids(session.sql(text.replace("NAME", "known"))), text
        assert least <= opened(pruned) <= most, text


JOINED = "from PLAIN p join DAYS d on p.id = d.key where"
LAST = "(select id from PLAIN order by id desc limit 50)"
NUMBERED = "(select id, row_number() over (order by id desc) n from PLAIN)"
UNITED = "(select key from DAYS where key < 9 union all select id from PLAIN where id > 235)"
TWICE = "(select key from DAYS where key < 9 union all select key from DAYS where key = 208)"
STRANGE = "(select key from DAYS where key < 9 union all select id from range(100, 140))"
PLACED = "(select id, small from PLAIN where id > 0 union all select small, id from PLAIN where id < 200)"
JOINS = {
    "inner": (f"select p.id {JOINED} d.kind = 'kind 3' and d.key > 100", 6),
    "in other letters": (f"select P.ID {JOINED} D.KIND = 'kind 3' and D.KEY > 100".replace("p.id =", "p.ID ="), 6),
    "two keys": ("select p.id from PLAIN p join DAYS d on p.id = d.key and p.day = d.date where d.key < 20", 2),
    "semi": ("select id from PLAIN where id in (select key from DAYS where kind = 'kind 2' and key < 60)", 3),
    "exists": ("select id from PLAIN p where exists (select 1 from DAYS where date = p.day and key < 16)", 2),
    "below a sum": (f"select sum(p.id) {JOINED} d.key < 20 group by d.kind", 2),
    "both ways": (f"select p.id {JOINED} p.id = 16", 2),
    "a chain": ("select p.id from PLAIN p join DAYS d on p.id = d.key join PLAIN b using (id) where d.key < 17", 3),
    "no partner": (f"select p.id {JOINED} d.kind = 'nothing'", 1),
    "outer": ("select p.id from PLAIN p left join DAYS d on p.id = d.key and d.key < 20", 11),
    "anti": ("select id from PLAIN where id not in (select key from DAYS where key < 20 and key is not null)", 11),
    "full": ("select id from PLAIN full join (select * from DAYS where key < 20) on id = key where id > 0", 11),
    "above a limit": (f"select id from {LAST} join DAYS on id = key where key < 200", 11),
    "above a window": (f"select n from {NUMBERED} join DAYS on id = key where key < 20", 11),
    "of a union": (f"select p.id from PLAIN p join {UNITED} on id = key", 5),
    "of a union of one view": (f"select p.id from PLAIN p join {TWICE} on id = key", 4),
    "of a union with others": (f"select p.id from PLAIN p join {STRANGE} on id = key", 11),
    "of a union by another column": (f"select small from {PLACED} join DAYS on small = key where key < 9", 13),
    "files with and without deletes": ("select m.id from MIXED m join DAYS d on m.id = d.key where d.key < 120", 6),
    "files with deletes": ("select m.id from MIXED m join DAYS d on m.id = d.key where d.key in (8, 16, 24)", 3),
    "with keys of some deleted": ("select p.id from PLAIN p join MIXED m using (id) where m.id < 20", 2),
    "twice with other keys": (f"select p.id {JOINED} d.key < 9 union all select p.id {JOINED} d.key = 208", 6),
    "with itself": ("select a.id from MIXED a join MIXED b on a.small = b.small where b.id > 100 and b.id < 110", 6),
    "by an expression": ("select p.id from PLAIN p join DAYS d on p.id = d.key + 1 where d.key < 20", 11),
}


@pytest.mark.parametrize("name", JOINS)
def test_joins_leave_out_files_without_partners(session: SparkSession, name: str) -> None:
    text, most = JOINS[name]
    known = text
    for view in ("PLAIN", "DAYS", "MIXED"):
        text, known = text.replace(view, view.lower()), known.replace(view, f"known_{view.lower()}")
    pruned = prune_files(session.sql(text))
    assert ids(pruned) == ids(session.sql(known))
    assert opened(pruned) <= most


def test_what_spark_has_in_its_cache_is_read_whole(session: SparkSession) -> None:
    """The optimized plan has no relation there, and so no condition; the analyzed one has."""
    cached = session.table("plain").where("id >= 200").cache()
    try:
        query = cached.select("id").union(session.table("plain").where("id < 10").select("id"))
        assert ids(prune_files(query)) == ids(session.sql("select id from known_plain where id >= 200 or id < 10"))
        days = session.sql("select p.id from plain p join days d on p.id = d.key where d.key < 9")
        query = days.union(session.sql("select count(*) from plain where id >= 200"))
        assert ids(prune_files(query)) == ids(query)
    finally:
        cached.unpersist()


def test_the_current_time_is_that_of_the_call(session: SparkSession) -> None:
    """Else a query would ask for rows of later than its files."""
    query = session.sql("select id, current_timestamp() from plain where id < 10 and zoned <= current_timestamp()")
    pruned = prune_files(query)
    assert opened(pruned) < opened(query)
    (moment,) = {row[1] for frame in (pruned, pruned.where("id > 2"), pruned) for row in frame.collect()}
    assert moment > dt.datetime(2026, 1, 1)  # noqa: DTZ001 - as PySpark gives it


def test_keys_of_rows_that_are_marked_as_deleted(session: SparkSession, tmp_path: Path) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", DAYS.schema)
    table.append(DAYS)
    table.delete("key = 16", "merge-on-read")
    register_view(session, "other", table.scan(columns=["key", "_deleted"]))
    text = "select p.id from plain p join other o on p.id = o.key where o.key < 30 and o._deleted"
    pruned = prune_files(session.sql(text))
    assert ids(pruned) == [16]
    assert opened(pruned) < opened(session.sql(text))


def test_keys_that_are_dates_beyond_those_of_python(session: SparkSession, tmp_path: Path) -> None:
    days = pa.table({"date": pa.array([3_700_000, 20028], pa.int32()).cast(pa.date32())})
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", days.schema)
    table.append(days)
    register_view(session, "other", table.scan())
    query = session.sql("select p.id from plain p join other o on p.day = o.date where o.date > date '2000-01-01'")
    pruned = prune_files(query)
    assert ids(pruned) == ids(query) != []
    assert opened(pruned) < opened(query)


def test_keys_of_all_rows_are_not_read(session: SparkSession, tmp_path: Path) -> None:
    """They would exclude nothing: a table of them may have lost its files."""
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", DAYS.schema)
    table.append(DAYS)
    register_view(session, "other", table.scan())
    for file in tmp_path.rglob("*.parquet"):
        file.unlink()
    query = session.sql("select p.id from plain p join other o on p.id = o.key where p.day is not null")
    assert prune_files(query) is query
    with pytest.raises(icebench.errors.FileNotFound):
        prune_files(session.sql("select p.id from plain p join other o on p.id = o.key where o.key < 9"))


def test_a_view_with_a_limit_is_read_whole(session: SparkSession, catalog: icebench.Catalog) -> None:
    register_view(session, "other", catalog.load_table("db.plain").scan("id >= 100", limit=7))
    query = session.sql("select id from other where id > 0")
    pruned = prune_files(query)
    assert len(pruned.collect()) == 7
    assert pruned is query


def test_what_is_not_a_registered_view_is_left_alone(session: SparkSession, catalog: icebench.Catalog) -> None:
    query = session.sql("select id from known where id = 1")
    assert prune_files(query) is query
    everything = session.sql("select id from kept")
    assert prune_files(everything) is everything
    register_view(session, "other", catalog.load_table("db.t").scan())
    session.sql("select * from known").createOrReplaceTempView("other")
    replaced = session.sql("select id from other where id = 1")
    assert prune_files(replaced) is replaced


def test_a_view_of_a_filter_and_of_renamed_columns(session: SparkSession, tmp_path: Path) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", TABLE.schema)
    for begin in range(0, ROWS, 30):
        table.append(TABLE.slice(begin, 30))
    table.delete("id % 10 = 3", "merge-on-read")
    table.update_schema(lambda s: s.rename_column("id", "number").rename_column("small", "id"))
    register_view(session, "other", table.scan("number < 120"))
    for where in ("number > 100", "id = 1", "id is null", "id < 0 and number > 20"):
        query = session.sql(f"select number from other where {where}")
        old = where.replace("id", "small").replace("number", "id")
        pruned = prune_files(query)
        assert ids(pruned) == ids(session.sql(f"select id from known where id < 120 and {old}"))
        assert opened(pruned) < opened(query), where
