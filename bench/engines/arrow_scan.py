"""What engines share that give Arrow record batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic

import pyarrow as pa

from icebench.bench.engines.checksum import Checksum, checksum_of
from icebench.bench.engines.engine import Filter, Handle


class ArrowScans(Generic[Handle, Filter]):
    """The scans of an engine, by its batches."""

    def batches(self, handle: Handle, columns: Sequence[str], filter: Filter) -> Iterable[pa.RecordBatch]:
        """The live rows that the filter keeps."""
        raise NotImplementedError

    def scan(self, handle: Handle, columns: Sequence[str], filter: Filter) -> None:
        for _ in self.batches(handle, columns, filter):
            pass

    def checksum(self, handle: Handle, columns: Sequence[str], filter: Filter) -> Checksum:
        return checksum_of(self.batches(handle, columns, filter), columns)
