"""Distribution of rows over Spark's tasks before they are written (table property ``write.distribution-mode``).

``none`` (the default here) writes rows in the tasks where they are: no shuffle, and every task may write to every
partition. ``hash`` shuffles the rows of a partition to one task. ``range`` additionally shuffles by the sort order, so
that the bounds of files hardly overlap. With either, rows are sorted within a task, which has one file open at a time.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from icebench.engine.columnar.rows import exact_cast
from icebench.engine.columnar.schemas import storage_of, to_arrow_type
from icebench.engine.columnar.transforms import transform_array
from icebench.engine.errors import Unsupported
from icebench.engine.spark.types import quoted, spark_type
from icebench.engine.spec.partitioning import PartitionField, PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import SortField, SortOrder
from icebench.engine.spec.transforms import Identity, Void

_PARTITION, _KEY = "_icebench_partition_{}", "_icebench_key_{}"


def distributed(frame: DataFrame, mode: str, schema: Schema, spec: PartitionSpec, order: SortOrder) -> DataFrame:
    """The rows in one task per partition at least (`hash`), or in ranges (`range`), sorted by partition and sort order.

    `frame` has the table's columns. It is returned unchanged for `none`, and for a table that has neither partitions
    nor, for `range`, a sort order.

    Raises:
        Unsupported: A transform of several columns.
    """
    # What became void is null in all rows, and its source may be gone.
    parts = [f for f in spec.fields if not isinstance(f.transform, Void)]
    if mode == "none" or not (parts or (mode == "range" and order.fields)):
        return frame
    partitions = [_partition(schema, f).alias(_PARTITION.format(i)) for i, f in enumerate(parts)]
    keys = [_value(schema, f).alias(_KEY.format(i)) for i, f in enumerate(order.fields)]
    names = frame.columns
    wide = frame.select("*", *partitions, *keys)
    by_partition = [F.col(_PARTITION.format(i)).asc_nulls_first() for i in range(len(partitions))]
    by_key = [_ordered(F.col(_KEY.format(i)), f) for i, f in enumerate(order.fields)]
    if mode == "hash":
        spread = wide.repartition(*[F.col(_PARTITION.format(i)) for i in range(len(partitions))])
    else:
        spread = wide.repartitionByRange(*by_partition, *by_key)
    return spread.sortWithinPartitions(*by_partition, *by_key).select(*[F.col(quoted(name)) for name in names])


def _ordered(column: Column, field: SortField) -> Column:
    if field.direction == "asc":
        return column.asc_nulls_first() if field.null_order == "nulls-first" else column.asc_nulls_last()
    return column.desc_nulls_first() if field.null_order == "nulls-first" else column.desc_nulls_last()


def _partition(schema: Schema, field: PartitionField) -> Column:
    """A key that is equal for the rows of one partition. Spark treats -0.0 as 0.0, which are two partitions."""
    value = _value(schema, field)
    if schema.row_primitive(field.source_id).name in ("float", "double"):
        return F.struct(value, value.cast("string") == "-0.0")
    return value


def _value(schema: Schema, field: PartitionField | SortField) -> Column:
    """The transform of a column, computed by the code that computes the partition values of files."""
    if len(field.source_ids) > 1:
        raise Unsupported(f"distributing rows by {field.transform} of several columns")
    column_id, transform = field.source_id, field.transform
    source = schema.row_primitive(column_id)
    name, column = schema.name_of[column_id], F.col(".".join(map(quoted, schema.path_of(column_id))))
    if isinstance(transform, Identity):
        return column

    def apply(values: pa.Array) -> pa.Array:
        stored = exact_cast(values, to_arrow_type(source), name)
        return storage_of(transform_array(source, transform, stored))

    result = spark_type(transform.result_type(source), column=name)
    return F.arrow_udf(apply, result)(column)  # type: ignore[attr-defined]
