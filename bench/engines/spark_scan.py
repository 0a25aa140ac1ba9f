"""What engines on Spark share: the sink of a timed scan, and the checksum of a DataFrame's rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic

import pyarrow as pa
from pyspark.sql import DataFrame

from icebench.bench.engines.checksum import Checksum, checksum_of, decode_checksum, empty_checksum
from icebench.bench.engines.engine import Filter, Handle
from icebench.engine.spark.workers import prepare_worker


class SparkScans(Generic[Handle, Filter]):
    """The scans of an engine, by its DataFrames."""

    def frame(self, handle: Handle, columns: Sequence[str], filter: Filter) -> DataFrame:
        """The live rows that the filter keeps, which were never computed."""
        raise NotImplementedError

    def scan(self, handle: Handle, columns: Sequence[str], filter: Filter) -> None:
        run_to_noop(self.frame(handle, columns, filter))

    def checksum(self, handle: Handle, columns: Sequence[str], filter: Filter) -> Checksum:
        return frame_checksum(self.frame(handle, columns, filter), columns)


def run_to_noop(frame: DataFrame) -> None:
    """Compute every value of every row and drop it. Each call needs a DataFrame that was never run: Spark keeps the
    shuffle files of one that was."""
    frame.write.format("noop").mode("overwrite").save()


def frame_checksum(frame: DataFrame, columns: Sequence[str]) -> Checksum:
    """The checksum of these columns of all rows, computed by the executors batch by batch."""
    names = list(columns)

    def of_partition(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        prepare_worker()
        found = checksum_of(batches, names)
        yield pa.RecordBatch.from_pydict({"checksum": [found.encode()]})

    # A task for each of many small files would start Python 61 times to sum what one task reads in a second.
    rows = frame.select(*names).coalesce(frame.sparkSession.sparkContext.defaultParallelism)
    parts = rows.mapInArrow(of_partition, "checksum string").collect()
    total = empty_checksum(names)
    for part in parts:
        total = total + decode_checksum(part[0])
    return total
