"""Files that a process writes, reads and removes are beside a local table, and on this machine for one in S3."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.engine.storage.local import LocalStore
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.storage.scratch import scratch_space
from tests.services.s3_server import S3Server


@pytest.mark.parametrize("location", ["/wh/db/t/data/_sorting", "file:///wh/t", "memory://wh/t"])
def test_the_tables_own_storage(location: str) -> None:
    own = MemoryStore()
    with scratch_space(own, location) as (store, directory):
        assert (store, directory) == (own, location)


@pytest.mark.parametrize("location", ["s3://bucket/t", "gs://bucket/t", "abfss://c@a.dfs.core.windows.net/t"])
def test_a_directory_of_this_machine_that_is_removed(location: str) -> None:
    with pytest.raises(KeyError), scratch_space(MemoryStore(), location) as (store, directory):  # noqa: PT012
        assert isinstance(store, LocalStore)
        store.write(f"{directory}/a", b"1")
        assert Path(directory).is_dir()
        raise KeyError
    assert not Path(directory).exists()


def test_a_sort_in_s3_sends_only_its_result(
    s3_server: S3Server, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    table = icebench.load_catalog(f"s3://{bucket}/wh", properties=s3_server.properties).create_table(
        "db.t", pa.schema([("x", pa.int64()), ("y", pa.string())])
    )
    chance = random.Random(1)
    values = [chance.randrange(10**6) for _ in range(5_000)]
    table.append(pa.table({"x": values, "y": [f"{value % 97}" for value in values]}))
    s3_server.requests.clear()
    table.maintenance.rewrite_data_files("sort", sort_order=["x"], rewrite_all=True, sort_memory_bytes=10_000)
    put = [path for method, path, _ in s3_server.requests if method == "PUT" and path.endswith((".parquet", ".arrow"))]
    assert len(put) == 1
    assert table.scan().to_arrow()["x"].to_pylist() == sorted(values)
    assert not list(tmp_path.iterdir())
