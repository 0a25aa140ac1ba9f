"""Partition statistics files against the files of the table, summed one by one, and the metadata table `partitions`."""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import icebench
from icebench.engine.maintenance.compute_partition_stats import read_partition_stats

COLUMNS = pa.schema([("n", pa.int32()), ("t", pa.string()), ("f", pa.float64())])
ROW = st.tuples(st.integers(0, 3), st.sampled_from(["", "a", None]), st.sampled_from([0.0, -0.0, 1.5, None]))
STEP = (
    st.tuples(st.just("append"), st.lists(ROW, min_size=1, max_size=4))
    | st.tuples(st.sampled_from(["merge-on-read", "copy-on-write"]), st.integers(0, 3))
    | st.tuples(
        st.sampled_from(
            ["compute", "compute", "compact", "manifests", "rollback", "expire", "delete key", "add", "drop", "upgrade"]
        ),
        st.none(),
    )
)
COUNTS = {
    0: ("data_record_count", "data_file_count"),
    1: ("position_delete_record_count", "position_delete_file_count"),
    2: ("equality_delete_record_count", "equality_delete_file_count"),
}


@settings(max_examples=40)
@given(
    steps=st.lists(STEP, max_size=10),
    by=st.sampled_from([("n", "identity"), ("t", "truncate[1]"), ("f", "identity"), ("n", "bucket[2]")]),
    version=st.sampled_from([1, 2, 3]),
)
def test_rows_are_sums_of_files(steps: list[Any], by: tuple[str, str], version: int) -> None:
    """Of each partition of each spec, whatever was computed before and happened since."""
    home = tempfile.mkdtemp()
    try:
        with closing(icebench.load_catalog(f"{home}/wh")) as catalog:
            table = catalog.create_table(
                "db.t", COLUMNS, partition_spec=[by], properties={"format-version": str(version)}
            )
            for kind, what in [("append", [(1, "a", 1.5)]), *steps, ("compute", None)]:
                _take(table, kind, what)
    finally:
        shutil.rmtree(home)


def _take(table: icebench.Table, kind: str, what: Any) -> None:
    version = table.metadata.format_version
    if kind == "append":
        table.append(pa.Table.from_pylist([dict(zip("ntf", row, strict=True)) for row in what], schema=COLUMNS))
    elif kind in ("merge-on-read", "copy-on-write"):
        table.delete(f"n = {what}", "merge-on-read" if kind == "merge-on-read" and version > 1 else "copy-on-write")
    elif kind == "delete key":
        if version > 1 and all(f.source_id == 1 for spec in table.metadata.partition_specs for f in spec.fields):
            stream = table.keyed_stream(["n"])
            stream.delete(pa.table({"n": pa.array([1], pa.int32())}))
            stream.commit()
    elif kind == "compute":
        _check(table)
    elif kind in ("add", "drop", "upgrade"):
        _evolve(table, kind, version)
    else:
        _maintain(table, kind)


def _maintain(table: icebench.Table, kind: str) -> None:
    if kind == "compact":
        table.maintenance.rewrite_data_files(rewrite_all=True)
    elif kind == "manifests":
        table.maintenance.rewrite_manifests()
    elif kind == "expire":
        table.maintenance.expire_snapshots(older_than="2999-01-01T00:00:00Z", retain_last=2)
    elif kind == "rollback":
        parent = table.current_snapshot.parent_snapshot_id if table.current_snapshot else None
        if parent is not None and parent in table.metadata.snapshot_by_id:
            table.rollback(snapshot_id=parent)


def _evolve(table: icebench.Table, kind: str, version: int) -> None:
    names = [f.name for f in table.metadata.spec.fields if str(f.transform) != "void"]
    if kind == "add" and "more" not in names:
        table.update_spec(lambda spec: spec.add_field("t", "identity", name="more"))
    elif kind == "drop" and len(names) > 1:
        table.update_spec(lambda spec: spec.drop_field(names[-1]))
    elif kind == "upgrade" and version < 3:
        table.upgrade_format(version + 1)


def _check(table: icebench.Table) -> None:
    done = table.maintenance.compute_partition_stats()
    metadata = table.refresh().metadata
    (file,) = [f for f in metadata.partition_statistics if f.snapshot_id == metadata.current_snapshot_id]
    assert file.statistics_path == done.statistics_path
    assert file.file_size_in_bytes == len(table.store.read(file.statistics_path))
    found = read_partition_stats(metadata, file, table.store)
    rows = found.to_pylist()
    assert len(rows) == done.partitions
    assert ("dv_count" in found.column_names) == (metadata.format_version == 3)
    own = {_key(row): {n: v for n, v in row.items() if n.endswith(("_count", "_bytes"))} for row in rows}
    assert len(own) == len(rows)
    expected: dict[Any, Any] = defaultdict(lambda: defaultdict(int))
    for each in table.inspect.files().to_pylist():
        sums = expected[_key(each)]
        records, files = COUNTS[each["content"]]
        sums[records] += each["record_count"]
        sums["dv_count" if each["file_format"].lower() == "puffin" else files] += 1
        if each["content"] == 0:
            sums["total_data_file_size_in_bytes"] += each["file_size_in_bytes"]
    assert {key: {n: v for n, v in row.items() if v} for key, row in own.items() if any(row.values())} == {
        key: dict(sums) for key, sums in expected.items()
    }
    # The metadata table puts equal tuples of different specs together, and has no deletions.
    times = {_key(row)[1]: row["last_updated_at"] for row in table.inspect.partitions().to_pylist()}
    latest: dict[Any, int] = {}
    for row in rows:
        if row["last_updated_at"] is not None:
            key = _key(row)[1]
            latest[key] = max(row["last_updated_at"], latest.get(key, 0))
            snapshot = metadata.snapshot_by_id.get(row["last_updated_snapshot_id"])
            assert snapshot is None or snapshot.timestamp_ms == row["last_updated_at"]
    for key, at in times.items():
        assert at is None or latest[key] >= at.timestamp() * 1000 - 1
    assert table.maintenance.compute_partition_stats().manifests_read == 0
    _check_profile(table, rows)


def _check_profile(table: icebench.Table, rows: list[dict[str, Any]]) -> None:
    """The profile, which reads manifests, says of partitions what their statistics say."""
    held = [row for row in rows if row["data_file_count"]]
    figures = table.maintenance.profile().partitions
    if not held or figures is None:
        return
    sizes = sorted((row["total_data_file_size_in_bytes"] for row in held), reverse=True)
    assert figures.partitions == len(held)
    assert figures.skew == pytest.approx(sizes[0] * len(sizes) / sum(sizes))
    assert [each.size_bytes for each in figures.largest] == sizes[: len(figures.largest)]
    assert figures.files.most == max(row["data_file_count"] for row in held)


def _key(row: dict[str, Any]) -> Any:
    """The spec and the values that are not null, floats by their sign too."""
    return row["spec_id"], tuple(sorted((n, repr(v)) for n, v in row["partition"].items() if v is not None))
