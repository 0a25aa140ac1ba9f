"""Each engine's way to read a table: the rows it returns, or the error it raises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyspark.sql import SparkSession

import icebench
from icebench.engine.codec.metadata_json.values import value_from_json
from icebench.engine.columnar.scalars import to_arrow_array
from tests.interop.histories.actor_java import Java, lacks_spark_type
from tests.interop.histories.filters import Row

Read = Callable[..., list[Row]]


@dataclass
class Readers:
    """The readers of one table; each takes the text of a filter and a snapshot id, or neither."""

    spark: SparkSession
    ours: icebench.Table
    java: Java
    pyiceberg: Catalog
    by_name: dict[str, Read] = field(init=False)

    def __post_init__(self) -> None:
        self.by_name = {
            "ours": self._ours,
            "ours on Spark": self._ours_on_spark,
            "Iceberg Java": self._java,
            "PyIceberg": self._pyiceberg,
            "DuckDB": self._duckdb,
        }

    def _ours(self, filter: str | None = None, snapshot_id: int | None = None) -> list[Row]:
        return rows_of(self.ours.scan(filter, snapshot_id=snapshot_id).to_arrow())

    def _ours_on_spark(self, filter: str | None = None, snapshot_id: int | None = None) -> list[Row]:
        return rows_of(self.ours.scan(filter, snapshot_id=snapshot_id).to_spark(self.spark).toArrow())

    def _java(self, filter: str | None = None, snapshot_id: int | None = None) -> list[Row]:
        if lacks_spark_type(self.ours.schema()):
            assert filter is None
            return self._java_records(snapshot_id)
        version = "" if snapshot_id is None else f" version as of {snapshot_id}"
        where = "" if filter is None else f" where {filter}"
        return rows_of(self.spark.sql(f"select * from {self.java.name}{version}{where}").toArrow())

    def _java_records(self, snapshot_id: int | None) -> list[Row]:
        """By Iceberg's generic reader, value by value in the specification's JSON: for types that Spark lacks."""
        jvm = self.java.jvm
        iceberg, table = jvm.org.apache.iceberg, self.java.table
        scan = iceberg.data.IcebergGenerics.read(table)
        if snapshot_id is not None:
            scan = scan.useSnapshot(snapshot_id)
        schema, java_schema = self.ours.schema(), table.schema()
        wrapper = iceberg.data.InternalRecordWrapper(java_schema.asStruct())
        values: dict[str, list[Any]] = {f.name: [] for f in schema.fields}
        with_close = scan.build()
        records = with_close.iterator()
        while records.hasNext():
            wrapped = wrapper.wrap(records.next())
            for place, f in enumerate(schema.fields):
                value = self.java.json_of(wrapped, place, java_schema.findType(f.name))
                values[f.name].append(None if value is None else value_from_json(f.type, value))
        with_close.close()
        arrays = [to_arrow_array(schema.primitive(f.field_id), values[f.name]) for f in schema.fields]
        return rows_of(pa.Table.from_arrays(arrays, names=[f.name for f in schema.fields]))

    def _pyiceberg(self, filter: str | None = None, snapshot_id: int | None = None) -> list[Row]:
        table = self.pyiceberg.load_table(self.ours.name)
        scan = table.scan(snapshot_id=snapshot_id) if filter is None else table.scan(filter, snapshot_id=snapshot_id)
        return rows_of(scan.to_arrow())

    def _duckdb(self, filter: str | None = None, snapshot_id: int | None = None) -> list[Row]:
        assert snapshot_id is None
        where = "" if filter is None else f" where {filter}"
        location = self.ours.metadata_location.removeprefix("file://").removeprefix("file:")
        query = f"select * from iceberg_scan('{location}'){where}"
        # A connection of its own: some errors of DuckDB leave one useless.
        with duckdb_connection() as connection:
            return rows_of(connection.execute(query).to_arrow_table())


def rows_of(table: pa.Table) -> list[Row]:
    """Rows as the model has them: nanoseconds are integers."""
    for place, own in enumerate(table.schema):
        if pa.types.is_timestamp(own.type) and own.type.unit == "ns":
            table = table.set_column(place, own.name, table.column(place).cast(pa.int64()))
    return table.to_pylist()


def duckdb_connection() -> duckdb.DuckDBPyConnection:
    """A connection that reads Iceberg tables, in UTC."""
    connection = duckdb.connect()
    for package in ("duckdb_extension_avro", "duckdb_extension_iceberg"):
        extension = next(Path(str(files(package))).rglob("*.duckdb_extension"))
        connection.execute(f"LOAD '{extension}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection
