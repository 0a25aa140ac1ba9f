"""Whatever becomes of the answer to a rename or a drop, what is said of it is true: done, refused, or not known."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

import pytest
from sqlalchemy import Connection

from icebench.engine.catalog.catalog import Catalog
from icebench.engine.catalog.lost_changes import AnswerLost
from icebench.engine.catalog.rest_session import open_session
from icebench.engine.catalog.rest_views import RestViewCatalog
from icebench.engine.catalog.sql_database import Database
from icebench.engine.catalog.sql_views import SqlViewCatalog
from icebench.engine.catalog.views import ViewCatalog
from icebench.engine.codec.metadata_json.table import encode_metadata
from icebench.engine.codec.metadata_json.views import encode_view
from icebench.engine.commit.committer import Identifier
from icebench.engine.commit.retry import Waiting
from icebench.engine.spec.creation import new_table_metadata
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import LONG, NestedField
from icebench.engine.spec.updates import SetProperties
from icebench.engine.spec.views import SqlRepresentation, ViewVersion
from icebench.engine.storage.memory import MemoryStore
from icebench.errors import AlreadyExists, CommitStateUnknown, EngineError, NotFound
from tests.services.scripted_http import Reply, Seen, scripted_server

Kind = Literal["table", "view"]
Fault = Literal["none", "lost-before", "lost-after", "503-before", "503-after", "sent-twice"]

OLD, NEW, THIRD = ("db", "old"), ("db", "new"), ("db", "third")
SCHEMA = Schema((NestedField(field_id=1, name="id", type=LONG),))
QUICK = Waiting(sleep=lambda _: None, monotonic=lambda: 0.0, random=lambda: 0.0)
AFTERMATH: dict[Fault, type[EngineError] | None] = {
    "none": None,
    "lost-before": CommitStateUnknown,
    "lost-after": None,
    "503-before": CommitStateUnknown,
    "503-after": None,
    "sent-twice": None,
}
CASES = [("sql", fault) for fault in ("none", "lost-before", "lost-after")] + [("rest", fault) for fault in AFTERMATH]


class Views(Catalog, ViewCatalog, Protocol):
    """A catalog of tables and views."""


@dataclass
class Scene:
    """A catalog, what is true of it, and what happens to the next change of a name that is asked of it.

    Args:
        catalog: Under test.
        truth: Reaches the same tables and views without faults.
        store: Their files.
        fault: Happens once.
        then: Done by another writer before the answer.
        is_blind: Nothing can be looked up after the fault.
    """

    catalog: Views
    truth: SqlViewCatalog
    store: MemoryStore
    fault: Fault = "none"
    then: Callable[[], object] = lambda: None
    is_blind: bool = False
    is_broken: bool = False

    def happen(self, change: Callable[[], object]) -> Fault:
        """Carry out a change under the fault; which it was."""
        fault, self.fault = self.fault, "none"
        if not fault.endswith("-before"):
            change()
        self.then()
        self.is_broken = self.is_blind
        if fault == "sent-twice":
            change()
        return fault

    def make(self, kind: Kind, name: Identifier) -> str:
        """Make a table or a view; its UUID."""
        if kind == "view":
            version = ViewVersion(
                version_id=1,
                schema_id=0,
                timestamp_ms=1,
                representations=(SqlRepresentation(sql="select 1", dialect="spark"),),
                default_namespace=("db",),
            )
            return self.truth.create_view(name, version, SCHEMA).metadata.view_uuid
        location = self.truth.default_location(name)
        made = new_table_metadata(SCHEMA, location=location, uuid=uuid.uuid4(), now_ms=1)
        return self.truth.create_table(name, made).metadata.table_uuid

    def names(self) -> dict[Identifier, str]:
        """All tables and views, by name: their UUIDs."""
        return {
            **{name: self.truth.load_state(name).metadata.table_uuid for name in self.truth.list_tables(("db",))},
            **{name: self.truth.load_view(name).metadata.view_uuid for name in self.truth.list_views(("db",))},
        }


def rename(catalog: Views, kind: Kind, old: Identifier = OLD, new: Identifier = NEW) -> None:
    (catalog.rename_table if kind == "table" else catalog.rename_view)(old, new)


def drop(catalog: Views, kind: Kind, name: Identifier = OLD) -> None:
    (catalog.drop_table if kind == "table" else catalog.drop_view)(name)


@pytest.fixture(params=["sql", "rest"])
def scene(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    store = MemoryStore()
    made = partial(SqlViewCatalog, f"sqlite:///{tmp_path}/c.db", warehouse="memory://wh", store_at=lambda _: store)
    truth = made()
    truth.create_namespace(("db",))
    if request.param == "sql":
        scene = Scene(made(), truth, store)
        faulty_database(scene, scene.catalog._database, monkeypatch)  # type: ignore[attr-defined]
        yield scene
    else:
        scenes: list[Scene] = []
        with scripted_server(lambda seen: answer(scenes[0], seen)) as server:
            scenes.append(Scene(truth, truth, store))
            properties = {"view-endpoints-supported": "true"}
            scenes[0].catalog = RestViewCatalog(open_session(server.address, properties=properties, waiting=QUICK))
            yield scenes[0]
            scenes[0].catalog.close()
    truth.close()


def faulty_database(scene: Scene, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a database's commits fail as the scene says."""

    def commit(connection: Connection) -> None:
        def change() -> None:
            connection.commit()

        if scene.fault.endswith("-before"):
            connection.rollback()
        if scene.happen(change) != "none":
            raise AnswerLost("connection reset")

    monkeypatch.setattr(database, "_commit", commit)
    reading = database.reading

    def blind() -> object:
        if scene.is_broken:
            raise AnswerLost("no connection")
        return reading()

    monkeypatch.setattr(database, "reading", blind)


def answer(scene: Scene, seen: Seen) -> Reply:
    """A REST server's answer to one request."""
    if seen.path == "/v1/config":
        return Reply(body={"defaults": {}, "overrides": {}})
    if scene.is_broken:
        return Reply(status=500)
    try:
        return answered(scene, seen)
    except NotFound as error:
        return Reply(status=404, body={"error": {"type": "NoSuchTableException", "message": str(error), "code": 404}})
    except AlreadyExists as error:
        return Reply(status=409, body={"error": {"type": "AlreadyExistsException", "message": str(error), "code": 409}})


def answered(scene: Scene, seen: Seen) -> Reply:
    kind: Kind = "table" if "/tables" in seen.path else "view"
    if seen.path.endswith("/rename"):
        ends = ((*seen.json()[end]["namespace"], seen.json()[end]["name"]) for end in ("source", "destination"))
        change = partial(rename, scene.truth, kind, *ends)
    else:
        name = ("db", seen.path.rpartition("/")[2])
        if seen.method == "GET":
            if kind == "table":
                table = scene.truth.load_state(name)
                location, document = table.metadata_location, encode_metadata(table.metadata)
            else:
                view = scene.truth.load_view(name)
                location, document = view.metadata_location, encode_view(view.metadata)
            return Reply(body={"metadata-location": location, "metadata": json.loads(document)})
        change = partial(drop, scene.truth, kind, name)
    fault = scene.happen(change)
    if fault.startswith("lost"):
        return Reply(cut_at=-1)
    return Reply(status=503 if fault.startswith("503") else 204)


def said(change: Callable[[], object]) -> type[EngineError] | None:
    """The kind of error of a change; None without one."""
    try:
        change()
    except CommitStateUnknown:
        return CommitStateUnknown
    except EngineError as error:
        return type(error)
    return None


@pytest.mark.parametrize("kind", ["table", "view"])
@pytest.mark.parametrize(("scene", "fault"), CASES, indirect=["scene"])
class TestWhatIsSaid:
    def test_of_a_rename(self, scene: Scene, kind: Kind, fault: Fault) -> None:
        own = scene.make(kind, OLD)
        scene.fault = fault
        assert said(lambda: rename(scene.catalog, kind)) is AFTERMATH[fault]
        assert scene.names() == {OLD if fault.endswith("-before") else NEW: own}

    def test_of_a_drop(self, scene: Scene, kind: Kind, fault: Fault) -> None:
        own, other = scene.make(kind, OLD), scene.make(kind, THIRD)
        scene.fault = fault
        assert said(lambda: drop(scene.catalog, kind)) is AFTERMATH[fault]
        assert scene.names() == {THIRD: other, **({OLD: own} if fault.endswith("-before") else {})}

    def test_of_a_name_that_is_taken(self, scene: Scene, kind: Kind, fault: Fault) -> None:
        before = {OLD: scene.make(kind, OLD), NEW: scene.make(kind, NEW)}
        scene.fault = fault
        may_be_said = {AlreadyExists, *([CommitStateUnknown] if fault.endswith("-before") else [])}
        assert said(lambda: rename(scene.catalog, kind)) in may_be_said
        assert scene.names() == before

    def test_of_what_is_not_there(self, scene: Scene, kind: Kind, fault: Fault) -> None:
        scene.make(kind, THIRD)
        for change in (rename, drop):
            scene.fault = "none" if fault.endswith("-before") else fault
            assert said(partial(change, scene.catalog, kind)) is NotFound

    def test_where_it_cannot_be_looked_up(self, scene: Scene, kind: Kind, fault: Fault) -> None:
        for change in (rename, drop):
            scene.make(kind, OLD)
            scene.fault, scene.is_blind = fault, True
            # Of a drop that is refused because it was made already nothing has to be looked up.
            is_known = fault == "none" or (change, fault) == (drop, "sent-twice")
            assert said(partial(change, scene.catalog, kind)) is (None if is_known else CommitStateUnknown)
            scene.is_blind = scene.is_broken = False
            for name in scene.names():
                drop(scene.truth, kind, name)


@pytest.mark.parametrize("kind", ["table", "view"])
def test_another_one_of_the_new_name_is_not_the_renamed_one(scene: Scene, kind: Kind) -> None:
    scene.make(kind, OLD)
    scene.fault = "lost-before"

    def replace() -> None:
        drop(scene.truth, kind)
        scene.make(kind, NEW)

    scene.then = replace
    assert said(lambda: rename(scene.catalog, kind)) is CommitStateUnknown


@pytest.mark.parametrize("kind", ["table", "view"])
def test_what_was_renamed_back_is_not_reported_as_refused(scene: Scene, kind: Kind) -> None:
    own = scene.make(kind, OLD)
    scene.fault = "lost-after"
    scene.then = lambda: rename(scene.truth, kind, NEW, OLD)
    assert said(lambda: rename(scene.catalog, kind)) is CommitStateUnknown
    assert scene.names() == {OLD: own}


@pytest.mark.parametrize("scene", ["rest"], indirect=True)
@pytest.mark.parametrize("kind", ["table", "view"])
def test_what_went_on_to_a_third_name_is_not_reported_as_refused(scene: Scene, kind: Kind) -> None:
    scene.make(kind, OLD)
    scene.fault = "sent-twice"
    scene.then = lambda: rename(scene.truth, kind, NEW, THIRD)
    assert said(lambda: rename(scene.catalog, kind)) is CommitStateUnknown


def test_a_commit_may_follow_the_rename(scene: Scene) -> None:
    own = scene.make("table", OLD)
    scene.fault = "lost-after"
    scene.then = lambda: scene.truth.commit(NEW, scene.truth.load_state(NEW), [], [SetProperties({"a": "1"})])
    rename(scene.catalog, "table")
    assert scene.names() == {NEW: own}


@pytest.mark.parametrize("kind", ["table", "view"])
def test_what_another_writer_drops_is_dropped(scene: Scene, kind: Kind) -> None:
    scene.make(kind, OLD)
    scene.fault = "lost-before"
    scene.then = lambda: drop(scene.truth, kind)
    assert said(lambda: drop(scene.catalog, kind)) is None
    assert scene.names() == {}


@pytest.mark.parametrize("change", [rename, drop])
@pytest.mark.parametrize("kind", ["table", "view"])
def test_one_whose_metadata_is_lost_may_be_renamed_and_dropped(
    scene: Scene, kind: Kind, change: Callable[[Views, Kind], None]
) -> None:
    scene.make(kind, OLD)
    for info in list(scene.store.list("memory://wh")):
        scene.store.delete(info.location)
    change(scene.catalog, kind)
    exists = scene.truth.table_exists if kind == "table" else scene.truth.view_exists
    assert (exists(OLD), exists(NEW)) == (False, change is rename)
