"""Catalogs that all engines share, each as every engine opens it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from pyiceberg.catalog import Catalog as PyIcebergCatalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError
from pyiceberg.partitioning import PartitionSpec as PyIcebergSpec
from pyiceberg.schema import Schema as PyIcebergSchema
from pyspark.sql import SparkSession

import icebench
from icebench.engine.spec.partitioning import PartitionSpec
from icebench.engine.spec.schema import Schema
from tests.interop.histories.language import Engine


@dataclass
class Place:
    """One catalog, opened by all engines.

    Args:
        spark: The session; it knows the catalog as `spark_catalog`.
        spark_catalog: That name.
        ours: Our handle on the catalog.
        pyiceberg: PyIceberg's.
        numbers: Of the tables, for their names.
    """

    spark: SparkSession
    spark_catalog: str
    ours: icebench.Catalog
    pyiceberg: PyIcebergCatalog
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def create(
        self,
        who: Engine,
        name: str,
        shape: tuple[Schema, PartitionSpec],
        texts: tuple[str, str],
        properties: Mapping[str, str],
    ) -> None:
        """Have an engine create a table; `texts` are the JSON forms of schema and spec."""
        if who == "ours":
            self.ours.create_table(name, shape[0], partition_spec=shape[1], properties=properties)
        elif who == "pyiceberg":
            schema = PyIcebergSchema.model_validate_json(texts[0])
            spec = PyIcebergSpec.model_validate_json(texts[1])
            self.pyiceberg.create_table(name, schema, partition_spec=spec, properties=dict(properties))
        else:
            self._create_by_java(name, texts, properties)

    def close(self) -> None:
        """Close what is held open."""
        self.ours.close()
        if isinstance(self.pyiceberg, SqlCatalog):
            self.pyiceberg.engine.dispose()

    def _create_by_java(self, name: str, texts: tuple[str, str], properties: Mapping[str, str]) -> None:
        jvm = self.spark.sparkContext._jvm
        assert jvm is not None
        iceberg = jvm.org.apache.iceberg
        catalog = iceberg.spark.Spark3Util.loadIcebergCatalog(self.spark._jsparkSession, self.spark_catalog)
        schema = iceberg.SchemaParser.fromJson(texts[0])
        spec = iceberg.PartitionSpecParser.fromJson(schema, texts[1])
        given = jvm.java.util.HashMap()
        for key, value in properties.items():
            given.put(key, value)
        identifier = iceberg.catalog.TableIdentifier.parse(name)
        catalog.buildTable(identifier, schema).withPartitionSpec(spec).withProperties(given).create()


def sql_place(spark: SparkSession, home: Path, name: str = "histories_sql") -> Place:
    """A SQLite database: Iceberg Java's JDBC catalog, PyIceberg's SQL catalog, and ours. Spark keeps what it once
    opened under a name."""
    database, warehouse = home / "catalog.db", home / "warehouse"
    ours = icebench.load_catalog(f"sqlite:///{database}", warehouse=str(warehouse), name=name)
    ours.create_namespace("db")
    conf = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        ".uri": f"jdbc:sqlite:{database}",
        ".warehouse": str(warehouse),
        ".cache-enabled": "false",
    }
    _configure(spark, name, conf)
    pyiceberg = SqlCatalog(name, uri=f"sqlite:///{database}", warehouse=str(warehouse))
    return Place(spark, name, ours, pyiceberg)


def rest_place(spark: SparkSession, address: str) -> Place:
    """Iceberg's own REST server."""
    name = "histories_rest"
    conf = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "rest",
        ".uri": address,
        ".cache-enabled": "false",
    }
    _configure(spark, name, conf)
    pyiceberg = RestCatalog(name, uri=address)
    with suppress(NamespaceAlreadyExistsError):
        pyiceberg.create_namespace("db")
    return Place(spark, name, icebench.load_catalog(address, name=name), pyiceberg)


def directory_place(spark: SparkSession, home: Path, name: str = "histories_directory") -> Place:
    """A directory: Iceberg Java's Hadoop catalog and ours. PyIceberg has no such catalog, and gets an empty one. Spark
    keeps what it once opened under a name."""
    conf = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "hadoop",
        ".warehouse": str(home / "warehouse"),
        ".cache-enabled": "false",
    }
    _configure(spark, name, conf)
    ours = icebench.load_catalog(str(home / "warehouse"), name=name)
    return Place(spark, name, ours, SqlCatalog(name, uri="sqlite:///:memory:"))


def _configure(spark: SparkSession, name: str, conf: Mapping[str, str]) -> None:
    for key, value in conf.items():
        spark.conf.set(f"spark.sql.catalog.{name}{key}", value)
