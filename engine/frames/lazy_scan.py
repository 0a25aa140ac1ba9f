"""What frames need of a scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

import pyarrow as pa

from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.expressions.predicate import And, Filter, Predicate, all_of
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


def pushed(scan: LazyScan, filter: Predicate) -> tuple[LazyScan, Predicate]:
    """The scan with the tests that its plan can make, and the tests that are left: of columns that readers compute,
    and all that must follow a limit."""
    left = []
    for test in filter.children if isinstance(filter, And) else (filter,):
        try:
            scan = scan.narrowed(test)
        except (Invalid, Unsupported):
            left.append(test)
    return scan, all_of(left)
