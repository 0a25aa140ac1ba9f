from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from icebench.bench.workloads import rows as module
from icebench.bench.workloads.log import Log


def no_session() -> SparkSession:
    raise AssertionError("a session was asked for")


def test_few_rows_are_written_without_spark(tmp_path: Path) -> None:
    workload = Log(rows=1_000, files=3)
    paths = workload.write_raw(tmp_path, no_session)
    assert [path.name for path in paths] == ["00000.parquet", "00001.parquet", "00002.parquet"]
    parts = [pq.read_table(path) for path in paths]
    assert [part.num_rows for part in parts] == [333, 333, 334]
    whole = pa.Table.from_batches([workload.batch(0, 1_000)])
    assert pa.concat_tables(parts).combine_chunks() == whole.combine_chunks()


def test_many_are_written_by_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SPARK_ROWS", 1_000)
    with pytest.raises(AssertionError, match="a session was asked for"):
        Log(rows=1_000, files=3).write_raw(tmp_path, no_session)
