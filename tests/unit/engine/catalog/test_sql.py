from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, event
from sqlalchemy.exc import OperationalError

from icebench.engine.catalog.lost_changes import AnswerLost, CatalogBusy
from icebench.engine.catalog.sql import SqlCatalog
from icebench.engine.catalog.sql_database import Database
from icebench.engine.catalog.sql_tables import overlapping
from icebench.engine.codec.metadata_json.table import encode_metadata
from icebench.engine.commit.committer import Committed, Conflicted, Unknown
from icebench.engine.spec.creation import new_table_metadata
from icebench.engine.spec.locations import lies_inside
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import MetadataLogEntry
from icebench.engine.spec.types import LONG, NestedField
from icebench.engine.spec.updates import SetProperties
from icebench.engine.storage.memory import MemoryStore
from icebench.errors import AlreadyExists, CommitStateUnknown, CorruptTable, Invalid, NotFound, StorageFailed

NAME = ("db", "t")


def metadata(**properties: str) -> TableMetadata:
    schema = Schema((NestedField(field_id=1, name="id", type=LONG),))
    named = {name.replace("_", "-"): value for name, value in properties.items()}
    return new_table_metadata(schema, location="memory://wh/db/t", uuid=uuid.uuid4(), now_ms=1, properties=named)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/catalog.db"


@pytest.fixture
def catalog(url: str, store: MemoryStore) -> Iterator[SqlCatalog]:
    made = SqlCatalog(url, warehouse="memory://wh", store_at=lambda _: store)
    yield made
    made.close()


def lose_answers(monkeypatch: pytest.MonkeyPatch, *, applied: bool) -> None:
    commit = Database._commit

    def lose(self: Database, connection: Connection) -> None:
        if applied:
            commit(self, connection)
        raise AnswerLost("connection reset")

    monkeypatch.setattr(Database, "_commit", lose)


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        found = connection.execute(query).fetchall()
    connection.close()
    return found


def test_the_row_of_a_table(catalog: SqlCatalog, url: str) -> None:
    first = catalog.create_table(NAME, metadata())
    query = "select * from iceberg_tables"
    assert rows(url, query) == [("default", "db", "t", first.metadata_location, None, "TABLE")]
    outcome = catalog.commit(NAME, first, [], [SetProperties({"a": "1"})])
    assert isinstance(outcome, Committed)
    second = outcome.state.metadata_location
    assert rows(url, query) == [("default", "db", "t", second, first.metadata_location, "TABLE")]
    assert first.metadata_location.rpartition("/")[2].startswith("00000-")
    assert second.rpartition("/")[2].startswith("00001-")


def test_namespaces_are_rows_of_properties(catalog: SqlCatalog, url: str) -> None:
    catalog.create_namespace(("a", "b"), {"owner": "ann"})
    query = "select * from iceberg_namespace_properties order by property_key"
    assert rows(url, query) == [("default", "a.b", "exists", "true"), ("default", "a.b", "owner", "ann")]


def test_catalogs_share_a_database(catalog: SqlCatalog, url: str, store: MemoryStore) -> None:
    other = SqlCatalog(url, warehouse="memory://other", name="other", store_at=lambda _: store)
    catalog.create_table(NAME, metadata())
    assert not other.table_exists(NAME)
    assert other.list_namespaces() == []
    with pytest.raises(NotFound, match="in catalog 'other'; the database also has catalogs named default"):
        other.load_state(NAME)
    other.close()


def test_a_view_is_no_table(catalog: SqlCatalog, url: str) -> None:
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute("insert into iceberg_tables values ('default', 'db', 't', 'memory://v', null, 'VIEW')")
    connection.close()
    assert not catalog.table_exists(NAME)
    assert catalog.list_tables(("db",)) == []
    with pytest.raises(NotFound):
        catalog.drop_table(NAME)
    # But their names are one space.
    with pytest.raises(AlreadyExists):
        catalog.create_table(NAME, metadata())


def test_a_database_without_the_type_column_is_used_as_it_is(url: str, store: MemoryStore) -> None:
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute(
            "create table iceberg_tables (catalog_name varchar(255) not null, table_namespace varchar(255) not null, "
            "table_name varchar(255) not null, metadata_location varchar(1000), "
            "previous_metadata_location varchar(1000), primary key (catalog_name, table_namespace, table_name))"
        )
    connection.close()
    catalog = SqlCatalog(url, warehouse="memory://wh", store_at=lambda _: store)
    state = catalog.create_table(NAME, metadata())
    assert isinstance(catalog.commit(NAME, state, [], [SetProperties({"a": "1"})]), Committed)
    assert catalog.list_tables(("db",)) == [NAME]
    catalog.rename_table(NAME, ("db", "u"))
    catalog.drop_table(("db", "u"))
    assert store.exists(state.metadata_location)
    assert [row[1] for row in rows(url, "pragma table_info(iceberg_tables)")][-1] == "previous_metadata_location"
    catalog.close()


class TestLostAnswers:
    def test_of_a_commit(self, catalog: SqlCatalog, store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
        base = catalog.create_table(NAME, metadata())
        lose_answers(monkeypatch, applied=True)
        outcome = catalog.commit(NAME, base, [], [SetProperties({"a": "1"})])
        assert isinstance(outcome, Unknown)
        assert outcome.base_location == base.metadata_location
        # It did happen, so its file must be there.
        assert catalog.load_state(NAME).metadata_location == outcome.metadata_location

    def test_of_one_that_did_not_happen(
        self, catalog: SqlCatalog, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        base = catalog.create_table(NAME, metadata())
        lose_answers(monkeypatch, applied=False)
        outcome = catalog.commit(NAME, base, [], [SetProperties({"a": "1"})])
        assert isinstance(outcome, Unknown)
        assert catalog.load_state(NAME) == base
        assert store.exists(outcome.metadata_location or "")

    def test_of_a_creation_is_looked_up(self, catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
        lose_answers(monkeypatch, applied=True)
        state = catalog.create_table(NAME, metadata())
        assert catalog.load_state(NAME) == state

    def test_and_unknown_where_it_did_not_happen(
        self, catalog: SqlCatalog, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lose_answers(monkeypatch, applied=False)
        with pytest.raises(CommitStateUnknown, match=r"whether db\.t was created"):
            catalog.create_table(NAME, metadata())
        assert len(list(store.list("memory://wh"))) == 1


def test_a_connection_that_breaks_at_the_commit_leaves_it_unknown(catalog: SqlCatalog, store: MemoryStore) -> None:
    base = catalog.create_table(NAME, metadata())

    def cut(connection: Connection) -> None:
        raise ConnectionResetError("reset by peer")

    event.listen(catalog._database.engine, "commit", cut)
    outcome = catalog.commit(NAME, base, [], [SetProperties({"a": "1"})])
    assert isinstance(outcome, Unknown)
    assert store.exists(outcome.metadata_location or "")
    with pytest.raises(CommitStateUnknown, match="reset by peer"):
        catalog.create_table(("db", "u"), replace(metadata(), location="memory://wh/db/u"))
    with pytest.raises(AnswerLost):
        catalog.create_namespace(("other",))
    event.remove(catalog._database.engine, "commit", cut)
    # Nothing of it was left open, for the next one to see or to commit.
    assert catalog.list_tables(("db",)) == [NAME]
    assert catalog.load_state(NAME) == base
    assert isinstance(catalog.commit(NAME, base, [], [SetProperties({"b": "1"})]), Committed)
    assert catalog.list_namespaces() == [("db",)]


def test_an_interrupt_at_the_commit_leaves_no_transaction_open(catalog: SqlCatalog, url: str) -> None:
    catalog.create_namespace(("db",))
    base = catalog.create_table(NAME, metadata())

    def interrupt(_: Connection) -> None:
        raise KeyboardInterrupt

    event.listen(catalog._database.engine, "commit", interrupt)
    with pytest.raises(KeyboardInterrupt):
        catalog.commit(NAME, base, [], [SetProperties({"a": "1"})])
    event.remove(catalog._database.engine, "commit", interrupt)
    assert catalog.load_state(NAME) == base
    # Nobody waits for a lock.
    sqlite3.connect(url.removeprefix("sqlite:///"), timeout=0).execute("begin immediate")


def test_a_commit_that_waits_for_a_reader_in_vain_is_a_conflict(
    catalog: SqlCatalog, store: MemoryStore, url: str
) -> None:
    base = catalog.create_table(NAME, metadata())
    impatient = SqlCatalog(f"{url}?timeout=0.05", warehouse="memory://wh", store_at=lambda _: store)
    reader = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    reader.execute("begin")
    reader.execute("select * from iceberg_tables").fetchall()
    outcome = impatient.commit(NAME, base, [], [SetProperties({"a": "1"})])
    assert isinstance(outcome, Conflicted)
    assert impatient.load_state(NAME) == base
    with pytest.raises(CatalogBusy):
        impatient.create_namespace(("other",))
    reader.execute("rollback")
    reader.close()
    assert isinstance(impatient.commit(NAME, base, [], [SetProperties({"a": "1"})]), Committed)
    assert impatient.list_namespaces() == [("db",)]
    impatient.close()


def test_a_change_that_finds_no_row_has_no_answer_to_lose(
    catalog: SqlCatalog, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = catalog.create_table(NAME, metadata())
    theirs = catalog.commit(NAME, base, [], [SetProperties({"a": "1"})])
    assert isinstance(theirs, Committed)
    monkeypatch.setattr(catalog, "_location_of", lambda _: base.metadata_location)
    lose_answers(monkeypatch, applied=False)
    assert isinstance(catalog.commit(NAME, base, [], [SetProperties({"b": "1"})]), Conflicted)
    assert len(list(store.list("memory://wh"))) == 2


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (sqlite3.SQLITE_BUSY, CatalogBusy),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, CatalogBusy),
        (sqlite3.SQLITE_LOCKED_SHAREDCACHE, CatalogBusy),
        (sqlite3.SQLITE_READONLY_DBMOVED, StorageFailed),
    ],
)
def test_extended_result_codes_of_sqlite(catalog: SqlCatalog, code: int, expected: type[StorageFailed]) -> None:
    cause = sqlite3.OperationalError("no")
    cause.sqlite_errorcode = code

    def refuse(*_: object) -> None:
        raise OperationalError("insert", {}, cause)

    event.listen(catalog._database.engine, "before_cursor_execute", refuse)
    with pytest.raises(StorageFailed) as raised:
        catalog.create_namespace(("db",))
    assert type(raised.value) is expected


def test_a_refusing_database_leaves_no_file(
    catalog: SqlCatalog, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = catalog.create_table(NAME, metadata())

    def refuse(self: Database, taken: str) -> None:
        raise StorageFailed("the disk is full")

    monkeypatch.setattr(Database, "writing", refuse)
    with pytest.raises(StorageFailed):
        catalog.commit(NAME, base, [], [SetProperties({"a": "1"})])
    with pytest.raises(StorageFailed):
        catalog.create_table(("db", "u"), metadata())
    assert [info.location for info in store.list("memory://wh")] == [base.metadata_location]


def test_a_busy_database_is_a_conflict(
    catalog: SqlCatalog, store: MemoryStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = catalog.create_table(NAME, metadata())
    impatient = SqlCatalog(f"{url}?timeout=0.05", warehouse="memory://wh", store_at=lambda _: store)
    writer = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    writer.execute("begin immediate")
    outcome = impatient.commit(NAME, base, [], [SetProperties({"a": "1"})])
    with pytest.raises(CatalogBusy):
        impatient.create_namespace(("other",))
    writer.execute("rollback")
    writer.close()
    impatient.close()
    assert isinstance(outcome, Conflicted)
    assert "locked" in outcome.reason
    assert [info.location for info in store.list("memory://wh")] == [base.metadata_location]


def test_outdated_metadata_files_are_deleted_when_asked(catalog: SqlCatalog, store: MemoryStore) -> None:
    made = metadata(
        **{"write.metadata.previous-versions-max": "2", "write.metadata.delete-after-commit.enabled": "true"}
    )
    catalog.create_table(NAME, made)
    for n in range(6):
        catalog.commit(NAME, catalog.load_state(NAME), [], [SetProperties({"n": str(n)})])
    names = [info.location.rpartition("/")[2][:5] for info in store.list("memory://wh")]
    assert names == ["00004", "00005", "00006"]


def test_a_property_that_is_no_value_fails_a_commit_before_it_is_visible(
    catalog: SqlCatalog, store: MemoryStore
) -> None:
    """A commit that raises is taken for one that did not happen, and the files of its snapshot are deleted."""
    name = "write.metadata.delete-after-commit.enabled"
    state = catalog.create_table(NAME, replace(metadata(), properties={name: "yes"}))
    with pytest.raises(Invalid, match="neither true nor false"):
        catalog.commit(NAME, state, [], [SetProperties({"n": "1"})])
    assert catalog.load_state(NAME) == state
    assert [info.location for info in store.list("memory://wh")] == [state.metadata_location]
    outcome = catalog.commit(NAME, state, [], [SetProperties({name: "false"})])
    assert isinstance(outcome, Committed)


def test_outdated_files_outside_the_table_are_left(catalog: SqlCatalog, store: MemoryStore) -> None:
    """Whoever wrote the metadata of a registered table may have named any file."""
    outside = ["memory://wh/other", "memory://wh/db/t/../other", "memory://wh/db/t2/other", "memory://wh2/db/t/other"]
    log = tuple(MetadataLogEntry(timestamp_ms=1, metadata_file=each) for each in outside)
    made = metadata(
        **{"write.metadata.previous-versions-max": "1", "write.metadata.delete-after-commit.enabled": "true"}
    )
    for each in {*outside, "memory://wh/other"}:
        store.write(each, b"x")
    location = "memory://wh/db/t/metadata/00009-a.metadata.json"
    store.write(location, encode_metadata(replace(made, metadata_log=log)))
    catalog.register_table(NAME, location)
    for n in range(3):
        catalog.commit(NAME, catalog.load_state(NAME), [], [SetProperties({"n": str(n)})])
    left = {info.location for info in store.list("memory://")}
    assert left >= set(outside)
    assert location not in left


@pytest.mark.parametrize("name", ["v2", "current", "00002-second"])
def test_a_registered_file_whose_name_is_used_again_is_read_again(
    catalog: SqlCatalog, url: str, store: MemoryStore, name: str
) -> None:
    location = f"memory://wh/db/t/metadata/{name}.metadata.json"
    other = SqlCatalog(url, warehouse="memory://wh", store_at=lambda _: store)
    for number in (1, 2):
        given = replace(metadata(), location="memory://wh/db/t", table_uuid=str(uuid.UUID(int=number)))
        store.write(location, encode_metadata(given), overwrite=True)
        assert catalog.register_table(NAME, location).metadata == given
        assert other.load_state(NAME).metadata == given
        catalog.drop_table(NAME)
    other.close()


def test_files_with_unique_names_are_read_once(
    catalog: SqlCatalog, url: str, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = catalog.create_table(NAME, metadata())
    other = SqlCatalog(url, warehouse="memory://wh", store_at=lambda _: store)
    assert other.load_state(NAME) == made
    monkeypatch.setattr(store, "read", None)
    assert other.load_state(NAME) == catalog.load_state(NAME) == made
    other.close()


def test_compressed_metadata(catalog: SqlCatalog, store: MemoryStore) -> None:
    state = catalog.create_table(NAME, metadata(**{"write.metadata.compression-codec": "gzip"}))
    assert state.metadata_location.endswith(".gz.metadata.json")
    assert store.read(state.metadata_location)[:2] == b"\x1f\x8b"
    fresh = SqlCatalog(str(catalog._database.engine.url), store_at=lambda _: store)
    assert fresh.load_state(NAME) == state
    fresh.close()


def test_default_locations(catalog: SqlCatalog, url: str, store: MemoryStore) -> None:
    assert catalog.default_location(("a", "b", "t")) == "memory://wh/a/b/t"
    catalog.create_namespace(("db",), {"location": "memory://elsewhere/"})
    assert catalog.default_location(NAME) == "memory://elsewhere/t"
    without = SqlCatalog(url, store_at=lambda _: store, name="other")
    with pytest.raises(Invalid, match="no warehouse"):
        without.default_location(NAME)
    without.close()


class TestLocations:
    """No table is made among the files of another one."""

    def made(self, catalog: SqlCatalog, identifier: tuple[str, ...]) -> TableMetadata:
        location = catalog.default_location(identifier)
        return catalog.create_table(identifier, replace(metadata(), location=location)).metadata

    def test_the_name_of_a_renamed_table_gets_another_place(self, catalog: SqlCatalog, store: MemoryStore) -> None:
        first = self.made(catalog, NAME)
        catalog.rename_table(NAME, ("db", "u"))
        second = self.made(catalog, NAME)
        assert (first.location, second.location[:16]) == ("memory://wh/db/t", "memory://wh/db/t")
        assert not lies_inside(second.location, first.location)
        catalog.rename_table(NAME, ("db", "v"))
        assert len({first.location, second.location, self.made(catalog, NAME).location}) == 3

    @pytest.mark.parametrize("first", ["{}/wh", "file://{}/wh", "{}//wh/x/..", "file:{}/./wh/.", "{}/wh/"])
    @pytest.mark.parametrize("then", ["{}/wh", "file://{}//wh"])
    def test_other_spellings_and_other_catalogs_of_the_database(
        self, first: str, then: str, url: str, tmp_path: Path
    ) -> None:
        for n, warehouse in enumerate((first, then)):
            catalog = SqlCatalog(url, warehouse=warehouse.format(tmp_path), name=f"c{n}")
            location = self.made(catalog, NAME).location
            assert location.startswith(f"{warehouse.format(tmp_path)}/db/t{'-' if n else ''}")
            other = catalog.default_location(("db", "u"))
            assert other == f"{warehouse.format(tmp_path)}/db/u"
            catalog.close()

    @pytest.mark.parametrize("left", ["metadata/00000-a.metadata.json", "data/a.parquet"])
    def test_what_a_dropped_table_left(self, left: str, catalog: SqlCatalog, store: MemoryStore) -> None:
        store.write(f"memory://wh/db/t/{left}", b"x")
        assert catalog.default_location(NAME).startswith("memory://wh/db/t-")
        assert catalog.default_location(("db", "u")) == "memory://wh/db/u"

    def test_a_table_inside_another_is_refused(self, catalog: SqlCatalog, store: MemoryStore) -> None:
        self.made(catalog, NAME)
        before = list(store.list("memory://wh"))
        for inner in ("memory://wh/db/t/data", "memory://wh/db/t", "memory://wh//db/x/../t/metadata/m"):
            with pytest.raises(Invalid, match=r"db\.t\.data is inside that of db\.t, or db\.t is inside"):
                catalog.create_table((*NAME, "data"), replace(metadata(), location=inner))
        with pytest.raises(Invalid, match="choose another with location="):
            self.made(catalog, (*NAME, "data"))
        assert not catalog.table_exists((*NAME, "data"))
        assert list(store.list("memory://wh")) == before

    def test_a_table_around_another_is_refused(self, catalog: SqlCatalog) -> None:
        self.made(catalog, (*NAME, "data"))
        with pytest.raises(Invalid, match=r"db\.t\.data is inside it"):
            catalog.create_table(NAME, metadata())
        assert self.made(catalog, NAME).location.startswith("memory://wh/db/t-")

    def test_a_table_around_another_of_another_directory(self, catalog: SqlCatalog) -> None:
        self.made(catalog, (*NAME, "x"))
        assert catalog.default_location(NAME).startswith("memory://wh/db/t-")

    def test_a_directory_that_is_spelled_with_a_dot_at_its_end(self, catalog: SqlCatalog) -> None:
        catalog.create_table(NAME, replace(metadata(), location="memory://wh/db/t/."))
        with pytest.raises(Invalid, match=r"is inside that of db\.t"):
            self.made(catalog, (*NAME, "x"))

    def test_neighbours_are_none_of_this(self, catalog: SqlCatalog) -> None:
        catalog.create_table(("db", "top"), replace(metadata(), location="memory://other"))
        for name in (NAME, ("db", "t2"), ("d", "b", "t"), ("other",)):
            assert self.made(catalog, name).location == "/".join(["memory://wh", *name])

    def test_metadata_beside_the_root_of_the_machine_is_nobodys_directory(self, catalog: SqlCatalog, url: str) -> None:
        with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
            connection.execute("insert into iceberg_tables values ('x', 'db', 't', '/v1.metadata.json', null, null)")
        connection.close()
        with_local = SqlCatalog(url, warehouse="/wh", store_at=lambda _: MemoryStore())
        assert overlapping_name(with_local, "/wh/db/t") is None
        with_local.close()

    def test_another_writer_took_the_place_meanwhile(self, catalog: SqlCatalog, store: MemoryStore) -> None:
        """It made a table of that name and renamed it, after we had looked whether the place was free."""
        stalled = replace(metadata(), location=catalog.default_location(NAME))
        theirs = self.made(catalog, NAME)
        catalog.rename_table(NAME, ("db", "u"))
        assert theirs.location == stalled.location
        before = list(store.list("memory://wh"))
        with pytest.raises(Invalid, match=r"db\.u is inside it"):
            catalog.create_table(NAME, stalled)
        assert not catalog.table_exists(NAME)
        assert list(store.list("memory://wh")) == before


def overlapping_name(catalog: SqlCatalog, location: str) -> str | None:
    with catalog._database.reading() as connection:
        return overlapping(connection, location)


def test_a_row_without_metadata_is_corrupt(catalog: SqlCatalog, url: str) -> None:
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute("insert into iceberg_tables values ('default', 'db', 't', null, null, null)")
    connection.close()
    with pytest.raises(CorruptTable, match=r"db\.t"):
        catalog.load_state(NAME)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("catalog.db", "is not the URL of a database"),
        ("nosuchdb://host/db", "no driver for the database 'nosuchdb'"),
    ],
)
def test_wrong_urls(address: str, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        SqlCatalog(address)


def test_a_database_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageFailed):
        SqlCatalog(f"sqlite:///{tmp_path}/file/catalog.db")
    (tmp_path / "garbage.db").write_text("this is no database, it is a text of some length")
    with pytest.raises(StorageFailed, match="not a database"):
        SqlCatalog(f"sqlite:///{tmp_path}/garbage.db")


def test_passwords_are_not_shown() -> None:
    with pytest.raises(Invalid) as raised:
        Database("sqlite://user:secret@/x")
    assert "secret" not in str(raised.value)


def test_directories_of_the_database_are_made(tmp_path: Path) -> None:
    catalog = SqlCatalog(f"sqlite:///{tmp_path}/a/b/catalog.db")
    assert (tmp_path / "a" / "b" / "catalog.db").exists()
    catalog.close()
