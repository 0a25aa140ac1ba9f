from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icebench
from icebench.engine.catalog.filesystem import FileSystemCatalog
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.target import Target
from icebench.engine.maintenance import purge
from icebench.engine.maintenance.remove_orphan_files import list_own_files
from icebench.engine.storage.store import FileInfo
from icebench.errors import CommitConflict, Invalid, NotFound

ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture(params=["sql", "directory"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> icebench.Catalog:
    if request.param == "directory":
        return icebench.load_catalog(str(tmp_path / "wh"))
    return icebench.load_catalog(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "wh"))


def files_of(tmp_path: Path) -> set[str]:
    return {p.name for p in tmp_path.rglob("*") if p.suffix in (".parquet", ".avro", ".json", ".puffin")}


def test_nothing_of_the_table_is_left_and_all_of_others(catalog: icebench.Catalog, tmp_path: Path) -> None:
    kept = catalog.create_table("db.kept", ROWS.schema, properties={"write.data.path": str(tmp_path / "shared")})
    kept.append(ROWS)
    before = files_of(tmp_path)
    table = catalog.create_table_if_not_exists(
        "db.t", ROWS.schema, properties={"write.data.path": str(tmp_path / "shared"), "format-version": "3"}
    )
    assert catalog.create_table_if_not_exists("db.t", pa.schema([])).metadata.table_uuid == table.metadata.table_uuid
    table.append(ROWS)
    table.delete("id = 1", "merge-on-read")
    assert len(files_of(tmp_path)) > len(before)
    catalog.purge_table("db.t")
    assert files_of(tmp_path) == before
    assert kept.scan().count() == 3
    with pytest.raises(NotFound):
        catalog.drop_table("db.t", purge=True)


@pytest.mark.parametrize("purges", [False, True])
@pytest.mark.parametrize("inside", ["data", "data/b", "metadata/b", "b"])
def test_data_of_another_table_in_the_directory_stays(
    inside: str, catalog: icebench.Catalog, tmp_path: Path, *, purges: bool
) -> None:
    """Other engines make such tables, and here one can come before the other."""
    outer = tmp_path / "wh" / "db" / "a"
    other = catalog.create_table("db.b", ROWS.schema, properties={"write.data.path": str(outer / inside)})
    table = catalog.create_table("db.a", ROWS.schema)
    assert table.location == str(outer)
    other.append(ROWS)
    before = files_of(outer)
    table.append(ROWS)
    catalog.drop_table("db.a", purge=purges)
    assert catalog.load_table("db.b").scan().to_arrow().num_rows == 3
    if purges or isinstance(catalog._inner, FileSystemCatalog):
        assert files_of(outer) == {name for name in before if name.endswith(".parquet")}


def test_files_that_nothing_refers_to_stay(catalog: icebench.Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    orphans = [Path(table.location, "data", "x.parquet"), Path(table.location, "metadata", "y.avro")]
    for orphan in orphans:
        orphan.write_bytes(b"x")
    catalog.purge_table("db.t")
    assert files_of(tmp_path) == {orphan.name for orphan in orphans}


def test_statistics_below_the_metadata_path_go(tmp_path: Path) -> None:
    catalog = icebench.load_catalog(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "wh"))
    table = catalog.create_table(
        "db.t",
        ROWS.schema,
        partition_spec=[("id", "identity")],
        properties={"write.metadata.path": str(tmp_path / "elsewhere")},
    )
    table.append(ROWS)
    table.maintenance.compute_table_stats()
    table.maintenance.compute_partition_stats()
    elsewhere = tmp_path / "elsewhere"
    assert {".stats", ".parquet"} < {path.suffix for path in elsewhere.rglob("*")}
    catalog.purge_table("db.t")
    assert [path for path in elsewhere.rglob("*") if path.is_file()] == []


def test_files_that_others_may_need_stay_with_the_table(catalog: icebench.Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties={"gc.enabled": "false"})
    table.append(ROWS)
    before = files_of(tmp_path)
    with pytest.raises(Invalid, match=r"gc\.enabled is false"):
        catalog.purge_table("db.t")
    assert files_of(tmp_path) == before
    assert catalog.load_table("db.t").scan().count() == 3


def test_a_table_that_was_renamed_meanwhile_stays_and_so_does_the_one_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = icebench.load_catalog(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "wh"))
    for name, rows in (("db.t", ROWS), ("db.new", ROWS.slice(1))):
        catalog.create_table(name, ROWS.schema).append(rows)
    before = files_of(tmp_path)

    def listed_slowly(*arguments: Any) -> list[FileInfo]:
        found = list(list_own_files(*arguments))
        catalog.rename_table("db.t", "db.old")
        catalog.rename_table("db.new", "db.t")
        return found

    monkeypatch.setattr(purge, "list_own_files", listed_slowly)
    with pytest.raises(CommitConflict, match=r"db\.t was changed, or another table got its name: it was not dropped"):
        catalog.purge_table("db.t")
    assert files_of(tmp_path) == before
    assert [catalog.load_table(name).scan().count() for name in ("db.old", "db.t")] == [3, 2]


def test_a_table_that_is_made_anew_in_the_same_directory_stays(catalog: icebench.Catalog, tmp_path: Path) -> None:
    catalog.create_table("db.t", ROWS.schema).append(ROWS)
    inner = catalog._inner
    own = Target(committer=inner, identifier=("db", "t"), store=inner.store_at(str(tmp_path)))

    def drop(base: TableState) -> None:
        inner.drop_table(("db", "t"), base=base)
        catalog.create_table("db.t", ROWS.schema).append(ROWS.slice(1))

    purge.purge(own, drop)
    assert catalog.load_table("db.t").scan().count() == 2


@pytest.mark.parametrize("purges", [False, True])
def test_what_a_killed_creation_left_is_named_with_what_to_do(tmp_path: Path, *, purges: bool) -> None:
    catalog = icebench.load_catalog(str(tmp_path / "wh"))
    killed = catalog.create_table_transaction("db.t", ROWS.schema)
    killed.append(ROWS)
    left = {name for name in files_of(tmp_path) if not name.startswith("staged-")}
    catalog.create_table("db.t", ROWS.schema)
    with pytest.raises(Invalid, match="if that transaction was killed, delete this file and try again") as refused:
        catalog.drop_table("db.t", purge=purges)
    found = re.search(r"(\S+/staged-\S+\.metadata\.json) says", str(refused.value))
    assert found is not None
    Path(found[1].removeprefix("file://")).unlink()
    catalog.drop_table("db.t", purge=purges)
    assert files_of(tmp_path) == left


@pytest.mark.parametrize("kind", ["manifest_list", "manifest"])
@pytest.mark.parametrize("purges", [False, True])
def test_a_missing_manifest_is_no_obstacle(
    kind: str, catalog: icebench.Catalog, tmp_path: Path, *, purges: bool
) -> None:
    """What only the missing file leads to stays: a manifest and its data file, or a data file."""
    table = catalog.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    table.append(ROWS)
    snapshot = table.current_snapshot
    assert snapshot is not None
    missing = snapshot.manifest_list if kind == "manifest_list" else table.inspect.manifests()["path"][0].as_py()
    Path(str(missing)).unlink()
    before = files_of(tmp_path)
    catalog.drop_table("db.t", purge=purges)
    assert not catalog.table_exists("db.t")
    left = sorted(Path(name).suffix for name in files_of(tmp_path))
    if purges or not (tmp_path / "catalog.db").exists():
        assert left == ([".avro", ".parquet"] if kind == "manifest_list" else [".parquet"])
    else:
        assert files_of(tmp_path) == before
