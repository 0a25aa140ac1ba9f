"""`table.maintenance.remove_orphan_files` deletes what nothing leads to, and no live file however it is spelled."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icebench
from icebench.engine.codec.metadata_json.table import encode_metadata
from icebench.engine.commit.committer import Committed
from icebench.engine.plan.reachable_files import Reach
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.statistics import PartitionStatisticsFile, StatisticsFile
from icebench.engine.spec.updates import SetLocation, SetPartitionStatistics, SetProperties, SetStatistics, TableUpdate
from icebench.engine.storage.local import LocalStore
from icebench.engine.storage.store import FileInfo
from icebench.errors import FileNotFound, Invalid

SCHEMA = pa.schema([pa.field("id", pa.int64())])
NEVER = "2999-01-01T00:00:00Z"
"""Everything is older than this."""


def numbers(start: int, count: int = 4) -> pa.Table:
    return pa.table({"id": range(start, start + count)}, schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> icebench.Table:
    made = icebench.load_catalog(str(tmp_path / "wh")).create_table("db.t", SCHEMA)
    made.append(numbers(0))
    return made


@pytest.fixture
def catalog(tmp_path: Path) -> icebench.Catalog:
    """One whose tables can be anywhere."""
    return icebench.load_catalog(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "wh"))


def ids(table: icebench.Table) -> list[int]:
    found: list[int] = table.refresh().scan().to_arrow()["id"].to_pylist()
    return sorted(found)


def stored(table: icebench.Table) -> set[str]:
    return {info.location for info in table.store.list(table.location)}


def remove(table: icebench.Table, older_than: str = NEVER) -> set[str]:
    """What was removed."""
    return set(table.maintenance.remove_orphan_files(older_than=older_than, dry_run=False).locations)


def commit(table: icebench.Table, *updates: TableUpdate) -> None:
    committer = table._committer
    assert committer is not None
    base = committer.load_state(table._identifier)
    assert isinstance(committer.commit(table._identifier, base, [], updates), Committed)
    table.refresh()


def test_only_old_ones_and_only_when_asked(table: icebench.Table) -> None:
    table.maintenance.build_index("id")
    kept = stored(table)
    orphans = {f"{table.location}/data/x.parquet", f"{table.location}/metadata/y.avro"}
    for orphan in orphans:
        table.store.write(orphan, b"12")
    assert table.maintenance.remove_orphan_files().locations == ()
    found = table.maintenance.remove_orphan_files(older_than=NEVER)
    assert (set(found.locations), found.size_bytes, found.deleted) == (orphans, 4, 0)
    found = table.maintenance.remove_orphan_files(older_than=NEVER, dry_run=False)
    assert (found.deleted, stored(table)) == (2, kept)
    assert ids(table) == [0, 1, 2, 3]


SPELLINGS: dict[str, Callable[[Path], str]] = {
    "parent": lambda home: f"{home}/other/../wh/t",
    "empty segment": lambda home: f"{home}//wh///t",
    "dot": lambda home: f"{home}/wh/./t",
    "slash at the end": lambda home: f"{home}/wh/t/",
    "uri": lambda home: f"file://{home}/wh/t",
    "hadoop uri": lambda home: f"file:{home}/wh/t",
    "uri with a parent": lambda home: f"file://{home}/other/..//wh/t",
    "symbolic link": lambda home: f"{home}/link/t",
}


@pytest.mark.parametrize("later", [False, True], ids=["first", "later"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_live_files_stay_however_they_are_spelled(
    spelling: str, later: bool, tmp_path: Path, catalog: icebench.Catalog
) -> None:
    spelled = [SPELLINGS[spelling](tmp_path), f"{tmp_path}/wh/t"]
    first, then = reversed(spelled) if later else spelled
    for name in ("other", "wh"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("wh")
    table = catalog.create_table("db.t", SCHEMA, location=f"{tmp_path}/wh/t")
    commit(table, SetLocation(first))
    table.append(numbers(0))
    commit(table, SetLocation(then))
    table.append(numbers(4))
    orphan = tmp_path / "wh" / "t" / "data" / "orphan.parquet"
    orphan.write_bytes(b"x")
    removed = remove(table)
    assert [os.path.realpath(each.removeprefix("file://").removeprefix("file:")) for each in removed] == [str(orphan)]
    assert ids(table) == list(range(8))
    table.maintenance.rewrite_manifests()
    done = table.maintenance.expire_snapshots(older_than=NEVER)
    assert (done.deleted_manifest_lists, done.deleted_manifests, done.deleted_data_files) == (2, 2, 0)
    assert ids(table) == list(range(8))


def test_the_age_limit_itself_is_not_old(table: icebench.Table) -> None:
    times = {"older": 1_000_000, "limit": 1_000_001, "younger": 1_000_002}
    for name, modified_ms in times.items():
        path = Path(table.location, "data", name)
        path.write_bytes(b"x")
        os.utime(path, ns=(0, modified_ms * 1_000_000))
    assert remove(table, "1970-01-01T00:16:40.001Z") == {f"{table.location}/data/older"}


def test_what_is_committed_while_files_are_listed_stays(table: icebench.Table, tmp_path: Path) -> None:
    real, other = LocalStore.list, icebench.load_catalog(str(tmp_path / "wh")).load_table("db.t")
    waiting: list[Callable[[], object]] = [lambda: other.append(numbers(4))]

    def listing(store: LocalStore, prefix: str) -> Iterator[FileInfo]:
        if waiting:
            waiting.pop()()
        return real(store, prefix)

    with patch.object(LocalStore, "list", listing):
        assert remove(table) == set()
    assert ids(table) == list(range(8))


def test_what_is_committed_while_manifests_are_read_stays(table: icebench.Table, tmp_path: Path) -> None:
    slow = shutil.copy(next(Path(table.location, "data").glob("*.parquet")), f"{table.location}/data/slow.parquet")
    rows = pq.read_metadata(slow).num_rows
    file = DataFile(
        file_path=slow, file_format="parquet", record_count=rows, file_size_in_bytes=Path(slow).stat().st_size
    )
    before = len(ids(table))
    real, other = Reach.all_of, icebench.load_catalog(str(tmp_path / "wh")).load_table("db.t")
    waiting: list[Callable[[], object]] = [lambda: other.add_files([file])]

    def all_of(reach: Reach, metadata: TableMetadata, location: str, *, may_be_missing: bool) -> dict[str, str]:
        found = real(reach, metadata, location, may_be_missing=may_be_missing)
        if waiting:
            waiting.pop()()
        return found

    with patch.object(Reach, "all_of", all_of):
        assert remove(table) == set()
    assert len(ids(table)) == before + rows


@pytest.mark.parametrize("kind", ["manifest_list", "manifest"])
def test_nothing_is_deleted_where_what_leads_to_files_is_missing(table: icebench.Table, kind: str) -> None:
    snapshot = table.current_snapshot
    assert snapshot is not None
    missing = snapshot.manifest_list if kind == "manifest_list" else table.inspect.manifests()["path"][0].as_py()
    Path(str(missing)).unlink()
    before = stored(table)
    with pytest.raises(FileNotFound):
        remove(table)
    assert stored(table) == before


def test_statistics_of_both_kinds_stay(table: icebench.Table) -> None:
    snapshot = table.current_snapshot
    assert snapshot is not None
    paths = [f"{table.location}/metadata/{name}.stats" for name in ("of-table", "of-partitions", "of-none")]
    for path in paths:
        table.store.write(path, b"x")
    table_statistics = StatisticsFile(
        snapshot_id=snapshot.snapshot_id,
        statistics_path=paths[0],
        file_size_in_bytes=1,
        file_footer_size_in_bytes=1,
    )
    partitions = PartitionStatisticsFile(
        snapshot_id=snapshot.snapshot_id, statistics_path=paths[1], file_size_in_bytes=1
    )
    commit(table, SetStatistics(table_statistics), SetPartitionStatistics(partitions))
    assert remove(table) == {paths[2]}


def test_versions_of_a_directory_catalog_stay(table: icebench.Table) -> None:
    """A name that was free again would let a writer that slept commit an old version."""
    table.set_properties({"write.metadata.previous-versions-max": "1"})
    for n in range(6):
        table.append(numbers(4 * n))
    before = stored(table)
    assert len(table.metadata.metadata_log) == 1
    assert remove(table) == set()
    assert stored(table) == before


def test_only_metadata_files_are_versions(table: icebench.Table) -> None:
    paths = {f"{table.location}/data/version-hint.text", f"{table.location}/metadata/old/version-hint.text"}
    for path in paths:
        table.store.write(path, b"x")
    assert remove(table) == paths


def refused(table: icebench.Table, reason: str) -> None:
    """Nothing goes, not even orphans, and nothing is reported as one."""
    table.store.write(f"{table.location}/data/orphan", b"x", overwrite=True)
    before = stored(table)
    for dry_run in (True, False):
        with pytest.raises(Invalid, match=reason):
            table.maintenance.remove_orphan_files(older_than=NEVER, dry_run=dry_run)
    assert stored(table) == before


class TestOwnership:
    """Files of others among those of a table."""

    @pytest.mark.parametrize("form", ["plain", "gzip", "uuid beyond the head"])
    def test_another_table_at_the_same_place(self, form: str, table: icebench.Table, catalog: icebench.Catalog) -> None:
        other = catalog.create_table("db.other", SCHEMA)
        data = encode_metadata(other.metadata)
        if form == "gzip":
            data = gzip.compress(data)
        elif form == "uuid beyond the head":
            data = data.replace(b"{", b'{"a":"' + b"x" * 10_000 + b'",', 1)
        table.store.write(f"{table.location}/metadata/00000-other.metadata.json", data)
        refused(table, r"00000-other\.metadata\.json is the metadata of another table")

    def test_a_view_at_the_same_place(self, table: icebench.Table, catalog: icebench.Catalog) -> None:
        catalog.create_view("db.v", {"spark": "select 1"}, SCHEMA, location=table.location)
        refused(table, "metadata of another table or view")

    @pytest.mark.parametrize("inside", ["data/inner", "metadata/inner"])
    def test_a_table_inside(self, inside: str, table: icebench.Table, tmp_path: Path) -> None:
        inner = icebench.load_catalog(f"{table.location}/{inside.split('/', maxsplit=1)[0]}").create_table(
            "inner.u", SCHEMA
        )
        inner.append(numbers(0))
        refused(table, r"v1\.metadata\.json is the metadata of another table")
        assert ids(inner) == [0, 1, 2, 3]

    def test_a_young_one(self, table: icebench.Table, catalog: icebench.Catalog) -> None:
        """Its data may be old all the same."""
        data = encode_metadata(catalog.create_table("db.other", SCHEMA).metadata)
        table.store.write(f"{table.location}/metadata/00000-other.metadata.json", data)
        with pytest.raises(Invalid, match="another table"):
            remove(table, "1970-01-01T00:16:40Z")

    def test_a_copy_of_the_metadata_elsewhere(
        self, table: icebench.Table, tmp_path: Path, catalog: icebench.Catalog
    ) -> None:
        copy = tmp_path / "copy.metadata.json"
        copy.write_bytes(table.store.read(table.metadata_location))
        registered = catalog.register_table("db.copy", str(copy))
        table.append(numbers(4))
        refused(registered, "is not below its location")
        assert ids(table) == list(range(8))

    def test_metadata_of_another_directory(self, tmp_path: Path, catalog: icebench.Catalog) -> None:
        table = catalog.create_table("db.t", SCHEMA, properties={"write.metadata.path": f"{tmp_path}/md"})
        table.append(numbers(0))
        orphan = f"{table.location}/data/orphan"
        table.store.write(orphan, b"x")
        assert remove(table) == {orphan}

    def test_own_metadata_and_what_is_none(self, catalog: icebench.Catalog) -> None:
        table = catalog.create_table("db.t", SCHEMA, properties={"write.metadata.previous-versions-max": "1"})
        table.append(numbers(0))
        table.append(numbers(4))
        first = {each for each in stored(table) if "/metadata/00000-" in each}
        torn = {
            f"{table.location}/metadata/0000{n}-torn.metadata.json": data for n, data in enumerate((b"", b"{", b"1"))
        }
        for location, data in torn.items():
            table.store.write(location, data)
        assert remove(table) == {*first, *torn}
        assert ids(table) == list(range(8))


def test_metadata_of_a_first_version_without_uuid_is_known_by_its_location(
    tmp_path: Path, catalog: icebench.Catalog
) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    own = b'{"format-version":1,"location":"file://' + table.location.encode() + b'/"}'
    table.store.write(f"{table.location}/metadata/00000-own.metadata.json", own)
    assert remove(table) == {f"{table.location}/metadata/00000-own.metadata.json"}
    other = b'{"format-version":1,"location":"/elsewhere"}'
    table.store.write(f"{table.location}/metadata/00000-other.metadata.json", other)
    refused(table, "metadata of another table")


def test_a_name_that_was_given_again(catalog: icebench.Catalog) -> None:
    old = catalog.create_table("db.t", SCHEMA)
    old.append(numbers(0))
    old = catalog.rename_table("db.t", "db.old")
    new = catalog.create_table("db.t", SCHEMA)
    new.append(numbers(4))
    for table, rows in ((old, [0, 1, 2, 3]), (new, [4, 5, 6, 7])):
        orphan = f"{table.location}/data/orphan"
        table.store.write(orphan, b"x")
        assert remove(table) == {orphan}
        assert ids(table) == rows
    assert ids(old) == [0, 1, 2, 3]


class TestOutside:
    """Files that a table names and that are not in its own locations."""

    def test_added_files_are_left_when_their_snapshot_expires(self, table: icebench.Table, tmp_path: Path) -> None:
        theirs = tmp_path / "landing" / "x.parquet"
        theirs.parent.mkdir()
        theirs.write_bytes(b"x")
        described = icebench.DataFile(
            file_path=str(theirs), file_format="parquet", record_count=1, file_size_in_bytes=1
        )
        table.add_files([described])
        table.overwrite(numbers(4))
        done = table.maintenance.expire_snapshots(older_than=NEVER)
        assert (done.outside, done.deleted_data_files, done.not_deleted) == ((str(theirs),), 1, ())
        assert theirs.exists()

    @pytest.mark.parametrize(
        "spelled",
        ["{wh}/db/t/data/../../../../secret", "file://{wh}/../secret", "{wh}/db/t2/secret", "{wh}/db/t/out/secret"],
    )
    def test_no_spelling_gets_out(self, spelled: str, table: icebench.Table, tmp_path: Path) -> None:
        (tmp_path / "wh" / "db" / "t2").mkdir()
        (tmp_path / "wh" / "db" / "t" / "out").symlink_to(tmp_path)
        secrets = [tmp_path / "secret", tmp_path / "wh" / "db" / "t2" / "secret"]
        for secret in secrets:
            secret.write_bytes(b"x")
        path = spelled.format(wh=tmp_path / "wh")
        described = icebench.DataFile(file_path=path, file_format="parquet", record_count=1, file_size_in_bytes=1)
        table.add_files([described])
        table.overwrite(numbers(4))
        assert table.maintenance.expire_snapshots(older_than=NEVER).outside == (path,)
        assert all(secret.exists() for secret in secrets)

    @pytest.mark.parametrize("name", ["write.data.path", "write.object-storage.path", "write.folder-storage.path"])
    def test_directories_that_properties_name_are_own(self, name: str, table: icebench.Table, tmp_path: Path) -> None:
        path = tmp_path / "elsewhere" / "x.parquet"
        path.parent.mkdir()
        path.write_bytes(b"x")
        commit(table, SetProperties({name: f"file://{tmp_path}//elsewhere/"}))
        described = icebench.DataFile(file_path=str(path), file_format="parquet", record_count=1, file_size_in_bytes=1)
        table.add_files([described])
        table.overwrite(numbers(4))
        done = table.maintenance.expire_snapshots(older_than=NEVER)
        assert (done.outside, done.deleted_data_files, path.exists()) == ((), 2, False)

    def test_nobody_owns_the_root(self, table: icebench.Table, tmp_path: Path) -> None:
        path = tmp_path / "x.parquet"
        path.write_bytes(b"x")
        commit(table, SetProperties({"write.data.path": "/", "write.object-storage.path": "file:///"}))
        described = icebench.DataFile(file_path=str(path), file_format="parquet", record_count=1, file_size_in_bytes=1)
        table.add_files([described])
        table.delete("true", "copy-on-write")
        assert table.maintenance.expire_snapshots(older_than=NEVER).outside == (str(path),)
        assert path.exists()
