"""Equality deletes on Spark's own Parquet reader: of each type of key, the rows that the Arrow reader gives."""

from __future__ import annotations

import datetime as dt
import itertools
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from icebench.engine.table import Table
from tests.spark.deleted_tables import open_catalog

LEAST, MOST = -(2**63), 2**63 - 1
EDGE = dt.date(9999, 12, 31)
SPRING = dt.datetime(2024, 3, 31, 2, 30, tzinfo=dt.UTC)
MOMENT = dt.datetime(1900, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC)
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "a": (pa.int64(), [LEAST, -1, 0, 1, MOST, None]),
    "b": (pa.int64(), [LEAST, -7, 5, MOST, None]),
    "i": (pa.int32(), [-(2**31), 0, 2**31 - 1, None]),
    "day": (pa.date32(), [dt.date(1, 1, 1), dt.date(1970, 1, 1), EDGE, None]),
    "at": (pa.timestamp("us", "UTC"), [MOMENT, MOMENT + dt.timedelta(microseconds=1), None]),
    "clock": (
        pa.timestamp("us"),
        [MOMENT.replace(tzinfo=None), SPRING.replace(tzinfo=None), None],
    ),
    "flag": (pa.bool_(), [True, False, None]),
    "price": (pa.decimal128(7, 2), [Decimal("-0.01"), Decimal("1.25"), None]),
    "f": (pa.float64(), [0.0, -0.0, float("nan"), None]),
    "name": (pa.string(), ["x", "", None]),
}


@pytest.fixture(params=["true", "false"], ids=["ansi, adaptive", "neither"])
def either(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[SparkSession]:
    names = ("spark.sql.ansi.enabled", "spark.sql.adaptive.enabled")
    for name in names:
        spark.conf.set(name, request.param)
    yield spark
    for name in names:
        spark.conf.unset(name)


def made(directory: Path, columns: tuple[str, ...], keys: list[tuple[Any, ...]]) -> Table:
    """Every combination of the columns' values, numbered, before the keys and after; deletes of one stream."""
    fields = pa.schema([pa.field(name, VALUES[name][0]) for name in columns])
    rows = list(itertools.product(*(VALUES[name][1] for name in columns)))
    data = pa.table(
        {name: pa.array([row[at] for row in rows], VALUES[name][0]) for at, name in enumerate(columns)},
    ).append_column("id", pa.array(range(len(rows))))
    table = open_catalog(directory).create_table("db.t", data.schema, properties={"format-version": "2"})
    table.append(data)
    stream = table.keyed_stream(list(columns))
    stream.delete(pa.table([pa.array([k[at] for k in keys], f.type) for at, f in enumerate(fields)], schema=fields))
    stream.commit()
    return table


def bag(found: DataFrame | pa.Table) -> Counter[str]:
    return Counter(map(repr, (found.toArrow() if isinstance(found, DataFrame) else found).to_pylist()))


@pytest.mark.parametrize(
    "columns",
    [
        ("a",),
        ("a", "b"),
        ("i", "day"),
        ("at", "flag"),
        ("b", "i", "flag"),
        ("price", "a"),
        ("f",),
        ("clock",),
        ("name", "i"),
    ],
    ids=str,
)
def test_keys_of_every_type(either: SparkSession, tmp_path: Path, columns: tuple[str, ...]) -> None:
    rows = list(itertools.product(*(VALUES[name][1] for name in columns)))
    for number, keys in enumerate((rows[:1], rows[1::3], [row for row in rows if None not in row][::2])):
        directory = tmp_path / str(number)
        directory.mkdir()
        table = made(directory, columns, keys)
        scan = table.scan()
        expected = scan.to_arrow()
        assert expected.num_rows == len(rows) - len(keys)
        frame = scan.to_spark(either)
        assert bag(frame) == bag(expected)
    # Of the last: a column alone, a filter of the user's, a filter of the scan, marked rows, and the scan with itself.
    assert bag(frame.select("id")) == bag(expected.select(["id"]))
    assert frame.where("id >= 3").count() == sum(n >= 3 for n in expected["id"].to_pylist())
    assert bag(table.scan("id >= 3", ["id"]).to_spark(either)) == bag(table.scan("id >= 3", ["id"]).to_arrow())
    marked = table.scan(columns=["id", "_deleted"])
    assert bag(marked.to_spark(either)) == bag(marked.to_arrow())
    assert frame.alias("l").join(frame.alias("r"), "id").count() == expected.num_rows


def test_keys_of_whole_numbers_are_joined_as_one(spark: SparkSession, tmp_path: Path) -> None:
    table = made(tmp_path, ("i", "day", "flag"), [(0, dt.date(1970, 1, 1), True), (0, None, False)])
    plan = table.scan(columns=["id"]).to_spark(spark)._jdf.queryExecution().executedPlan().toString()
    (join,) = [line for line in plan.splitlines() if "BroadcastHashJoin" in line]
    assert "[_icebench_k0#" in join
    assert bag(table.scan().to_spark(spark)) == bag(table.scan().to_arrow())


def test_keys_of_partitions_and_of_older_files(either: SparkSession, tmp_path: Path) -> None:
    """Keys that do not concern every row are joined with where they count, packed over all partitions."""
    fields = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("p", pa.int32())])
    rows = pa.table(
        {"a": [1, 2, 3, None] * 3, "b": [LEAST + 9, -5, 0, 7] * 3, "p": [0] * 4 + [1] * 4 + [2] * 4}, schema=fields
    )
    table = open_catalog(tmp_path).create_table(
        "db.t", fields, partition_spec=[("p", "identity")], properties={"format-version": "2"}
    )
    for keys in ({"a": [1, None], "b": [LEAST + 9, 7], "p": [0, 1]}, {"a": [2, 3], "b": [-5, 1], "p": [2, 2]}):
        table.append(rows)
        stream = table.keyed_stream(["a", "b", "p"])
        stream.delete(pa.table(keys, schema=fields))
        stream.commit()
    table.append(rows)
    for columns in (["a", "b", "p"], ["b", "_deleted", "_pos"]):
        scan = table.scan(columns=columns)
        assert bag(scan.to_spark(either)) == bag(scan.to_arrow())
    assert table.scan().to_spark(either).count() == 36 - 4
