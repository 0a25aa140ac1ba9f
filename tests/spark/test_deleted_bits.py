"""Deleted positions without a join: the rows that the Arrow reader gives, and those of the join."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import icebench
from icebench.engine.plan.scan import table_scan
from icebench.engine.spark import deletes
from icebench.engine.spark.native_scan import plan_to_dataframe
from icebench.engine.table import Table
from tests.spark.deleted_tables import open_catalog

FIELDS = pa.schema([("id", pa.int64()), ("v", pa.int64()), ("name", pa.string())])


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Five files of several row groups, of one row to a hundred thousand, one of them without deletes."""
    made = open_catalog(tmp_path).create_table(
        "db.t", FIELDS, properties={"format-version": "3", "write.parquet.row-group-size-bytes": "100000"}
    )
    values, start = np.random.default_rng(3), 0
    for count in (100_000, 1, 64, 40_000, 129):
        own = pa.table(
            {
                "id": range(start, start + count),
                "v": values.integers(0, 2**62, count),
                "name": [f"n{n % 7}" for n in range(count)],
            },
            schema=FIELDS,
        )
        made.append(own)
        start += count
    made.delete(
        "id in (0, 63, 64, 32767, 32768, 99999, 100000, 100001, 100064) or id between 100100 and 130000",
        "merge-on-read",
    )
    made.delete("id >= 140190", "merge-on-read")
    return made


def bag(found: DataFrame | pa.Table) -> Counter[str]:
    return Counter(map(repr, (found.toArrow() if isinstance(found, DataFrame) else found).to_pylist()))


def plan_text(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().toString())


def test_rows_are_those_of_arrow_and_of_the_join(
    session: SparkSession, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = table.scan().to_arrow()
    frame = table.scan().to_spark(session)
    assert "Join" not in plan_text(frame)
    assert bag(frame) == bag(expected)
    live = set(expected["id"].to_pylist())
    # Of what is read only what is asked for, filters of the user's and of the scan, positions, and itself.
    assert frame.count() == len(live)
    assert {row.name for row in frame.select("name").distinct().collect()} == {f"n{n}" for n in range(7)}
    assert [row.id for row in frame.where("id > 99990 and id < 100105").orderBy("id").collect()] == sorted(
        n for n in live if 99_990 < n < 100_105
    )
    assert "PushedFilters: [IsNotNull(id), EqualTo(id,5)]" in plan_text(frame.where("id = 5"))
    some = table.scan("id between 130000 and 130100 or name = 'n3'", ["id", "_pos"])
    assert bag(some.to_spark(session)) == bag(some.to_arrow())
    assert frame.alias("l").join(frame.alias("r"), "id").where("l.v = r.v").count() == len(live)
    assert frame.unionAll(frame).where("id < 70").count() == 2 * len([n for n in live if n < 70])
    monkeypatch.setattr(deletes, "bits_of", lambda *_: None)
    joined = table.scan().to_spark(session)
    assert "Join" in plan_text(joined)
    assert bag(joined) == bag(expected)


def test_with_keys_too(session: SparkSession, tmp_path: Path) -> None:
    made = open_catalog(tmp_path).create_table("db.t", FIELDS, properties={"format-version": "2"})
    for start in (0, 5000):
        own = {"id": range(start, start + 5000), "v": [7] * 5000, "name": ["x"] * 5000}
        made.append(pa.table(own, schema=FIELDS))
    made.delete("id in (0, 4999, 5001)", "merge-on-read")
    stream = made.keyed_stream(["id", "v"])
    stream.delete(pa.table({"id": [1, 4999, 9999, 9998], "v": [7, 7, 7, 8]}))
    stream.commit()
    assert bag(made.scan().to_spark(session)) == bag(made.scan().to_arrow())
    assert made.scan().to_spark(session).count() == 10_000 - 5


def test_of_columns_with_fields_inside(spark: SparkSession, tmp_path: Path) -> None:
    own = pa.table(
        {"id": range(100), "s": [{"a": n, "b": f"b{n}"} for n in range(100)], "l": [[n] for n in range(100)]}
    )
    made = open_catalog(tmp_path).create_table("db.t", own.schema, properties={"format-version": "3"})
    made.append(own)
    made.delete("id in (3, 50)", "merge-on-read")
    made.update_schema(lambda schema: schema.add_column("c", icebench.LONG, parent="s").rename_column("s.b", "d"))
    made.append(pa.table({"id": [100], "s": [{"a": 1, "d": "x", "c": 2}], "l": [[1]]}))
    for columns in (["id", "s", "l"], ["id"], ["s"]):
        assert bag(made.scan(columns=columns).to_spark(spark)) == bag(made.scan(columns=columns).to_arrow())


@pytest.fixture
def frame_with(spark: SparkSession, table: Table) -> Callable[..., DataFrame]:
    """The scan, of a plan that says something else in a column."""

    def make(column: str, change: Callable[[list[int]], list[int]]) -> DataFrame:
        plan = table_scan(table.metadata, table.store).plan()
        place = plan.files.schema.get_field_index(column)
        said = pa.array(change(plan.files.column(column).to_pylist()), pa.int64())
        files = plan.files.set_column(place, plan.files.schema.field(place), said)
        return plan_to_dataframe(spark, replace(plan, files=files), table.store)

    return make


def test_sizes_that_distinguish_no_files_leave_it_to_the_join(
    spark: SparkSession, table: Table, frame_with: Callable[..., DataFrame]
) -> None:
    for change in (
        lambda sizes: [size + 1 for size in sizes],
        lambda sizes: [7] * len(sizes),
        lambda sizes: [sizes[1], sizes[0], *sizes[2:]],
    ):
        frame = frame_with("file_size_in_bytes", change)
        assert "Join" in plan_text(frame)
        assert frame.count() == table.scan().to_arrow().num_rows


def test_rows_of_other_files_stop_the_query(spark: SparkSession, frame_with: Callable[..., DataFrame]) -> None:
    # The last row of this file is live: a deleted row beyond the count would be refused before the query begins.
    frame = frame_with("record_count", lambda counts: [count - (count == 40_000) for count in counts])
    assert "Join" not in plan_text(frame)
    with pytest.raises(PySparkException, match="rows of a file that the plan does not have"):
        frame.toArrow()
