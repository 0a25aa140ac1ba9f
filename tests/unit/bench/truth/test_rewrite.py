import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import icebench
from icebench.bench.errors import DatasetFailed
from icebench.bench.truth.manifests import live_files, manifest_list, read_avro
from icebench.bench.truth.metadata import TableJson, load_table_json
from icebench.bench.truth.rewrite import Move, relocated, without_deletes
from icebench.engine.codec.puffin.file import read_footer
from tests.unit.bench.execution.scripted import small_table


@pytest.fixture
def moved(tmp_path: Path) -> tuple[str, Path]:
    """Where a table was, and its directory now."""
    location = small_table(tmp_path / "old", partitioned=True)
    before = Path(location).parents[1]
    after = tmp_path / "new" / "place"
    shutil.copytree(before, after)
    shutil.rmtree(tmp_path / "old")
    return str(before), after


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def from_to(old: object, new: object) -> Move:
    """Another prefix of locations, as the engine has it."""
    return lambda location: location.removeprefix("file://").replace(str(old).removeprefix("file://"), str(new), 1)


def test_a_table_that_was_moved_is_readable(moved: tuple[str, Path], work: Path) -> None:
    before, after = moved
    table = load_table_json(str(after))
    location = relocated(table, work, from_to(before, after))
    files = live_files(load_table_json(location))
    assert len(files) > 4
    assert all(Path(file.path).is_file() and file.path.startswith(str(after)) for file in files)
    assert StaticTable.from_metadata(location).scan().to_arrow().num_rows == 400
    assert StaticTable.from_metadata(location).scan(row_filter="name = 'n3'").to_arrow().num_rows == 57


def test_nothing_is_written_near_the_table(moved: tuple[str, Path], work: Path) -> None:
    before, after = moved
    files = sorted(path for path in after.rglob("*"))
    relocated(load_table_json(str(after)), work, from_to(before, after))
    assert sorted(path for path in after.rglob("*")) == files


def test_a_wrong_prefix_is_reported(moved: tuple[str, Path], work: Path) -> None:
    _, after = moved
    table = load_table_json(str(after))
    with pytest.raises(DatasetFailed, match=r"no such file: .*/nowhere/"):
        relocated(table, work, from_to(table.values["location"], "/nowhere"))


def test_deletion_vectors_move_with_their_data_files(tmp_path: Path, work: Path) -> None:
    schema, version = pa.schema([("n", pa.int64())]), {"format-version": "3"}
    table = icebench.load_catalog(str(tmp_path / "wh")).create_table("a.b", schema, properties=version)
    table.append(pa.table({"n": [1, 2, 3]}))
    table.delete("n = 2", "merge-on-read")
    (tmp_path / "new").mkdir()
    moved = shutil.move(table.location, tmp_path / "new")
    original = load_table_json(str(moved))
    copy = load_table_json(relocated(original, work, from_to(table.location, moved)))
    entries = [e["data_file"] for m in manifest_list(copy) for e in read_avro(m["manifest_path"])]
    (vectors,) = {f["file_path"] for f in entries if f["content"] == 1}
    footer = read_footer(Path(vectors).read_bytes())
    assert [blob.properties["referenced-data-file"] for blob in footer.blobs] == [
        f["file_path"] for f in entries if f["content"] == 0
    ]


def test_entries_of_removed_files_are_left_out(tmp_path: Path, work: Path) -> None:
    table = icebench.load_catalog(str(tmp_path / "wh")).create_table("a.b", pa.schema([("n", pa.int64())]))
    for n in (1, 2):
        table.append(pa.table({"n": [n]}))
    table.delete("n = 1", "copy-on-write")
    original = load_table_json(table.location)
    assert 2 in statuses(original)
    copy = load_table_json(relocated(original, work, str))
    assert 2 not in statuses(copy)
    assert live_files(copy) == live_files(original)


def statuses(table: TableJson) -> set[int]:
    return {entry["status"] for manifest in manifest_list(table) for entry in read_avro(manifest["manifest_path"])}


def test_without_deletes_a_table_stays_what_it_is(tmp_path: Path, work: Path) -> None:
    table = load_table_json(small_table(tmp_path))
    copy = without_deletes(table, work)
    assert live_files(load_table_json(copy)) == live_files(table)
    assert StaticTable.from_metadata(copy).scan().to_arrow().num_rows == 400


def test_a_table_without_a_snapshot_cannot_be_rewritten(work: Path) -> None:
    table = TableJson("m", {"format-version": 2, "location": "/t", "snapshots": []})
    with pytest.raises(DatasetFailed, match="m has no snapshot with a manifest list"):
        without_deletes(table, work)
