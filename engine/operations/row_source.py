"""Rows that callers pass: Arrow data and frames of other libraries, which this process writes; a Spark DataFrame, which
executors write; or files that executors have written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from icebench.engine.commit.one_table import check_same_table
from icebench.engine.commit.target import Target
from icebench.engine.commit.written_for import WrittenFor
from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.lazy_module import LazyModule
from icebench.engine.runtime.progress import Counted, OnStep
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.schema import Schema
from icebench.engine.write.data_files import write_data_files

if TYPE_CHECKING:
    from icebench.engine.spark import frame_writer
else:  # PySpark is loaded already where the caller has a DataFrame
    frame_writer = LazyModule("icebench.engine.spark.frame_writer")

Rows = Any
"""A pyarrow Table, a RecordBatchReader, a `pandas.DataFrame`, whatever gives an Arrow stream (`__arrow_c_stream__`: a
DataFrame of Polars, a relation of DuckDB), a `pyspark.sql.DataFrame`, whose type only `icebench.engine.spark` imports,
or `WrittenRows`."""


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Rows that are written as new data files, which nothing refers to yet.

    A change that certainly failed deletes them, like its own files.

    Args:
        files: The files.
        table_uuid: The table that they were written for; empty if it has no uuid, or if any table may have them.
        schema: Its schema then; None if any fits.
    """

    files: tuple[DataFile, ...]
    table_uuid: str = ""
    schema: Schema | None = None


def rows_of(data: Rows, verb: str) -> Rows:
    """The rows as Arrow data, unless executors write them or have written them; `verb` names the operation.

    Raises:
        Invalid: These are not rows.
    """
    if isinstance(data, WrittenRows) or is_dataframe(data):
        return data
    return arrow_rows(data, verb, "rows or a Spark DataFrame")


class CountedRows:
    """Rows that report how many of them were consumed.

    Attributes:
        data: The same rows: a stream reports its batches; a table stays one, as it is sorted before it is written.
    """

    def __init__(self, data: Rows, verb: str, progress: OnStep) -> None:
        self._verb, self._progress, self._done = verb, progress, 0
        self.data = data
        if isinstance(data, pa.RecordBatchReader):
            self.data = pa.RecordBatchReader.from_batches(data.schema, self._batches(data))
        else:
            self._report(data.num_rows)
            self._done = data.num_rows

    def finish(self) -> None:
        """Report that all are done."""
        self._report(self._done)

    def _batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        for batch in reader:
            yield batch  # it is done when the next one is requested
            self._done += batch.num_rows
            self._report(None)

    def _report(self, total: int | None) -> None:
        self._progress(Counted(what=self._verb, unit="rows", done=self._done, total=total))


def counted_rows(data: Rows, verb: str, progress: OnStep) -> CountedRows:
    """Report the rows of a stream or table; raises Unsupported for rows that executors write."""
    if not isinstance(data, pa.Table | pa.RecordBatchReader):
        raise Unsupported(f"progress of {verb} on executors, whose work Spark shows itself")
    return CountedRows(data, verb, progress)


def arrow_rows(data: object, verb: str, wanted: str = "rows") -> pa.Table | pa.RecordBatchReader:
    """The rows as Arrow data; raises Invalid for anything that has none, and for frames that Arrow cannot hold."""
    if isinstance(data, pa.Table | pa.RecordBatchReader):
        return data
    if _is_frame(data, "pandas"):
        return _from_pandas(data, verb)
    if hasattr(data, "__arrow_c_stream__"):
        try:
            return pa.RecordBatchReader.from_stream(data)
        except pa.ArrowInvalid as error:  # a stream of one array without a name, as a series is
            raise Invalid(f"{verb} of {type(data).__name__}, which is no stream of rows: {error}") from error
    raise Invalid(
        f"{verb} takes {wanted}: a pyarrow Table or RecordBatchReader, a frame of pandas or Polars, a relation of "
        f"DuckDB, or another source of an Arrow stream, not {type(data).__name__}"
    )


def _from_pandas(data: object, verb: str) -> pa.Table:
    try:
        return pa.Table.from_pandas(data, preserve_index=False)
    except (ValueError, TypeError, OverflowError, pa.ArrowNotImplementedError) as error:
        # Arrow's own errors name the column last, after what is wrong with its values.
        found = ": ".join(map(str, reversed(error.args))) if isinstance(error, pa.ArrowException) else error
        raise Invalid(f"{verb} of a frame that has no Arrow form: {found}") from error


def is_dataframe(data: object) -> bool:
    """Whether this is a DataFrame of Spark."""
    return _is_frame(data, "pyspark.sql.")


def _is_frame(data: object, module: str) -> bool:
    """Whether this is a DataFrame of a library, by the name of its type: the library need not be imported."""
    return any(kind.__name__ == "DataFrame" and kind.__module__.startswith(module) for kind in type(data).__mro__)


def incoming_schema(data: Rows) -> pa.Schema:
    """The columns of rows that are not yet written; raises Invalid for others."""
    if isinstance(data, WrittenRows):
        raise Invalid("files that are written already have no columns to add")
    if is_dataframe(data):
        return frame_writer.incoming_schema(data)
    schema: pa.Schema = data.schema
    return schema


def write_rows(data: Rows, metadata: TableMetadata, target: Target) -> Sequence[DataFile]:
    """Write rows as new data files; leaves no files if it fails.

    Raises:
        Invalid: The rows do not fit the table.
        ValidationFailed: `WrittenRows` that were written for another table, or another schema that they do not fit.
        StorageFailed: The storage refused.
    """
    if isinstance(data, WrittenRows):
        check_same_table(target.identifier, metadata, data.table_uuid)
        if data.schema is not None:
            WrittenFor(schema=data.schema).check(metadata)
        return list(data.files)
    if is_dataframe(data):
        return frame_writer.write_dataframe(data, metadata=metadata, store=target.store, counters=target.counters)
    return write_data_files(data, metadata=metadata, store=target.store, counters=target.counters, runner=target.runner)
