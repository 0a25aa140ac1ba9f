"""icebench's table-format engine: Apache Iceberg tables, formats 1 to 3.

::

    catalog = engine.load_catalog("sqlite:///warehouse/catalog.db", warehouse="warehouse")
    table = catalog.create_table("db.events", schema, partition_spec=[("ts", "day")])
    table.append(rows)
    table.scan(filter="id < 5", columns=["ts"]).to_arrow()

What stands in `__all__` is the public interface; the rooms below are for the engine itself. A name is loaded when it is
first used: a command that only prints its help, or only needs the errors, waits for neither Arrow nor SQLAlchemy.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine import errors, spark_source
    from engine.codec.variants import decode_variant
    from engine.expressions.builder import col
    from engine.expressions.parse_scalar import sql
    from engine.expressions.scalar import SqlExpression
    from engine.formats.prepare_kernels import prepare_kernels
    from engine.maintenance.layout_model import LayoutModel, ModelledLayout
    from engine.maintenance.profile.table_profile import TableProfile
    from engine.opening import Catalog, load_catalog, load_table
    from engine.plan.cache import ManifestCache
    from engine.runtime.counters import Counters
    from engine.scan import Scan
    from engine.spec.data_file import DataFile, FileContent
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
    "Counters",
    "DataFile",
    "DecimalType",
    "FileContent",
    "FixedType",
    "LayoutModel",
    "ListType",
    "ManifestCache",
    "MapType",
    "ModelledLayout",
    "NestedField",
    "PartitionField",
    "PartitionSpec",
    "PrimitiveType",
    "Scan",
    "Schema",
    "SortField",
    "SortOrder",
    "SqlExpression",
    "StructType",
    "Table",
    "TableProfile",
    "Transform",
    "col",
    "decode_variant",
    "errors",
    "list_type",
    "load_catalog",
    "load_table",
    "map_type",
    "parse_transform",
    "partition_spec",
    "prepare_kernels",
    "spark_source",
    "sql",
]

_ELSEWHERE = {
    "Catalog": "engine.opening",
    "load_catalog": "engine.opening",
    "load_table": "engine.opening",
    "Counters": "engine.runtime.counters",
    "ManifestCache": "engine.plan.cache",
    "SqlExpression": "engine.expressions.scalar",
    "col": "engine.expressions.builder",
    "decode_variant": "engine.codec.variants",
    "sql": "engine.expressions.parse_scalar",
    "LayoutModel": "engine.maintenance.layout_model",
    "ModelledLayout": "engine.maintenance.layout_model",
    "DataFile": "engine.spec.data_file",
    "FileContent": "engine.spec.data_file",
    "Scan": "engine.scan",
    "Table": "engine.table",
    "TableProfile": "engine.maintenance.profile.table_profile",
    "Schema": "engine.spec.schema",
    "SortField": "engine.spec.sorting",
    "SortOrder": "engine.spec.sorting",
    "UNSORTED": "engine.spec.sorting",
    "Transform": "engine.spec.transforms",
    "parse_transform": "engine.spec.transforms",
    "PartitionField": "engine.spec.partitioning",
    "PartitionSpec": "engine.spec.partitioning",
    "UNPARTITIONED": "engine.spec.partitioning",
    "partition_spec": "engine.spec.partitioning",
    "prepare_kernels": "engine.formats.prepare_kernels",
}
"""The modules of public names that are not in `engine.spec.types`."""


if not TYPE_CHECKING:  # a type checker would take every name for a public one

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'engine' has no attribute {name!r}")
        if name in {"errors", "spark_source"}:
            return import_module(f"{__name__}.{name}")
        value: object = getattr(import_module(_ELSEWHERE.get(name, "engine.spec.types")), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
