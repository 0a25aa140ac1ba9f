"""What every catalog with views promises, checked for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

import pytest

from icebench.engine.catalog.catalog import Catalog
from icebench.engine.catalog.rest_session import open_session
from icebench.engine.catalog.rest_views import RestViewCatalog
from icebench.engine.catalog.sql_views import SqlViewCatalog
from icebench.engine.catalog.views import ViewCatalog
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import LONG, STRING, NestedField
from icebench.engine.spec.views import SqlRepresentation, ViewVersion
from icebench.errors import AlreadyExists, Invalid, NotFound
from tests.contract.test_catalog import create

SCHEMA = Schema((NestedField(field_id=1, name="id", type=LONG),))
WIDER = Schema((NestedField(field_id=1, name="id", type=LONG), NestedField(field_id=2, name="name", type=STRING)))
RECENT = ("db", "recent")


class Views(Catalog, ViewCatalog, Protocol):
    """A catalog of tables and views."""


_KINDS: dict[str, Callable[[Path, pytest.FixtureRequest], Views]] = {
    "sqlite": lambda root, _: SqlViewCatalog(f"sqlite:///{root}/catalog.db", warehouse=f"{root}/wh"),
    "postgresql": lambda root, request: SqlViewCatalog(
        request.getfixturevalue("postgres_url"), warehouse=f"{root}/wh", name=root.name
    ),
    "rest": lambda root, request: RestViewCatalog(open_session(request.getfixturevalue("rest_address"))),
}


@pytest.fixture(params=list(_KINDS))
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Views]:
    made = _KINDS[request.param](tmp_path, request)
    yield made
    made.close()


def query(sql: str, *, dialect: str = "spark", at_ms: int = 1_700_000_000_000) -> ViewVersion:
    return ViewVersion(
        version_id=77,
        schema_id=78,
        timestamp_ms=at_ms,
        representations=(SqlRepresentation(sql=sql, dialect=dialect),),
        default_catalog="prod",
        default_namespace=("db",),
    )


def test_a_created_view_is_loaded(catalog: Views) -> None:
    created = catalog.create_view(RECENT, query("select 1"), SCHEMA, properties={"comment": "new ones"})
    assert catalog.load_view(RECENT) == created
    metadata = created.metadata
    assert metadata.current_version.sql_for("SPARK") == "select 1"
    assert metadata.current_version.default_namespace == ("db",)
    assert metadata.current_version.default_catalog == "prod"
    assert (metadata.current_version_id, metadata.current_version.schema_id) == (1, 0)
    assert metadata.schema == SCHEMA
    assert metadata.properties["comment"] == "new ones"
    assert catalog.view_exists(RECENT)
    assert catalog.store_at(created.metadata_location).exists(created.metadata_location)


def test_a_view_without_history_is_not_created(catalog: Views) -> None:
    with pytest.raises(Invalid, match=r"^view property"):
        catalog.create_view(RECENT, query("select 1"), SCHEMA, properties={"version.history.num-entries": "0"})
    assert not catalog.view_exists(RECENT)


def test_tables_and_views_share_their_names(catalog: Views) -> None:
    create(catalog)
    with pytest.raises(AlreadyExists):
        catalog.create_view(("db", "events"), query("select 1"), SCHEMA)
    catalog.create_view(RECENT, query("select 1"), SCHEMA)
    with pytest.raises(AlreadyExists):
        catalog.create_view(RECENT, query("select 1"), SCHEMA)
    with pytest.raises(AlreadyExists):
        create(catalog, RECENT)
    # But neither is taken for the other.
    assert catalog.list_views(("db",)) == [RECENT]
    assert catalog.list_tables(("db",)) == [("db", "events")]
    assert not catalog.table_exists(RECENT)
    assert not catalog.view_exists(("db", "events"))
    with pytest.raises(NotFound):
        catalog.load_state(RECENT)
    with pytest.raises(NotFound):
        catalog.drop_table(RECENT)
    with pytest.raises(NotFound):
        catalog.load_view(("db", "events"))
    with pytest.raises(Invalid, match="not empty"):
        catalog.drop_namespace(("db",))


def test_a_missing_view_is_not_found(catalog: Views) -> None:
    catalog.create_namespace(("db",))
    for attempt in (
        lambda: catalog.load_view(RECENT),
        lambda: catalog.replace_view(RECENT, query("select 1"), SCHEMA),
        lambda: catalog.drop_view(RECENT),
        lambda: catalog.rename_view(RECENT, ("db", "x")),
        lambda: catalog.list_views(("missing",)),
    ):
        with pytest.raises(NotFound):
            attempt()
    assert not catalog.view_exists(RECENT)
    assert catalog.list_views(("db",)) == []


def test_a_replaced_view_keeps_its_history(catalog: Views) -> None:
    first = catalog.create_view(RECENT, query("select 1"), SCHEMA)
    second = catalog.replace_view(RECENT, query("select 1, 2", at_ms=1_700_000_001_000), WIDER)
    assert catalog.load_view(RECENT) == second
    metadata = second.metadata
    assert metadata.view_uuid == first.metadata.view_uuid
    assert metadata.current_version.sql_for("spark") == "select 1, 2"
    assert metadata.schema.fields == WIDER.fields
    assert [version.sql_for("spark") for version in metadata.versions] == ["select 1", "select 1, 2"]
    assert [entry.version_id for entry in metadata.version_log] == [1, 2]
    assert second.metadata_location != first.metadata_location


def test_going_back_is_a_new_entry_of_the_history(catalog: Views) -> None:
    catalog.create_view(RECENT, query("select 1"), SCHEMA)
    for seconds, sql in enumerate(["select 2", "select 3", "select 2"]):
        state = catalog.replace_view(RECENT, query(sql, at_ms=1_700_000_001_000 + 1000 * seconds), SCHEMA)
    assert catalog.load_view(RECENT) == state
    assert state.metadata.current_version_id == 2
    assert [version.version_id for version in state.metadata.versions] == [1, 2, 3]
    assert [entry.version_id for entry in state.metadata.version_log] == [1, 2, 3, 2]


def test_the_same_definition_again_changes_nothing(catalog: Views) -> None:
    catalog.create_view(RECENT, query("select 1"), SCHEMA)
    second = catalog.replace_view(RECENT, query("select 2"), WIDER)
    assert catalog.replace_view(RECENT, query("select 2", at_ms=1_800_000_000_000), WIDER) == second


def test_a_dialect_is_not_lost_by_accident(catalog: Views) -> None:
    first = catalog.create_view(RECENT, query("select 1"), SCHEMA)
    with pytest.raises(Invalid, match="spark"):
        catalog.replace_view(RECENT, query("select 1", dialect="trino"), SCHEMA)
    assert catalog.load_view(RECENT) == first


def test_of_many_replacements_none_is_lost(catalog: Views) -> None:
    catalog.create_view(RECENT, query("select 0"), SCHEMA, properties={"commit.retry.num-retries": "20"})

    def replaced(n: int) -> str:
        sql = f"select {n}"
        catalog.replace_view(RECENT, query(sql, at_ms=1_700_000_001_000), SCHEMA)
        return sql

    with ThreadPoolExecutor(4) as pool:
        made = set(pool.map(replaced, range(1, 6)))
    assert {version.sql_for("spark") for version in catalog.load_view(RECENT).metadata.versions} == {"select 0", *made}


def test_rename_and_drop(catalog: Views) -> None:
    state = catalog.create_view(RECENT, query("select 1"), SCHEMA)
    create(catalog)
    with pytest.raises(AlreadyExists):
        catalog.rename_view(RECENT, ("db", "events"))
    catalog.rename_view(RECENT, ("other", "moved"))
    assert catalog.load_view(("other", "moved")) == state
    assert not catalog.view_exists(RECENT)
    catalog.drop_view(("other", "moved"))
    assert catalog.list_views(("db",)) == []
    assert not catalog.view_exists(("other", "moved"))
