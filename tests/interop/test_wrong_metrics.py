"""Metrics that other writers have wrong, in their own tables: no row is lost, and only what matches is deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Literal, get_args

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

import icebench
from icebench.bench.setup_jars import is_cached
from icebench.engine.inspect.contents import Contents
from icebench.engine.spec.data_file import DataFile
from tests.interop.histories.places import Place, sql_place

Mode = Literal["copy-on-write", "merge-on-read"]
with_java = pytest.mark.skipif(not is_cached(), reason="Iceberg's Spark runtime is not in the Ivy cache")
FIELDS = ("f", "d", "n", "t.f")
TESTS: dict[str, Callable[[float | None], bool]] = {
    "{} is null": lambda v: v is None,
    "{} is not null": lambda v: v is not None,
    "{} < 3": lambda v: v is not None and v < 3,
    "not {} < 2": lambda v: v is not None and not v < 2,
    "{} in (1, 2)": lambda v: v in (1, 2),
}


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = sql_place(spark, tmp_path_factory.mktemp("wrong_metrics"), "wrong_metrics_sql")
    yield made
    made.close()


def structs_of_java(place: Place, file_format: str) -> icebench.Table:
    """One file: a struct that is null, one whose struct inside is null, and two that are whole."""
    name = f"db.structs{next(place.numbers)}"
    place.spark.sql(
        f"create table {place.spark_catalog}.{name} "
        "(id int, s struct<f: float, d: double, n: int, t: struct<f: float>>)"
        f" using iceberg tblproperties ('write.format.default' = '{file_format}')"
    )
    rows = "(1, null), (2, (1.0, 1.0, 1, null)), (3, (2.0, 2.0, 2, struct(2.0))), (4, (1.5, null, null, struct(1.0)))"
    place.spark.sql(f"insert into {place.spark_catalog}.{name} select /*+ coalesce(1) */ * from values {rows}")
    # What we write is Parquet, whatever this file is.
    place.spark.sql(f"alter table {place.spark_catalog}.{name} unset tblproperties ('write.format.default')")
    return place.ours.load_table(name)


def only_file(table: icebench.Table) -> DataFile:
    (entry,) = Contents(table.metadata, table.store).snapshot_entries(table.current_snapshot)
    return entry.data_file


def matching(table: icebench.Table, field: str, test: str) -> list[int]:
    """The ids of the rows whose `field` of the struct passes, by the rows themselves."""
    found = []
    for row in table.scan().to_arrow().to_pylist():
        value = row["s"]
        for part in field.split("."):
            value = None if value is None else value[part]
        found += [row["id"]] if TESTS[test](value) else []
    return sorted(found)


@with_java
@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_fields_of_null_structs_by_iceberg_java(place: Place, file_format: str) -> None:
    table = structs_of_java(place, file_format)
    names = {table.metadata.schema.name_of[i]: n for i, n in only_file(table).null_value_counts.items()}
    # One row is null because its struct is. Java 1.12 counts it in Parquet, and not in ORC.
    assert names["s.f"] == (0 if file_format == "orc" else 1)
    for field, test in product(FIELDS, TESTS):
        filter, expected = test.format(f"s.{field}"), matching(table, field, test)
        assert sorted(table.scan(filter=filter).to_arrow()["id"].to_pylist()) == expected, filter
        assert table.scan(filter=filter).count() == len(expected), filter


@with_java
@pytest.mark.parametrize("file_format", ["parquet", "orc"])
@pytest.mark.parametrize("mode", get_args(Mode))
@pytest.mark.parametrize("field", ["f", "t.f"])
@pytest.mark.parametrize("test", ["{} is null", "{} is not null", "{} < 3"])
def test_deletes_by_fields_of_null_structs(place: Place, file_format: str, mode: Mode, field: str, test: str) -> None:
    table = structs_of_java(place, file_format)
    expected = sorted({1, 2, 3, 4} - set(matching(table, field, test)))
    table.delete(test.format(f"s.{field}"), mode=mode)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == expected


def texts_of_pyiceberg(home: Path) -> icebench.Table:
    """One file of two row groups, one of which has no bounds because its texts are longer than 4 KiB."""
    catalog = SqlCatalog("texts", uri=f"sqlite:///{home}/catalog.db", warehouse=str(home))
    catalog.create_namespace("db")
    rows = pa.table({"id": [1, 2, 3, 4], "s": ["b", "c", "z" * 5000, "y" * 5000]})
    made = catalog.create_table("db.t", rows.schema, properties={"write.parquet.row-group-limit": "2"})
    made.append(rows)
    catalog.engine.dispose()
    return icebench.load_catalog(f"sqlite:///{home}/catalog.db", warehouse=str(home), name="texts").load_table("db.t")


def test_text_of_a_row_group_that_pyiceberg_passed_over(tmp_path: Path) -> None:
    table = texts_of_pyiceberg(tmp_path)
    file = only_file(table)
    assert len(file.split_offsets or ()) == 2
    # When PyIceberg looks at every row group, this test has nothing left to show.
    assert file.upper_bounds[2] == b"c"
    assert table.scan(filter="s > 'x'").to_arrow()["id"].to_pylist() == [3, 4]
    assert table.scan(filter="s < 'x'").count() == 2
    table.delete("s < 'x'", mode="copy-on-write")
    assert table.scan().to_arrow()["id"].to_pylist() == [3, 4]
