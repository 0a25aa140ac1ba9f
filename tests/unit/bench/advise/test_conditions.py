"""Conditions of outer queries: that rows which do not meet the filters that come of them change no answer."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import icebench
from icebench.bench.advise.queries import parse_queries

SCHEMA = pa.schema(
    [("id", pa.int64()), ("v", pa.int64()), ("k", pa.int64()), ("address", pa.struct([("zip", pa.string())]))]
)


@pytest.fixture
def table(tmp_path: Path) -> icebench.Table:
    return icebench.load_catalog(str(tmp_path)).create_table("db.t", SCHEMA)


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute(
        "create table t as select a as id, b as v, (a * 5 + b) % 6 as k, {'zip': b::varchar} as address "
        "from range(6) x(a), range(6) y(b)"
    )
    made.execute("create table d as select c as id, 5 - c as k, 2000 + c as year from range(2, 8) z(c)")
    return made


@pytest.mark.parametrize(
    ("sql", "filter", "tested"),
    [
        ("select v from (select * from t) x where id = 3", '("id" = 3)', {"id"}),
        ("select v from (select * from t) where id = 3 and v < 5", '("id" = 3) and ("v" < 5)', {"id", "v"}),
        ("with x as (select id, v as i from t) select i from x where x.i = 3 limit 50", '("v" = 3)', {"v"}),
        (
            (
                "with y as (select id as i, v from t), z(j, w) as (select i, v from y where v > 1) "
                "select d.year from z join d on z.j = d.k and z.j < 4 where d.year > 3 and w < 5"
            ),
            '("v" > 1) and ("id" < 4) and ("v" < 5)',
            {"id", "v"},
        ),
        ("select n from (select id, sum(v) n from t group by id) x where x.id = 3 and n > 1", '("id" = 3)', {"id"}),
        ("select id, count(*) n from t group by id having id = 3 and n > 1 and sum(v) > 2", '("id" = 3)', {"id"}),
        ("select count(*) from t group by id having id = 3 limit 9", '("id" = 3)', {"id"}),
        ("select k as a, sum(v) from t group by all having a = 3", '("k" = 3)', {"k"}),
        ("select v from (select id, v from t union all select k, id from d) where id = 3", '("id" = 3)', {"id"}),
        ("select a from (select id, k from d union select v, k from t) q(a, b) where b = 3", '("k" = 3)', {"k"}),
        ("select v from (select id, v from t except select id, k from d) where id = 3", '("id" = 3)', {"id"}),
        ("with x as (select * from t) select v from x where address.zip = '1'", "(\"address.zip\" = '1')", None),
        ("select v from (select * from t) x where x.address.zip = '1'", "(\"address.zip\" = '1')", None),
        ("select v from (select address as a, v from t) where a.zip = '1'", "(\"address.zip\" = '1')", None),
        (
            (
                "select * from (select *, row_number() over (partition by id order by k) r from t) "
                "where r = 1 and id = 3 and k = 2"
            ),
            '("id" = 3)',
            {"id", "k"},
        ),
        (
            "select k as a, id from t qualify row_number() over (partition by k order by id) = 1 and a = 3 and id = 2",
            '("k" = 3)',
            {"id", "k"},
        ),
        ("select * from (select * from t order by k, v, id limit 10) where id = 3", None, {"id"}),
        ("select * from ((select v from t) union all (select k from d) order by v limit 9) where v = 3", None, {"v"}),
        ("select * from (select * from t order by k, v, id offset 3) where id = 3", None, {"id"}),
        (
            "select k from (select *, id = 3 or v = 1 as f from t) where not f",
            '(NOT ("id" = 3 OR "v" = 1))',
            {"id", "v"},
        ),
        ("select v from (select * from t) x where k = (select max(k) from d)", None, {"k"}),
        ("select v from (select d.*, t.v from t join d on t.id = d.id) where k = 3", None, {"id"}),
        ("select * from (select distinct on (k) id, k from t order by id, k) where id = 3", None, {"id"}),
        ("select * from (select id, v, count(*) from t group by rollup (id, v)) where id is null", None, {"id"}),
        (
            "with x as (select * from t) select a.v from x a join x b on a.id = b.id where a.k = 3 and b.v = 1",
            None,
            {"id", "k", "v"},
        ),
        (
            (
                "with recursive r as (select id, k from t union select d.id, d.k from d join r on r.k = d.id) "
                "select * from r where k = 2"
            ),
            None,
            {"k"},
        ),
        (
            "select d.k from d left join (select * from t) x on x.id = d.id and x.k = 3 where x.v is null or x.v <> 3",
            '("k" = 3)',
            {"id", "k", "v"},
        ),
        ("select year from (select * from t) x join d using (id) where v = 1", '("v" = 1)', {"id", "v"}),
        ("select v from (select id, v from t) x, d where x.id = k and x.v = year - 2000", None, {"id", "v"}),
        ("select v from (select * from t) x where k in (select k from d where d.id = x.id)", None, {"id", "k"}),
        ("select v from (select id + 1 as a, v from t) where a = 3 and v = 2", '("v" = 2)', {"id", "v"}),
        (
            "select * from (select t.*, d.year from t join d on t.k = d.k) x where id = 3 and year < 2009",
            '("id" = 3)',
            {"id", "k"},
        ),
        (
            "select d.k from d where exists (select 1 from (select * from t) x where x.id = d.k and x.v = 3)",
            '("v" = 3)',
            {"id", "v"},
        ),
    ],
)
def test_conditions_of_outer_queries(
    table: icebench.Table, database: duckdb.DuckDBPyConnection, sql: str, filter: str | None, tested: set[str] | None
) -> None:
    (query,) = parse_queries(sql, table, dialect="duckdb").queries
    assert query.filter == filter
    used = {*query.equalities, *query.ranges, *query.other_tests, *query.join_keys}
    assert used == (tested or {"address.zip"})
    rows = (filter or "true").replace('"address.zip"', "address.zip")
    kept = re.sub(r"\bfrom t\b", f"from (from t where {rows}) t", sql)
    assert sorted(map(repr, database.sql(sql).fetchall())) == sorted(map(repr, database.sql(kept).fetchall()))


def test_columns_that_are_compared_with_other_tables_or_late(table: icebench.Table) -> None:
    (query,) = parse_queries("select year from (select * from t) x join d using (id)", table).queries
    assert (query.join_keys, query.other_tests) == (("id",), ())
    (query,) = parse_queries("select id from t where id = 3 group by rollup (id) having id = 3", table).queries
    assert (query.equalities, query.other_tests) == (("id",), ())


def test_each_query_of_a_union_has_its_own_filter(table: icebench.Table) -> None:
    sql = "select v from (select id, v from t union all select k, v from t) q(a, b) where a = 3"
    assert [query.filter for query in parse_queries(sql, table).queries] == ['("id" = 3)', '("k" = 3)']


def test_queries_that_use_columns_in_other_ways_are_kept_apart(table: icebench.Table) -> None:
    found = parse_queries("select id, k from t; select t.id from t join d on t.k = d.k", table).queries
    assert [query.join_keys for query in found] == [(), ("k",)]
