"""Manifests without a live file: listed by the snapshot that removed the files, as the specification has it, and by
none after it."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.bench.errors import DatasetFailed
from icebench.bench.tables.table_builder import drop_leftover_manifests
from icebench.bench.tables.table_shape import check_manifests
from icebench.bench.truth.manifests import leftover_manifests, manifest_list
from icebench.bench.truth.metadata import load_table_json

Change = Callable[[icebench.Table], object]


def numbers(start: int, stop: int) -> pa.Table:
    return pa.table({"n": pa.array(range(start, stop), pa.int64())})


@pytest.fixture
def table(tmp_path: Path) -> icebench.Table:
    catalog = icebench.load_catalog(str(tmp_path))
    made = catalog.create_table("db.numbers", numbers(0, 0).schema, properties={"format-version": "2"})
    for start in (0, 10, 20):
        made.append(numbers(start, start + 10))
    return made


def leftovers_of(table: icebench.Table) -> list[str]:
    return leftover_manifests(load_table_json(table.metadata_location))


REMOVALS: dict[str, Change] = {
    "rewrite_data_files": lambda t: t.maintenance.rewrite_data_files(rewrite_all=True),
    "sort": lambda t: t.maintenance.rewrite_data_files("sort", sort_order=["n"], rewrite_all=True),
    "delete": lambda t: t.delete("n < 10", mode="copy-on-write"),
    "delete a part": lambda t: t.delete("n < 5", mode="copy-on-write"),
    "overwrite": lambda t: t.overwrite(numbers(25, 35)),
    "overwrite_partitions": lambda t: t.overwrite_partitions(numbers(25, 35)),
    "update": lambda t: t.update("n < 10", {"n": 100}, mode="copy-on-write"),
    "upsert": lambda t: t.upsert(numbers(5, 40), ["n"], mode="copy-on-write"),
}
NEXT: dict[str, Change] = {
    "append": lambda t: t.append(numbers(200, 210)),
    "rewrite_manifests": lambda t: t.maintenance.rewrite_manifests(),
    "delete by position": lambda t: t.delete("n = 29", mode="merge-on-read"),
    "rewrite_data_files": REMOVALS["rewrite_data_files"],
}


@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize("then", NEXT)
def test_the_next_snapshot_leaves_out_what_an_earlier_one_removed(
    table: icebench.Table, removal: str, then: str
) -> None:
    REMOVALS[removal](table)
    removed = leftovers_of(table)
    assert removed, "the snapshot that removes a file says so"
    NEXT[then](table)
    found = manifest_list(load_table_json(table.metadata_location))
    assert table.current_snapshot is not None
    own = {m["manifest_path"] for m in found if m["added_snapshot_id"] == table.current_snapshot.snapshot_id}
    assert set(leftovers_of(table)) <= own
    assert not {m["manifest_path"] for m in found} & set(removed)
    if then in ("append", "rewrite_manifests", "delete by position"):
        assert not leftovers_of(table)


@pytest.mark.parametrize("removal", REMOVALS)
def test_tables_that_are_measured_have_none(table: icebench.Table, removal: str) -> None:
    REMOVALS[removal](table)
    rows = table.scan().to_arrow().sort_by("n")
    with pytest.raises(DatasetFailed, match=r"numbers lists \d manifests? without a live file"):
        check_manifests("numbers", table.metadata_location)
    drop_leftover_manifests(table)
    check_manifests("numbers", table.metadata_location)
    assert table.scan().to_arrow().sort_by("n") == rows
    before = table.metadata_location
    drop_leftover_manifests(table)
    assert table.metadata_location == before


def test_a_table_without_rows_lists_no_manifest(table: icebench.Table) -> None:
    table.delete("n >= 0", mode="copy-on-write")
    assert leftovers_of(table)
    drop_leftover_manifests(table)
    assert manifest_list(load_table_json(table.metadata_location)) == []
    assert table.scan().to_arrow().num_rows == 0
