"""The raw files of a workload: written once, read by every layout and by the oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from bench.measure.cache import DatasetCache, source_digest
from bench.workloads.rows import Rows

_WORKLOADS = Path(__file__).resolve().parents[1] / "workloads"
_BATCH_ROWS = 1 << 16


@dataclass(frozen=True, kw_only=True)
class RawFiles:
    """Parquet files of consecutive rows, in arrival order."""

    schema: pa.Schema
    paths: tuple[Path, ...]
    rows: int
    size_bytes: int

    def batches(self, start: int = 0, stop: int | None = None) -> Iterator[pa.RecordBatch]:
        """Rows `start` to `stop`, exclusive; all by default."""
        first, stop = 0, self.rows if stop is None else stop
        for path in self.paths:
            with pq.ParquetFile(path) as file:
                own = file.metadata.num_rows
                if first < stop and first + own > start:
                    for batch in file.iter_batches(_BATCH_ROWS):
                        low = max(start - first, 0)
                        wanted = batch.slice(low, max(min(stop - first, batch.num_rows) - low, 0))
                        if wanted.num_rows:
                            yield wanted
                        first += batch.num_rows
                else:
                    first += own

    def frame(self, spark: SparkSession, partitions: int) -> DataFrame:
        """The rows as a DataFrame of so many partitions of consecutive rows."""

        def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for part in batch.column(0).to_pylist():
                    yield from self.batches(*(bound * self.rows // partitions for bound in (part, part + 1)))

        return spark.range(0, partitions, 1, partitions).mapInArrow(
            read, from_arrow_schema(self.schema, prefer_timestamp_ntz=True)
        )


def find_or_write(rows: Rows, cache: DatasetCache, spark: Callable[[], SparkSession]) -> RawFiles:
    """The raw files, from the cache if it has them.

    Raises:
        DatasetFailed: The disk refused.
    """

    def write(folder: Path) -> dict[str, list[str] | int]:
        paths = rows.write_raw(folder, spark)
        return {
            "paths": [str(path) for path in paths],
            "rows": sum(pq.read_metadata(path).num_rows for path in paths),
            "size_bytes": sum(path.stat().st_size for path in paths),
        }

    found = cache.find_or_build(
        f"raw-{rows.name}".replace(" ", "-"), {**rows.key(), "made by": source_digest([_WORKLOADS])}, write
    )
    return RawFiles(
        schema=rows.schema,
        paths=tuple(map(Path, found["paths"])),
        rows=found["rows"],
        size_bytes=found["size_bytes"],
    )
