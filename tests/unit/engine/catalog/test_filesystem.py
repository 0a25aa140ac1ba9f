from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import get_args

import pyarrow as pa
import pytest
from pyarrow import fs

import icebench
from icebench.engine.catalog.filesystem import FileSystemCatalog
from icebench.engine.codec.metadata_json.table import encode_metadata
from icebench.engine.commit.committer import Committed, Conflicted, Outcome, TableState, Unknown
from icebench.engine.spec.creation import new_table_metadata
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.statistics import PartitionStatisticsFile
from icebench.engine.spec.types import LONG, NestedField
from icebench.engine.spec.updates import SetLocation, SetPartitionStatistics, SetProperties
from icebench.engine.storage.arrow import ArrowStore
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.storage.store import FileInfo
from icebench.errors import (
    AlreadyExists,
    CommitStateUnknown,
    EngineError,
    Invalid,
    NotFound,
    StorageFailed,
    Unsupported,
)
from tests.services.faulty_store import Fault, FaultyStore, Moment

NAME = ("db", "t")
PLACE = "memory://wh/db/t/metadata"


def metadata(location: str = "memory://wh/db/t") -> TableMetadata:
    schema = Schema((NestedField(field_id=1, name="id", type=LONG),))
    return new_table_metadata(schema, location=location, uuid=uuid.UUID(int=1), now_ms=1)


def created(store: MemoryStore) -> FileSystemCatalog:
    catalog = FileSystemCatalog("memory://wh", store)
    catalog.create_table(NAME, metadata())
    return catalog


def test_the_layout_is_hadoops() -> None:
    store = MemoryStore()
    catalog = created(store)
    catalog.commit(NAME, catalog.load_state(NAME), [], [SetProperties({"a": "1"})])
    assert [info.location for info in store.list("memory://wh")] == [
        f"{PLACE}/v1.metadata.json",
        f"{PLACE}/v2.metadata.json",
        f"{PLACE}/version-hint.text",
    ]
    assert store.read(f"{PLACE}/version-hint.text") == b"2"


def test_a_taken_version_is_a_conflict() -> None:
    store = MemoryStore()
    catalog = created(store)
    other = FileSystemCatalog(
        "memory://wh",
        Overtaken(store, lambda: catalog.commit(NAME, catalog.load_state(NAME), [], [SetProperties({"a": "1"})])),
    )
    outcome = other.commit(NAME, catalog.load_state(NAME), [], [SetProperties({"b": "2"})])
    assert isinstance(outcome, Conflicted)
    assert catalog.load_state(NAME).metadata.properties == {"a": "1"}


class Overtaken(MemoryStore):
    """Somebody else acts just before the first write or deletion, or after it."""

    def __init__(self, inner: MemoryStore, act: Callable[[], object], when: str = "before") -> None:
        super().__init__()
        self._files = inner._files
        self._act: Callable[[], object] | None = act
        self._when = when

    def write(self, location: str, data: bytes, *, overwrite: bool = False) -> None:
        with self._overtaken():
            super().write(location, data, overwrite=overwrite)

    def delete(self, location: str) -> None:
        with self._overtaken():
            super().delete(location)

    @contextlib.contextmanager
    def _overtaken(self) -> Iterator[None]:
        act, self._act = self._act, None
        if act is not None and self._when == "before":
            act()
        yield
        if act is not None and self._when == "after":
            act()


class StalledDrop(MemoryStore):
    """Somebody else acts after so many deletions, or the listing."""

    def __init__(self, inner: MemoryStore, act: Callable[[], object], deletions: int) -> None:
        super().__init__()
        self._files = inner._files
        self._act = act
        self._left = deletions

    def list(self, prefix: str) -> Iterator[FileInfo]:
        yield from [*super().list(prefix)]
        self._count(0)

    def delete(self, location: str) -> None:
        super().delete(location)
        self._count(1)

    def _count(self, deletions: int) -> None:
        self._left -= deletions
        if self._left == 0:
            self._left = -1
            self._act()


class Cut(MemoryStore):
    """Fails to write a version and to read thereafter; somebody else acts between the two."""

    def __init__(self, inner: MemoryStore, version: int, act: Callable[[], object]) -> None:
        super().__init__()
        self._files = inner._files
        self._version = f"{PLACE}/v{version}.metadata.json"
        self._act = act
        self._left = 2

    def write(self, location: str, data: bytes, *, overwrite: bool = False) -> None:
        if location == self._version and self._left == 2:
            self._left -= 1
            raise StorageFailed("no route to host")
        super().write(location, data, overwrite=overwrite)

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        if self._left == 1:
            self._left -= 1
            self._act()
            raise StorageFailed("no route to host")
        return super().read(location, offset, length)


@pytest.mark.parametrize("is_forgotten", [False, True])
@pytest.mark.parametrize("change", ["append", "set_properties"])
def test_a_version_of_the_same_name_is_not_a_lost_one(change: str, is_forgotten: bool) -> None:
    """Where neither the writing of a version nor its reading was answered, and another writer made that version."""
    store, rows = MemoryStore(), pa.table({"n": [1]})
    theirs = icebench.Catalog(FileSystemCatalog("memory://wh", store)).create_table("db.t", rows.schema)

    def others() -> None:
        theirs.append(rows)
        if is_forgotten:
            theirs.append(rows)
            store.delete(f"{PLACE}/v2.metadata.json")

    changed = {"append": 2, "set_properties": 1}[change] + is_forgotten
    ours = icebench.Catalog(FileSystemCatalog("memory://wh", Cut(store, 2, others))).load_table("db.t")
    if is_forgotten and change == "set_properties":
        # Nothing is left that shows whose version it was.
        with pytest.raises(CommitStateUnknown):
            ours.set_properties({"a": "1"})
        return
    if change == "append":
        ours.append(rows)
    else:
        ours.set_properties({"a": "1"})
    found = theirs.refresh()
    assert found.scan().count() == changed
    assert (found.properties.get("a") == "1") is (change == "set_properties")


class TestStalledWriters:
    """Writers that loaded the table, and create its next version long afterwards."""

    def go_on(self, catalog: FileSystemCatalog, versions: int) -> None:
        for n in range(versions):
            outcome = catalog.commit(NAME, catalog.load_state(NAME), [], [SetProperties({"theirs": str(n)})])
            assert isinstance(outcome, Committed)

    def forget(self, store: MemoryStore, *versions: int) -> None:
        """What another engine does that deletes old metadata files after a commit."""
        for version in versions:
            store.delete(f"{PLACE}/v{version}.metadata.json")

    def versions(self, store: MemoryStore) -> list[str]:
        names = [info.location.removeprefix(f"{PLACE}/") for info in store.list(PLACE)]
        return [name.removesuffix(".metadata.json") for name in names if name.startswith("v") and "hint" not in name]

    def stalled(self, store: MemoryStore, act: Callable[[], object], when: str = "before") -> Outcome:
        catalog = FileSystemCatalog("memory://wh", Overtaken(store, act, when))
        return catalog.commit(NAME, catalog.load_state(NAME), [], [SetProperties({"ours": "1"})])

    def test_a_name_that_is_free_again_is_not_the_next_version(self) -> None:
        store = MemoryStore()
        catalog = created(store)

        def others() -> None:
            self.go_on(catalog, 9)
            self.forget(store, *range(1, 10))

        outcome = self.stalled(store, others)
        assert isinstance(outcome, Conflicted)
        assert outcome.is_certain
        assert self.versions(store) == ["v10"]
        assert store.read(f"{PLACE}/version-hint.text") == b"10"
        assert catalog.load_state(NAME).metadata.properties == {"theirs": "8"}

    def test_the_version_before_the_newest(self) -> None:
        """Its name does not show whether somebody built on it: it stays, and the conflict is not certain."""
        store = MemoryStore()
        catalog = created(store)

        def others() -> None:
            self.go_on(catalog, 2)
            self.forget(store, 1, 2)

        outcome = self.stalled(store, others)
        assert isinstance(outcome, Conflicted)
        assert not outcome.is_certain
        assert catalog.load_state(NAME).metadata.properties == {"theirs": "1"}

    def test_a_commit_that_others_built_on_is_not_undone(self) -> None:
        store = MemoryStore()
        catalog = created(store)

        def others() -> None:
            self.go_on(catalog, 1)
            self.forget(store, 1)

        outcome = self.stalled(store, others, "after")
        assert isinstance(outcome, Conflicted)
        assert not outcome.is_certain
        assert self.versions(store) == ["v2", "v3"]
        assert catalog.load_state(NAME).metadata.properties == {"ours": "1", "theirs": "0"}

    @pytest.mark.parametrize("when", ["before", "after"])
    def test_a_table_that_was_made_anew(self, when: str) -> None:
        store = MemoryStore()
        catalog = created(store)
        anew = replace(metadata(), table_uuid=str(uuid.UUID(int=2)))

        def others() -> None:
            catalog.drop_table(NAME)
            catalog.create_table(NAME, anew)

        assert isinstance(self.stalled(store, others, when), Conflicted)
        assert self.versions(store) == ["v1"]
        assert catalog.load_state(NAME).metadata == anew

    def test_a_version_of_a_table_that_was_made_anew_is_not_withdrawn(self) -> None:
        store = MemoryStore()
        catalog = created(store)

        def others() -> None:
            catalog.drop_table(NAME)
            catalog.create_table(NAME, replace(metadata(), table_uuid=str(uuid.UUID(int=2))))
            self.go_on(catalog, 1)

        assert isinstance(self.stalled(store, others, "after"), Conflicted)
        assert self.versions(store) == ["v1", "v2"]
        assert catalog.load_state(NAME).metadata.properties == {"theirs": "0"}

    @pytest.mark.parametrize("when", ["before", "after"])
    def test_a_table_that_was_dropped(self, when: str) -> None:
        store = MemoryStore()
        catalog = created(store)
        assert isinstance(self.stalled(store, lambda: catalog.drop_table(NAME), when), Conflicted)
        assert not catalog.table_exists(NAME)

    @pytest.mark.parametrize("deletions", range(4))
    def test_a_drop_of_a_table_that_was_made_anew(self, deletions: int) -> None:
        """After so many of its deletions: what is of the new table stays."""
        store = MemoryStore()
        catalog = created(store)
        self.go_on(catalog, 2)
        anew = replace(metadata(), table_uuid=str(uuid.UUID(int=2)))

        def others() -> None:
            with contextlib.suppress(NotFound):
                catalog.drop_table(NAME)
            catalog.create_table(NAME, anew)
            self.go_on(catalog, 3)

        FileSystemCatalog("memory://wh", StalledDrop(store, others, deletions)).drop_table(NAME)
        assert self.versions(store) == ["v1", "v2", "v3", "v4"]
        assert catalog.load_state(NAME).metadata.table_uuid == anew.table_uuid

    def test_a_creator(self) -> None:
        store = MemoryStore()
        other = replace(metadata(), table_uuid=str(uuid.UUID(int=2)))
        catalog = FileSystemCatalog("memory://wh", store)

        def others() -> None:
            catalog.create_table(NAME, other)
            self.go_on(catalog, 2)
            self.forget(store, 1)

        with pytest.raises(AlreadyExists):
            FileSystemCatalog("memory://wh", Overtaken(store, others)).create_table(NAME, metadata())
        assert catalog.load_state(NAME).metadata.table_uuid == other.table_uuid

    def test_a_look_that_fails_leaves_the_outcome_open(self) -> None:
        store, requests, outcome = commit_with(Fault(write_request() + 1))
        assert requests[-1] == f"read {PLACE}/v1.metadata.json"
        assert isinstance(outcome, Unknown)
        assert outcome.metadata_location == f"{PLACE}/v2.metadata.json"
        assert self.versions(store) == ["v1", "v2"]

    @pytest.mark.parametrize("when", ["before", "after"])
    def test_a_commit_while_the_table_is_dropped(self, when: str) -> None:
        """It goes with the table: half of a table does not come back."""
        store = MemoryStore()
        catalog = created(store)
        self.go_on(catalog, 3)
        FileSystemCatalog("memory://wh", Overtaken(store, lambda: self.go_on(catalog, 2), when)).drop_table(NAME)
        assert not catalog.table_exists(NAME)
        assert self.versions(store) == []


class TestNested:
    """A table in the directory of another one."""

    def other(self, *name: str) -> TableMetadata:
        location = "/".join(["memory://wh", *name])
        return replace(metadata(location), table_uuid=str(uuid.UUID(int=7)))

    @pytest.mark.parametrize("inner", [("db", "t", "data"), ("db", "t", "x", "u"), ("db", "t", "metadata", "u")])
    def test_is_refused(self, inner: tuple[str, ...]) -> None:
        store = MemoryStore()
        catalog = created(store)
        with pytest.raises(Invalid, match=f"{'.'.join(inner)} and db.t would lie in one another"):
            catalog.create_table(inner, self.other(*inner))
        assert not catalog.table_exists(inner)
        catalog.drop_table(NAME)
        catalog.create_table(inner, self.other(*inner))
        with pytest.raises(Invalid, match=f"db.t and {'.'.join(inner)} would lie in one another"):
            catalog.create_table(NAME, metadata())
        assert not catalog.table_exists(NAME)

    @pytest.mark.parametrize("inside", ["data", "x/y"])
    def test_is_not_dropped_with_the_outer_one(self, inside: str) -> None:
        """Other engines and former releases may have made it."""
        store = MemoryStore()
        catalog = created(store)
        store.write(
            f"memory://wh/db/t/{inside}/metadata/v1.metadata.json", encode_metadata(self.other("db", "t", inside))
        )
        before = list(store.list("memory://wh"))
        with pytest.raises(Invalid, match="is the metadata of another table"):
            catalog.drop_table(NAME)
        assert list(store.list("memory://wh")) == before

    def test_files_that_may_be_of_another_stay_and_hadoops_checksums_go(self) -> None:
        store = MemoryStore()
        catalog = created(store)
        kept = [f"memory://wh/db/t/{name}" for name in ("data/.x.parquet.crc", "data/x.parquet", "metadata/m0.avro")]
        for path in (*kept, f"{PLACE}/.v1.metadata.json.crc", f"{PLACE}/.version-hint.text.crc"):
            store.write(path, b"x")
        catalog.drop_table(NAME)
        assert [info.location for info in store.list("memory://wh")] == kept

    def test_neighbours_are_none_of_this(self) -> None:
        catalog = created(MemoryStore())
        for name in (("db", "t2"), ("db2", "t"), ("t", "db")):
            catalog.create_table(name, self.other(*name))
        catalog.drop_table(NAME)
        assert [catalog.list_tables((namespace,)) for namespace in ("db", "db2")] == [[("db", "t2")], [("db2", "t")]]

    def test_a_namespace_of_the_same_name_stays(self) -> None:
        catalog = created(MemoryStore())
        catalog.create_namespace(NAME)
        catalog.drop_table(NAME)
        assert catalog.list_namespaces(("db",)) == [NAME]


def commit_with(fault: Fault) -> tuple[MemoryStore, list[str], object]:
    store = MemoryStore()
    created(store)
    faulty = FaultyStore(store, fault)
    catalog = FileSystemCatalog("memory://wh", faulty)
    try:
        outcome: object = catalog.commit(NAME, catalog.load_state(NAME), [], [SetProperties({"a": "1"})])
    except StorageFailed as error:
        outcome = error
    return store, faulty.requests, outcome


def write_request() -> int:
    _, requests, _ = commit_with(Fault(10_000))
    return next(n for n, request in enumerate(requests) if request.startswith("write") and "/v2." in request)


def test_a_refused_write_is_certain() -> None:
    store, _, outcome = commit_with(Fault(write_request()))
    assert isinstance(outcome, StorageFailed)
    assert not store.exists(f"{PLACE}/v2.metadata.json")


def test_a_lost_answer_is_looked_up() -> None:
    _, _, outcome = commit_with(Fault(write_request(), "after"))
    assert isinstance(outcome, Committed)
    assert outcome.state.metadata.properties == {"a": "1"}


class SentTwice(MemoryStore):
    """A proxy sends the creation of a version twice, and hands on the answer to the second."""

    def write(self, location: str, data: bytes, *, overwrite: bool = False) -> None:
        super().write(location, data, overwrite=overwrite)
        if location.endswith(".metadata.json"):
            super().write(location, data)


def test_a_version_that_was_sent_twice_is_the_commit() -> None:
    store = SentTwice()
    catalog = created(store)
    outcome = catalog.commit(NAME, catalog.load_state(NAME), [], [SetProperties({"a": "1"})])
    assert isinstance(outcome, Committed)
    assert catalog.load_state(NAME) == outcome.state
    assert outcome.state.metadata.properties == {"a": "1"}


def test_rows_of_a_version_that_was_sent_twice_are_there_once() -> None:
    catalog = icebench.Catalog(FileSystemCatalog("memory://wh", SentTwice()))
    table = catalog.create_table("db.t", pa.schema([("a", pa.int64())]))
    table.append(pa.table({"a": [1]}))
    assert catalog.load_table("db.t").scan().to_arrow()["a"].to_pylist() == [1]


def test_what_cannot_be_looked_up_is_unknown() -> None:
    store, _, outcome = commit_with(Fault(write_request(), "after", forever=True))
    assert isinstance(outcome, Unknown)
    assert outcome.metadata_location == f"{PLACE}/v2.metadata.json"
    assert outcome.base_location == f"{PLACE}/v1.metadata.json"
    assert store.exists(f"{PLACE}/v2.metadata.json")


def test_a_creation_whose_answer_is_lost() -> None:
    store = MemoryStore()
    at = next(
        n
        for n in range(100)
        if _create_with(MemoryStore(), Fault(n)).requests[n].startswith("write memory://wh/db/t/metadata/v1")
    )
    _create_with(store, Fault(at, "after"))
    assert FileSystemCatalog("memory://wh", store).table_exists(NAME)
    with pytest.raises(CommitStateUnknown, match=r"db\.t"):
        FileSystemCatalog("memory://wh", FaultyStore(MemoryStore(), Fault(at, "after", forever=True))).create_table(
            NAME, metadata()
        )


def _create_with(store: MemoryStore, fault: Fault) -> FaultyStore:
    faulty = FaultyStore(store, fault)
    with contextlib.suppress(StorageFailed):
        FileSystemCatalog("memory://wh", faulty).create_table(NAME, metadata())
    return faulty


def test_a_table_that_was_made_anew_does_not_take_the_commit_of_the_former() -> None:
    store = MemoryStore()
    catalog = created(store)
    former = catalog.load_state(NAME)
    catalog.drop_table(NAME)
    anew = catalog.create_table(NAME, replace(metadata(), table_uuid=str(uuid.UUID(int=2))))
    assert anew.metadata_location == former.metadata_location
    assert isinstance(catalog.commit(NAME, former, [], [SetProperties({"a": "1"})]), Conflicted)
    assert catalog.load_state(NAME) == anew


def test_a_hint_that_cannot_be_written_does_not_matter() -> None:
    hint = write_request() + 2
    store, requests, outcome = commit_with(Fault(hint))
    assert requests[hint] == f"write {PLACE}/version-hint.text"
    assert isinstance(outcome, Committed)
    assert FileSystemCatalog("memory://wh", store).load_state(NAME) == outcome.state


@pytest.mark.parametrize("moment", get_args(Moment))
@pytest.mark.parametrize("forever", [False, True])
def test_an_interrupted_drop_says_whether_the_table_is_left_and_leaves_all_of_it_or_nothing(
    moment: Moment, *, forever: bool
) -> None:
    reached = PartitionStatisticsFile(
        snapshot_id=1, statistics_path="memory://wh/db/t/data/f.parquet", file_size_in_bytes=1
    )
    others = "memory://wh/db/t/data/g.parquet"
    for at in range(100):
        store = MemoryStore()
        catalog = created(store)
        for n in range(10):
            state = catalog.commit(NAME, catalog.load_state(NAME), [], [SetProperties({"a": str(n)})])
        state = catalog.commit(NAME, catalog.load_state(NAME), [], [SetPartitionStatistics(reached)])
        for path in (reached.statistics_path, others):
            store.write(path, b"x")
        faulty = FaultyStore(store, Fault(at, moment, forever))
        said: EngineError | None = None
        try:
            FileSystemCatalog("memory://wh", faulty).drop_table(NAME)
        except (StorageFailed, CommitStateUnknown) as error:
            said = error
        is_left = catalog.table_exists(NAME)
        if is_left:
            assert isinstance(state, Committed)
            assert catalog.load_state(NAME) == state.state
            assert store.exists(reached.statistics_path)
        assert store.exists(others)
        if said is None:
            assert [info.location for info in store.list("memory://wh/db/t")] == [others]
        elif not isinstance(said, CommitStateUnknown):
            assert is_left == ("was dropped, but files of it are left" not in str(said))
        if len(faulty.requests) <= at:
            assert said is None
            break


def test_properties_that_would_hide_commits_are_refused() -> None:
    catalog = created(MemoryStore())
    for name, value in (
        ("write.metadata.compression-codec", "gzip"),
        ("write.metadata.delete-after-commit.enabled", "true"),
        ("write.metadata.path", "memory://elsewhere"),
    ):
        with pytest.raises(Unsupported, match=name):
            catalog.commit(NAME, catalog.load_state(NAME), [], [SetProperties({name: value})])
    with pytest.raises(Unsupported, match="moving"):
        catalog.commit(NAME, catalog.load_state(NAME), [], [SetLocation("memory://elsewhere")])


def test_a_table_whose_files_others_may_need_is_not_dropped() -> None:
    store = MemoryStore()
    catalog = created(store)
    catalog.commit(NAME, catalog.load_state(NAME), [], [SetProperties({"gc.enabled": "false"})])
    before = list(store.list("memory://wh"))
    with pytest.raises(Invalid, match=r"gc\.enabled is false"):
        catalog.drop_table(NAME)
    assert list(store.list("memory://wh")) == before


def test_a_table_is_where_its_name_says() -> None:
    catalog = FileSystemCatalog("memory://wh", MemoryStore())
    with pytest.raises(Unsupported, match="other than memory://wh/db/t"):
        catalog.create_table(NAME, metadata("memory://elsewhere"))


def test_storage_without_atomic_creation_is_refused() -> None:
    store = ArrowStore(fs.LocalFileSystem(), {"s3://": ""})
    with pytest.raises(Unsupported, match="atomically"):
        FileSystemCatalog("s3://bucket/wh", store)


def test_tables_of_other_writers() -> None:
    store = MemoryStore()
    store.write("memory://wh/db/theirs/metadata/v7.gz.metadata.json", encode_metadata(metadata(), compress=True))
    catalog = FileSystemCatalog("memory://wh", store)
    assert catalog.list_tables(("db",)) == [("db", "theirs")]
    state = catalog.load_state(("db", "theirs"))
    assert isinstance(state, TableState)
    with pytest.raises(AlreadyExists):
        catalog.create_table(("db", "theirs"), metadata("memory://wh/db/theirs"))


def test_a_table_that_was_made_anew_under_the_same_name_is_another() -> None:
    store = MemoryStore()
    catalog = created(store)
    assert catalog.load_state(NAME).metadata == metadata()
    other = FileSystemCatalog("memory://wh", store)
    other.drop_table(NAME)
    anew = replace(metadata(), table_uuid=str(uuid.UUID(int=2)))
    other.create_table(NAME, anew)
    assert catalog.load_state(NAME).metadata == anew


def test_a_metadata_file_is_decoded_once() -> None:
    store = MemoryStore()
    created(store)
    catalog = FileSystemCatalog("memory://wh", store)
    assert catalog.load_state(NAME).metadata is catalog.load_state(NAME).metadata
    committed = catalog.commit(NAME, catalog.load_state(NAME), [], [SetProperties({"a": "1"})])
    assert isinstance(committed, Committed)
    assert catalog.load_state(NAME).metadata is committed.state.metadata
