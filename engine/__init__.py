"""icebench's table-format engine: Apache Iceberg tables, formats 1 to 3.

::

    catalog = engine.load_catalog("sqlite:///warehouse/catalog.db", warehouse="warehouse")
    table = catalog.create_table("db.events", schema, partition_spec=[("ts", "day")])
    table.append(rows)
    table.scan(filter="id < 5", columns=["ts"]).to_arrow()

What stands in `__all__` is the public interface; the rooms below are for the engine itself.
"""

from engine import errors
from engine.opening import Catalog, load_catalog, load_table
from engine.spec.partitioning import UNPARTITIONED, PartitionField, PartitionSpec, partition_spec
from engine.spec.schema import Schema
from engine.spec.sorting import UNSORTED, SortField, SortOrder
from engine.spec.transforms import Transform, parse_transform
from engine.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    list_type,
    map_type,
)
from engine.table import Table

__all__ = [
    "BINARY",
    "BOOLEAN",
    "DATE",
    "DOUBLE",
    "FLOAT",
    "INT",
    "LONG",
    "STRING",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMPTZ",
    "TIMESTAMPTZ_NS",
    "TIMESTAMP_NS",
    "UNKNOWN",
    "UNPARTITIONED",
    "UNSORTED",
    "UUID",
    "VARIANT",
    "Catalog",
    "DecimalType",
    "FixedType",
    "ListType",
    "MapType",
    "NestedField",
    "PartitionField",
    "PartitionSpec",
    "PrimitiveType",
    "Schema",
    "SortField",
    "SortOrder",
    "StructType",
    "Table",
    "Transform",
    "errors",
    "list_type",
    "load_catalog",
    "load_table",
    "map_type",
    "parse_transform",
    "partition_spec",
]
