"""pyarrow's readers of one Parquet file, of which each thread needs one for itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

import pyarrow as pa
import pyarrow.parquet as pq

from engine.columnar.decimals import narrow_footer
from engine.columnar.parquet_bytes import FetchedBytes, Window, footer_file


class ParquetReaders:
    """Readers of an open file; making one for a wide file takes milliseconds, so those that are idle are kept.

    Args:
        file: The file, which threads may share.
        footer: Its footer, as `engine.columnar.parquet_bytes.footer_bytes` finds it; None for pyarrow to look.
        dictionaries: Text columns, by name, to decode as Arrow dictionaries, if there are any.
        in_memory: Whether the file is in memory already.

    Attributes:
        footer: The file's.
        schema: Its columns, as they are read.
    """

    def __init__(
        self, file: pa.NativeFile, footer: bytes | None, dictionaries: Sequence[str], *, in_memory: bool
    ) -> None:
        self._file = file
        metadata = None if footer is None else pq.read_metadata(footer_file(footer))
        # pyarrow takes no name that the file does not have, and columns are told by their ids.
        known = metadata.schema.names if dictionaries and metadata is not None else ()
        self._dictionaries = [name for name in dictionaries if name in known]
        self._in_memory = in_memory
        self._lock = Lock()
        self._narrow: pq.FileMetaData | None = None
        self._narrow_made = False
        first = self._open(file, metadata)
        self.footer: pq.FileMetaData = first.metadata
        self.schema: pa.Schema = first.schema_arrow
        self._idle: dict[tuple[bool, bool], list[tuple[pq.ParquetFile, Window | None]]] = {
            (False, False): [(first, None)]
        }

    def read(self, row_group: int, leaves: Sequence[int], *, narrow: bool, fetched: FetchedBytes | None) -> pa.Table:
        """Leaves of a row group.

        Args:
            row_group: Its index.
            leaves: Their numbers, ascending.
            narrow: Decode decimals of up to 18 digits narrow, where that is possible.
            fetched: Where the bytes of their column chunks are; by default they are fetched from the file.
        """
        footer = self._narrow_footer if narrow else None
        with self._reader(footer, windowed=fetched is not None and not self._in_memory) as (file, window):
            if window is not None and fetched is not None:
                window.fetched = fetched
            return file.reader.read_row_group(row_group, column_indices=list(leaves), use_threads=False)

    @contextmanager
    def _reader(
        self, narrow: pq.FileMetaData | None, *, windowed: bool
    ) -> Iterator[tuple[pq.ParquetFile, Window | None]]:
        key = narrow is not None, windowed
        with self._lock:
            idle = self._idle.setdefault(key, [])
            found = idle.pop() if idle else None
        if found is None:
            window = Window(self._file.size()) if windowed else None
            found = self._open(window or self._file, narrow or self.footer), window
        yield found
        if found[1] is not None:
            found[1].fetched = FetchedBytes({})
        with self._lock:
            idle.append(found)

    def _open(self, file: pa.NativeFile | Window, footer: pq.FileMetaData | None) -> pq.ParquetFile:
        return pq.ParquetFile(
            file,
            metadata=footer,
            read_dictionary=self._dictionaries,
            # The column chunks of a row group are fetched by few requests, near ones by one.
            pre_buffer=not self._in_memory and not isinstance(file, Window),
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        )

    @property
    def _narrow_footer(self) -> pq.FileMetaData | None:
        """The footer for decoding decimals, made once, when the first decimal is wanted."""
        with self._lock:
            if not self._narrow_made:
                self._narrow, self._narrow_made = narrow_footer(self.footer), True
            return self._narrow

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._idle.clear()
