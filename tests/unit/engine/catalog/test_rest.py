"""Tables of a REST catalog: what is sent, what is remembered, which storage options are taken on."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from engine.catalog.rest import RestCatalog
from engine.catalog.rest_stores import TableStores
from engine.codec.json_object import JsonObject
from engine.codec.metadata_json import encode_metadata
from engine.codec.rest_json import table_from_json
from engine.errors import AlreadyExists, CommitStateUnknown, CorruptTable, Invalid, NotFound, Unsupported
from engine.spec.metadata import TableMetadata
from engine.storage.arrow import ArrowStore
from engine.storage.local import LocalStore
from tests.services.scripted_http import Reply
from tests.unit.engine.catalog.rest_answers import CONFIG, error, opened
from tests.unit.engine.commit.tables import metadata

NAME = ("db", "t")
TABLES = "POST /v1/namespaces/db/tables"
TABLE = "/v1/namespaces/db/tables/t"


def document(table: TableMetadata) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(encode_metadata(table))
    return found


def loaded(table: TableMetadata, **more: object) -> dict[str, Any]:
    return {"metadata-location": f"{table.location}/metadata/v1.json", "metadata": document(table), **more}


def test_a_table_is_created_where_the_server_wants_it() -> None:
    given = metadata(format_version=3, properties={"owner": "ann"})
    made = replace(given, location="s3://lake/db/t")
    with opened({TABLES: [Reply(body=loaded(made))]}) as o:
        catalog = RestCatalog(o.session)
        assert catalog.default_location(NAME) == ""
        state = catalog.create_table(NAME, replace(given, location=""))
        sent = o.server.seen[-1].json()
        assert o.server.seen[-1].headers["x-iceberg-access-delegation"] == "vended-credentials"
    assert state.metadata == made
    assert "location" not in sent
    assert sent["name"] == "t"
    assert sent["properties"] == {"owner": "ann", "format-version": "3"}
    assert [f["name"] for f in sent["schema"]["fields"]] == ["id", "day"]


def test_a_missing_namespace_is_made_first() -> None:
    missing = error(404, "NoSuchNamespaceException", "no db")
    replies = {
        "POST /v1/namespaces/a%1Fb/tables": [missing, Reply(body=loaded(metadata()))],
        "POST /v1/namespaces": [error(409, "AlreadyExistsException"), Reply(body={"namespace": ["a", "b"]})],
    }
    with opened(replies) as o:
        RestCatalog(o.session).create_table(("a", "b", "t"), metadata())
        made = [seen.json()["namespace"] for seen in o.server.seen if seen.path == "/v1/namespaces"]
    assert made == [["a"], ["a", "b"]]


def test_a_creation_whose_answer_is_lost_is_not_tried_again() -> None:
    for reply in (Reply(cut_at=-1), error(500), error(503)):
        with opened({TABLES: [reply]}) as o:
            with pytest.raises(CommitStateUnknown):
                RestCatalog(o.session).create_table(NAME, metadata())
            assert len(o.requests()) == 1


def test_a_table_is_not_sent_twice_while_it_stays_the_same() -> None:
    first, second = metadata(), metadata(properties={"a": "1"})
    replies = {
        f"GET {TABLE}": [
            Reply(body=loaded(first), headers={"ETag": '"1"'}),
            Reply(status=304),
            Reply(body=loaded(second), headers={"ETag": '"2"'}),
            Reply(status=304),
        ]
    }
    with opened(replies) as o:
        catalog = RestCatalog(o.session)
        seen = [catalog.load_state(NAME).metadata for _ in range(4)]
        tags = [request.headers.get("if-none-match") for request in o.server.seen[1:]]
    assert seen == [first, first, second, second]
    assert tags == [None, '"1"', '"1"', '"2"']


def test_a_dropped_table_is_forgotten() -> None:
    replies = {
        f"GET {TABLE}": [Reply(body=loaded(metadata()), headers={"ETag": '"1"'})],
        f"DELETE {TABLE}": [Reply(status=204)],
    }
    with opened(replies) as o:
        catalog = RestCatalog(o.session)
        catalog.load_state(NAME)
        catalog.drop_table(NAME, purge=True)
        assert o.server.seen[-1].query == {"purgeRequested": "true"}
        catalog.load_state(NAME)
        assert "if-none-match" not in o.server.seen[-1].headers
        catalog.drop_table(NAME)
        assert o.server.seen[-1].query == {"purgeRequested": "false"}


@pytest.mark.parametrize(
    "body",
    [
        "<html>",
        {"metadata-location": "x"},
        {"metadata-location": 5, "metadata": {}},
        {"metadata-location": "x", "metadata": {"format-version": 2}},
    ],
)
def test_an_answer_that_is_no_table_is_corrupt(body: object) -> None:
    with opened({f"GET {TABLE}": [Reply(body=body)]}) as o, pytest.raises(CorruptTable):
        RestCatalog(o.session).load_state(NAME)


def test_a_namespace_that_is_not_empty() -> None:
    for reply in (error(409, "NamespaceNotEmptyException"), error(400, "NamespaceNotEmptyException"), error(409)):
        with opened({"DELETE /v1/namespaces/db": [reply]}) as o, pytest.raises(Invalid):
            RestCatalog(o.session).drop_namespace(("db",))


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (error(404, "NoSuchTableException"), NotFound),
        (error(406, "UnsupportedOperationException"), Unsupported),
        (error(409, "AlreadyExistsException"), AlreadyExists),
        (error(500), CommitStateUnknown),
        (Reply(cut_at=-1), CommitStateUnknown),
    ],
)
def test_a_rename_that_fails(reply: Reply, expected: type[Exception]) -> None:
    with opened({"POST /v1/tables/rename": [reply]}) as o, pytest.raises(expected, match=r"rename|db\.t to x\.y"):
        RestCatalog(o.session).rename_table(NAME, ("x", "y"))


class TestStores:
    S3 = replace(metadata(), location="s3://lake/db/t")

    def learned(self, stores: TableStores, **more: object) -> TableStores:
        stores.learn(table_from_json(JsonObject(loaded(self.S3, **more))), subject="table db.t")
        return stores

    def options(self, stores: TableStores, location: str) -> dict[str, str]:
        found = [root for root in stores._by_table if location.startswith(root)]
        return stores._by_table[found[0]][0] if found else {}

    def test_a_credential_of_the_longest_fitting_prefix_wins(self) -> None:
        credentials = [
            {"prefix": "s3://lake", "config": {"s3.access-key-id": "wide"}},
            {"prefix": "s3://lake/db/", "config": {"s3.access-key-id": "narrow"}},
            {"prefix": "s3://other", "config": {"s3.access-key-id": "other"}},
        ]
        config = {"s3.access-key-id": "config", "client.region": "eu-west-1"}
        stores = self.learned(TableStores({}), config=config, **{"storage-credentials": credentials})
        assert self.options(stores, "s3://lake/db/t") == {"s3.access-key-id": "narrow", "client.region": "eu-west-1"}

    def test_only_the_tables_own_files_take_its_options(self) -> None:
        secret = {"s3.secret-access-key": "x", "s3.access-key-id": "y", "s3.region": "eu-west-1"}
        stores = self.learned(TableStores({"s3.region": "us-east-1"}), config=secret)
        own = stores("s3://lake/db/t/data/f.parquet")
        assert isinstance(own, ArrowStore)
        assert stores("s3://lake/db/t") is own
        assert stores("s3://lake/db/t2") is not own
        assert isinstance(stores("/elsewhere"), LocalStore)
        # The same again keeps the client; others make another.
        assert self.learned(stores, config=secret)("s3://lake/db/t") is own
        assert self.learned(stores, config={**secret, "s3.session-token": "z"})("s3://lake/db/t") is not own
        assert not self.learned(stores)._by_table

    def test_secrets_are_not_shown(self) -> None:
        credentials = [{"prefix": "s3://lake", "config": {"s3.secret-access-key": "hunter2"}}]
        table = table_from_json(
            JsonObject(loaded(self.S3, config={"token": "hunter2"}, **{"storage-credentials": credentials}))
        )
        assert "hunter2" not in repr(table)

    @pytest.mark.parametrize(
        ("config", "message"),
        [({"s3.remote-signing-enabled": "true"}, "signs"), ({"scan-planning-mode": "server"}, "plan")],
    )
    def test_what_only_the_server_can_do_is_refused(self, config: dict[str, str], message: str) -> None:
        with pytest.raises(Unsupported, match=rf"table db\.t: .*{message}"):
            self.learned(TableStores({}), config=config)

    def test_the_options_of_a_loaded_table_reach_its_store(self) -> None:
        body = loaded(self.S3, config={"s3.region": "eu-west-1"})
        with opened({f"GET {TABLE}": [Reply(body=body)]}, config={**CONFIG, "defaults": {"s3.region": "us"}}) as o:
            catalog = RestCatalog(o.session)
            before = catalog.store_at("s3://lake/db/t")
            catalog.load_state(NAME)
            assert catalog.store_at("s3://lake/db/t") is not before
