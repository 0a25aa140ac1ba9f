"""Whatever becomes of a request to a Hive metastore or to AWS Glue, what is said of the change is true."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import Any, Literal

import pyarrow as pa
import pytest

import icebench
from icebench.engine.catalog.glue import GlueCatalog, open_glue
from icebench.engine.catalog.hive import HiveCatalog
from icebench.engine.catalog.hive_client import Connection, Metastore, Refused, RequestPending
from icebench.engine.catalog.metastore import LOCATION, MetastoreCatalog
from icebench.engine.commit.committer import Committed, Conflicted, Identifier, TableState, Unknown
from icebench.engine.commit.retry import Waiting
from icebench.engine.spec.creation import new_table_metadata
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import LONG, NestedField
from icebench.engine.spec.updates import SetProperties
from icebench.errors import AlreadyExists, CommitStateUnknown, Invalid, NotFound, StorageFailed, Unsupported
from tests.services.s3_server import S3Server

Fault = Literal["unsent", "lost", "failed", "twice"]
"""Of one request: it does not arrive and neither does an answer; its answer is lost; it is carried out and answered
with an error; it is carried out, answered with an error, and sent again (by Glue's client)."""

NAME, OTHER = ("db", "t"), ("db", "u")
SCHEMA = Schema((NestedField(field_id=1, name="id", type=LONG),))
ALTER, CREATE, DROP = "alter", "create", "drop"


@dataclass
class Scene:
    """A catalog, one that has no faults, and what happens to the next request of a kind.

    Args:
        catalog: Under test.
        truth: The same tables.
        kind: Of the requests that a fault happens to.
        fault: It happens once.
        then: Done by another writer after the request and before its answer.
    """

    catalog: Any
    truth: Any
    kind: str = ""
    fault: Fault | None = None
    then: Callable[[], object] = lambda: None

    def taken(self, kind: str) -> Fault | None:
        fault = self.fault if kind == self.kind else None
        if fault is not None:
            self.fault = None
        return fault

    def make(self, name: Identifier = NAME, **properties: str) -> TableState:
        return self.truth.create_table(name, self.metadata(name, **properties))

    def metadata(self, name: Identifier = NAME, **properties: str) -> Any:
        place = self.truth.default_location(name)
        named = {key.replace("_", "."): value for key, value in properties.items()}
        return new_table_metadata(SCHEMA, location=place, uuid=uuid.uuid4(), now_ms=1, properties=named)

    def files(self, state: TableState) -> list[str]:
        directory = f"{state.metadata.location}/metadata"
        return [info.location for info in self.truth.store_at(directory).list(directory)]


def ticking() -> Waiting:
    """A clock that runs by waits alone."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    return Waiting(sleep=sleep, monotonic=lambda: now[0], random=lambda: 0.0)


@pytest.fixture(params=["hive", "glue"])
def scene(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    warehouse = f"{tmp_path}/wh"
    if request.param == "hive":
        uri = request.getfixturevalue("hive_uri")
        faulty = Metastore(uri, waiting=ticking())
        made = Scene(HiveCatalog(faulty, warehouse=warehouse), HiveCatalog(Metastore(uri), warehouse=warehouse))
        monkeypatch.setattr(Connection, "change", hive_faults(made, faulty))
        yield made
        made.catalog.close()
    else:
        server: S3Server = request.getfixturevalue("s3_server")
        properties = request.getfixturevalue("glue_properties")
        # The client sends twice, where it may; a fault of both requests is an answer that is lost.
        catalog = GlueCatalog(open_glue({**properties, "glue.max-retries": "1"}), warehouse=warehouse)
        made = Scene(catalog, GlueCatalog(open_glue(properties), warehouse=warehouse))
        monkeypatch.setattr(server, "fault", glue_faults(made))
        yield made
    made.truth.close()


def hive_faults(scene: Scene, faulty: Metastore) -> Callable[..., Any]:
    change = Connection.change

    def changed(self: Connection, method: str, *arguments: object) -> Any:
        fault = scene.taken(method.partition("_table")[0]) if self._metastore is faulty else None
        if fault is None:
            return change(self, method, *arguments)
        if fault != "unsent":
            change(self, method, *arguments)
        scene.then()
        if fault in {"failed", "twice"}:
            raise Refused("Error while closing the transaction")
        self.is_waiting = True
        raise RequestPending("connection reset")

    return changed


def glue_faults(scene: Scene) -> Callable[[str], Literal["before", "after"] | None]:
    again: list[str] = []

    def fault(operation: str) -> Literal["before", "after"] | None:
        kind = {"UpdateTable": ALTER, "CreateTable": CREATE, "DeleteTable": DROP}.get(operation, "")
        if again:
            return "before" if again.pop() == "lost" else None
        found = scene.taken(kind)
        if found is None:
            return None
        if found in {"unsent", "lost"}:
            again.append("lost")
        return "before" if found == "unsent" else "after"

    return fault


def commit(scene: Scene, base: TableState) -> Any:
    return scene.catalog.commit(NAME, base, [], [SetProperties({"own": "1"})])


@pytest.mark.parametrize("fault", ["unsent", "lost", "failed", "twice"])
class TestWhatIsSaid:
    def test_of_a_commit(self, scene: Scene, fault: Fault) -> None:
        base = scene.make()
        scene.kind, scene.fault = ALTER, fault
        outcome = commit(scene, base)
        now = scene.truth.load_state(NAME)
        assert ("own" in now.metadata.properties) == (fault != "unsent")
        if isinstance(outcome, Unknown):
            wanted = outcome.metadata_location
            assert outcome.base_location == base.metadata_location
            assert (wanted == now.metadata_location) == (fault != "unsent")
            assert wanted in scene.files(base)
        else:
            assert outcome == Committed(now)

    def test_of_an_append(self, scene: Scene, fault: Fault) -> None:
        scene.make()
        table = icebench.Catalog(scene.catalog).load_table("db.t")
        scene.kind, scene.fault = ALTER, fault
        table.append(pa.table({"id": [1, 2]}))
        assert icebench.Catalog(scene.truth).load_table("db.t").scan().to_arrow()["id"].to_pylist() == [1, 2]
        assert len(table.refresh().metadata.snapshots) == 1

    def test_of_a_creation(self, scene: Scene, fault: Fault) -> None:
        scene.truth.create_namespace(("db",))
        metadata = scene.metadata()
        scene.kind, scene.fault = CREATE, fault
        if fault == "unsent":
            with pytest.raises(CommitStateUnknown):
                scene.catalog.create_table(NAME, metadata)
            assert not scene.truth.table_exists(NAME)
        else:
            assert scene.catalog.create_table(NAME, metadata) == scene.truth.load_state(NAME)

    def test_of_a_rename(self, scene: Scene, fault: Fault) -> None:
        base = scene.make()
        for kind in (ALTER,) if isinstance(scene.catalog, HiveCatalog) else (CREATE, DROP):
            scene.kind, scene.fault = kind, fault
            try:
                scene.catalog.rename_table(NAME, OTHER)
            except CommitStateUnknown:
                assert fault == "unsent"
                scene.truth.rename_table(NAME, OTHER)
            assert scene.truth.load_state(OTHER) == base
            assert scene.truth._parameters(NAME) is None or (kind, fault) == (DROP, "unsent")
            if kind == CREATE:
                scene.truth.rename_table(OTHER, NAME)

    def test_of_a_drop(self, scene: Scene, fault: Fault) -> None:
        scene.make()
        scene.kind, scene.fault = DROP, fault
        if fault == "unsent":
            with pytest.raises(CommitStateUnknown):
                scene.catalog.drop_table(NAME)
        else:
            scene.catalog.drop_table(NAME)
        assert scene.truth.table_exists(NAME) == (fault == "unsent")


def test_a_commit_is_not_taken_for_one_that_came_after_it(scene: Scene) -> None:
    base = scene.make()
    scene.kind, scene.fault = ALTER, "failed"
    scene.then = lambda: scene.truth.commit(NAME, scene.truth.load_state(NAME), [], [SetProperties({"their": "1"})])
    if isinstance(scene.catalog, HiveCatalog):
        base = scene.truth.commit(NAME, base, [], [SetProperties({"engine.hive.lock-enabled": "false"})]).state
    outcome = commit(scene, base)
    assert isinstance(outcome, Unknown | Committed)
    assert "own" in scene.truth.load_state(NAME).metadata.properties


@pytest.mark.parametrize("scene", ["hive"], indirect=True)
class TestHive:
    def test_a_metastore_that_compares_refuses_without_a_lock(self, scene: Scene) -> None:
        base = scene.make(engine_hive_lock_enabled="false")
        base = scene.truth.commit(NAME, base, [], [SetProperties({"engine.hive.lock-enabled": "false"})]).state
        late: list[Any] = []
        describe = scene.catalog._describe

        def after_theirs(*arguments: Any) -> None:
            """Another writer comes between the look and the request."""
            describe(*arguments)
            if not late:
                late.append(scene.truth.commit(NAME, base, [], [SetProperties({"their": "1"})]))

        scene.catalog._describe = after_theirs
        outcome = commit(scene, base)
        assert isinstance(outcome, Unknown)
        assert isinstance(late[0], Committed)
        assert scene.truth.load_state(NAME) == late[0].state

    def test_a_metastore_that_does_not_compare_loses_nothing(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It ignores what is expected, as those before HIVE-26882 do."""
        base = scene.make()
        alter = Connection.alter
        monkeypatch.setattr(Connection, "alter", lambda self, name, table, _: alter(self, name, table, {}))
        outcomes: list[Any] = []

        def write(catalog: MetastoreCatalog, key: str) -> None:
            outcomes.append((key, catalog.commit(NAME, base, [], [SetProperties({key: "1"})])))

        for _ in range(5):
            base = scene.truth.load_state(NAME)
            writers = [Thread(target=write, args=(scene.truth, uuid.uuid4().hex)) for _ in range(4)]
            for each in writers:
                each.start()
            for each in writers:
                each.join()
        acknowledged = {key for key, outcome in outcomes if isinstance(outcome, Committed)}
        assert acknowledged == scene.truth.load_state(NAME).metadata.properties.keys()
        assert len(acknowledged) == 5

    def test_a_lock_is_given_back_whatever_happens(self, scene: Scene) -> None:
        for fault in ("unsent", "lost", "failed"):
            base = scene.make((NAME[0], fault))
            scene.kind, scene.fault = ALTER, fault
            scene.catalog.commit((NAME[0], fault), base, [], [SetProperties({"own": "1"})])
            with scene.truth._metastore.connected() as server, server.locked((NAME[0], fault), {}):
                pass

    @pytest.mark.parametrize("fault", ["unsent", "lost"])
    def test_a_lock_whose_answer_is_lost_is_given_back(self, scene: Scene, fault: Fault) -> None:
        base = scene.make()
        scene.kind, scene.fault = "lock", fault
        with pytest.raises(StorageFailed, match="connection reset"):
            commit(scene, base)
        assert scene.files(base) == [base.metadata_location]
        assert isinstance(commit(scene, base), Committed)

    def test_a_lock_of_another_is_a_conflict(self, scene: Scene) -> None:
        base = scene.make()
        with scene.truth._metastore.connected() as server, server.locked(NAME, {}):
            outcome = commit(scene, base)
        assert isinstance(outcome, Conflicted)
        assert "holds the lock" in outcome.reason
        assert scene.files(base) == [base.metadata_location]
        assert isinstance(commit(scene, base), Committed)

    def test_columns_that_the_metastore_refuses(self, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        base = scene.make()

        def refuse(*_: object) -> None:
            raise Invalid("The following columns have types incompatible")

        monkeypatch.setattr(Connection, "alter", refuse)
        with pytest.raises(Invalid, match=r"hive\.metastore\.disallow\.incompatible\.col\.type\.changes"):
            commit(scene, base)
        assert scene.files(base) == [base.metadata_location]

    def test_what_others_said_of_a_table_stays(self, scene: Scene) -> None:
        base = scene.make(engine_hive_enabled="true", gone="1")
        base = replace(base)
        with scene.truth._metastore.connected() as server:
            table = server.table(*NAME)
            table.parameters |= {"theirs": "1", "current-schema": "old", "numRows": "7"}
            table.sd.inputFormat = "their.Format"
            server.alter(NAME, table, {LOCATION: base.metadata_location})
        assert isinstance(commit(scene, base), Committed)
        with scene.truth._metastore.connected() as server:
            table = server.table(*NAME)
        assert table.parameters["theirs"] == "1"
        assert not {"current-schema", "numRows"} & table.parameters.keys()
        assert table.parameters["previous_metadata_location"] == base.metadata_location
        assert table.owner

    def test_an_idle_connection_that_the_metastore_closed(self, scene: Scene) -> None:
        scene.make()
        scene.catalog.load_state(NAME)
        for connection in scene.catalog._metastore._idle:
            connection._socket.shutdown(2)
        scene.catalog.load_state(NAME)

    def test_the_first_metastore_that_answers(self, scene: Scene) -> None:
        uri = scene.truth._metastore.uri
        with Metastore(f"thrift://127.0.0.1:1, {uri}", ugi="ann:people").connected() as server:
            assert "default" in server.read("get_all_databases")
        with pytest.raises(StorageFailed, match=r"127\.0\.0\.1:1"):
            HiveCatalog(Metastore("thrift://127.0.0.1:1")).list_namespaces()
        with pytest.raises(Invalid, match="thrift://host"):
            Metastore("http://127.0.0.1:1")


def test_names_of_several_levels_and_of_capitals_are_refused(scene: Scene) -> None:
    scene.make()
    with pytest.raises(Unsupported, match="one level"):
        scene.catalog.create_namespace(("a", "b"))
    with pytest.raises(Unsupported, match=r"namespace db\.in: .* one level"):
        scene.catalog.load_state(("db", "in", "t"))
    for change in (
        lambda: scene.catalog.create_namespace(("Db",)),
        lambda: scene.catalog.load_state(("db", "T")),
        lambda: scene.catalog.rename_table(NAME, ("db", "U")),
    ):
        with pytest.raises(Invalid, match="lower case"):
            change()
    with pytest.raises(AlreadyExists):
        scene.catalog.create_namespace(("db",))


@pytest.mark.parametrize("scene", ["glue"], indirect=True)
class TestGlue:
    def test_a_rename_that_died_goes_on(self, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        base = scene.make()
        for step in ("create_table", "delete_table"):
            change = scene.catalog._glue.change

            def die(operation: str, step: str = step, change: Any = change, **arguments: object) -> Any:
                if operation == step:
                    raise KeyboardInterrupt
                return change(operation, **arguments)

            with monkeypatch.context() as patched:
                patched.setattr(scene.catalog._glue, "change", die)
                with pytest.raises(KeyboardInterrupt):
                    scene.catalog.rename_table(NAME, OTHER)
            with pytest.raises(NotFound, match="ICEBERG_BEING_RENAMED"):
                scene.catalog.load_state(NAME)
            assert scene.catalog.list_tables(("db",)) == ([OTHER] if step == "delete_table" else [])
            scene.catalog.rename_table(NAME, OTHER)
            assert scene.catalog.list_tables(("db",)) == [OTHER]
            assert scene.truth.load_state(OTHER) == base
            scene.truth.rename_table(OTHER, NAME)

    def test_an_error_of_the_server_does_not_say_what_happened(
        self, scene: Scene, glue_properties: dict[str, str]
    ) -> None:
        base = scene.make()
        scene.catalog = GlueCatalog(open_glue({**glue_properties, "glue.max-retries": "0"}))
        scene.kind, scene.fault = ALTER, "failed"
        outcome = commit(scene, base)
        assert isinstance(outcome, Unknown)
        assert outcome.metadata_location == scene.truth.load_state(NAME).metadata_location

    def test_a_rename_loses_no_commit(self, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        base = scene.make()
        glue = scene.catalog._glue
        change, outcomes = glue.change, []

        def beside(operation: str, **arguments: object) -> Any:
            if operation == "update_table":
                outcomes.append(commit(replace(scene, catalog=scene.truth), base))
            return change(operation, **arguments)

        monkeypatch.setattr(glue, "change", beside)
        with pytest.raises(StorageFailed, match="ConcurrentModification"):
            scene.catalog.rename_table(NAME, OTHER)
        assert outcomes == [Committed(scene.truth.load_state(NAME))]
        assert not scene.truth.table_exists(OTHER)
