"""Raw files as Spark's executors write them, against the oracle and the generator itself."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from icebench.bench.engines.checksum import checksum_of
from icebench.bench.truth.oracle import Oracle
from icebench.bench.workloads import rows as rows_module
from icebench.bench.workloads.log import Log
from icebench.bench.workloads.rows import Rows
from icebench.bench.workloads.wide import KINDS, Wide

WORKLOADS: list[Rows] = [Wide(columns=2 * len(KINDS), rows=6_000, files=3), Log(rows=6_000, files=3)]


@pytest.fixture(autouse=True)
def every_row_by_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "SPARK_ROWS", 0)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_raw_files_hold_the_rows_in_arrival_order(spark: SparkSession, tmp_path: Path, workload: Rows) -> None:
    paths = workload.write_raw(tmp_path, lambda: spark)
    assert len(paths) == workload.files
    written = pa.concat_tables([pq.read_table(path) for path in paths])
    whole = pa.Table.from_batches([workload.batch(0, workload.rows)])
    assert written.combine_chunks() == whole.combine_chunks()
    assert written.schema == workload.schema


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_the_oracle_reads_every_column(spark: SparkSession, tmp_path: Path, workload: Rows) -> None:
    paths = workload.write_raw(tmp_path, lambda: spark)
    names = workload.schema.names
    oracle, whole = Oracle(paths), workload.batch(0, workload.rows)
    assert oracle.answer(names).fault_of(checksum_of([whole], names)) is None
    for filter in workload.filters.values():
        assert 0 < oracle.answer(names[:1], filter).rows < workload.rows
    # A column of the same type in another's place.
    first, second = [n for n in names if whole.schema.field(n).type == pa.int64()][-2:]
    swapped = whole.rename_columns([{first: second, second: first}.get(name, name) for name in names])
    fault = oracle.answer(names).fault_of(checksum_of([swapped.select(names)], names))
    assert fault == f"column {first} has the values of column {second}"
