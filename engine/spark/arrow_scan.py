"""A scan plan as a DataFrame that executors produce with the Arrow reader: for plans that the native scan cannot serve.

The native scan decodes delete files on the driver and sends their contents to every executor. Here each task decodes
the delete files of its own data files, so that all deletes together may exceed the memory of any one machine.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from icebench.engine.deletes.files import FileRead, distinct_deletes
from icebench.engine.plan.scan import ScanPlan
from icebench.engine.read.plans import request_for
from icebench.engine.read.request import ReadRequest
from icebench.engine.spark.arrow_batches import spark_schema
from icebench.engine.spark.arrow_tasks import read_task, task_files
from icebench.engine.spec.schema import Schema
from icebench.engine.storage.store import Store

DRIVER_BYTES = 256 << 20
"""Delete files of a scan that the native scan decodes on the driver; beyond that, executors read the scan here."""


def delete_bytes(files: Iterable[FileRead]) -> int:
    """Total size in bytes of the delete files of these data files, each counted once; of a deletion vector, the size of
    its blob."""
    distinct = distinct_deletes(file.deletes for file in files)
    return sum(d.file_size_in_bytes if d.content_size_in_bytes is None else d.content_size_in_bytes for d in distinct)


def plan_to_arrow_frame(
    spark: SparkSession,
    plan: ScanPlan,
    store: Store,
    *,
    projection: Schema | None = None,
    table_name: str | None = None,
    split_bytes: int | None = None,
) -> DataFrame:
    """The rows of a plan as a DataFrame. Nothing is read before the DataFrame runs, delete files included.

    Args:
        spark: The user's session.
        plan: What to read.
        store: The table's storage; executors get a copy.
        projection: The columns to return, metadata columns included; those of the plan by default.
        table_name: For error messages.
        split_bytes: Target size of a task's files; None uses the table's property, see `ScanPlan.tasks`.

    Raises:
        Unsupported: A column's type does not exist in Spark; the message names the column.
    """
    request = request_for(plan, store, projection=projection, table_name=table_name)
    schema = spark_schema(request.projection)
    payloads = [pickle.dumps(files) for files in task_files(plan, split_bytes)]
    if not payloads:
        return spark.createDataFrame([], schema)
    column = st.StructType([st.StructField("files", st.BinaryType())])
    tasks = spark.createDataFrame(pa.table({"files": pa.array(payloads, pa.binary())}), schema=column)
    return tasks.repartition(len(payloads)).mapInArrow(_Task(request), schema)


@dataclass(frozen=True)
class _Task:
    """The function that executors run for each task."""

    request: ReadRequest

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for payload in batch.column(0).to_pylist():
                yield from read_task(pickle.loads(payload), self.request)  # noqa: S301 - the driver's own
