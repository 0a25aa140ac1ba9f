"""Apache Iceberg tables, formats 1 to 3: a table-format engine, and the harness that measures tables and engines.

::

    catalog = icebench.load_catalog("sqlite:///warehouse/catalog.db", warehouse="warehouse")
    table = catalog.create_table("db.events", schema, partition_spec=[("ts", "day")])
    table.append(rows)
    table.scan(filter="id < 5", columns=["ts"]).to_arrow()

The names in `__all__` are the public interface, with `icebench.spark` for Spark. Each is imported on first use, so a
command that only prints its help, or only needs the errors, loads neither Arrow nor SQLAlchemy.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from icebench import errors, spark
    from icebench.engine.codec.variants import decode_variant
    from icebench.engine.expressions.builder import col
    from icebench.engine.expressions.parse_scalar import sql
    from icebench.engine.expressions.scalar import SqlExpression
    from icebench.engine.formats.prepare_kernels import prepare_kernels
    from icebench.engine.inspect.filter_rows import filter_rows
    from icebench.engine.maintenance.layout_model import LayoutModel, ModelledLayout
    from icebench.engine.maintenance.profile.table_profile import TableProfile
    from icebench.engine.opening.catalog import Catalog
    from icebench.engine.opening.load import load_catalog, load_table
    from icebench.engine.plan.cache import ManifestCache
    from icebench.engine.runtime.counters import Counters
    from icebench.engine.runtime.metrics_reports import CommitReport, MetricsReporter, ScanReport
    from icebench.engine.runtime.progress import progress_bar
    from icebench.engine.scan import Scan
    from icebench.engine.spec.data_file import DataFile, FileContent
    from icebench.engine.spec.partitioning import UNPARTITIONED, PartitionField, PartitionSpec, partition_spec
    from icebench.engine.spec.schema import Schema
    from icebench.engine.spec.sorting import UNSORTED, SortField, SortOrder
    from icebench.engine.spec.transforms import Transform, parse_transform
    from icebench.engine.spec.types import (
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
    from icebench.engine.storage.user_configuration import catalog_names
    from icebench.engine.table import Table

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
    "CommitReport",
    "Counters",
    "DataFile",
    "DecimalType",
    "FileContent",
    "FixedType",
    "LayoutModel",
    "ListType",
    "ManifestCache",
    "MapType",
    "MetricsReporter",
    "ModelledLayout",
    "NestedField",
    "PartitionField",
    "PartitionSpec",
    "PrimitiveType",
    "Scan",
    "ScanReport",
    "Schema",
    "SortField",
    "SortOrder",
    "SqlExpression",
    "StructType",
    "Table",
    "TableProfile",
    "Transform",
    "catalog_names",
    "col",
    "decode_variant",
    "errors",
    "filter_rows",
    "list_type",
    "load_catalog",
    "load_table",
    "map_type",
    "parse_transform",
    "partition_spec",
    "prepare_kernels",
    "progress_bar",
    "spark",
    "sql",
]

_ELSEWHERE = {
    "Catalog": "icebench.engine.opening.catalog",
    "load_catalog": "icebench.engine.opening.load",
    "load_table": "icebench.engine.opening.load",
    "Counters": "icebench.engine.runtime.counters",
    "CommitReport": "icebench.engine.runtime.metrics_reports",
    "MetricsReporter": "icebench.engine.runtime.metrics_reports",
    "ScanReport": "icebench.engine.runtime.metrics_reports",
    "ManifestCache": "icebench.engine.plan.cache",
    "SqlExpression": "icebench.engine.expressions.scalar",
    "col": "icebench.engine.expressions.builder",
    "decode_variant": "icebench.engine.codec.variants",
    "sql": "icebench.engine.expressions.parse_scalar",
    "filter_rows": "icebench.engine.inspect.filter_rows",
    "LayoutModel": "icebench.engine.maintenance.layout_model",
    "ModelledLayout": "icebench.engine.maintenance.layout_model",
    "DataFile": "icebench.engine.spec.data_file",
    "FileContent": "icebench.engine.spec.data_file",
    "Scan": "icebench.engine.scan",
    "Table": "icebench.engine.table",
    "TableProfile": "icebench.engine.maintenance.profile.table_profile",
    "Schema": "icebench.engine.spec.schema",
    "SortField": "icebench.engine.spec.sorting",
    "SortOrder": "icebench.engine.spec.sorting",
    "UNSORTED": "icebench.engine.spec.sorting",
    "catalog_names": "icebench.engine.storage.user_configuration",
    "Transform": "icebench.engine.spec.transforms",
    "parse_transform": "icebench.engine.spec.transforms",
    "PartitionField": "icebench.engine.spec.partitioning",
    "PartitionSpec": "icebench.engine.spec.partitioning",
    "UNPARTITIONED": "icebench.engine.spec.partitioning",
    "partition_spec": "icebench.engine.spec.partitioning",
    "progress_bar": "icebench.engine.runtime.progress",
    "prepare_kernels": "icebench.engine.formats.prepare_kernels",
}
"""The modules of public names that are not in `icebench.engine.spec.types`."""


if not TYPE_CHECKING:  # a type checker would take every name for a public one

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'icebench' has no attribute {name!r}")
        if name in {"errors", "spark"}:
            return import_module(f"{__name__}.{name}")
        value: object = getattr(import_module(_ELSEWHERE.get(name, "icebench.engine.spec.types")), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
