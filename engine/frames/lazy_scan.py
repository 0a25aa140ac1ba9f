"""What frames need of a scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

import pyarrow as pa

from icebench.engine.expressions.predicate import Filter
from icebench.engine.spec.schema import Schema


class LazyScan(Protocol):
    """A scan that frames narrow; `icebench.Scan` is one."""

    @property
    def schema(self) -> Schema:
        """The columns of the result."""
        ...

    @property
    def arrow_schema(self) -> pa.Schema:
        """They in Arrow."""
        ...

    @property
    def is_limited(self) -> bool:
        """Whether it stops after some rows, so that no filter may come before that."""
        ...

    def narrowed(
        self, filter: Filter | None = None, columns: Sequence[str] | None = None, *, limit: int | None = None
    ) -> Self:
        """The scan with a further filter, only these top-level columns, and no more rows than `limit`.

        Raises:
            Invalid, Unsupported: The filter is none of the engine's, or would have to follow a limit.
        """
        ...

    def to_batches(self, *, batch_rows: int | None = None) -> pa.RecordBatchReader:
        """Stream the rows."""
        ...
