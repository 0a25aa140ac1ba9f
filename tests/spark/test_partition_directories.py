"""Partition columns of Spark's relations: the rows of the Arrow reader, and files that a query's filters leave out are
not opened."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlparse

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import icebench
from icebench.engine.spec import updates
from icebench.engine.table import Table
from tests.spark.deleted_tables import open_catalog

TYPES: dict[str, tuple[pa.DataType, list[object]]] = {
    "boolean": (pa.bool_(), [True, False, None]),
    "int": (pa.int32(), [0, -1, 7, 2**31 - 1, -(2**31), None]),
    "long": (pa.int64(), [0, -1, 7, 2**63 - 1, -(2**63), None]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(9999, 12, 31), None]),
    "string": (
        pa.string(),
        ["a", "A", "null", "", "NULL", "a b", "a+b", "a%20b", "ä", "x=1/y=2", "__HIVE_DEFAULT_PARTITION__", "1", None],
    ),
    "double": (pa.float64(), [0.0, -0.0, 1.5, float("nan"), float("inf"), None]),
    "decimal": (pa.decimal128(9, 2), [0, 1, None]),
    "timestamp": (pa.timestamp("us"), [dt.datetime(2024, 2, 29, 1, 2, 3, 4), None]),  # noqa: DTZ001
    "binary": (pa.binary(), [b"", b"\x00/", b"null", None]),
}
MakeTable = Callable[..., Table]


@pytest.fixture
def make_table(tmp_path: Path) -> MakeTable:
    catalog = open_catalog(tmp_path)

    def make(rows: pa.Table, partitions: Sequence[tuple[str, str]], **options: object) -> Table:
        table = catalog.create_table("db.t", rows.schema, partition_spec=list(partitions), **options)  # type: ignore[arg-type]
        table.append(rows)
        return table

    return make


def by_repr(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


def checked(table: Table, session: SparkSession) -> DataFrame:
    """The table on Spark, of which all rows are those of the Arrow reader."""
    frame = table.scan().to_spark(session)
    assert by_repr(frame.toArrow()) == by_repr(table.scan().to_arrow())
    return frame


def partition_columns(frame: DataFrame) -> set[str]:
    """The columns by which Spark skips files, of all relations of a frame."""
    found: set[str] = set()
    relations = frame._jdf.queryExecution().analyzed().collectLeaves()
    for place in range(relations.size()):
        leaf = relations.apply(place)
        if leaf.nodeName() == "LogicalRelation" or "LogicalRelation" in leaf.getClass().getName():
            found.update(leaf.relation().partitionSchema().fieldNames())
    return found


def remove_files(table: Table, keep: Callable[[str], bool]) -> None:
    """Remove the data files of which the path does not hold this: whoever opens one of them fails."""
    for path in table.scan().plan().files.column("file_path").to_pylist():
        if not keep(path):
            Path(urlparse(path).path).unlink()


@pytest.mark.parametrize("type_", TYPES)
def test_every_value_comes_back_and_is_found(spark: SparkSession, make_table: MakeTable, type_: str) -> None:
    arrow, values = TYPES[type_]
    given = [value for value in values for _ in range(2)]
    rows = pa.table({"id": pa.array(range(len(given))), "p": pa.array(given, arrow)})
    frame = checked(make_table(rows, [("p", "identity")]), spark)
    assert partition_columns(frame) == ({"p"} if type_ in ("boolean", "int", "long", "date", "string") else set())
    wanted = {id_ for id_, value in zip(rows["id"].to_pylist(), given, strict=True) if value is None}
    assert {row.id for row in frame.where("p is null").collect()} == wanted
    if type_ == "string":
        for value in values:
            found = {row.id for row in frame.where(F.col("p") == F.lit(value)).collect()}
            assert found == {id_ for id_, own in enumerate(given) if own == value and value is not None}, value


def test_files_that_a_filter_excludes_are_not_opened(spark: SparkSession, make_table: MakeTable) -> None:
    rows = pa.table({"p": pa.array([n % 20 for n in range(200)], pa.int32()), "v": range(200)})
    table = make_table(rows, [("p", "identity")])
    frame = table.scan().to_spark(spark)
    remove_files(table, lambda path: "/p=3/" in path)
    assert frame.where("p = 3").selectExpr("sum(v)").collect()[0][0] == sum(range(3, 200, 20))
    assert frame.where("p is null").collect() == []
    with pytest.raises(Exception, match="FILE_NOT_EXIST"):
        frame.collect()


@pytest.mark.parametrize("has_deletes", [False, True], ids=["plain", "deletes"])
def test_files_that_no_row_of_a_join_asks_for_are_not_opened(
    session: SparkSession, make_table: MakeTable, tmp_path: Path, has_deletes: bool
) -> None:
    rows = pa.table({"p": pa.array([n % 20 for n in range(200)], pa.int32()), "v": range(200)})
    table = make_table(rows, [("p", "identity")])
    expected = sum(range(2, 200, 20)) + sum(range(3, 200, 20))
    if has_deletes:
        table.delete("v = 3", mode="merge-on-read")
        table.append(pa.table({"p": pa.array([3, 4], pa.int32()), "v": [1000, 1000]}))
        expected += 1000 - 3
    dates = open_catalog(tmp_path).create_table("db.dates", pa.schema([("p", pa.int32()), ("month", pa.int32())]))
    dates.append(
        pa.table({"p": pa.array(range(20), pa.int32()), "month": pa.array([n // 2 for n in range(20)], pa.int32())})
    )
    one_month = dates.scan().to_spark(session).where("month = 1")
    frame = table.scan().to_spark(session).join(one_month, "p").selectExpr("sum(v)")
    remove_files(table, lambda path: "/p=3/" in path or "/p=2/" in path)
    assert frame.collect()[0][0] == expected


def test_columns_and_specs_that_changed(
    spark: SparkSession, make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Directories keep the names that columns had when their files were written, even where another column has such a
    name now: no table is brought there by this engine, but a table of another writer may be."""
    rows = pa.table({"a": pa.array([1, 2], pa.int32()), "s": ["x", "y"], "v": [1, 2]})
    table = make_table(rows, [("a", "identity"), ("v", "bucket[4]")])
    assert partition_columns(checked(table, spark)) == {"a", "v_bucket"}
    table.update_schema(lambda schema: schema.promote_column("a", icebench.LONG))
    table.append(pa.table({"a": [2**40, None], "s": ["x", None], "v": [3, 4]}))
    assert partition_columns(checked(table, spark)) == {"a", "v_bucket"}
    table.update_spec(lambda spec: spec.add_field("s", "identity"))
    table.append(pa.table({"a": [5, 6], "s": ["x", None], "v": [5, 6]}))
    assert "s" in partition_columns(checked(table, spark))
    monkeypatch.setattr(updates, "check_kept_names", lambda specs, schema: None)
    table.update_schema(lambda schema: schema.rename_column("a", "b").rename_column("s", "a"))
    table.append(pa.table({"b": [7, 8], "a": ["z", "a"], "v": [7, 8]}))
    frame = checked(table, spark)
    assert {(r.b, r.a, r.v) for r in frame.where("a = 'x'").collect()} == {(1, "x", 1), (2**40, "x", 3), (5, "x", 5)}


def test_directories_elsewhere(spark: SparkSession, make_table: MakeTable) -> None:
    rows = pa.table({"p": pa.array(range(20), pa.int32()), "v": range(20)})
    table = make_table(rows, [("p", "identity")], properties={"write.object-storage.enabled": "true"})
    frame = checked(table, spark)
    assert [row.v for row in frame.where("p = 3").collect()] == [3]
