"""A pool of pyarrow's readers of one Parquet file, which are not thread-safe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

import pyarrow as pa
import pyarrow.parquet as pq

from icebench.engine.formats.parquet.chunk_storage import chunk_storages
from icebench.engine.formats.parquet.footer_bytes import footer_file
from icebench.engine.formats.parquet.narrow_footer import narrow_footer

BUFFER_BYTES = 24 << 20
"""Buffered compressed bytes of all columns of a large row group."""
_LEAST_BUFFER_BYTES, _MOST_BUFFER_BYTES = 64 << 10, 2 << 20
"""Limits of the buffer of each column; the lower one keeps requests few."""


_AS_DICTIONARIES = frozenset({"plain", "plain_dictionary", "rle_dictionary", "rle", "bit_packed"})
"""Encodings that pyarrow decodes as dictionaries; of differences between texts it raises OSError."""


class ParquetReaders:
    """Readers of an open file. Creating one for a wide file takes milliseconds, so idle ones are reused.

    Args:
        file: The file, which threads may share.
        footer: Its footer (see `icebench.engine.formats.parquet.footer_bytes`); None to let pyarrow read it, which is
            faster where the file is in memory.
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
        self._dictionaries: list[str] = []
        if dictionaries and footer is not None and metadata is not None:
            known = _decodable_as_dictionaries(footer, metadata.schema.names)
            self._dictionaries = [name for name in dictionaries if name in known]
        self._in_memory = in_memory
        self._lock = Lock()
        self._narrow: pq.FileMetaData | None = None
        self._narrow_made = False
        first = self._open(metadata, 0)
        self.footer: pq.FileMetaData = first.metadata
        self.schema: pa.Schema = first.schema_arrow
        self._idle: dict[tuple[bool, int], list[pq.ParquetFile]] = {(False, 0): [first]}

    def read(self, row_group: int, leaves: Sequence[int], *, narrow: bool, threads: bool = False) -> pa.Table:
        """Read leaves of a whole row group.

        Args:
            row_group: Its index.
            leaves: Their numbers, ascending.
            narrow: Decode decimals of up to 18 digits narrow, where that is possible.
            threads: Decode columns on several threads.
        """
        with self._reader(narrow=narrow, buffer_bytes=0) as file:
            return file.reader.read_row_group(row_group, column_indices=list(leaves), use_threads=threads)

    def batches(
        self, row_group: int, leaves: Sequence[int], *, rows: int, narrow: bool, at_once: bool, threads: bool
    ) -> Iterator[pa.RecordBatch]:
        """Read leaves of a row group in batches of at most `rows` rows, decoded as they are consumed.

        Args:
            row_group: Its index.
            leaves: Their numbers, ascending.
            rows: At least 1.
            narrow: As `read`.
            at_once: Fetch their bytes before the first batch, by few requests; otherwise as they are decoded.
            threads: Decode columns on several threads.
        """
        share = BUFFER_BYTES // len(leaves)
        size = min(max(share, _LEAST_BUFFER_BYTES), _MOST_BUFFER_BYTES) if not (at_once or self._in_memory) else 0
        with self._reader(narrow=narrow, buffer_bytes=size) as file:
            yield from file.reader.iter_batches(
                rows, row_groups=[row_group], column_indices=list(leaves), use_threads=threads
            )

    @contextmanager
    def _reader(self, *, narrow: bool, buffer_bytes: int) -> Iterator[pq.ParquetFile]:
        footer = self._narrow_footer if narrow else None
        key = footer is not None, buffer_bytes
        with self._lock:
            idle = self._idle.setdefault(key, [])
            found = idle.pop() if idle else None
        if found is None:
            found = self._open(footer or self.footer, buffer_bytes)
        yield found
        # A reader that failed or was left inside a row group is not reused.
        with self._lock:
            idle.append(found)

    def _open(self, footer: pq.FileMetaData | None, buffer_bytes: int) -> pq.ParquetFile:
        return pq.ParquetFile(
            self._file,
            metadata=footer,
            read_dictionary=self._dictionaries,
            # The column chunks of a row group are fetched by few requests, near ones by one.
            pre_buffer=not self._in_memory and not buffer_bytes,
            buffer_size=buffer_bytes,
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        )

    @property
    def _narrow_footer(self) -> pq.FileMetaData | None:
        """The footer for narrow decimals, created when the first decimal is read."""
        with self._lock:
            if not self._narrow_made:
                self._narrow, self._narrow_made = narrow_footer(self.footer), True
            return self._narrow

    def close(self) -> None:
        """Release the file."""
        with self._lock:
            self._idle.clear()


def _decodable_as_dictionaries(footer: bytes, leaves: Sequence[str]) -> set[str]:
    """Names among those of the leaves. pyarrow takes no name that the file does not have, and columns are found by
    their ids. Its objects of column chunks are not asked: they end the process where a footer is damaged."""
    others = {chunk.leaf for chunk in chunk_storages(footer) if not _AS_DICTIONARIES.issuperset(chunk.encodings)}
    return {name for leaf, name in enumerate(leaves) if leaf not in others}
