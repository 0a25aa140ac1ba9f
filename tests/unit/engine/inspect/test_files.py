"""The metadata table `files`."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa

import icebench
from icebench.engine.spec.data_file import NO_METRICS, DataFile


def test_a_partition_field_whose_source_was_dropped_keeps_its_values(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("n", pa.int32())])
    spec = [("id", "identity"), ("n", "identity")]
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", schema, partition_spec=spec)
    table.append(pa.table({"id": [1, 2], "n": [10, None]}, schema))
    table.update_spec(lambda s: s.drop_field("n")).update_schema(lambda s: s.drop_column("n"))
    table.append(pa.table({"id": [3]}))
    partitions = table.inspect.files()["partition"].to_pylist()
    assert sorted(partitions, key=repr) == [{"id": 1, "n": 10}, {"id": 2, "n": None}, {"id": 3, "n": None}]
    assert table.inspect.partitions().num_rows == 3


def test_metrics_that_a_manifest_lacks_are_null_and_not_empty(tmp_path: Path) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    table.add_files(
        [DataFile(file_path=f"{table.location}/f", file_format="parquet", record_count=1, file_size_in_bytes=1)]
    )
    found = table.inspect.files().sort_by("file_size_in_bytes").to_pylist()
    assert [bool(each["value_counts"]) for each in found] == [False, True]
    assert found[0]["value_counts"] is None
    again = pickle.loads(
        pickle.dumps(
            DataFile(
                file_path="f", file_format="parquet", record_count=1, file_size_in_bytes=1, value_counts=NO_METRICS
            )
        )
    )
    assert again.value_counts is NO_METRICS
