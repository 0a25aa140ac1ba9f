"""The metadata table `files`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import engine


def test_a_partition_field_whose_source_was_dropped_keeps_its_values(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("n", pa.int32())])
    spec = [("id", "identity"), ("n", "identity")]
    table = engine.load_catalog(str(tmp_path)).create_table("db.t", schema, partition_spec=spec)
    table.append(pa.table({"id": [1, 2], "n": [10, None]}, schema))
    table.update_spec(lambda s: s.drop_field("n")).update_schema(lambda s: s.drop_column("n"))
    table.append(pa.table({"id": [3]}))
    partitions = table.inspect.files()["partition"].to_pylist()
    assert sorted(partitions, key=repr) == [{"id": 1, "n": 10}, {"id": 2, "n": None}, {"id": 3, "n": None}]
    assert table.inspect.partitions().num_rows == 3
