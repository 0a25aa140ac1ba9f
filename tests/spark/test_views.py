"""Tables of a namespace as views of a session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import icebench

EVENTS = pa.table({"user_id": [1, 2, 2, 3], "price": [1.5, 2.0, 0.5, 9.0], "note": ["a", None, "b", "c"]})
USERS = pa.table({"user_id": [1, 2, 3], "name": ["ann", "bob", "eve"]})


@pytest.fixture
def catalog(tmp_path: Path) -> icebench.Catalog:
    found = icebench.load_catalog(str(tmp_path / "wh"))
    events = found.create_table("db.events", EVENTS.schema)
    events.append(EVENTS)
    events.delete("user_id = 3", "merge-on-read")
    found.create_table("db.users", USERS.schema).append(USERS)
    return found


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session whose views are dropped."""
    yield spark
    for name in ("events", "users", "Users", "odd.name"):
        spark.sql(f"drop view if exists `{name}`")


def test_queries_join_the_tables_of_a_namespace(session: SparkSession, catalog: icebench.Catalog) -> None:
    assert sorted(icebench.spark.register_views(session, catalog, "db")) == ["events", "users"]
    text = "select name, sum(price) from events join users using (user_id) group by name order by name"
    assert [tuple(row) for row in session.sql(text).collect()] == [("ann", 1.5), ("bob", 2.5)]


def test_a_view_is_of_the_snapshot_of_its_time(session: SparkSession, catalog: icebench.Catalog) -> None:
    icebench.spark.register_views(session, catalog, "db", tables=["users"])
    catalog.load_table("db.users").append(USERS)
    assert session.sql("select count(*) from users").first() == (3,)
    icebench.spark.register_views(session, catalog, "db", tables=["users"])
    assert session.sql("select count(*) from users").first() == (6,)
    assert not session.catalog.tableExists("events")


def test_columns_and_filters_of_a_query_reach_the_reader(session: SparkSession, catalog: icebench.Catalog) -> None:
    icebench.spark.register_views(session, catalog, "db", tables=["users"])
    frame = session.sql("select 1 from users where name = 'bob'")
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "ReadSchema: struct<name:string>" in plan
    assert "EqualTo(name,bob)" in plan
    assert frame.count() == 1


def test_what_cannot_be_a_view_leaves_all_as_they_were(session: SparkSession, catalog: icebench.Catalog) -> None:
    with pytest.raises(icebench.errors.Invalid, match=r"no table 'nobody'; it has: events, users"):
        icebench.spark.register_views(session, catalog, "db", tables=["users", "nobody"])
    with pytest.raises(icebench.errors.NotFound):
        icebench.spark.register_views(session, catalog, "nowhere")
    catalog.create_table("db.Users", USERS.schema)
    with pytest.raises(icebench.errors.Invalid, match="one name for Spark"):
        icebench.spark.register_views(session, catalog, "db")
    assert icebench.spark.register_views(session, catalog, "db", tables=["Users"]) == ["Users"]
    orc = catalog.create_table("db.stripes", USERS.schema, properties={"write.format.default": "orc"})
    orc.append(USERS)
    with pytest.raises(icebench.errors.Unsupported, match="orc"):
        icebench.spark.register_views(session, catalog, "db", tables=["events", "stripes"])
    assert not session.catalog.tableExists("events")


def test_parts_of_a_union_that_are_alike_are_computed_once(session: SparkSession, catalog: icebench.Catalog) -> None:
    icebench.spark.register_views(session, catalog, "db")
    sums = "(select user_id, name, sum(price) as total from events join users using (user_id) group by user_id, name)"
    text = f"select name, total from {sums} union all select 'all', sum(total) from {sums}"
    session.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        frame = session.sql(text)
        plan = frame._jdf.queryExecution().executedPlan().toString()
        assert plan.count("FileScan") == 2
        assert plan.count("ReusedExchange") == 1
        assert sorted(tuple(row) for row in frame.collect()) == [("all", 4.0), ("ann", 1.5), ("bob", 2.5)]
    finally:
        session.conf.unset("spark.sql.adaptive.enabled")
