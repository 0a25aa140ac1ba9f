"""ORC and Avro tables that Iceberg Java wrote through Spark SQL, read by the engine."""

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icebench.bench.setup_jars import is_cached
from icebench.errors import Unsupported
from tests.interop.test_read_iceberg_java import COLUMNS, ROWS, bag, insert, opened

pytestmark = [
    pytest.mark.skipif(not is_cached(), reason="Iceberg's Spark runtime is not in the Ivy cache"),
    pytest.mark.slow,
]
FORMATS = ("orc", "avro")


@pytest.fixture(scope="module")
def names(spark: SparkSession) -> dict[str, str]:
    """A table of each format, after appends, evolution of the schema, and deletes in files of the same format."""
    spark.sql("create namespace if not exists iceberg_java.read_formats")
    made = {}
    for file_format in FORMATS:
        name = made[file_format] = f"iceberg_java.read_formats.{file_format}"
        spark.sql(
            f"""create table {name} ({COLUMNS}) using iceberg partitioned by (bucket(2, id), flag)
                tblproperties ('format-version'='2', 'write.delete.mode'='merge-on-read',
                               'write.update.mode'='merge-on-read', 'write.format.default'='{file_format}')"""
        )
        insert(spark, name, 0, 300)
        spark.sql(f"alter table {name} alter column id type bigint")
        spark.sql(f"alter table {name} alter column small type decimal(12,2)")
        spark.sql(f"alter table {name} alter column f type double")
        spark.sql(f"alter table {name} rename column middle to centre")
        spark.sql(f"alter table {name} drop column gone")
        spark.sql(f"alter table {name} add column gone int")
        spark.sql(f"alter table {name} rename column s.b to c")
        spark.sql(
            f"""insert into {name}
                select id, small, middle, wide, day, at, naive, name, raw, f, d, flag,
                       named_struct('a', s.a, 'c', s.b), l, m, id % 3
                from ({ROWS.format(start=300, end=400)})"""
        )
        spark.sql(f"delete from {name} where id % 17 = 3")
        spark.sql(f"update {name} set name = 'updated', small = -1 where id in (42, 350)")
    return made


@pytest.mark.parametrize("file_format", FORMATS)
def test_all_rows_are_equal(spark: SparkSession, names: dict[str, str], file_format: str) -> None:
    expected = spark.table(names[file_format]).toArrow()
    table = opened(spark, names[file_format])
    files = table.scan().plan().files
    assert set(files.column("file_format").to_pylist()) == {file_format}
    deletes = [d for own in files.column("deletes").to_pylist() for d in own]
    assert {d["file_format"] for d in deletes} == {file_format}
    found = table.scan().to_arrow()
    assert found.schema.names == expected.schema.names
    assert bag(found) == bag(expected)
    assert table.scan().count() == expected.num_rows


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("filter", ["id = 42", "small < 0 and d > 1", "naive < '1950-02-01T00:00:00'", "name is null"])
def test_filtered_rows_are_equal(spark: SparkSession, names: dict[str, str], file_format: str, filter: str) -> None:
    expected = spark.table(names[file_format]).where(filter).select("id", "small", "name", "l").toArrow()
    found = opened(spark, names[file_format]).scan(filter, ["id", "small", "name", "l"]).to_arrow()
    assert bag(found) == bag(expected)
    assert found.num_rows > 0


def test_timestamps_that_pyarrow_can_not_read_from_orc_are_refused(spark: SparkSession, names: dict[str, str]) -> None:
    name = "iceberg_java.read_formats.late"
    spark.sql(f"create table {name} (at timestamp) using iceberg tblproperties ('write.format.default'='orc')")
    spark.sql(f"insert into {name} values (timestamp'2500-01-01 00:00:00')")
    with pytest.raises(Unsupported, match="timestamps before 1678 or after 2261"):
        opened(spark, name).scan().to_arrow()
    spark.sql(f"alter table {name} set tblproperties ('write.format.default'='avro')")
    spark.sql(f"insert overwrite {name} values (timestamp'2500-01-01 00:00:00')")
    expected = spark.table(name).toArrow()
    assert opened(spark, name).scan().to_arrow().column("at").cast(pa.int64()) == expected.column("at").cast(pa.int64())
