"""Queries in the dialects of engines, and the right answers to them."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot

from icebench.bench.errors import ConfigError, DatasetFailed
from icebench.bench.truth.queries import Query, ReferenceAnswers, unknown_tables


def query(text: str) -> Query:
    return Query("mine", text)


@pytest.fixture
def answers(tmp_path: Path) -> ReferenceAnswers:
    found = ReferenceAnswers(tmp_path)
    pq.write_table(pa.table({"id": [1, 2, 3, None], "name": ["b", "a", "a", "c"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"id": [5], "name": ["d"]}), tmp_path / "2.parquet")
    found.add_files("people", [tmp_path / "1.parquet", tmp_path / "2.parquet"])
    empty = pa.schema([("id", pa.int64()), ("price", pa.float64())])
    rows = pa.record_batch({"id": [1, 1, 2], "price": [0.5, 0.25, 4.0]}, schema=empty)
    found.add_rows("sales", [pa.RecordBatch.from_pylist([], schema=empty), rows, rows])
    return found


def test_tables_and_columns_that_a_query_reads() -> None:
    found = query(
        "with a as (select id from People) select a.id, count(*) from a join sales s on a.id = s.Id group by 1"
    )
    assert found.tables == ("people", "sales")
    assert found.columns == frozenset({"id", "a", "people", "sales", "s"})  # names of tables among them
    assert query("select s.* from sales s").columns is None
    assert unknown_tables([found], ["people"]) == {"mine": ("sales",)}
    assert unknown_tables([found], ["People", "sales"]) == {}
    assert query("select * from db.people, range(3)").tables == ("db.people",)
    assert query("with Sales as (select * from sales where id > 1) select * from SALES").tables == ("sales",)
    assert query("with x as (with y as (from a) from y) select * from x, y").tables == ("a", "y")
    endless = "with recursive r as (select 1 as n union all select n + 1 from r join s on true) from r"
    assert query(endless).tables == ("s",)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("select 1; select 2", "is not one query"),
        ("drop table people", "is not one query"),
        ("", "is not one query"),
        ("select from where", "not SQL of DuckDB"),
        ("select 1 limit 1 + 1", "its LIMIT is not a number"),
        ("select 1 limit 10%", "its LIMIT is not a number"),
    ],
)
def test_what_is_no_query_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"mine: {reason}"):
        _ = query(text).limit


def test_spark_divides_and_rounds_as_duckdb() -> None:
    text = query("select avg(price), round(price, 2), price / 3 from sales order by 1 limit 5").in_dialect("spark")
    assert "AVG(CAST(price AS DOUBLE))" in text
    assert "ROUND((price) * 1e2)" in text
    assert "CAST(price AS DOUBLE) / CAST(3 AS DOUBLE)" in text
    assert "NULLS LAST" in text
    assert text.endswith("LIMIT 5")


@pytest.mark.parametrize(
    "text",
    [
        "select round(id, -1) from numbers",
        "select round(x, -2), round(x, 1) from numbers",
        "select round(round(x * 1.55, 1) * 1.55, 1) from numbers",
        "select round(x, id::int) from numbers",
        "select 7 % round(x, 1), round(x, 1)::varchar from numbers",
    ],
)
def test_rounding_in_spark_s_dialect_gives_duckdb_s_values(answers: ReferenceAnswers, text: str) -> None:
    answers.add_rows("numbers", [pa.RecordBatch.from_pydict({"id": [1, 2, 0, -1], "x": [1.25, 1.025, 149.9, -25.5]})])
    spark = query(text).in_dialect("spark")
    rows = answers._connection.execute(sqlglot.transpile(spark, read="spark", write="duckdb")[0]).fetchall()
    assert answers.answer(query(text)).fault_of(rows) is None
    assert not re.search(r"ROUND\([^()]*, ", spark)


def test_rows_have_ranks_by_order(answers: ReferenceAnswers) -> None:
    right = answers.answer(query("select name, id from people order by name desc nulls last, id"))
    assert right.ranked == ((1, ("d", 5)), (2, ("c", None)), (3, ("b", 1)), (4, ("a", 2)), (5, ("a", 3)))
    tied = answers.answer(query("select id, name from people order by name limit 1"))
    assert [rank for rank, _ in tied.ranked] == [1, 1]
    assert len(tied) == 1
    further = answers.answer(query("select id, name from people order by name limit 1 offset 2"))
    assert [rank for rank, _ in further.ranked] == [1, 1, 3]
    assert len(further) == 1
    assert {rank for rank, _ in answers.answer(query("select id from people")).ranked} == {1}


def test_a_key_of_the_order_need_not_be_shown(answers: ReferenceAnswers) -> None:
    right = answers.answer(query("select id from people order by length(name), id + 0.5 desc, name"))
    assert [row for _, row in right.ranked] == [(5,), (3,), (2,), (1,), (None,)]
    assert answers.answer(query("select count(*) from people group by name order by max(id) limit 2")).limit == 2
    distinct = answers.answer(query("select distinct length(name) as l from people order by length(name) desc"))
    assert distinct.ranked == ((1, (1,)),)


def test_rows_that_are_united_have_ranks_too(answers: ReferenceAnswers) -> None:
    right = answers.answer(query("select id from people where id < 3 union all select id from sales order by id"))
    assert [row for _, row in right.ranked] == [(1,)] * 5 + [(2,)] * 3
    assert [rank for rank, _ in right.ranked] == [1] * 5 + [6] * 3


def test_what_duckdb_refuses_is_an_error_of_the_query(answers: ReferenceAnswers) -> None:
    with pytest.raises(ConfigError, match=r"mine: .*nobody"):
        answers.answer(query("select nobody from people"))


def test_a_missing_file_is_no_error_of_the_query(answers: ReferenceAnswers, tmp_path: Path) -> None:
    (tmp_path / "2.parquet").unlink()
    with pytest.raises(DatasetFailed, match=r"2\.parquet"):
        answers.answer(query("select id from people"))


@pytest.mark.parametrize(
    "text",
    [
        "select *, -id as s from people order by s",
        "select -id as s, * from people order by s, name desc",
        "select people.*, id as z, -id as s from people order by s",
        "select columns('id|name'), -id as s from people order by s",
        "select *, -id as id from people order by id",
        "select -id as id, name from people order by people.id",
        "select -id as id, name from people order by ID",
        "select id, name as id from people order by id, people.id",
        "select distinct *, -id as s from people order by s",
        "select distinct *, -id from people order by -id",
        "select * from people union all select * from people order by name, id",
        "(select -id as s from people) order by s",
        "select * from people order by people.id desc",
        "select unnest({'x': id, 'y': name}), -id as s from people order by s",
        "select id, name from people order by all desc nulls last",
        "select name, id from people order by id || 'x'",
        "select name, id from people order by date '2020-01-01' + id::int",
    ],
)
def test_a_key_is_the_column_that_duckdb_takes_it_for(answers: ReferenceAnswers, text: str) -> None:
    rows = answers._connection.execute(text).fetchall()
    right = answers.answer(query(text))
    assert right.fault_of(rows) is None
    assert len({rank for rank, _ in right.ranked}) == 5


def test_a_key_between_stars_is_refused(answers: ReferenceAnswers) -> None:
    with pytest.raises(ConfigError, match="mine: ORDER BY s is a column between stars"):
        answers.answer(query("select *, -id as s, * from people order by s"))


@pytest.mark.parametrize("keys", ["s, id desc", "sum(price), id desc", "2, id desc", "sum(price) * 1, id desc"])
def test_the_last_digits_of_a_double_rank_no_rows(answers: ReferenceAnswers, keys: str) -> None:
    prices = {"id": [1, 1, 1, 2, 2, 2, 3, 4], "price": [0.1, 0.2, 0.3, 0.3, 0.2, 0.1, 9.0, 1e-7]}
    answers.add_rows("parts", [pa.RecordBatch.from_pydict(prices)])
    right = answers.answer(query(f"select id, sum(price) as s from parts group by id order by {keys}"))
    assert [rank for rank, _ in right.ranked] == [1, 2, 2, 4]
