"""Writes files of one partition one after another, each up to the target size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from icebench.engine.formats.file_writer import FileWriter
from icebench.engine.formats.file_writers import WriteOptions, open_writer
from icebench.engine.formats.metrics_modes import MetricsMode
from icebench.engine.formats.parquet.encoded_sizes import encoded_size
from icebench.engine.formats.parquet.metrics import FileMetrics
from icebench.engine.runtime.local import ONE_THREAD
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.partitioning import Partition
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import SortOrder
from icebench.engine.storage.store import Store
from icebench.engine.write.read_back import GivenRows

_WORTH_A_ROW_GROUP = 0.1
"""A remainder smaller than this fraction of a row group gets no row group of its own."""


@dataclass(frozen=True, kw_only=True)
class FileFormat:
    """The properties that all files of a write share.

    Args:
        store: Where files go.
        arrow_schema: Of the batches, with field ids.
        schema: What the ids refer to.
        spec_id: The partition spec of the files.
        modes: Column id -> metrics mode.
        options: The format, and how to write it.
        target_size_bytes: The target size of a file.
        sort_order: The sort order of the rows; None if unsorted.
        content: What the files hold.
        equality_ids: Of equality-delete files.
        key_values: File metadata, where the format has any.
        compared: Columns that are read back from each new file and compared.
        runner: Encodes columns, and completes files, at the same time.

    Raises:
        Unsupported: A column that the format cannot hold.
    """

    store: Store
    arrow_schema: pa.Schema
    schema: Schema
    spec_id: int
    modes: Mapping[int, MetricsMode]
    options: WriteOptions
    target_size_bytes: int
    sort_order: SortOrder | None = None
    content: FileContent = FileContent.DATA
    equality_ids: tuple[int, ...] | None = None
    key_values: Mapping[str, str] | None = None
    compared: Schema | None = None
    runner: Runner = ONE_THREAD

    def __post_init__(self) -> None:
        self.options.check(self.schema)


class RollingWriter:
    """Writes batches of one partition to files of the target size.

    Args:
        format: What the files share.
        partition: The partition tuple of all rows.
        next_location: Returns the location of each new file.
    """

    def __init__(self, format: FileFormat, partition: Partition, next_location: Callable[[], str]) -> None:
        self._format = format
        self._partition = partition
        self._next_location = next_location
        # Not another partition's: where its rows compress better, the first file would be far too large.
        self._expected_ratio = 1.0
        self._writer: FileWriter | None = None
        self._given: GivenRows | None = None
        self._location = ""
        self._given_bytes = 0  # to the current file, before compression
        self.files: list[DataFile] = []

    @property
    def waiting_bytes(self) -> int:
        """Bytes of buffered rows."""
        return 0 if self._writer is None else self._writer.waiting_bytes

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; row groups and files are closed as they fill."""
        rest = batch
        while rest.num_rows:
            writer = self._open()
            room = self._row_group_size(writer) - writer.waiting_bytes
            size = max(encoded_size(rest), 1)
            if size <= room:
                self._add(writer, rest)
                self._given_bytes += size
                return
            rows = min(max(int(rest.num_rows * max(room, 0) / size), 1), rest.num_rows)
            self._add(writer, rest.slice(0, rows))
            self._given_bytes += size * rows // rest.num_rows
            rest = rest.slice(rows)
            self.flush()

    def _add(self, writer: FileWriter, batch: pa.RecordBatch) -> None:
        if self._given is not None:
            self._given.add(batch, self._format.arrow_schema)
        writer.add(batch)

    def _open(self) -> FileWriter:
        if self._writer is None:
            f = self._format
            self._location = self._next_location()
            self._given_bytes = 0
            self._given = None if f.compared is None else GivenRows(f.compared)
            self._writer = open_writer(
                f.store.open_output(self._location),
                f.arrow_schema,
                f.schema,
                modes=f.modes,
                options=f.options,
                sort_order=f.sort_order,
                key_values=f.key_values,
                runner=f.runner,
            )
        return self._writer

    def _row_group_size(self, writer: FileWriter) -> float:
        """The size of the current row group, before compression, that keeps the file within its target."""
        left = max(self._format.target_size_bytes - writer.written_bytes, 0)
        return self._encoded_bytes(left, writer)

    def _encoded_bytes(self, file_bytes: int, writer: FileWriter) -> float:
        """What becomes that many bytes of the file, as far as one row group goes."""
        return min(self._format.options.row_group_size_bytes, file_bytes / self._ratio(writer))

    def _ratio(self, writer: FileWriter) -> float:
        """Bytes in the file per byte before compression, as this file has them, or else the last one had."""
        return writer.compression_ratio or self._expected_ratio

    def copy_waiting(self) -> None:
        """As `FileWriter.copy_waiting`."""
        if self._writer is not None:
            self._writer.copy_waiting()

    def flush(self) -> None:
        """Write the buffered rows as a row group, and close the file if it is full."""
        if self._writer is None:
            return
        self._writer.flush()
        full_group = self._encoded_bytes(self._format.target_size_bytes, self._writer)
        if self._row_group_size(self._writer) < _WORTH_A_ROW_GROUP * full_group:
            ratio = self._writer.compression_ratio
            self.end_file()
            self._expected_ratio = ratio or self.files[-1].file_size_in_bytes / max(self._given_bytes, 1)

    def end_file(self) -> None:
        """Close the current file, if any, which makes it visible, and read it back where the format says so.

        Raises:
            WriteMismatch: It holds other rows than were given; it is the last of `files`.
        """
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        try:
            metrics, size_bytes = writer.close()
        except BaseException:
            writer.abort()
            raise
        self.files.append(describe_file(self._format, self._location, self._partition, metrics, size_bytes))
        if self._given is not None:
            self._given.compare(self._format.store, self._location, file_format=self._format.options.file_format)

    def abort(self) -> None:
        """Discard the current file; the caller removes closed ones."""
        if self._writer is not None:
            self._writer.abort()
            self._writer = None


def describe_file(
    format: FileFormat, location: str, partition: Partition, metrics: FileMetrics, size_bytes: int
) -> DataFile:
    """The manifest's description of a written file."""
    return DataFile(
        content=format.content,
        file_path=location,
        file_format=format.options.file_format,
        spec_id=format.spec_id,
        partition=partition,
        record_count=metrics.record_count,
        file_size_in_bytes=size_bytes,
        column_sizes=metrics.column_sizes,
        value_counts=metrics.value_counts,
        null_value_counts=metrics.null_value_counts,
        nan_value_counts=metrics.nan_value_counts,
        lower_bounds=metrics.lower_bounds,
        upper_bounds=metrics.upper_bounds,
        split_offsets=metrics.split_offsets or None,
        equality_ids=format.equality_ids,
        sort_order_id=format.sort_order.order_id if format.sort_order is not None else None,
    )
