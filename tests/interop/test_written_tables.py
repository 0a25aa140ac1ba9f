"""What the engine writes is what Iceberg Java, PyIceberg and DuckDB read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable

import icebench
from icebench import Table

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("spark")]

Rows = list[tuple[Any, ...]]
Reader = Callable[[str], pa.Table]

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("day", pa.date32()),
        pa.field("name", pa.string()),
        pa.field("price", pa.decimal128(7, 2)),
        pa.field("total", pa.decimal128(15, 3)),
        pa.field("huge", pa.decimal128(38, 6)),
        pa.field("at", pa.timestamp("us")),
        pa.field("instant", pa.timestamp("us", "UTC")),
        pa.field("flag", pa.bool_()),
        pa.field("small", pa.int32()),
        pa.field("ratio", pa.float64()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("place", pa.struct([pa.field("x", pa.float64()), pa.field("label", pa.string())])),
    ]
)
ROWS = 600
NO_PARQUET = ("orc", "avro")
PROPERTIES = {
    "orc": {"write.format.default": "orc"},
    "avro": {"write.format.default": "avro"},
    "second-pages": {"write.parquet.page-version": "v2", "parquet.enable.dictionary": "false"},
}


def rows(first: int, count: int = ROWS) -> pa.Table:
    """Rows with nulls in every optional column, each at another stride."""

    def value(i: int, stride: int, made: Any) -> Any:
        return None if i % stride == 0 else made

    numbers = range(first, first + count)
    midnight = dt.datetime(2023, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001 - a local time is wanted
    columns = {
        "id": list(numbers),
        "day": [value(i, 11, dt.date(2023, 12, 1) + dt.timedelta(days=i % 90)) for i in numbers],
        "name": [value(i, 7, f"n{i % 13}-é🙂" * (1 + i % 3)) for i in numbers],
        "price": [value(i, 5, Decimal(i - 300) / 100) for i in numbers],
        "total": [value(i, 9, Decimal(i * 1_000_003 - 10**8) / 1000) for i in numbers],
        "huge": [value(i, 8, Decimal(i - 300) * 10**29 + Decimal("0.000001")) for i in numbers],
        "at": [value(i, 6, midnight + dt.timedelta(hours=i)) for i in numbers],
        "instant": [value(i, 10, (midnight + dt.timedelta(minutes=i)).replace(tzinfo=dt.UTC)) for i in numbers],
        "flag": [value(i, 3, i % 2 == 0) for i in numbers],
        "small": [value(i, 4, -i) for i in numbers],
        "ratio": [value(i, 12, i / 7) for i in numbers],
        "tags": [value(i, 13, [f"t{i}", None] if i % 2 else []) for i in numbers],
        "place": [value(i, 14, {"x": i / 3, "label": value(i, 2, "p")}) for i in numbers],
    }
    return pa.table(columns, SCHEMA)


def plain(table: pa.Table) -> Rows:
    """Rows by id, in one representation for all engines: instants in UTC, uuid and lists as Python values."""
    made = []
    for row in table.select(SCHEMA.names).to_pylist():
        row["instant"] = row["instant"] and row["instant"].astimezone(dt.UTC)
        made.append(tuple(row.values()))
    return sorted(made, key=lambda row: row[0])


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("written")


@pytest.fixture(scope="module", params=["plain", "partitioned", "deleted", "second-pages", "orc", "avro"])
def written(request, warehouse) -> tuple[Table, Rows]:
    """A table of the engine and the rows that must be in it."""
    catalog = icebench.load_catalog(f"sqlite:///{warehouse}/catalog.db", warehouse=str(warehouse))
    if "db" not in catalog.list_namespaces():
        catalog.create_namespace("db")
    spec = [] if request.param == "plain" else [("day", "month"), ("id", "bucket[3]"), ("name", "truncate[2]")]
    properties = PROPERTIES.get(request.param, {})
    table = catalog.create_table(f"db.{request.param}", SCHEMA, partition_spec=spec, properties=properties)
    table.append(rows(0))
    table.append(rows(ROWS))
    expected = plain(pa.concat_tables([rows(0), rows(ROWS)]))
    if request.param in ("deleted", *PROPERTIES):
        table.delete("id < 10 or (small > -700 and day >= date '2024-01-15' and flag)", mode="merge-on-read")
        table.delete("name is null and id > 1000", mode="merge-on-read")
        expected = [row for row in expected if not deleted(row)]
        assert 50 < 2 * ROWS - len(expected) < ROWS
    return table, expected


def deleted(row: tuple[Any, ...]) -> bool:
    of = dict(zip(SCHEMA.names, row, strict=True))
    small, day = of["small"], of["day"]
    late = small is not None and small > -700 and day is not None and day >= dt.date(2024, 1, 15) and of["flag"] is True
    return of["id"] < 10 or late or (of["name"] is None and of["id"] > 1000)


def with_spark(location: str, spark) -> pa.Table:
    return spark.read.format("iceberg").load(location).toArrow()


def with_pyiceberg(location: str, spark) -> pa.Table:
    return StaticTable.from_metadata(location).scan().to_arrow()


def with_duckdb(location: str, spark) -> pa.Table:
    connection = duckdb.connect()
    for package in ("duckdb_extension_avro", "duckdb_extension_iceberg"):
        extension = next(Path(str(files(package))).rglob("*.duckdb_extension"))
        connection.execute(f"LOAD '{extension}'")
    return connection.execute("SELECT * FROM iceberg_scan(?)", [location]).to_arrow_table()


def with_engine(location: str, spark) -> pa.Table:
    return icebench.load_table(location).scan().to_arrow()


REFUSED = {
    ("orc", with_duckdb): "'ORC' not supported",
    ("avro", with_duckdb): "'AVRO' not supported",
    ("avro", with_pyiceberg): "not supported: FileFormat.AVRO",
    ("second-pages", with_pyiceberg): "DeltaByteArrayDecoder",
}


@pytest.mark.parametrize("read", [with_engine, with_spark, with_pyiceberg, with_duckdb])
def test_every_engine_reads_the_same_rows(read, written, spark):
    table, expected = written
    reason = REFUSED.get((table.name.removeprefix("db."), read))
    if reason is not None:
        with pytest.raises((ValueError, OSError, duckdb.Error), match=reason):
            read(table.metadata_location, spark)
        return
    assert plain(read(table.metadata_location, spark)) == expected


def test_iceberg_java_finds_the_statistics_it_prunes_by(written, spark):
    """A filter that Iceberg Java answers through our metrics and partitions gives exactly the rows that match."""
    table, expected = written
    for text, matches in (
        ("id = 250", lambda row: row[0] == 250),
        ("day = date '2024-01-03'", lambda row: row[1] == dt.date(2024, 1, 3)),
        ("name like 'n12%'", lambda row: row[2] is not None and row[2].startswith("n12")),
        ("price < -2.50", lambda row: row[3] is not None and row[3] < Decimal("-2.50")),
        ("huge > 100000000000000000000000000000", lambda row: row[5] is not None and row[5] > 10**29),
        ("ratio is null", lambda row: row[10] is None),
    ):
        found = spark.read.format("iceberg").load(table.metadata_location).where(text).select("id").toArrow()
        assert sorted(found["id"].to_pylist()) == [row[0] for row in expected if matches(row)], text


def test_pyiceberg_opens_the_catalog(warehouse, written):
    table, expected = written
    catalog = SqlCatalog("default", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=str(warehouse))
    loaded = catalog.load_table(table.name)
    assert loaded.metadata_location == table.metadata_location
    if (table.name.removeprefix("db."), with_pyiceberg) in REFUSED:
        return
    assert loaded.scan(selected_fields=("id",)).to_arrow().num_rows == len(expected)
