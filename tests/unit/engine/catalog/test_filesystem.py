from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable
from dataclasses import replace

import pytest
from pyarrow import fs

from engine.catalog.filesystem import FileSystemCatalog
from engine.codec.metadata_json import encode_metadata
from engine.commit.committer import Committed, Conflicted, TableState, Unknown
from engine.errors import AlreadyExists, CommitStateUnknown, StorageFailed, Unsupported
from engine.spec.creation import new_table_metadata
from engine.spec.metadata import TableMetadata
from engine.spec.schema import Schema
from engine.spec.types import LONG, NestedField
from engine.spec.updates import SetLocation, SetProperties
from engine.storage.arrow import ArrowStore
from engine.storage.faulty import Fault, FaultyStore
from engine.storage.memory import MemoryStore

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
    """Somebody else acts just before the first write."""

    def __init__(self, inner: MemoryStore, act: Callable[[], object]) -> None:
        super().__init__()
        self._files = inner._files
        self._act: Callable[[], object] | None = act

    def write(self, location: str, data: bytes, *, overwrite: bool = False) -> None:
        act, self._act = self._act, None
        if act is not None:
            act()
        super().write(location, data, overwrite=overwrite)


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


def test_a_hint_that_cannot_be_written_does_not_matter() -> None:
    hint = write_request() + 1
    store, requests, outcome = commit_with(Fault(hint))
    assert requests[hint] == f"write {PLACE}/version-hint.text"
    assert isinstance(outcome, Committed)
    assert FileSystemCatalog("memory://wh", store).load_state(NAME) == outcome.state


def test_an_interrupted_drop_leaves_the_whole_table_or_none() -> None:
    for at in range(100):
        store = MemoryStore()
        catalog = created(store)
        state = catalog.commit(NAME, catalog.load_state(NAME), [], [SetProperties({"a": "1"})])
        store.write("memory://wh/db/t/data/f.parquet", b"x")
        faulty = FaultyStore(store, Fault(at, forever=True))
        with contextlib.suppress(StorageFailed):
            FileSystemCatalog("memory://wh", faulty).drop_table(NAME)
        if catalog.table_exists(NAME):
            assert isinstance(state, Committed)
            assert catalog.load_state(NAME) == state.state
            assert store.exists("memory://wh/db/t/data/f.parquet")
        if len(faulty.requests) <= at:
            assert list(store.list("memory://wh/db/t")) == []
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


def test_a_table_is_where_its_name_says() -> None:
    catalog = FileSystemCatalog("memory://wh", MemoryStore())
    with pytest.raises(Unsupported, match="other than memory://wh/db/t"):
        catalog.create_table(NAME, metadata("memory://elsewhere"))


def test_storage_without_atomic_creation_is_refused() -> None:
    store = ArrowStore(fs.LocalFileSystem(), ["s3://"])
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
