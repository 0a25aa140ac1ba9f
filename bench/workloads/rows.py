"""What a workload of rows is to the harness, whatever makes the rows: its columns, its raw files, and rows to delete.

Layouts are built from the raw files, and the oracle reads them; nothing else of a workload is seen by either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import SparkSession

SPREADS = ("random", "clustered", "first")
"""Which rows a delete takes: some everywhere, consecutive ones from the middle, or the first ones, in arrival order."""


@dataclass(frozen=True, kw_only=True)
class KeyRange:
    """Rows whose `column`, a whole number, is in `start` to `stop`, exclusive."""

    column: str
    start: int
    stop: int

    @property
    def filter(self) -> str:
        """The rows as SQL."""
        return f"{self.column} >= {self.start} and {self.column} < {self.stop}"

    def split(self, parts: int) -> list[KeyRange]:
        """The same keys in so many ranges, or one a key where there are fewer keys."""
        parts = max(1, min(parts, self.stop - self.start))
        bounds = [self.start + (self.stop - self.start) * part // parts for part in range(parts + 1)]
        return [KeyRange(column=self.column, start=first, stop=stop) for first, stop in pairwise(bounds)]


class Rows(Protocol):
    """The rows of a workload: a frozen dataclass whose fields decide them."""

    @property
    def name(self) -> str:
        """The workload's name in every case."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """Columns of the rows, as every layout has them."""
        ...

    @property
    def filters(self) -> Mapping[str, str]:
        """Default filters, SQL by name; a definition's own replace them."""
        ...

    def key(self) -> dict[str, Any]:
        """JSON values that decide the rows; with the digest of the sources, the key of the cached raw files."""
        ...

    def write_raw(self, folder: Path, spark: Callable[[], SparkSession]) -> list[Path]:
        """Write the rows in arrival order, as Parquet files of consecutive rows, into an existing directory.

        Returns:
            The files, in order.
        """
        ...

    def delete_keys(self, share: float, spread: str) -> KeyRange:
        """Rows to delete: about `share` of all, spread by one of `SPREADS`."""
        ...

    def refresh_deletes(self) -> str | None:
        """The rows that the workload's own data maintenance deletes, as SQL; None where it has none."""
        ...
