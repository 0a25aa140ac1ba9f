"""Writing of one data or delete file, whatever its format."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyarrow as pa
import pyarrow.types as pat

from icebench.engine.formats.parquet.encoded_sizes import encoded_size
from icebench.engine.formats.parquet.metrics import FileMetrics
from icebench.engine.storage.store import OutputFile


class FileWriter(ABC):
    """Writes one file and returns its metrics. Rows are buffered until `flush`.

    Args:
        output: The open output; the writer closes or aborts it.
        arrow_schema: Of the batches, with field ids. Data files do not hold columns of type unknown.

    Attributes:
        waiting_bytes: Bytes of the buffered rows, before compression.
    """

    def __init__(self, output: OutputFile, arrow_schema: pa.Schema) -> None:
        self._output = output
        self._places = [i for i, f in enumerate(arrow_schema) if not pat.is_null(f.type)]
        self._arrow_schema = pa.schema([arrow_schema.field(i) for i in self._places])
        self._waiting: list[pa.RecordBatch] = []
        self.waiting_bytes = 0
        self._encoded_bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Buffer a batch, with the columns of the schema in its order."""
        columns = [self._stored(batch.column(place)) for place in self._places]
        kept = pa.RecordBatch.from_arrays(columns, schema=self._arrow_schema)
        self._measure(kept)
        self._waiting.append(kept)
        self.waiting_bytes += encoded_size(kept)

    def copy_waiting(self) -> None:
        """Copy the buffered rows, so that they keep nothing but themselves in memory."""
        if self._waiting:
            columns = [pa.concat_arrays(chunks) for chunks in zip(*(b.columns for b in self._waiting), strict=True)]
            self._waiting = [pa.RecordBatch.from_arrays(columns, schema=self._arrow_schema)]

    def flush(self) -> None:
        """Write the buffered rows, if there are any."""
        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting)
        self._encoded_bytes += self.waiting_bytes
        self._waiting, self.waiting_bytes = [], 0
        self._write(table)

    @property
    def written_bytes(self) -> int:
        """Bytes of the file so far."""
        return self._output.tell()

    @property
    def compression_ratio(self) -> float | None:
        """Bytes in the file per byte before compression, so far; None before rows are written."""
        return self._output.tell() / self._encoded_bytes if self._encoded_bytes else None

    def close(self) -> tuple[FileMetrics, int]:
        """Write the rest, make the file visible, and return its metrics and its size in bytes."""
        self.flush()
        metrics = self._finish()
        size = self._output.tell()
        self._output.close()
        return metrics, size

    def abort(self) -> None:
        """Discard the file."""
        self._waiting = []
        self._discard()
        self._output.abort()

    def _stored(self, column: pa.Array) -> pa.Array:
        """A column as it is stored."""
        return column

    @abstractmethod
    def _measure(self, batch: pa.RecordBatch) -> None:
        """Take a batch into account for the metrics."""

    @abstractmethod
    def _write(self, table: pa.Table) -> None:
        """Write rows."""

    @abstractmethod
    def _finish(self) -> FileMetrics:
        """Write what comes after the rows."""

    def _discard(self) -> None:
        """Make sure that nothing more is written."""
        return
