"""What callers hand over as rows: Arrow data, which this process writes, a Spark DataFrame, which executors write, or
files that executors wrote already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from engine.commit.target import Target
from engine.errors import Invalid
from engine.lazy_module import LazyModule
from engine.spec.data_file import DataFile
from engine.spec.metadata import TableMetadata
from engine.write.data_files import write_data_files

if TYPE_CHECKING:
    from engine.spark import writer as spark_writer
else:  # PySpark is loaded already where the caller has a DataFrame
    spark_writer = LazyModule("engine.spark.writer")

Rows = Any
"""A pyarrow Table, a RecordBatchReader, a `pyspark.sql.DataFrame`, whose type is at home in `engine.spark` alone, or
`WrittenRows`."""


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Rows that were written as new data files of the table; nothing refers to the files yet.

    A change that fails for certain deletes them, as it does what it wrote itself.
    """

    files: tuple[DataFile, ...]


def check_rows(data: Rows, verb: str) -> None:
    """Raise Invalid where these are no rows; `verb` is what was to be done with them."""
    if not isinstance(data, pa.Table | pa.RecordBatchReader | WrittenRows) and not is_dataframe(data):
        given = type(data).__name__
        raise Invalid(f"{verb} takes a pyarrow Table, a RecordBatchReader or a Spark DataFrame, not {given}")


def is_dataframe(data: object) -> bool:
    """Whether this is a DataFrame of Spark; told by its type's name, so that PySpark need not be loaded."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql.") for kind in type(data).__mro__
    )


def incoming_schema(data: Rows) -> pa.Schema:
    """The columns of rows that are not written yet; raises Invalid where they are."""
    if isinstance(data, WrittenRows):
        raise Invalid("files that are written already have no columns to add")
    if is_dataframe(data):
        return spark_writer.incoming_schema(data)
    schema: pa.Schema = data.schema
    return schema


def write_rows(data: Rows, metadata: TableMetadata, target: Target) -> Sequence[DataFile]:
    """Write rows as new data files; a failed write leaves nothing behind.

    Raises:
        Invalid: The rows do not fit the table.
        StorageFailed: The storage refused.
    """
    if isinstance(data, WrittenRows):
        return list(data.files)
    if is_dataframe(data):
        return spark_writer.write_dataframe(data, metadata=metadata, store=target.store, counters=target.counters)
    return write_data_files(data, metadata=metadata, store=target.store, counters=target.counters)
