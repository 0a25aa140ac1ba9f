"""Filters with days and moments that `java.sql.Date` and `java.sql.Timestamp` do not have: as these, Spark hands
literals to its Parquet reader."""

from __future__ import annotations

import datetime as dt
import itertools
import operator
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import icebench
from icebench.spark import register
from tests.spark.session_settings import setting

DAYS = [*(dt.date(1582, 10, day) for day in (4, 5, 10, 14, 15, 16)), dt.date(2011, 12, 30), dt.date(2024, 2, 29)]
LITERALS = [dt.date(1582, 10, 5), dt.date(1582, 10, 10), dt.date(2011, 12, 30)]
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">=": operator.ge,
    "in": lambda value, literal: value in (literal, DAYS[-1]),
}
MOMENT = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("ts", MOMENT),
        ("st", pa.struct([("day", pa.date32()), ("ts", MOMENT)])),
    ]
)


def moment(day: dt.date) -> dt.datetime:
    return dt.datetime.combine(day, dt.time(7, 30, 1), dt.UTC)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> icebench.Table:
    """A file for each of `DAYS`, which has it and nulls, so that the plan does not know all rows to match."""
    table = icebench.load_catalog(str(tmp_path_factory.mktemp("old") / "wh")).create_table("db.t", SCHEMA)
    for number, day in enumerate(DAYS):
        both = {"day": day, "ts": moment(day)}
        table.append(pa.Table.from_pylist([{"id": number, **both, "st": both}, {"id": -1}], SCHEMA))
    return table


@pytest.fixture(params=["UTC", "Pacific/Apia"])
def java_zone(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    """Another time zone of the virtual machine."""
    zones = spark._jvm.java.util.TimeZone  # type: ignore[union-attr]
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone(request.param))
    yield
    zones.setDefault(before)


@pytest.mark.usefixtures("java_zone")
def test_a_scan_finds_days_and_moments_that_java_sql_lacks(spark: SparkSession, table: icebench.Table) -> None:
    found: list[DataFrame] = []
    right: dict[str, list[int]] = {}
    for column in ("day", "ts", "st.day", "st.ts"):
        for literal in LITERALS:
            for symbol, holds in OPERATORS.items():
                first, last = (f"'{day if 'day' in column else moment(day)}'" for day in (literal, DAYS[-1]))
                test = f"{column} {symbol} {f'({first}, {last})' if symbol == 'in' else first}"
                name = test.replace("'", "")
                found.append(table.scan(test, ["id"]).to_spark(spark).selectExpr("id", f"'{name}' as test"))
                right[name] = [number for number, day in enumerate(DAYS) if holds(day, literal)]
    made: dict[str, list[int]] = {name: [] for name in right}
    for row in reduce(DataFrame.union, found).collect():
        made[row.test].append(row.id)
    assert {name: sorted(ids) for name, ids in made.items()} == right


@pytest.mark.parametrize("column", ["day", "ts"])
def test_an_upsert_replaces_rows_of_such_days(spark: SparkSession, tmp_path: Path, column: str) -> None:
    key = SCHEMA.field(column)
    table = icebench.load_catalog(f"{tmp_path}/wh").create_table("db.t", pa.schema([key, ("v", pa.int64())]))
    days = [dt.date(1582, 10, day) for day in (8, 10, 12)]
    keys = pa.array([moment(day) for day in days] if column == "ts" else days, key.type)
    table.append(pa.table({column: keys, "v": [1, 2, 3]}))
    table.upsert(spark.createDataFrame(pa.table({column: keys.slice(1, 1), "v": [20]})), [column])
    assert table.scan().to_arrow().sort_by(column)["v"].to_pylist() == [1, 20, 3]


@pytest.mark.parametrize("column", ["day", "ts"])
def test_conditions_that_are_pushed_into_the_data_source(
    spark: SparkSession, table: icebench.Table, column: str
) -> None:
    register(spark)
    made, right = {}, {}
    with setting(spark, "spark.sql.python.filterPushdown.enabled", "true"):
        for literal, (symbol, holds) in itertools.product(LITERALS[:2], OPERATORS.items()):
            first, last = (f"date'{d}'" if column == "day" else f"timestamp'{moment(d)}'" for d in (literal, DAYS[-1]))
            test = f"{column} {symbol} {f'({first}, {last})' if symbol == 'in' else first}"
            frame = spark.read.format("icebench").option("pushdown", "true").load(table.location)
            made[test] = sorted(row.id for row in frame.where(test).select("id").collect())
            right[test] = [number for number, day in enumerate(DAYS) if holds(day, literal)]
    assert made == right
