"""The raw files of a workload: written once, read by every layout and by the oracle."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from icebench.bench.errors import ConfigError
from icebench.bench.tables.cache import DatasetCache, source_digest
from icebench.bench.workloads.rows import Rows

_WORKLOADS = Path(__file__).resolve().parents[1] / "workloads"
_BATCH_ROWS = 1 << 16


@dataclass(frozen=True, kw_only=True)
class RawFiles:
    """Parquet files of consecutive rows, in arrival order."""

    schema: pa.Schema
    paths: tuple[Path, ...]
    rows: int
    size_bytes: int

    def reader(self) -> pa.RecordBatchReader:
        """All rows as a stream."""

        def batches() -> Iterator[pa.RecordBatch]:
            for path in self.paths:
                with pq.ParquetFile(path) as file:
                    yield from file.iter_batches(_BATCH_ROWS)

        return pa.RecordBatchReader.from_batches(self.schema, batches())


def find_or_write(rows: Rows, cache: DatasetCache, spark: Callable[[], SparkSession]) -> RawFiles:
    """The raw files, from the cache if it has them.

    Raises:
        ConfigError: The workload's class is in no file.
        DatasetFailed: The disk refused.
    """

    def write(folder: Path) -> dict[str, list[str] | int]:
        paths = rows.write_raw(folder, spark)
        return {
            "paths": [str(path) for path in paths],
            "rows": sum(pq.read_metadata(path).num_rows for path in paths),
            "size_bytes": sum(path.stat().st_size for path in paths),
        }

    made_by = source_digest([_WORKLOADS, *_sources_elsewhere(type(rows))])
    found = cache.find_or_build(f"raw-{rows.name}".replace(" ", "-"), {**rows.key(), "made by": made_by}, write)
    return RawFiles(
        schema=rows.schema,
        paths=tuple(map(Path, found["paths"])),
        rows=found["rows"],
        size_bytes=found["size_bytes"],
    )


def _sources_elsewhere(rows: type[Rows]) -> list[Path]:
    """The file of a workload that is not the project's; raises ConfigError for a class without one."""
    try:
        file = Path(inspect.getfile(rows)).resolve()
    except (OSError, TypeError) as error:
        reason = f"{rows.__name__} is in no file, so its rows could not be kept: define it in a module"
        raise ConfigError(reason, path="workload") from error
    return [] if file.is_relative_to(_WORKLOADS) else [file]
