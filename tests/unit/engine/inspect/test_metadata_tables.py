"""Metadata tables of histories that branch, of references and of partitions."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import icebench

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int32())])


@pytest.fixture
def table(tmp_path: Path) -> icebench.Table:
    return icebench.load_catalog(str(tmp_path)).create_table("db.t", SCHEMA)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "n": [2 * i for i in ids]}, SCHEMA)


def test_what_was_rolled_back_is_no_ancestor(table: icebench.Table) -> None:
    first, second = table.append(rows(1)), table.append(rows(2))
    table.rollback(snapshot_id=first.snapshot_id)
    third = table.append(rows(3))
    found = table.inspect.history().select(["snapshot_id", "parent_id", "is_current_ancestor"]).to_pylist()
    assert [tuple(each.values()) for each in found] == [
        (first.snapshot_id, None, True),
        (second.snapshot_id, first.snapshot_id, False),
        (first.snapshot_id, None, True),
        (third.snapshot_id, first.snapshot_id, True),
    ]


def test_references_and_their_ages(table: icebench.Table) -> None:
    first = table.append(rows(1))
    table.create_branch("b", max_ref_age_ms=7_000, max_snapshot_age_ms=5_000, min_snapshots_to_keep=3)
    table.create_tag("t", max_ref_age_ms=9_000)
    found = {each.pop("name"): each for each in table.inspect.refs().to_pylist()}
    assert {name: tuple(each.values()) for name, each in found.items()} == {
        "main": ("BRANCH", first.snapshot_id, None, None, None),
        "b": ("BRANCH", first.snapshot_id, 7_000, 3, 5_000),
        "t": ("TAG", first.snapshot_id, 9_000, None, None),
    }


def test_files_by_what_they_hold(table: icebench.Table) -> None:
    table.append(rows(1, 2, 3))
    table.delete("id = 1", "merge-on-read")
    stream = table.keyed_stream(["id"])
    stream.delete(pa.table({"id": [2]}))
    stream.commit()
    contents = {
        name: sorted(getattr(table.inspect, name)()["content"].to_pylist())
        for name in ("files", "data_files", "delete_files", "all_files", "all_delete_files")
    }
    assert contents == {
        "files": [0, 1, 2],
        "data_files": [0],
        "delete_files": [1, 2],
        "all_files": [0, 1, 2],
        "all_delete_files": [1, 2],
    }
    (file,) = table.inspect.data_files().to_pylist()
    bounds = [{i: int.from_bytes(b, "little") for i, b in file[name]} for name in ("lower_bounds", "upper_bounds")]
    assert bounds == [{1: 1, 2: 2}, {1: 3, 2: 6}]
    (whole,) = table.inspect.partitions().to_pylist()
    kinds = ("record_count", "position_delete_record_count", "position_delete_file_count", "equality_delete_file_count")
    assert [whole[kind] for kind in kinds] == [3, 1, 1, 1]


def test_deletion_vectors_are_delete_files_of_a_partition(table: icebench.Table) -> None:
    table.upgrade_format(3)
    table.append(rows(1, 2, 3))
    table.delete("id = 1", "merge-on-read")
    names = ["record_count", "position_delete_record_count", "position_delete_file_count"]
    assert table.inspect.partitions().select(names).to_pylist() == [dict(zip(names, (3, 1, 1), strict=True))]


def test_a_partition_is_of_the_spec_of_its_newest_file(tmp_path: Path) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", SCHEMA, partition_spec=[("id", "identity")])
    table.append(rows(1))
    table.update_spec(lambda spec: spec.add_field("n", "identity"))
    table.append(pa.table({"id": [1], "n": [None]}, SCHEMA))
    latest = table.current_snapshot
    assert latest is not None
    (found,) = table.inspect.partitions().select(["spec_id", "file_count", "last_updated_snapshot_id"]).to_pylist()
    assert tuple(found.values()) == (1, 2, latest.snapshot_id)


def test_partitions_of_two_specs_with_the_same_values_are_one(tmp_path: Path) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.p", SCHEMA, partition_spec=[("id", "identity")])
    table.append(rows(1, 1, 2))
    table.update_spec(lambda s: s.add_field("n", icebench.parse_transform("identity")))
    table.append(pa.table({"id": [1, None], "n": [None, 1]}, SCHEMA))
    names = ["partition", "record_count", "file_count"]
    table.append(pa.table({"id": [None, 2], "n": [2, None]}, SCHEMA))
    found = [tuple(each.values()) for each in table.inspect.partitions().select(names).to_pylist()]
    assert sorted(found, key=repr) == [
        ({"id": 1, "n": None}, 3, 2),
        ({"id": 2, "n": None}, 2, 2),
        ({"id": None, "n": 1}, 1, 1),
        ({"id": None, "n": 2}, 1, 1),
    ]
