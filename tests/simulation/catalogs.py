"""The engine's catalogs in the simulated world: their own code, over a simulated directory, database and server."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from sqlalchemy import Connection, Delete, Insert, Update, delete, insert, select

from icebench.engine.catalog.catalog import Catalog
from icebench.engine.catalog.filesystem import FileSystemCatalog
from icebench.engine.catalog.lost_changes import AnswerLost as DatabaseAnswerLost
from icebench.engine.catalog.lost_changes import CatalogBusy
from icebench.engine.catalog.metadata_files import MetadataFiles
from icebench.engine.catalog.rest import RestCatalog
from icebench.engine.catalog.rest_auth import BearerToken
from icebench.engine.catalog.rest_http import Answer, AnswerLost, HttpClient, Secrets, Unreachable
from icebench.engine.catalog.rest_session import Session
from icebench.engine.catalog.sql import SqlCatalog
from icebench.engine.catalog.sql_database import Database
from icebench.engine.catalog.sql_tables import TABLES
from icebench.engine.catalog.versions import version_of
from icebench.engine.codec.metadata_json.objects import JsonObject
from icebench.engine.codec.metadata_json.rest import RestConfig
from icebench.engine.codec.metadata_json.table import encode_metadata
from icebench.engine.commit.committer import Identifier, TableState
from icebench.engine.commit.retry import Backoff, Waiting
from icebench.engine.spec.requirements import check_requirements
from icebench.engine.spec.updates import apply_updates
from icebench.engine.storage.store import Store
from icebench.errors import CommitConflict, EngineError
from tests.services.commit_requests import requirement_from_json, update_from_json
from tests.simulation.schedule import CatalogKind
from tests.simulation.stores import SimulatedStore
from tests.simulation.world import World, raising

WAREHOUSE = "memory://wh"

Pointers = dict[Identifier, str]
"""Tables by name: the location of the current metadata file."""


@dataclass(eq=False)
class Directory:
    """A warehouse in which creating ``vN.metadata.json`` is what commits version N."""

    world: World
    moved: Callable[[], None] = lambda: None
    pointers: Pointers = field(default_factory=dict)

    def client(self, store: Store, waiting: Waiting) -> Catalog:
        """A catalog as one process has it."""
        return FileSystemCatalog(WAREHOUSE, store, now_ms=self.world.time_ms)

    def written(self, location: str) -> None:
        """Take note of a file that may be a commit."""
        directory, _, name = location.rpartition("/")
        version = version_of(name)
        if not version:
            return
        identifier = tuple(directory.removeprefix(f"{WAREHOUSE}/").split("/")[:-1])
        current = self.pointers.get(identifier)
        now = 0 if current is None else version_of(current.rpartition("/")[2])
        if version != now + 1:
            self.world.fail("lost commit", f"{location} was created while the table was at version {now}")
        self.pointers[identifier] = location
        self.moved()

    def deleted(self, location: str) -> None:
        """Take note of a table that is no more."""
        for identifier, current in list(self.pointers.items()):
            if location == current:
                del self.pointers[identifier]
                self.moved()


@dataclass(eq=False)
class Sql:
    """A database; one in memory serves all schedules of this process, one after the other."""

    world: World
    moved: Callable[[], None] = lambda: None
    pointers: Pointers = field(default_factory=dict)
    _template: SqlCatalog = field(init=False)

    def __post_init__(self) -> None:
        self._template = _Shared.template()
        self._database = SimulatedDatabase(self._template._database, self)
        with self._template._database.writing("") as connection:
            connection.execute(delete(TABLES))
            for (namespace, name), location in self.pointers.items():
                connection.execute(
                    insert(TABLES).values(
                        catalog_name="default",
                        table_namespace=namespace,
                        table_name=name,
                        metadata_location=location,
                        iceberg_type="TABLE",
                    )
                )

    def client(self, store: Store, waiting: Waiting) -> Catalog:
        made = copy.copy(self._template)
        made._database = self._database
        made._warehouse = WAREHOUSE
        made._store_at = lambda _: store
        made._now_ms = self.world.time_ms
        made._files = MetadataFiles(made._store_at, self.world.new_uuid)
        return made

    def written(self, location: str) -> None:
        """A file is not a commit here."""

    def deleted(self, location: str) -> None:
        """Likewise."""

    def look(self) -> None:
        """Take note of what the database says now."""
        query = select(TABLES.c.table_namespace, TABLES.c.table_name, TABLES.c.metadata_location)
        with self._template._database.reading() as connection:
            found: Pointers = {(namespace, name): location for namespace, name, location in connection.execute(query)}
        if found != self.pointers:
            self.pointers = found
            self.moved()


class _Shared:
    catalog: SqlCatalog | None = None

    @classmethod
    def template(cls) -> SqlCatalog:
        if cls.catalog is None:
            cls.catalog = SqlCatalog("sqlite://", warehouse=WAREHOUSE)
        return cls.catalog


class SimulatedDatabase(Database):
    """A database whose connections are calls; no other actor runs while one is open."""

    def __init__(self, inner: Database, place: Sql) -> None:
        self._shown, self.engine = "database", inner.engine
        self._inner = inner
        self._place = place

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        self._place.world.call("load", "database", lambda: None)
        with self._inner.reading() as connection:
            yield connection

    @contextmanager
    def writing(self, taken: str) -> Iterator[Connection]:
        self._place.world.call("load", "database", lambda: None)
        with self._inner.writing(taken) as connection:
            yield connection
        self._place.look()

    def change(self, statement: Insert | Update | Delete, taken: str = "the row exists already") -> int:
        def done() -> int:
            changed = self._inner.change(statement, taken)
            self._place.look()
            return changed

        lost = DatabaseAnswerLost("database: the connection broke")
        faults = {
            "lose": raising(lost, done),
            "unsent": raising(lost),
            "busy": raising(CatalogBusy("database: busy")),
        }
        return self._place.world.call("commit", "database", done, faults=faults)


@dataclass(eq=False)
class Rest:
    """A REST server: it checks requirements against the table as it is, and applies updates to it."""

    world: World
    moved: Callable[[], None] = lambda: None
    pointers: Pointers = field(default_factory=dict)
    tables: dict[Identifier, TableState] = field(default_factory=dict)
    late: list[Callable[[], object]] = field(default_factory=list)

    def client(self, store: Store, waiting: Waiting) -> Catalog:
        session = Session(
            SimulatedHttp(self, waiting),
            BearerToken(None),
            RestConfig(defaults={}, overrides={}, endpoints=None, idempotency_key_lifetime=None),
            {},
            now_ms=self.world.time_ms,
            random_bits=lambda _: self.world.number(),
        )
        made = RestCatalog(session)
        made.store_at = lambda location: store  # type: ignore[method-assign]
        return made

    def written(self, location: str) -> None:
        """A file is not a commit here."""

    def deleted(self, location: str) -> None:
        """Likewise."""

    def answer(self, method: str, path: str, body: bytes | None) -> tuple[int, object]:
        """Status and body of an answer."""
        try:
            return self._answer(method, path, {} if body is None else json.loads(body))
        except CommitConflict as conflict:
            return 409, _error("CommitFailedException", str(conflict))
        except EngineError as error:
            return 400, _error("BadRequestException", str(error))

    def _answer(self, method: str, path: str, body: Any) -> tuple[int, object]:
        if path == "/v1/tables/rename":
            old, new = (_named(body[end]) for end in ("source", "destination"))
            if old not in self.tables:
                return 404, _error("NoSuchTableException", f"no table {old}")
            if new in self.tables:
                return 409, _error("AlreadyExistsException", f"{new} exists")
            self._point(new, self.tables.pop(old))
            return 204, None
        identifier = _identifier(path)
        if identifier not in self.tables:
            return 404, _error("NoSuchTableException", f"no table {identifier}")
        if method == "DELETE":
            del self.tables[identifier]
            self._point(None, None)
            return 204, None
        if method == "POST":
            self._commit(identifier, JsonObject(body))
        if method == "HEAD":
            return 204, None
        state = self.tables[identifier]
        return 200, {
            "metadata-location": state.metadata_location,
            "metadata": json.loads(encode_metadata(state.metadata)),
        }

    def _commit(self, identifier: Identifier, node: JsonObject) -> None:
        state = self.tables[identifier]
        check_requirements(state.metadata, [requirement_from_json(child) for child in node.children("requirements")])
        updates = [update_from_json(child) for child in node.children("updates")]
        changed = apply_updates(
            state.metadata, updates, now_ms=self.world.now_ms, base_location=state.metadata_location
        )
        if changed is not state.metadata:
            self.put(identifier, changed)

    def put(self, identifier: Identifier, metadata: Any) -> None:
        """Make this the table."""
        location = f"{metadata.location}/metadata/{self.world.number():05d}-server.metadata.json"
        self.world.files[location] = (encode_metadata(metadata), self.world.now_ms)
        self._point(identifier, TableState(metadata=metadata, metadata_location=location))

    def _point(self, identifier: Identifier | None, state: TableState | None) -> None:
        if identifier is not None and state is not None:
            self.tables[identifier] = state
        self.pointers = {name: each.metadata_location for name, each in self.tables.items()}
        self.moved()


class SimulatedHttp(HttpClient):
    """Requests that a simulated server answers."""

    def __init__(self, server: Rest, waiting: Waiting) -> None:
        self.base = "http://server"
        self.secrets = Secrets()
        self._server = server
        self._waiting = waiting
        self._backoff = Backoff(
            retries=4, min_wait_ms=100, max_wait_ms=5_000, total_timeout_ms=120_000, waiting=waiting
        )

    def close(self) -> None:
        """Nothing is held open."""

    def _once(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        server = self._server
        path = urlsplit(url).path
        lost = AnswerLost(f"{method} {path}: cut")
        refused = Unreachable(f"{method} {path}: refused")

        def done() -> tuple[int, object]:
            while server.late:
                server.late.pop(0)()
            return server.answer(method, path, body)

        def twice() -> tuple[int, object]:
            done()
            return done()

        def later() -> None:
            server.late.append(server.world.as_now(lambda: server.answer(method, path, body)))

        if method in ("GET", "HEAD"):
            lost_too = {"lose": raising(lost), "fail": raising(refused)}
            status, answered = server.world.call("load", path, done, faults=lost_too)
        else:
            faults = {
                "fail": raising(refused),
                "lose": raising(lost, done),
                "unsent": raising(lost),
                "late": raising(lost, later),
                "twice": twice,
                "busy": lambda: (429, _error("TooManyRequests", "slow down")),
            }
            status, answered = server.world.call("commit", path, done, faults=faults)
        data = b"" if answered is None else json.dumps(answered).encode()
        return Answer(method=method, url=url, status=status, headers={}, body=data)


PLACES: Mapping[CatalogKind, type[Directory | Sql | Rest]] = {
    "directory": Directory,
    "sql": Sql,
    "rest": Rest,
}
Place = Directory | Sql | Rest


def _identifier(path: str) -> Identifier:
    namespace, _, table = path.removeprefix("/v1/namespaces/").partition("/tables/")
    return (*unquote(namespace).split("\x1f"), unquote(table))


def _named(node: Any) -> Identifier:
    return (*node["namespace"], node["name"])


def _error(kind: str, message: str) -> dict[str, object]:
    return {"error": {"type": kind, "message": message, "code": 0}}


def store_of(world: World, place: Place, deleted: Callable[[str], None]) -> SimulatedStore:
    """A store that reports files to the catalog and the checker."""

    def on_deleted(location: str) -> None:
        place.deleted(location)
        deleted(location)

    return SimulatedStore(world, place.written, on_deleted)
