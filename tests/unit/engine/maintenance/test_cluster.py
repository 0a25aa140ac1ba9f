"""`table.maintenance.cluster`; what it chooses is in `tests/property/test_clustering.py`, random tables in
`test_table_machine`."""

from __future__ import annotations

import math
import random
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import icebench
from icebench.engine.maintenance import rewrite_data_files as rewriting
from icebench.engine.maintenance.cluster import ClusteringPass
from icebench.errors import Invalid, StorageFailed

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("m", pa.map_(pa.string(), pa.int64()))])


def rows(seed: int, count: int = 200, part: str | None = None) -> pa.Table:
    chance = random.Random(seed)
    return pa.table(
        {
            "a": [chance.randrange(1_000_000) for _ in range(count)],
            "b": [part or chance.choice("xyz") for _ in range(count)],
            "m": [None] * count,
        },
        SCHEMA,
    )


def table_of(place: Path, appends: int = 4, spec: tuple[str, ...] = (), **clustering: str) -> icebench.Table:
    properties = {f"icebench.clustering.{name.replace('_', '-')}": value for name, value in clustering.items()}
    table = icebench.load_catalog(str(place)).create_table(
        "db.t",
        SCHEMA,
        partition_spec=[(column, "identity") for column in spec],
        properties={"write.target-file-size-bytes": "2000", **properties},
    )
    for seed in range(appends):
        table.append(rows(seed))
    return table


@pytest.mark.parametrize("strategy", ["sort", "zorder", "hilbert"])
def test_runs_that_overlap_are_merged_once(tmp_path: Path, strategy: str) -> None:
    table = table_of(tmp_path, strategy=strategy, keys="a" if strategy == "sort" else "a, b")
    expected = table.maintenance.cluster(dry_run=True)
    assert len(table.snapshots) == 4
    done = table.maintenance.cluster()
    assert (done.merges, done.rewritten_data_files, len(done.snapshots)) == (1, 4, 1)
    assert (expected.merges, expected.rewritten_bytes) == (done.merges, done.rewritten_bytes)
    assert done.depth_before >= 3.9
    assert done.depth_after < 2
    assert done.added_data_files > 1
    before = table.snapshots
    assert table.maintenance.cluster().snapshots == ()
    # Files of the pass are known as its own when its snapshot has expired.
    table.maintenance.expire_snapshots(older_than=before[-1].timestamp_ms + 1)
    table.maintenance.rewrite_manifests()
    assert table.maintenance.cluster(dry_run=True).merges == 0


def test_a_few_runs_wait_for_more(tmp_path: Path) -> None:
    table = table_of(tmp_path, 3, strategy="sort", keys="a")
    assert table.maintenance.cluster().merges == 0
    table.set_properties({"icebench.clustering.fan-in": "3"})
    assert table.maintenance.cluster().merges == 1


@pytest.mark.parametrize("appends", [1, 4])
def test_dangling_deletes_are_removed_whether_or_not_files_are_merged(tmp_path: Path, appends: int) -> None:
    table = table_of(tmp_path, appends, strategy="sort", keys="a")
    stream = table.keyed_stream(["a"])
    stream.delete(pa.table({"a": [1_000_001]}))  # within the bounds of no file
    stream.commit()
    assert table.maintenance.cluster(remove_dangling_deletes=True, dry_run=True).removed_dangling_deletes == 0
    assert table.inspect.delete_files().num_rows == 1
    merges = appends == 4
    with patch.object(rewriting, "remove_dangling_deletes", side_effect=StorageFailed("no room")):
        if merges:
            assert str(table.maintenance.cluster(remove_dangling_deletes=True).dangling_error) == "no room"
        else:
            with pytest.raises(StorageFailed, match="no room"):
                table.maintenance.cluster(remove_dangling_deletes=True)
    done = table.maintenance.cluster(remove_dangling_deletes=True)
    assert (done.merges, done.removed_dangling_deletes, len(done.snapshots)) == (0, 1, 1)
    assert table.inspect.delete_files().num_rows == 0
    assert table.maintenance.cluster(remove_dangling_deletes=True).snapshots == ()


@pytest.mark.parametrize("hashed", [False, True])
def test_files_of_one_value_stay(tmp_path: Path, hashed: bool) -> None:
    """Those of a pass are known as its own, with a hash before their names, too."""
    table = table_of(tmp_path, 0, strategy="sort", keys="b", fan_in="2")
    if hashed:
        named = {"write.object-storage.enabled": "true", "write.object-storage.partitioned-paths": "false"}
        table.set_properties(named)
    for seed in range(4):
        table.append(rows(seed, 1000, "x"))
    assert table.maintenance.cluster().merges == 1
    assert table.inspect.files().num_rows > 1
    assert table.maintenance.cluster().merges == 0


def test_another_declaration_arranges_rows_again(tmp_path: Path) -> None:
    table = table_of(tmp_path, 8, strategy="sort", keys="a")
    table.maintenance.cluster()
    files = table.inspect.files().num_rows
    table.set_properties({"icebench.clustering.keys": "b, a"})
    done = table.maintenance.cluster()
    assert done.rewritten_data_files == files
    assert done.depth_after < 2 < done.depth_before


def test_partitions_are_merged_apart_within_a_budget(tmp_path: Path) -> None:
    table = table_of(tmp_path, 4, ("b",), strategy="sort", keys="a")
    plan = table.maintenance.cluster(dry_run=True)
    assert plan.merges == 3
    part = table.maintenance.cluster(max_bytes=plan.rewritten_bytes // 2)
    assert (part.merges, part.waiting_merges) == (1, 2)
    assert part.rewritten_bytes + part.waiting_bytes == plan.rewritten_bytes
    assert table.maintenance.cluster().merges == 2


def test_files_without_a_place_stay(tmp_path: Path) -> None:
    table = table_of(tmp_path, strategy="sort", keys="a")
    table.set_properties({"write.metadata.metrics.column.a": "none"})
    table.append(rows(9))
    assert table.maintenance.cluster().unplaced_files == 1


def test_descending_keys_of_the_tables_own_order(tmp_path: Path) -> None:
    table = table_of(tmp_path, 0, strategy="sort")
    identity = icebench.parse_transform("identity")
    first = icebench.SortField(source_ids=(2,), transform=identity, direction="desc")
    table.replace_sort_order(icebench.SortOrder((first, icebench.SortField(source_ids=(1,), transform=identity)), 1))
    for seed in range(4):
        table.append(rows(seed, 400))
    table.maintenance.cluster()
    found = table.scan().to_arrow().select(["b", "a"]).to_pylist()
    assert found == sorted(found, key=lambda row: (-ord(row["b"]), row["a"]))
    assert table.maintenance.cluster().merges == 0


@pytest.mark.parametrize(
    ("clustering", "message"),
    [
        ({}, "the table declares no clustering: set icebench.clustering.strategy"),
        ({"strategy": "hilbert"}, "the table declares no keys of its clustering: set icebench.clustering.keys"),
        ({"strategy": "sort"}, "the table declares no keys of its clustering: set icebench.clustering.keys"),
        ({"strategy": "best", "keys": "a"}, "is none of sort, zorder, hilbert"),
        ({"strategy": "sort", "keys": "a,,b"}, "are no names separated by commas"),
        ({"strategy": "sort", "keys": "q"}, "q"),
        ({"strategy": "zorder", "keys": "a,a"}, "names a column twice"),
        ({"strategy": "sort", "keys": "m.key"}, "m.key"),
        ({"strategy": "sort", "keys": "a", "fan_in": "1"}, "is less than 2"),
    ],
)
def test_declarations_that_are_none(tmp_path: Path, clustering: dict[str, str], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        table_of(tmp_path, 1, (), **clustering).maintenance.cluster()


def test_a_table_without_a_snapshot(tmp_path: Path) -> None:
    table = table_of(tmp_path, 0, strategy="sort", keys="a")
    assert table.maintenance.cluster() == ClusteringPass(depth_before=0, depth_after=0)
    with pytest.raises(Invalid, match="cluster has no option 'colour'; there are: max_concurrent_groups"):
        table.maintenance.cluster(colour="red")  # type: ignore[call-arg]


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("strategy", "keys"), [("sort", "a"), ("hilbert", "a, b")])
def test_rows_are_rewritten_a_logarithmic_number_of_times(tmp_path: Path, strategy: str, keys: str) -> None:
    """``pytest -s -m soak`` prints the figures of docs/design/maintenance.md."""
    chance, schema, appends = np.random.default_rng(1), pa.schema([(name, pa.int64()) for name in "abx"]), 200
    clustering = {"icebench.clustering.strategy": strategy, "icebench.clustering.keys": keys}
    properties = {**clustering, "write.target-file-size-bytes": str(128 << 10)}
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", schema, properties=properties)
    rewritten = resorted = size = 0
    depths = []
    for _ in range(appends):
        table.append(pa.table({name: chance.integers(0, 1 << 40, 2_000) for name in schema.names}, schema))
        done = table.maintenance.cluster()
        size = sum(table.inspect.files()["file_size_in_bytes"].to_pylist())
        rewritten, resorted = rewritten + done.rewritten_bytes, resorted + size
        depths.append(done.depth_after)
    files = f"depth {np.mean(depths):.1f}, {table.inspect.files().num_rows} files"
    print(f"{strategy} by {keys}: rewritten {rewritten / size:.1f}x, {resorted / size:.0f}x by re-sorting, {files}")  # noqa: T201
    assert rewritten / size < math.log(appends, 4)
