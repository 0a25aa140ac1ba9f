"""Rows by ranges in temporary files: what is sorted and does not fit into memory is partitioned, then sorted by range.

The files are streams of Arrow IPC: they are written once, read once, and removed, so that encoding them costs more than
it saves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader, RawIOBase
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebench.engine.errors import EngineError, StorageFailed
from icebench.engine.storage.failures import translate_errors
from icebench.engine.storage.store import OutputFile, Store
from icebench.engine.write.locations import FileNames

MOST_RANGES = 200
"""Files that are open for writing at a time."""
_PIECE_BYTES = 4 << 20
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


class RangeFiles:
    """Temporary files of rows, each of one range.

    Args:
        store: Where they are.
        directory: The location of their directory.
        ranges: How many ranges there are, at most `MOST_RANGES`.
        waiting_bytes: How many bytes of rows wait in memory before all are written.
        names: Unique names for the files; by default from a random id.
    """

    def __init__(
        self, store: Store, directory: str, *, ranges: int, waiting_bytes: int, names: FileNames | None = None
    ) -> None:
        self._store = store
        self._directory = directory
        self._names = names or FileNames()
        self._waiting_bytes = waiting_bytes
        self._waiting: list[list[pa.RecordBatch]] = [[] for _ in range(ranges)]
        self._waiting_size = 0
        self._rows = np.zeros(ranges, np.int64)
        self._locations: dict[int, str] = {}
        self._open: dict[int, tuple[Any, OutputFile]] = {}

    def add(self, batch: pa.RecordBatch, ranges: npt.NDArray[np.int64]) -> None:
        """Add rows; `ranges` has the number of the range of each."""
        order = np.argsort(ranges, kind="stable")
        numbers, starts = np.unique(ranges[order], return_index=True)
        ordered = batch.take(pa.array(order))
        for number, start, end in zip(numbers, starts, [*starts[1:], len(order)], strict=True):
            self._waiting[number].append(ordered.slice(start, end - start))
            self._rows[number] += end - start
        self._waiting_size += ordered.nbytes
        # All at once: a slice that waits keeps the memory of its whole batch.
        if self._waiting_size >= self._waiting_bytes:
            self._write()

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """How many rows each range has."""
        return self._rows

    def finish(self) -> None:
        """Write what waits."""
        self._write()
        for number, (writer, output) in list(self._open.items()):
            with translate_errors("write", self._locations[number]):
                writer.close()
                output.close()
            del self._open[number]

    def read(self, number: int) -> pa.Table:
        """The rows of a range that has some, in the order in which they were added; raises as `batches`."""
        return pa.Table.from_batches(list(self.batches(number)))

    def batches(self, number: int) -> Iterator[pa.RecordBatch]:
        """The same rows, a few at a time.

        Raises:
            StorageFailed: The file cannot be read, or has fewer rows than were written: a stream may end at any batch.
        """
        location, count = self._locations[number], 0
        pieces = BufferedReader(_StoredBytes(self._store, location), _PIECE_BYTES)
        with pieces as file:
            with translate_errors("read", location):
                stream = pa.ipc.open_stream(file)
            while True:
                with translate_errors("read", location):
                    batch = next(stream, None)
                if batch is None:
                    break
                count += batch.num_rows
                yield batch
        if count != self._rows[number]:
            raise StorageFailed(f"{location}: {count} of {self._rows[number]} rows are left")

    def remove(self) -> None:
        """Remove all files; those that cannot be removed are left to orphan removal."""
        for _, output in self._open.values():
            output.abort()
        self._open.clear()
        for location in self._locations.values():
            with suppress(EngineError):
                self._store.delete(location)

    def _write(self) -> None:
        for number, slices in enumerate(self._waiting):
            if slices:
                batch = pa.concat_batches(slices)
                writer = self._writer_of(number, batch.schema)
                with translate_errors("write", self._locations[number]):
                    writer.write_batch(batch)
                slices.clear()
        self._waiting_size = 0

    def _writer_of(self, number: int, schema: pa.Schema) -> Any:  # noqa: ANN401 - pyarrow has no types
        if number not in self._open:
            location = f"{self._directory}/{self._names.name(len(self._locations) + 1, extension='arrow')}"
            output = self._store.open_output(location)
            self._locations[number] = location
            self._open[number] = pa.ipc.new_stream(output, schema, options=_OPTIONS), output
        return self._open[number][0]


class _StoredBytes(RawIOBase):
    """The bytes of a file, each piece of them by a read of the store: one that fails for the moment is repeated."""

    def __init__(self, store: Store, location: str) -> None:
        super().__init__()
        self._store, self._location, self._position = store, location, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:  # noqa: ANN401 - any writable bytes
        data = self._store.read(self._location, self._position, len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)
