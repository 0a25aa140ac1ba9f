"""Filters on floating-point columns, as Spark's Parquet reader is given them: its statistics leave NaN out, and its
dictionaries hold -0.0 and 0.0 apart."""

from __future__ import annotations

import itertools
import math
import operator
import os
import random
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import icebench

Row = dict[str, Any]
INNER = pa.struct([("f", pa.float32()), ("t", pa.struct([("x", pa.float64())])), ("n", pa.int32())])
SCHEMA = pa.schema([("id", pa.int64()), ("f", pa.float32()), ("x", pa.float64()), ("st", INNER)])
GROUPS = ([math.nan, 1.5, 1.0], [0.0], [-0.0], [-0.0, 0.0], [5.0, math.nan], [5.0], [math.nan], [-math.inf, -1.5, None])
"""The values of each row group."""
COLUMNS: dict[str, Callable[[Row], float | None]] = {
    "f": lambda row: row["f"],
    "x": lambda row: row["x"],
    "st.f": lambda row: row["st"] and row["st"]["f"],
    "st.t.x": lambda row: row["st"] and row["st"]["t"] and row["st"]["t"]["x"],
}
OPERATORS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
Test = tuple[str, Callable[[float], bool]]


def order(value: float) -> tuple[bool, float]:
    """NaN equals itself and is above every number, -0.0 equals 0.0."""
    return (True, 0.0) if math.isnan(value) else (False, value)


def compared(symbol: str, literal: float) -> Test:
    text = "double('NaN')" if math.isnan(literal) else repr(literal)
    return f"{{}} {symbol} {text}", lambda value: OPERATORS[symbol](order(value), order(literal))


TESTS: list[Test] = [
    *itertools.starmap(compared, itertools.product(OPERATORS, [0.0, -0.0, 1.5, 5.0, -7.0])),
    ("{} in (0, 7)", lambda value: value in (0, 7)),
    ("{} not in (5, 7)", lambda value: value not in (5, 7)),
    ("{} between 1 and 5", lambda value: 1 <= value <= 5),
    ("not ({} < 2)", lambda value: not value < 2),
    ("isnan({})", math.isnan),
]
OF_SPARK: list[Test] = [
    *(compared(symbol, math.nan) for symbol in OPERATORS),
    ("{} in (0.0, double('NaN'))", lambda value: value == 0 or math.isnan(value)),
    ("{} <=> 0.0", lambda value: value == 0),
    ("{} > (select 1.5D)", lambda value: value > 1.5 or math.isnan(value)),
    ("{} = (select 0.0D)", lambda value: value == 0),
]


def row_of(number: int, value: float | None) -> Row:
    struct = {"f": value, "t": None if number % 5 == 4 else {"x": value}, "n": number}
    return {"id": number, "f": value, "x": value, "st": None if number % 7 == 6 else struct}


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    values = itertools.chain.from_iterable(group * 3 for group in GROUPS)
    return [row_of(number, value) for number, value in enumerate(values)]


def row_groups(rows: list[Row], schema: pa.Schema = SCHEMA) -> Iterator[pa.Table]:
    start = 0
    for group in GROUPS:
        yield pa.Table.from_pylist(rows[start : start + 3 * len(group)], schema)
        start += 3 * len(group)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory, rows: list[Row]) -> icebench.Table:
    """The rows twice: in a file for each of `GROUPS`, before `x` was promoted, and in an imported file without field
    ids, whose row groups are `GROUPS`, too; there an id `n` is `-n - 1`."""
    directory = tmp_path_factory.mktemp("floats")
    narrow = SCHEMA.set(2, pa.field("x", pa.float32()))
    table = icebench.load_catalog(str(directory / "wh")).create_table("db.t", narrow)
    for group in row_groups(rows, narrow):
        table.append(group)
    table.update_schema(lambda s: s.promote_column("x", icebench.DOUBLE))
    path = str(directory / "imported.parquet")
    with pq.ParquetWriter(path, SCHEMA) as writer:
        for group in row_groups([{**row, "id": -row["id"] - 1} for row in rows]):
            writer.write_table(group)
    table.add_files([path])
    return table


def ids(frames: Iterable[DataFrame]) -> list[list[int]]:
    """The ids of each frame, by one job."""
    found: list[list[int]] = []
    numbered = []
    for number, frame in enumerate(frames):
        found.append([])
        numbered.append(frame.selectExpr(f"{number} as frame", "id"))
    for row in reduce(DataFrame.union, numbered).collect():
        found[row["frame"]].append(row["id"])
    return [sorted(each) for each in found]


def test_rows_are_those_that_hold_the_condition(spark: SparkSession, table: icebench.Table, rows: list[Row]) -> None:
    share = 1 if "ICEBENCH_SOAK" in os.environ else 8
    rng = random.Random(os.environ.get("ICEBENCH_SEED", "3"))
    both, own = (
        rng.sample(found, len(found) // share)
        for found in ([*itertools.product(tests, COLUMNS)] for tests in (TESTS, OF_SPARK))
    )
    whole = table.scan().to_spark(spark)
    frames = [table.scan(text.format(name)).to_spark(spark) for (text, _), name in both]
    frames += [whole.where(text.format(name)) for (text, _), name in both + own]
    wrong = []
    for found, ((text, holds), name) in zip(ids(frames), both + both + own, strict=True):
        values = ((row["id"], COLUMNS[name](row)) for row in rows)
        right = [number for number, value in values if value is not None and holds(value)]
        if found != sorted([*right, *(-number - 1 for number in right)]):
            wrong.append(text.format(name))
    assert wrong == []


@pytest.mark.parametrize("name", ["x", "st.f"])
def test_rows_that_join_are_not_lost_to_runtime_filters(
    spark: SparkSession, table: icebench.Table, rows: list[Row], name: str
) -> None:
    settings = {
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "0",
    }
    other = spark.createDataFrame([(math.nan, 1), (0.0, 1), (5.0, 0)], "value double, wanted int").where("wanted = 1")
    for setting, value in settings.items():
        spark.conf.set(setting, value)
    try:
        joined = table.scan().to_spark(spark).selectExpr("id", f"double({name}) as value").join(other, "value")
        found = sorted(row["id"] for row in joined.collect() if row["id"] >= 0)
    finally:
        for setting in settings:
            spark.conf.unset(setting)
    values = ((row["id"], COLUMNS[name](row)) for row in rows)
    assert found == [number for number, value in values if value is not None and (value == 0 or math.isnan(value))]
