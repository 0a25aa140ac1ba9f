"""Tables in another place than their metadata say, and tables whose metadata have relative locations."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icebench
from icebench.engine.spec.metadata_columns import DELETE_FILE_PATH_ID
from icebench.engine.storage import resolve
from icebench.errors import FileNotFound, RelocationWarning, StorageFailed, Unsupported
from tests.unit.engine.test_contradictions import rewrite

SCHEMA = pa.schema([pa.field("id", pa.int64())])

pytestmark = pytest.mark.filterwarnings("ignore::icebench.engine.errors.ContradictionWarning")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The directory of a table with position deletes, and with a deletion vector."""
    table = icebench.load_catalog(f"{tmp_path}/wh").create_table("db.t", SCHEMA)
    table.append(pa.table({"id": range(10)}))
    table.delete("id = 3", mode="merge-on-read")
    return Path(table.location)


def ids(table: icebench.Table) -> list[int]:
    found: list[int] = table.scan().to_arrow()["id"].to_pylist()
    return sorted(found)


LIVE = [i for i in range(10) if i != 3]


def respell(place: Path, spelled: Callable[[str], str]) -> None:
    """Change all locations of a table, in its metadata and position deletes."""

    def of_entry(entry: dict[str, Any]) -> dict[str, Any]:
        file = {**entry["data_file"], "file_path": spelled(entry["data_file"]["file_path"])}
        for name in ("lower_bounds", "upper_bounds"):
            is_path = [bound["key"] == DELETE_FILE_PATH_ID for bound in file[name] or ()]
            file[name] = [
                {**bound, "value": spelled(bound["value"].decode()).encode()} if own else bound
                for bound, own in zip(file[name] or (), is_path, strict=True)
            ]
        if file.get("referenced_data_file"):
            file["referenced_data_file"] = spelled(file["referenced_data_file"])
        return {**entry, "data_file": file}

    for listed in (place / "metadata").glob("snap-*.avro"):
        rewrite(str(listed), lambda all_: [{**m, "manifest_path": spelled(m["manifest_path"])} for m in all_])
    for manifest in (place / "metadata").glob("*-m*.avro"):
        rewrite(str(manifest), lambda entries: [of_entry(e) for e in entries])
    for deletes in (place / "data").glob("*delete*.parquet"):
        found = pq.read_table(deletes)
        paths = pa.array([spelled(path) for path in found["file_path"].to_pylist()])
        pq.write_table(found.set_column(0, found.schema.field("file_path"), paths), deletes)
    for metadata in (place / "metadata").glob("*.metadata.json"):
        content = json.loads(metadata.read_text())
        content["location"] = spelled(content["location"])
        for snapshot in content["snapshots"]:
            snapshot["manifest-list"] = spelled(snapshot["manifest-list"])
        metadata.write_text(json.dumps(content))


def test_a_table_at_home_is_not_moved(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "wh")
    for location in (str(place), f"file:{place}", f"file://{place}", "wh/db/t", "./wh/db/t/", "link/db/t"):
        table = icebench.load_table(location)
        assert ids(table) == LIVE
        (path,) = table.scan().plan().files["file_path"].to_pylist()
        assert table.store.physical(path) == path


@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_a_moved_table_is_read_where_it_is(place: Path, tmp_path: Path, prefix: str) -> None:
    moved = tmp_path / "moved" / "to here"
    moved.parent.mkdir()
    shutil.move(place, moved)
    with pytest.warns(
        RelocationWarning, match=f"its metadata name {place}, and its files are read from {prefix}{moved};"
    ):
        table = icebench.load_table(f"{prefix}{moved}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ids(table) == LIVE
        assert ids(table) == LIVE
    assert table.location == str(place)
    with pytest.raises(Unsupported, match="read-only"):
        table.append(pa.table({"id": [1]}))
    with pytest.raises(Unsupported, match="read-only"):
        table.maintenance.remove_orphan_files()
    with pytest.raises(FileNotFound, match=str(place)):
        ids(icebench.load_table(str(moved), relocate={}))


def test_a_moved_table_without_files_is_read(tmp_path: Path) -> None:
    place = icebench.load_catalog(f"{tmp_path}/wh").create_table("db.t", SCHEMA).location
    shutil.move(place, tmp_path / "moved")
    with pytest.warns(RelocationWarning):
        assert ids(icebench.load_table(f"{tmp_path}/moved")) == []


def test_a_copy_beside_its_original_is_read_as_its_metadata_say(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place, tmp_path / "copy")
    (path,) = icebench.load_table(f"{tmp_path}/copy").scan().plan().files["file_path"].to_pylist()
    assert path.startswith(str(place))
    assert icebench.load_table(f"{tmp_path}/copy").store.physical(path) == path


def test_metadata_without_files_beside_them_are_no_moved_table(place: Path, tmp_path: Path) -> None:
    (tmp_path / "x" / "metadata").mkdir(parents=True)
    for each in (place / "metadata").glob("*.metadata.json"):
        shutil.copy(each, tmp_path / "x" / "metadata")
    shutil.copy(place / "metadata" / "version-hint.text", tmp_path / "x" / "metadata")
    assert ids(icebench.load_table(f"{tmp_path}/x")) == LIVE
    shutil.rmtree(place)
    with pytest.raises(FileNotFound, match=str(place)):
        ids(icebench.load_table(f"{tmp_path}/x"))


@pytest.mark.parametrize("stated", ["hdfs://namenode:1/wh/t", "s3://bucket/wh/t", "unheard-of://x/t"])
@pytest.mark.parametrize("relocated", [False, True])
def test_the_storage_that_a_table_was_copied_from_is_not_opened(
    place: Path, stated: str, relocated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    respell(place, lambda location: location.replace(str(place), stated))
    assert stated in (place / "metadata" / "v3.metadata.json").read_text()

    def no_client(scheme: str, location: str, _: object, **__: object) -> None:
        raise StorageFailed(f"{scheme} opened for {location}")

    monkeypatch.setattr(resolve, "object_store", no_client)
    if relocated:
        assert ids(icebench.load_table(str(place), relocate={stated: str(place)})) == LIVE
        return
    with pytest.warns(RelocationWarning, match=stated):
        assert ids(icebench.load_table(str(place))) == LIVE


def test_locations_without_scheme_are_those_of_the_clusters_file_system(place: Path) -> None:
    # Impala's: the table's location has the name node, and its manifests do not.
    def spelled(location: str) -> str:
        rest = location.replace(str(place), "")
        return f"/wh/t{rest}" if rest else "hdfs://namenode:20500/wh/t"

    respell(place, spelled)
    with pytest.warns(RelocationWarning):
        assert ids(icebench.load_table(str(place))) == LIVE


@pytest.mark.parametrize("pattern", ["{}", "./{}"])
@pytest.mark.parametrize("base", ["", "db/t", "wh/db/t", "elsewhere/t"])
def test_relative_locations_begin_at_the_table(place: Path, base: str, pattern: str) -> None:
    def spelled(location: str) -> str:
        rest = location.replace(str(place), "").lstrip("/")
        if not rest and not base:
            return str(place)  # only the files have relative locations
        odd = pattern if rest.endswith(".parquet") else "{}"
        return odd.format(f"{base}/{rest}".strip("/"))

    respell(place, spelled)
    assert ids(icebench.load_table(str(place))) == LIVE


def test_a_file_beside_a_table_of_relative_locations_is_found(place: Path) -> None:
    (data,) = [f for f in (place / "data").iterdir() if "delete" not in f.name]
    outside = place.parents[1] / "outside.parquet"
    shutil.move(data, outside)

    def spelled(location: str) -> str:
        return "wh/outside.parquet" if location == str(data) else location.replace(str(place.parents[2]) + "/", "")

    table = icebench.load_table(str(place), relocate={})
    assert table.scan().plan().files.num_rows == 1
    respell(place, spelled)
    found = icebench.load_table(str(place))
    (path,) = found.scan().plan().files["file_path"].to_pylist()
    assert found.store.physical(path) == str(outside)
