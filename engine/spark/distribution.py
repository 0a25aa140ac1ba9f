"""Distribution of rows over Spark's tasks before they are written (table property ``write.distribution-mode``).

``none`` (the default here) writes rows in the tasks where they are: no shuffle, and every task may write to every
partition. ``hash`` shuffles the rows of a partition to one task. ``range`` additionally shuffles by the sort order, so
that the bounds of files hardly overlap. With either, rows are sorted within a task, which has one file open at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Numbered:
    """Rows whose columns have numbers for names.

    Args:
        names: The columns' own names, in which upper and lower case differ.
        rows: The rows, with `column_name` of each place.
    """

    names: Sequence[str]
    rows: DataFrame

    def column(self, path: Sequence[str]) -> Column | None:
        """A column, or a field in it; None where the rows do not have it."""
        if path[0] not in self.names:
            return None
        return F.col(".".join([column_name(self.names.index(path[0])), *map(quoted, path[1:])]))


def column_name(place: int) -> str:
    """What the column of a place is called."""
    return f"c{place}"


def distributed(given: Numbered, mode: str, schema: Schema, spec: PartitionSpec, order: SortOrder) -> DataFrame:
    """The rows in one task per partition at least (`hash`), or in ranges (`range`), sorted by partition and sort order.

    Rows are returned unchanged for `none`, and for a table that has neither partitions nor, for `range`, a sort order.

    Raises:
        Unsupported: A transform of several columns.
    """
    # What became void is null in all rows, and its source may be gone.
    parts = [f for f in spec.fields if not isinstance(f.transform, Void)]
    if mode == "none" or not (parts or (mode == "range" and order.fields)):
        return given.rows
    partitions = [_partition(given, schema, f).alias(_PARTITION.format(i)) for i, f in enumerate(parts)]
    keys = [_value(given, schema, f).alias(_KEY.format(i)) for i, f in enumerate(order.fields)]
    names = given.rows.columns
    wide = given.rows.select("*", *partitions, *keys)
    by_partition = [F.col(_PARTITION.format(i)).asc_nulls_first() for i in range(len(partitions))]
    by_key = [_ordered(F.col(_KEY.format(i)), f) for i, f in enumerate(order.fields)]
    if mode == "hash":
        spread = wide.repartition(*[F.col(_PARTITION.format(i)) for i in range(len(partitions))])
    else:
        spread = wide.repartitionByRange(*by_partition, *by_key)
    return spread.sortWithinPartitions(*by_partition, *by_key).select(*names)


def _ordered(column: Column, field: SortField) -> Column:
    if field.direction == "asc":
        return column.asc_nulls_first() if field.null_order == "nulls-first" else column.asc_nulls_last()
    return column.desc_nulls_first() if field.null_order == "nulls-first" else column.desc_nulls_last()


def _partition(given: Numbered, schema: Schema, field: PartitionField) -> Column:
    """A key that is equal for the rows of one partition. Spark treats -0.0 as 0.0, which are two partitions."""
    value = _value(given, schema, field)
    if schema.row_primitive(field.source_id).name in ("float", "double"):
        return F.struct(value, value.cast("string") == "-0.0")
    return value


def _value(given: Numbered, schema: Schema, field: PartitionField | SortField) -> Column:
    """The transform of a column, computed by the code that computes the partition values of files; null where the rows
    do not have the column, which then has one value in all of them."""
    if len(field.source_ids) > 1:
        raise Unsupported(f"distributing rows by {field.transform} of several columns")
    column_id, transform = field.source_id, field.transform
    source = schema.row_primitive(column_id)
    name, column = schema.name_of[column_id], given.column(schema.path_of(column_id))
    if column is None:
        return F.lit(None).cast(spark_type(transform.result_type(source), column=name))
    if isinstance(transform, Identity):
        return column

    def apply(values: pa.Array) -> pa.Array:
        stored = exact_cast(values, to_arrow_type(source), name)
        return storage_of(transform_array(source, transform, stored))

    result = spark_type(transform.result_type(source), column=name)
    return F.arrow_udf(apply, result)(column)  # type: ignore[attr-defined]
