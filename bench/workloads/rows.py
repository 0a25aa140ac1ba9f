"""What the harness sees of a workload of rows: columns, raw files that Spark's executors write, and rows to delete.

Layouts are built from the raw files, and the oracle reads them; neither sees anything else of a workload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BATCH_VALUES = 1 << 22
_MOST_BATCH_ROWS = 1 << 16
SPARK_ROWS = 500_000
"""Fewer rows are written by this process: sooner than a session starts, and also on a machine without Java."""

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
        """The same keys in that many ranges, or one range per key where there are fewer keys."""
        parts = max(1, min(parts, self.stop - self.start))
        bounds = [self.start + (self.stop - self.start) * part // parts for part in range(parts + 1)]
        return [KeyRange(column=self.column, start=first, stop=stop) for first, stop in pairwise(bounds)]


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows that are a function of their number, and that the fields alone determine.

    Args:
        rows: How many.
        files: How many raw files they come in.
        seed: Any integer.
    """

    rows: int
    files: int = 8
    seed: int = 42

    def __post_init__(self) -> None:
        if self.rows < 1 or self.files < 1:
            raise ValueError(f"{self.rows} rows in {self.files} files; at least 1 of each is needed")

    @property
    def name(self) -> str:
        """The workload's name in every case."""
        raise NotImplementedError

    @property
    def schema(self) -> pa.Schema:
        """Columns of the rows, as every layout has them."""
        raise NotImplementedError

    @property
    def filters(self) -> Mapping[str, str]:
        """Default filters, SQL by name; a definition's own replace them."""
        raise NotImplementedError

    @property
    def identifier_columns(self) -> tuple[str, ...]:
        """Columns without nulls whose values together identify a row, for upserts; empty where none are known."""
        return ()

    def batch(self, start: int, stop: int) -> pa.RecordBatch:
        """Rows `start` to `stop`, exclusive, in arrival order: the batches of any division of a range, put together,
        equal the range's own batch."""
        raise NotImplementedError

    def batches(self, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """The same rows in pieces of some tens of megabytes."""
        size = max(1, min(_MOST_BATCH_ROWS, _BATCH_VALUES // len(self.schema)))
        for first in range(start, stop, size):
            yield self.batch(first, min(first + size, stop))

    def delete_keys(self, share: float, spread: str) -> KeyRange:
        """Rows to delete: about `share` of all, spread by one of `SPREADS`."""
        raise NotImplementedError

    def consecutive_keys(self, column: str, share: float, spread: str) -> KeyRange:
        """The first rows, or those in the middle, by a column that has the row's number."""
        count = max(1, round(self.rows * share))
        first = 0 if spread == "first" else (self.rows - count) // 2
        return KeyRange(column=column, start=first, stop=first + count)

    def refresh_deletes(self, refresh: int = 0) -> str | None:
        """The rows that the workload's own data maintenance deletes, as SQL; None where it has none."""
        return None

    def key(self) -> dict[str, Any]:
        """JSON values that determine the rows; with the digest of the sources, the key of the cached raw files."""
        return {"workload": type(self).__name__, **asdict(self)}

    def write_raw(self, folder: Path, spark: Callable[[], SparkSession]) -> list[Path]:
        """Write the rows in arrival order, as Parquet files of consecutive rows: many by Spark, a task for each file.

        Args:
            folder: An existing directory that all executors reach.
            spark: Gives the session; called for at least `SPARK_ROWS` rows.

        Returns:
            The files, in order.
        """
        paths = [folder / f"{part:05d}.parquet" for part in range(self.files)]

        def write(part: int) -> None:
            start, stop = (bound * self.rows // self.files for bound in (part, part + 1))
            with pq.ParquetWriter(
                paths[part], self.schema, compression="zstd", store_decimal_as_integer=True
            ) as writer:
                for rows in self.batches(start, stop):
                    writer.write_batch(rows)

        def write_all(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for part in batch.column(0).to_pylist():
                    write(part)
                yield batch

        if self.rows < SPARK_ROWS:
            for part in range(self.files):
                write(part)
        else:
            spark().range(0, self.files, 1, self.files).mapInArrow(write_all, "id bigint").collect()
        return paths
