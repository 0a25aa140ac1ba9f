"""What engines wrote, read by another engine where there is one."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.parquet as pq

from icebench.bench.engines.checksum import Checksum, checksum_of
from icebench.bench.engines.engine import Writing
from icebench.bench.execution.trial import Bench

_READERS = ("pyiceberg", "icebench")
"""Who reads what another engine wrote, the first that is there."""


def read_back(writer: Writing, written: str, columns: Sequence[str], bench: Bench) -> Checksum:
    """The checksum of what a writer has written.

    Args:
        writer: Who wrote it, and reads it where nobody else can.
        written: The table's metadata file, or the Parquet file of a writer of no tables.
        columns: Those that are read.
        bench: Has the engines.
    """
    if not writer.writes_tables:
        with pq.ParquetFile(written) as file:
            return checksum_of(file.iter_batches(), columns)
    readers = [bench.engines[name] for name in _READERS if name in bench.engines and name != writer.name]
    reader = (*readers, bench.engines[writer.name])[0]
    handle = reader.open(written)
    return reader.checksum(handle, columns, reader.compile(handle, None))
