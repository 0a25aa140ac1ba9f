"""Reasons come with their fixes: each is found, fixed as it says, and gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.engine.maintenance.profile.figures import Reason
from icebench.engine.spec.data_file import DataFile, FileContent

ROWS = pa.schema([("id", pa.int64()), ("day", pa.int32()), ("text", pa.string())])
NEVER_WORTH_WAITING = {"read.split.open-file-cost": str(1 << 20)}


def rows(start: int, stop: int) -> pa.Table:
    numbers = list(range(start, stop))
    return pa.table({"id": numbers, "day": [n % 3 for n in numbers], "text": [f"row {n}" for n in numbers]}, ROWS)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[icebench.Catalog]:
    with closing(icebench.load_catalog(str(tmp_path))) as catalog:
        catalog.create_namespace("db")
        yield catalog


def made(
    catalog: icebench.Catalog, properties: Mapping[str, str] = NEVER_WORTH_WAITING, **more: object
) -> icebench.Table:
    return catalog.create_table("db.t", ROWS, properties=properties, **more)  # type: ignore[arg-type]


def reasons(table: icebench.Table) -> dict[str, Reason]:
    found = table.maintenance.profile().reasons
    costs = [each.cost_bytes for each in found]
    assert costs == sorted(costs, reverse=True)
    return {each.key: each for each in found}


def fix(table: icebench.Table, key: str) -> Reason:
    """Do what a reason says, and see it gone."""
    reason = reasons(table)[key]
    getattr(table.maintenance, reason.action)(**reason.arguments)
    assert key not in reasons(table)
    return reason


def test_small_files(catalog: icebench.Catalog) -> None:
    table = made(catalog)
    for start in range(0, 60, 10):
        table.append(rows(start, start + 10))
    reason = fix(table, "small-files")
    assert reason.cost_bytes == 5 << 20  # five opens fewer
    assert reason.gain.startswith("6 files become about 1;")
    assert table.maintenance.profile().files.files == 1


def test_few_files_are_no_reason(catalog: icebench.Catalog) -> None:
    table = made(catalog)
    for start in range(0, 40, 10):
        table.append(rows(start, start + 10))
    assert reasons(table).keys() <= {"manifests"}


def test_deletes(catalog: icebench.Catalog) -> None:
    table = made(catalog, {**NEVER_WORTH_WAITING, "format-version": "2"})
    table.append(rows(0, 100))
    table.append(rows(100, 200))
    table.delete("id = 7 or id = 150", mode="merge-on-read")
    profile = table.maintenance.profile()
    assert (profile.deletes.data_files, profile.deletes.deleted_records) == (2, 2)
    fix(table, "deletes")
    assert table.maintenance.profile().deletes.pairs == 0


def test_dangling_deletes(catalog: icebench.Catalog) -> None:
    table = made(catalog, {**NEVER_WORTH_WAITING, "format-version": "2", "write.delete.granularity": "partition"})
    table.append(rows(0, 100))
    table.append(rows(100, 200))
    table.delete("id = 7 or id = 150", mode="merge-on-read")
    assert reasons(table)["deletes"].arguments["use_starting_sequence_number"] is False
    table.maintenance.rewrite_data_files(rewrite_all=True, use_starting_sequence_number=False)
    assert table.maintenance.profile().deletes.positions.dangling_files == 1
    table.set_properties({"read.split.open-file-cost": "0"})
    fix(table, "dangling-deletes")
    assert table.maintenance.profile().deletes.positions.files == 0


def test_manifests(catalog: icebench.Catalog) -> None:
    table = made(catalog, partition_spec=[("day", "identity")])
    for start in range(0, 40, 10):
        table.append(rows(start, start + 10))
    clustering = table.maintenance.profile().manifests.clustering[0]
    assert (clustering.name, clustering.values, clustering.opened, clustering.possible) == ("day", 3, 4.0, 1.0)
    fix(table, "manifests")
    assert table.maintenance.profile().manifests.data_manifests == 1


def test_order(catalog: icebench.Catalog) -> None:
    order = icebench.SortOrder(
        (icebench.SortField(source_ids=(1,), transform=icebench.parse_transform("identity")),), 1
    )
    table = made(catalog, {**NEVER_WORTH_WAITING, "write.target-file-size-bytes": "4000"}, sort_order=order)
    for start in range(4):
        table.append(rows(0, 1000).take([n * 4 + start for n in range(250)]))
    assert table.maintenance.profile().columns[0].table is not None
    reason = fix(table, "order")
    assert reason.arguments == {"strategy": "sort", "rewrite_all": True}
    overlap = table.maintenance.profile().columns[0].table
    assert overlap is not None
    assert overlap.average_depth == 1


def test_order_of_partitions_that_are_sorted_in_several_groups(catalog: icebench.Catalog) -> None:
    """Each group of up to 4 GiB is sorted by itself, so that a value is in files of each."""
    table = made(catalog)
    table.replace_sort_order(["id"])
    table.add_files(wide_files(table, "a", count=100, size_bytes=512 << 20))  # 50 GiB: 13 groups
    reason = reasons(table)["order"]
    assert "reads at most 26 files of a partition instead of 100.0" in reason.gain
    assert reason.opens == 100 - 26
    table.delete("true", mode="copy-on-write")
    table.add_files(wide_files(table, "b", count=13, size_bytes=4 << 30))
    assert "order" not in reasons(table)  # as such a sort leaves them
    table.add_files(wide_files(table, "c", count=20, size_bytes=1))
    assert "reads at most 28 files" in reasons(table)["order"].gain


def test_order_of_one_large_partition_beside_small_ones(catalog: icebench.Catalog) -> None:
    table = made(catalog, partition_spec=[("day", "identity")])
    table.replace_sort_order(["id"])
    large = wide_files(table, "large", count=13, size_bytes=4 << 30, partition=(0,))
    small = [wide_files(table, f"small{day}-", count=1, size_bytes=1, partition=(day,)) for day in range(1, 101)]
    table.add_files([*large, *chain(*small)])
    overlap = table.maintenance.profile().columns[0].within_partitions
    assert overlap is not None
    assert overlap.average_depth > 2
    assert "order" not in reasons(table)


def wide_files(
    table: icebench.Table, name: str, *, count: int, size_bytes: int, partition: tuple[int, ...] = ()
) -> list[DataFile]:
    """Files whose values of `id` are all in one range."""
    low, high = (number.to_bytes(8, "little") for number in (0, 1000))
    return [
        DataFile(
            content=FileContent.DATA,
            file_path=f"{table.location}/data/{name}{number}.parquet",
            file_format="parquet",
            spec_id=table.spec.spec_id,
            partition=partition,
            record_count=1000,
            file_size_in_bytes=size_bytes,
            value_counts={1: 1000},
            null_value_counts={1: 0},
            lower_bounds={1: low},
            upper_bounds={1: high},
        )
        for number in range(count)
    ]


def test_snapshots(catalog: icebench.Catalog) -> None:
    table = made(catalog, {**NEVER_WORTH_WAITING, "history.expire.max-snapshot-age-ms": "0"})
    table.append(rows(0, 10_000))
    table.overwrite(rows(0, 5))
    table.append(rows(5, 6))
    size = table.snapshots[0].summary["total-files-size"]
    history = table.maintenance.profile().history
    assert (history.snapshots, history.expirable_snapshots) == (3, 2)
    assert history.retained_bytes == history.expirable_bytes == int(size)
    table.create_tag("first", snapshot_id=table.snapshots[0].snapshot_id)
    assert table.maintenance.profile().history.expirable_bytes == 0
    assert table.maintenance.profile().history.tags == 1


def test_useless_bounds(catalog: icebench.Catalog) -> None:
    table = made(catalog, {"read.split.open-file-cost": "0"})
    for _ in range(3):
        table.append(rows(0, 10))
    reason = reasons(table)["useless-bounds"]
    assert set(reason.arguments) == {f"write.metadata.metrics.column.{name}" for name in ("id", "day", "text")}
    # Clustering goes by the bounds of its keys; a dropped column's property would be of the next column of its name.
    table.set_properties({"icebench.clustering.keys": "id"})
    table.update_schema(lambda schema: schema.drop_column("text"))
    assert set(reasons(table)["useless-bounds"].arguments) == {"write.metadata.metrics.column.day"}
    table.set_properties({name: str(value) for name, value in reason.arguments.items()})
    table.maintenance.rewrite_data_files(rewrite_all=True)
    assert "useless-bounds" not in reasons(table)


def test_small_partitions(catalog: icebench.Catalog) -> None:
    table = made(catalog, {"read.split.open-file-cost": "0"}, partition_spec=[("id", "identity")])
    for _ in range(3):
        table.append(rows(0, 10))
    assert "small-partitions" not in reasons(table)  # opens are free
    table.set_properties({"read.split.open-file-cost": str(1 << 20)})
    assert reasons(table)["small-partitions"].arguments == {"field": "id"}


@pytest.mark.parametrize("version", ["1", "2"])
def test_small_partitions_name_a_field_of_the_current_spec(catalog: icebench.Catalog, version: str) -> None:
    """Version 1 keeps a void field for one that was dropped."""
    table = made(catalog, {**NEVER_WORTH_WAITING, "format-version": version}, partition_spec=[("id", "identity")])
    table.append(rows(0, 10))
    table.update_spec(lambda spec: spec.add_field("day", "identity").add_field("text", "truncate[3]").drop_field("id"))
    table.append(rows(0, 20))
    assert reasons(table)["small-partitions"].arguments == {"field": "day"}
    table.update_spec(lambda spec: spec.drop_field("text_trunc_3"))
    assert reasons(table)["small-partitions"].arguments == {"field": "day"}


def test_forgotten_metadata(tmp_path: Path) -> None:
    with closing(icebench.load_catalog(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))) as catalog:
        catalog.create_namespace("db")
        _check_forgotten_metadata(catalog)


def _check_forgotten_metadata(catalog: icebench.Catalog) -> None:
    table = made(catalog, {"write.metadata.previous-versions-max": "2", "read.split.open-file-cost": "0"})
    for _ in range(5):
        table.append(rows(0, 1))
    history = table.maintenance.profile().history
    assert (history.metadata_log_files, history.forgotten_metadata_files) == (2, 3)
    assert reasons(table)["forgotten-metadata"].action == "remove_orphan_files"
    table.set_properties({"write.metadata.delete-after-commit.enabled": "true"})
    assert table.maintenance.profile().history.forgotten_metadata_files == 0


def test_a_read_only_table_has_a_profile(catalog: icebench.Catalog) -> None:
    table = made(catalog)
    table.append(rows(0, 10))
    opened = icebench.load_table(table.metadata_location)
    profile = opened.maintenance.profile()
    assert profile.files.records == 10
    assert profile.profiled_at_ms >= table.snapshots[0].timestamp_ms
    with pytest.raises(icebench.errors.NotFound, match="no snapshot 1 "):
        opened.maintenance.profile(snapshot_id=1)
    with pytest.raises(icebench.errors.Unsupported, match="read-only"):
        opened.maintenance.rewrite_manifests()
