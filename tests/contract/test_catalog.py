"""What every catalog promises, checked for each of them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from icebench.engine.catalog.catalog import Catalog
from icebench.engine.catalog.filesystem import FileSystemCatalog
from icebench.engine.catalog.glue import GlueCatalog, open_glue
from icebench.engine.catalog.hive import HiveCatalog
from icebench.engine.catalog.hive_client import Metastore
from icebench.engine.catalog.metastore import MetastoreCatalog
from icebench.engine.catalog.rest import RestCatalog
from icebench.engine.catalog.rest_session import open_session
from icebench.engine.catalog.sql import SqlCatalog
from icebench.engine.commit.committer import Committed, Conflicted, TableState
from icebench.engine.spec.creation import new_table_metadata
from icebench.engine.spec.locations import lies_inside
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.requirements import AssertCurrentSchemaId, AssertTableUuid
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import LONG, STRING, NestedField
from icebench.engine.spec.updates import RemoveProperties, SetLocation, SetProperties
from icebench.engine.storage.local import LocalStore
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.storage.resolve import store_for
from icebench.errors import AlreadyExists, CommitConflict, FileNotFound, Invalid, NotFound, Unsupported

SCHEMA = Schema(
    (NestedField(field_id=1, name="id", type=LONG, required=True), NestedField(field_id=2, name="name", type=STRING))
)
EVENTS = ("db", "events")


def _on_s3(bucket: str, properties: dict[str, str]) -> Catalog:
    root = f"s3://{bucket}/wh"
    return FileSystemCatalog(root, store_for(root, properties, is_catalog=True))


_KINDS: dict[str, Callable[[Path, pytest.FixtureRequest], Catalog]] = {
    "sqlite": lambda root, _: SqlCatalog(f"sqlite:///{root}/catalog.db", warehouse=f"{root}/wh"),
    "sqlite-memory": lambda root, _: SqlCatalog("sqlite://", warehouse=f"file://{root}/wh"),
    # The database is one for all tests, and catalogs in it are distinguished by their names.
    "postgresql": lambda root, request: SqlCatalog(
        request.getfixturevalue("postgres_url"), warehouse=f"{root}/wh", name=root.name
    ),
    "directory": lambda root, _: FileSystemCatalog(f"{root}/wh", LocalStore()),
    "directory-in-memory": lambda root, _: FileSystemCatalog("memory://wh", MemoryStore()),
    "directory-on-s3": lambda _, request: _on_s3(
        request.getfixturevalue("bucket"), request.getfixturevalue("s3_server").properties
    ),
    "rest": lambda root, request: RestCatalog(open_session(request.getfixturevalue("rest_address"))),
    "nessie": lambda _, request: RestCatalog(
        open_session(
            request.getfixturevalue("nessie_address"), properties=request.getfixturevalue("s3_server").properties
        )
    ),
    "hive": lambda root, request: HiveCatalog(Metastore(request.getfixturevalue("hive_uri")), warehouse=f"{root}/wh"),
    "glue": lambda root, request: GlueCatalog(
        open_glue(request.getfixturevalue("glue_properties")), warehouse=f"{root}/wh"
    ),
}


@pytest.fixture(params=list(_KINDS))
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    made = _KINDS[request.param](tmp_path, request)
    yield made
    made.close()


def chosen_by_server(catalog: Catalog) -> bool:
    """Whether a server gives a table its UUID, time and location, and may add properties."""
    return isinstance(catalog, RestCatalog)


def in_common(catalog: Catalog, state: TableState) -> TableState:
    """What is the same of a state wherever it comes from. Nessie writes its commit into the properties, names no
    metadata file in the answer to a commit, and keeps log and times itself."""
    if not is_nessie(catalog):
        return state
    own = {name: value for name, value in state.metadata.properties.items() if not name.startswith("nessie.")}
    return TableState(metadata=replace(state.metadata, properties=own, last_updated_ms=0), metadata_location="")


def is_nessie(catalog: Catalog) -> bool:
    return isinstance(catalog, RestCatalog) and catalog._session.properties.get("nessie.is-nessie-catalog") == "true"


def has_levels(catalog: Catalog) -> bool:
    """Whether namespaces may be in namespaces."""
    return not isinstance(catalog, MetastoreCatalog)


def metadata_for(catalog: Catalog, identifier: tuple[str, ...], **properties: str) -> TableMetadata:
    location = catalog.default_location(identifier)
    return new_table_metadata(SCHEMA, location=location, properties=properties, uuid=uuid.uuid4(), now_ms=1_000)


def create(catalog: Catalog, identifier: tuple[str, ...] = EVENTS) -> TableState:
    return catalog.create_table(identifier, metadata_for(catalog, identifier))


def test_a_created_table_is_loaded(catalog: Catalog) -> None:
    metadata = metadata_for(catalog, EVENTS, owner="ann")
    created = catalog.create_table(EVENTS, metadata)
    loaded = catalog.load_state(EVENTS)
    assert created == loaded
    if chosen_by_server(catalog):
        assert loaded.metadata.properties.items() >= metadata.properties.items()
        given = loaded.metadata
        metadata = replace(
            metadata,
            table_uuid=given.table_uuid,
            location=given.location,
            last_updated_ms=given.last_updated_ms,
            properties=given.properties,
        )
    assert loaded.metadata == metadata
    assert catalog.store_at(loaded.metadata_location).exists(loaded.metadata_location)
    assert catalog.table_exists(EVENTS)


def test_a_name_is_used_once(catalog: Catalog) -> None:
    state = create(catalog)
    with pytest.raises(AlreadyExists, match=r"db\.events"):
        create(catalog)
    assert catalog.load_state(EVENTS) == state


def test_of_many_creators_one_wins(catalog: Catalog) -> None:
    def attempt(_: int) -> str | None:
        try:
            return create(catalog).metadata.table_uuid
        except AlreadyExists:
            return None

    with ThreadPoolExecutor(8) as pool:
        winners = [made for made in pool.map(attempt, range(8)) if made is not None]
    assert winners == [catalog.load_state(EVENTS).metadata.table_uuid]


def test_a_missing_table_is_not_found(catalog: Catalog) -> None:
    with pytest.raises(NotFound, match=r"db\.missing"):
        catalog.load_state(("db", "missing"))
    with pytest.raises(NotFound):
        catalog.commit(("db", "missing"), create(catalog), [], [SetProperties({"a": "b"})])
    with pytest.raises(NotFound):
        catalog.drop_table(("db", "missing"))
    assert not catalog.table_exists(("db", "missing"))


def test_a_commit_applies_updates(catalog: Catalog) -> None:
    base = create(catalog)
    outcome = catalog.commit(
        EVENTS, base, [AssertTableUuid(base.metadata.table_uuid)], [SetProperties({"owner": "ann"})]
    )
    assert isinstance(outcome, Committed)
    made, former = (in_common(catalog, state) for state in (outcome.state, base))
    assert made == in_common(catalog, catalog.load_state(EVENTS))
    assert made.metadata.properties == {**former.metadata.properties, "owner": "ann"}
    assert outcome.state.metadata_location != base.metadata_location
    log = [entry.metadata_file for entry in outcome.state.metadata.metadata_log]
    assert log == [] if is_nessie(catalog) else [base.metadata_location]


def test_a_commit_of_nothing_writes_nothing(catalog: Catalog) -> None:
    base = create(catalog)
    outcome = catalog.commit(EVENTS, base, [], [RemoveProperties(frozenset({"never set"}))])
    if chosen_by_server(catalog):
        assert isinstance(outcome, Committed)
        made, former = (in_common(catalog, state) for state in (outcome.state, base))
        assert made.metadata.properties == former.metadata.properties
    else:
        assert outcome == Committed(base)


def test_an_unmet_requirement_is_a_conflict_and_leaves_nothing(catalog: Catalog) -> None:
    base = create(catalog)
    store = catalog.store_at(base.metadata.location)
    before = [info.location for info in store.list(base.metadata.location)]
    outcome = catalog.commit(EVENTS, base, [AssertCurrentSchemaId(7)], [SetProperties({"owner": "ann"})])
    assert isinstance(outcome, Conflicted)
    assert "schema" in outcome.reason
    assert catalog.load_state(EVENTS) == base
    assert [info.location for info in store.list(base.metadata.location)] == before


def test_a_commit_is_made_on_its_base_or_not_at_all(catalog: Catalog) -> None:
    base = create(catalog)
    theirs = catalog.commit(EVENTS, base, [], [SetProperties({"owner": "ann"})])
    assert isinstance(theirs, Committed)
    outcome = catalog.commit(EVENTS, base, [AssertTableUuid(base.metadata.table_uuid)], [SetProperties({"n": "1"})])
    if chosen_by_server(catalog):
        # The protocol knows requirements only.
        assert isinstance(outcome, Committed)
        made, former = (in_common(catalog, state) for state in (outcome.state, theirs.state))
        assert made.metadata.properties == {**former.metadata.properties, "n": "1"}
        return
    assert isinstance(outcome, Conflicted)
    assert "changed by another commit" in outcome.reason
    assert catalog.load_state(EVENTS) == theirs.state
    store = catalog.store_at(base.metadata.location)
    files = [info.location for info in store.list(base.metadata.location) if info.location.endswith(".json")]
    assert sorted(files) == sorted([base.metadata_location, theirs.state.metadata_location])


def test_no_acknowledged_commit_is_lost(catalog: Catalog) -> None:
    create(catalog)

    def commit(n: int) -> int | None:
        # A conflict is an answer too: whoever gets it knows that nothing happened.
        outcome = catalog.commit(EVENTS, catalog.load_state(EVENTS), [], [SetProperties({f"writer-{n}": "done"})])
        return n if isinstance(outcome, Committed) else None

    with ThreadPoolExecutor(8) as pool:
        acknowledged = {n for n in pool.map(commit, range(40)) if n is not None}
    state = catalog.load_state(EVENTS)
    writers = [name.removeprefix("writer-") for name in state.metadata.properties if name.startswith("writer-")]
    assert set(map(int, writers)) == acknowledged
    assert is_nessie(catalog) or len(state.metadata.metadata_log) == len(acknowledged)
    assert acknowledged


def test_a_dropped_table_is_gone_and_its_name_free(catalog: Catalog) -> None:
    first = create(catalog)
    catalog.commit(EVENTS, first, [], [SetProperties({"owner": "ann"})])
    catalog.drop_table(EVENTS)
    assert not catalog.table_exists(EVENTS)
    second = create(catalog)
    assert second.metadata.table_uuid != first.metadata.table_uuid
    assert catalog.load_state(EVENTS) == second


def test_a_table_is_dropped_only_as_it_was_loaded(catalog: Catalog) -> None:
    first = create(catalog)
    catalog.commit(EVENTS, first, [], [SetProperties({"owner": "ann"})])
    with pytest.raises(CommitConflict, match="not dropped"):
        catalog.drop_table(EVENTS, base=first)
    current = catalog.load_state(EVENTS)
    catalog.drop_table(EVENTS, base=current)
    with pytest.raises(NotFound):
        catalog.drop_table(EVENTS, base=current)
    second = create(catalog)
    with pytest.raises(CommitConflict, match="not dropped"):
        catalog.drop_table(EVENTS, base=first)
    assert catalog.load_state(EVENTS) == second


def test_tables_do_not_lie_in_one_another(catalog: Catalog) -> None:
    outer = create(catalog)
    if chosen_by_server(catalog):
        return
    inner = (*EVENTS, "data") if has_levels(catalog) else ("db", "data")
    place = f"{outer.metadata.location}/data"
    with pytest.raises(Invalid, match=r"db\.events"):
        catalog.create_table(inner, replace(metadata_for(catalog, inner), location=place))
    assert not catalog.table_exists(inner)
    assert catalog.load_state(EVENTS) == outer


PATHS = [f"write.{kind}.path" for kind in ("data", "object-storage", "folder-storage")]


@pytest.mark.parametrize("name", PATHS)
def test_no_table_writes_into_the_directory_of_another(name: str, catalog: Catalog) -> None:
    outer = create(catalog)
    if chosen_by_server(catalog):
        return
    other = ("db", "other")
    for inside in ("data/b", "data", "x//y/../z", ""):
        path = f"{outer.metadata.location}/{inside}"
        with pytest.raises(Invalid, match=r"db\.other may not write to .* in the directory of db\.events"):
            catalog.create_table(other, metadata_for(catalog, other, **{name: path}))
        with pytest.raises(Invalid, match=r"in the directory of db\.events"):
            catalog.stage_table(other, metadata_for(catalog, other, **{name: path}))
    base = create(catalog, other)
    change = SetProperties({name: f"{outer.metadata.location}/data"})
    with pytest.raises(Invalid, match=r"in the directory of db\.events"):
        catalog.commit(other, base, [], [change])
    assert catalog.load_state(other) == base
    for path in (f"{outer.metadata.location}2", f"{base.metadata.location}/x", f"{outer.metadata.location}/../x"):
        outcome = catalog.commit(other, catalog.load_state(other), [], [SetProperties({name: path})])
        assert isinstance(outcome, Committed)


def test_no_table_moves_into_the_directory_of_another(catalog: Catalog) -> None:
    outer = create(catalog)
    base = create(catalog, ("db", "other"))
    if chosen_by_server(catalog) or isinstance(catalog, FileSystemCatalog):
        return
    for place in ("/data", "", "//x/..", "/.."):
        with pytest.raises(Invalid, match=r"db\.other is inside that of db\.events, or db\.events is inside it"):
            catalog.commit(("db", "other"), base, [], [SetLocation(f"{outer.metadata.location}{place}")])
    assert catalog.load_state(("db", "other")) == base
    moved = catalog.commit(("db", "other"), base, [], [SetLocation(f"{outer.metadata.location}2")])
    assert isinstance(moved, Committed)
    again = catalog.commit(("db", "other"), moved.state, [], [SetLocation(f"{outer.metadata.location}2/x")])
    assert isinstance(again, Committed)


def test_a_name_that_is_free_again_shares_no_directory(catalog: Catalog) -> None:
    """Wherever a table went that had the name before."""
    first = create(catalog).metadata.location
    try:
        catalog.rename_table(EVENTS, ("db", "moved"))
    except Unsupported:
        return
    if not chosen_by_server(catalog):
        assert not lies_inside(create(catalog).metadata.location, first)


def test_rename_moves_the_name(catalog: Catalog) -> None:
    state = create(catalog)
    create(catalog, ("db", "taken"))
    try:
        catalog.rename_table(EVENTS, ("other", "moved"))
    except Unsupported:
        assert catalog.load_state(EVENTS) == state
        return
    assert in_common(catalog, catalog.load_state(("other", "moved"))) == in_common(catalog, state)
    assert not catalog.table_exists(EVENTS)
    with pytest.raises(AlreadyExists):
        catalog.rename_table(("other", "moved"), ("db", "taken"))
    with pytest.raises(NotFound):
        catalog.rename_table(EVENTS, ("db", "anything"))


def test_register_takes_on_a_metadata_file(catalog: Catalog) -> None:
    state = create(catalog)
    try:
        registered = catalog.register_table(("db", "copy"), state.metadata_location)
    except Unsupported:
        assert not catalog.table_exists(("db", "copy"))
        return
    copy = catalog.load_state(("db", "copy"))
    assert registered == copy
    assert in_common(catalog, copy) == in_common(catalog, state)
    with pytest.raises(AlreadyExists):
        catalog.register_table(("db", "copy"), state.metadata_location)
    with pytest.raises(Invalid if is_nessie(catalog) else FileNotFound, match=r"missing|does not exist"):
        catalog.register_table(("db", "third"), state.metadata_location + ".missing")


def test_tables_are_listed_by_namespace(catalog: Catalog) -> None:
    for name in (("db", "b"), ("db", "a"), ("other", "d")):
        create(catalog, name)
    if has_levels(catalog):
        create(catalog, ("db", "inner", "c"))
        assert catalog.list_tables(("db", "inner")) == [("db", "inner", "c")]
    assert catalog.list_tables(("db",)) == [("db", "a"), ("db", "b")]
    with pytest.raises(NotFound):
        catalog.list_tables(("missing",))


def test_namespaces_exist_by_creation_or_by_content(catalog: Catalog) -> None:
    inside = [("empty", "inner"), ("x", "y")] if has_levels(catalog) else [("empty",), ("x",)]
    catalog.create_namespace(inside[0])
    create(catalog, ("a_b", "t"))
    create(catalog, (*inside[1], "t"))
    assert set(catalog.list_namespaces()) - {("default",)} == {("a_b",), ("empty",), ("x",)}
    if has_levels(catalog):
        assert catalog.list_namespaces(("empty",)) == [("empty", "inner")]
        assert catalog.list_namespaces(("x",)) == [("x", "y")]
    assert catalog.list_namespaces(inside[1]) == []
    assert catalog.namespace_exists(("x",))
    # No name is a pattern.
    assert not catalog.namespace_exists(("aXb",))
    assert not catalog.namespace_exists(("A_B",))
    assert catalog.list_tables(inside[0]) == []
    with pytest.raises(NotFound):
        catalog.list_namespaces(("missing",))
    with pytest.raises(AlreadyExists):
        catalog.create_namespace(("x",))


def test_only_an_empty_namespace_is_dropped(catalog: Catalog) -> None:
    catalog.create_namespace(("db",))
    create(catalog)
    with pytest.raises(Invalid, match="not empty"):
        catalog.drop_namespace(("db",))
    catalog.drop_table(EVENTS)
    if has_levels(catalog):
        catalog.create_namespace(("db", "inner"))
        with pytest.raises(Invalid, match="not empty"):
            catalog.drop_namespace(("db",))
        catalog.drop_namespace(("db", "inner"))
    catalog.drop_namespace(("db",))
    assert not catalog.namespace_exists(("db",))
    with pytest.raises(NotFound):
        catalog.drop_namespace(("db",))


def test_namespace_properties(catalog: Catalog) -> None:
    try:
        catalog.create_namespace(("db",), {"owner": "ann", "tier": "1"})
    except Unsupported:
        assert not catalog.namespace_exists(("db",))
        return
    # Where its tables go is the server's to say, and is recorded in a metastore.
    given = {key: value for key, value in catalog.namespace_properties(("db",)).items() if key == "location"}
    assert chosen_by_server(catalog) or not has_levels(catalog) or not given
    assert catalog.namespace_properties(("db",)) == {"owner": "ann", "tier": "1", **given}
    catalog.update_namespace_properties(("db",), {"tier": "2", "new": "x"}, ["owner"])
    assert catalog.namespace_properties(("db",)) == {"tier": "2", "new": "x", **given}
    catalog.update_namespace_properties(("db",), {}, ["tier", "new"])
    assert catalog.namespace_properties(("db",)) == given
    assert catalog.namespace_exists(("db",))
    with pytest.raises(Invalid):
        catalog.update_namespace_properties(("db",), {"a": "1"}, ["a"])
    with pytest.raises(NotFound):
        catalog.namespace_properties(("missing",))


def test_a_refused_update_leaves_the_table(catalog: Catalog) -> None:
    base = create(catalog)
    try:
        outcome = catalog.commit(EVENTS, base, [], [SetLocation("/elsewhere")])
    except (Unsupported, CommitConflict):
        assert catalog.load_state(EVENTS) == base
        return
    assert isinstance(outcome, Committed)
    if is_nessie(catalog):
        # It passes over the update, and says nothing of that.
        assert in_common(catalog, outcome.state) == in_common(catalog, base)
        return
    assert outcome.state.metadata.location == "/elsewhere"
