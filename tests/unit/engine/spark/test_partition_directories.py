"""Which files Spark may read by the names of their directories: those whose names are exactly their values."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from icebench.engine.deletes.files import FileRead
from icebench.engine.spark.partition_directories import PartitionDirectories
from icebench.engine.spark.read_schema import ReadColumn
from icebench.engine.spec.partitioning import PartitionSpec, partition_spec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import BOOLEAN, DATE, DOUBLE, INT, LONG, STRING, DecimalType, NestedField, Type


def roots_of(spec: PartitionSpec, type_: Type, files: Sequence[tuple[tuple[object, ...], str]]) -> list[str | None]:
    field = NestedField(field_id=1, name="p", type=type_)
    directories = PartitionDirectories([ReadColumn(field, "p")], {0: spec}, Schema((field,)))
    reads = [FileRead(file_path=path, record_count=1, partition=partition) for partition, path in files]  # type: ignore[arg-type]
    return [root and root.directory for root in directories.roots(reads, [path for _, path in files])]


@pytest.mark.parametrize(
    ("type_", "value", "directory"),
    [
        (INT, 1, "p=2"),
        (INT, 1, "p=01"),
        (INT, 1, "P=1"),
        (INT, 1, "q=1"),
        (INT, 1, "1"),
        (INT, 1, "p=1/x"),
        (INT, 1, "xp=1"),
        (LONG, None, "p=0"),
        (LONG, None, "p=__HIVE_DEFAULT_PARTITION__"),
        (STRING, None, "p=null"),
        (STRING, "null", "p=null"),
        (STRING, "", "p="),
        (STRING, "a b", "p=a+b"),
        (STRING, "__HIVE_DEFAULT_PARTITION__", "p=__HIVE_DEFAULT_PARTITION__"),
        (BOOLEAN, True, "p=1"),
        (DATE, -800_000, "p=-0221-09-01"),
        (DOUBLE, 1.0, "p=1.0"),
        (DecimalType(9, 2), 1, "p=1"),
    ],
)
def test_a_path_that_is_not_the_value_is_no_source_of_it(type_: Type, value: object, directory: str) -> None:
    schema = Schema((NestedField(field_id=1, name="p", type=type_),))
    spec = partition_spec(schema, [("p", "identity")])
    assert roots_of(spec, type_, [((value,), f"file:/t/data/{directory}/f.parquet")]) == [None]


def test_roots() -> None:
    schema = Schema((NestedField(field_id=1, name="p", type=INT),))
    spec = partition_spec(schema, [("p", "identity")])
    files: list[tuple[tuple[object, ...], str]] = [
        ((1,), "file:/t/data/p=1/f.parquet"),
        ((None,), "file:/t/data/p=null/f.parquet"),
        ((2,), "s3://b/x/p=2/f.parquet"),
        ((2,), "s3://b/x/f.parquet"),
    ]
    assert roots_of(spec, INT, files) == ["file:/t/data", "file:/t/data", "s3://b/x", None]
    hashed: list[tuple[tuple[object, ...], str]] = [((1,), f"file:/t/{n}/p=1/f.parquet") for n in range(9)]
    assert roots_of(spec, INT, hashed) == [None] * 9


def test_a_transform_is_no_source_of_its_column() -> None:
    """Not even where the column has the name of the partition field now."""
    schema = Schema((NestedField(field_id=1, name="p", type=INT),))
    spec = partition_spec(schema, [("p", "bucket[4]")])
    path = "file:/t/data/p_bucket=1/f.parquet"
    assert roots_of(spec, INT, [((1,), path)]) == [None]
    renamed = NestedField(field_id=1, name="p_bucket", type=INT)
    directories = PartitionDirectories([ReadColumn(renamed, "p_bucket")], {0: spec}, Schema((renamed,)))
    assert directories.roots([FileRead(file_path=path, record_count=1, partition=(1,))], [path]) == [None]


@pytest.mark.parametrize(
    ("type_", "value", "directory"),
    [
        (INT, -1, "p=-1"),
        (LONG, None, "p=null"),
        (BOOLEAN, False, "p=false"),
        (DATE, 0, "p=1970-01-01"),
        (STRING, "a.B-c_~1", "p=a.B-c_~1"),
    ],
)
def test_a_path_that_is_the_value_is_a_source_of_it(type_: Type, value: object, directory: str) -> None:
    schema = Schema((NestedField(field_id=1, name="p", type=type_),))
    spec = partition_spec(schema, [("p", "identity")])
    assert roots_of(spec, type_, [((value,), f"file:/t/data/{directory}/f.parquet")]) == ["file:/t/data"]


def test_directories_of_other_columns_than_their_names_say() -> None:
    """As after renames: `a` is now the name of another column, and `A` would be one name with it for some catalogs."""
    a, b = (NestedField(field_id=number, name=name, type=INT) for number, name in ((1, "a"), (2, "b")))
    spec = partition_spec(Schema((a, b)), [("a", "identity"), ("b", "identity")])
    path = "file:/t/data/a=1/b=2/f.parquet"
    files = [FileRead(file_path=path, record_count=1, partition=(1, 2))]

    def names(*columns: ReadColumn) -> list[tuple[str, ...] | None]:
        found = PartitionDirectories(columns, {0: spec}, Schema((a, b))).roots(files, [path])
        return [root and root.names for root in found]

    assert names(ReadColumn(a, "a")) == [("a", "b")]
    assert names(ReadColumn(a, "a"), ReadColumn(b, "b")) == [("a", "b")]
    assert names(ReadColumn(b, "a"), ReadColumn(a, "b")) == [None]
    assert names(ReadColumn(a, "a"), ReadColumn(b, "B")) == [None]
    assert names(ReadColumn(a, "x")) == [None]
    assert names() == [None]
