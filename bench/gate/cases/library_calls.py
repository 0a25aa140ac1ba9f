"""Counts the work of the libraries below the engine, where nothing in the engine can hide it.

The engine's own counters say what it means to do. This counts what the libraries were asked for: the column chunks that
pyarrow decodes, their values and inflated bytes, the memory of Arrow's pool, all calls of functions, which is what a
loop too many costs, and those that sleep. Work is done on one processor and without garbage collection, so that calls
and memory repeat.
"""

from __future__ import annotations

import cProfile
import ctypes
import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

FOOTERS_PARSED = "parquet_footers_parsed"
CHUNKS_DECODED = "parquet_column_chunks_decoded"
VALUES_DECODED = "parquet_values_decoded"
BYTES_INFLATED = "parquet_bytes_inflated"
ARROW_PEAK = "arrow_bytes_peak"
ARROW_ALLOCATED = "arrow_bytes_allocated"
CALLS = "function_calls"
SLEEPS = "sleeps"
FILE_CALLS = "file_system_calls"
_FILE_EVENTS = frozenset({"open", "os.listdir", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.scandir"})


@contextmanager
def probed() -> Iterator[Counter[str]]:
    """Context of the work to count; the counts are complete at its end. Not for several threads at once."""
    counted = Counter(dict.fromkeys((FOOTERS_PARSED, CHUNKS_DECODED, VALUES_DECODED, BYTES_INFLATED), 0))
    with ExitStack() as stack:
        stack.enter_context(_without_collection())
        stack.enter_context(_parquet(counted))
        stack.enter_context(_arrow_memory(counted))
        stack.enter_context(_file_calls(counted))
        stack.enter_context(_calls(counted))
        yield counted


@contextmanager
def one_processor() -> Iterator[None]:
    """Context of one processor, for a case from its preparation on: a table decides then how many threads it will use.
    On one, the order of work is always the same, and calls of all work are seen, as a profile sees one thread."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def _without_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def _arrow_memory(counted: Counter[str]) -> Iterator[None]:
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    # Never freed, not even when the process ends: what was allocated from a pool may outlive all of Python's objects.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(pool))
    pa.set_memory_pool(pool)
    try:
        yield
    finally:
        pa.set_memory_pool(before)
        counted[ARROW_PEAK] = pool.max_memory()
        counted[ARROW_ALLOCATED] = pool.total_bytes_allocated()


@contextmanager
def _calls(counted: Counter[str]) -> Iterator[None]:
    profile = cProfile.Profile()
    profile.enable()
    try:
        yield
    finally:
        profile.disable()
        entries = profile.getstats()
        counted[CALLS] = sum(entry.callcount for entry in entries)
        if sleeps := sum(entry.callcount for entry in entries if entry.code == "<built-in method time.sleep>"):
            counted[SLEEPS] = sleeps


class _Watched:
    """Where calls of the file system are counted now; a hook cannot be taken out again."""

    counted: Counter[str] | None = None
    is_hooked = False


@contextmanager
def _file_calls(counted: Counter[str]) -> Iterator[None]:
    """Counts what Python asks of the file system: the catalog's own requests, too."""

    def note(event: str, _: object) -> None:
        if _Watched.counted is not None and event in _FILE_EVENTS:
            _Watched.counted[FILE_CALLS] += 1

    if not _Watched.is_hooked:
        sys.addaudithook(note)
        _Watched.is_hooked = True
    counted[FILE_CALLS] = 0
    _Watched.counted = counted
    try:
        yield
    finally:
        _Watched.counted = None


@contextmanager
def _parquet(counted: Counter[str]) -> Iterator[None]:
    file, parse = pq.ParquetFile, pq.read_metadata

    class Counted(file):  # type: ignore[misc, valid-type]
        def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - whatever pyarrow takes
            counted[FOOTERS_PARSED] += options.get("metadata") is None
            super().__init__(*arguments, **options)
            self.reader: _Reader = _Reader(self.reader, self.metadata, counted)

    def counting_parse(*arguments: Any, **options: Any) -> pq.FileMetaData:  # noqa: ANN401 - whatever pyarrow takes
        counted[FOOTERS_PARSED] += 1
        return parse(*arguments, **options)

    pq.ParquetFile, pq.read_metadata = Counted, counting_parse
    try:
        yield
    finally:
        pq.ParquetFile, pq.read_metadata = file, parse


class _Reader:
    """pyarrow's reader of one file, counted."""

    def __init__(self, reader: Any, footer: pq.FileMetaData, counted: Counter[str]) -> None:  # noqa: ANN401 - untyped
        self._reader = reader
        self._footer = footer
        self._counted = counted

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of pyarrow
        return getattr(self._reader, name)

    def read_row_group(self, row_group: int, column_indices: Sequence[int] | None = None, **options: Any) -> pa.Table:  # noqa: ANN401 - as pyarrow
        table = self._reader.read_row_group(row_group, column_indices=column_indices, **options)
        self._decoded(row_group, column_indices, table.num_rows, begins=True)
        return table

    def iter_batches(
        self,
        batch_size: int,
        row_groups: Sequence[int],
        column_indices: Sequence[int] | None = None,
        **options: Any,  # noqa: ANN401 - whatever pyarrow takes
    ) -> Iterator[pa.RecordBatch]:
        begins = True
        for batch in self._reader.iter_batches(
            batch_size, row_groups=row_groups, column_indices=column_indices, **options
        ):
            self._decoded(row_groups[0], column_indices, batch.num_rows, begins=begins)
            begins = False
            yield batch

    def _decoded(self, row_group: int, leaves: Sequence[int] | None, rows: int, *, begins: bool) -> None:
        """Count rows of some leaves: of their chunks, so much as the rows are of the row group's."""
        group = self._footer.row_group(row_group)
        chosen = range(group.num_columns) if leaves is None else leaves
        sizes = sum(group.column(leaf).total_uncompressed_size for leaf in chosen)
        self._counted[CHUNKS_DECODED] += len(chosen) if begins else 0
        self._counted[VALUES_DECODED] += rows * len(chosen)
        self._counted[BYTES_INFLATED] += sizes * rows // max(1, group.num_rows)
