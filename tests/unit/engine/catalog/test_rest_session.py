"""Configuration, paths, pages and keys of a session with a REST catalog."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, ClassVar

import pytest

from icebench.engine.catalog.rest import HAS_TABLE, LOAD_TABLE, RestCatalog
from icebench.engine.catalog.rest_http import Answer
from icebench.engine.catalog.rest_session import open_session
from icebench.engine.catalog.rest_views import LIST_VIEWS, RestViewCatalog
from icebench.errors import CommitStateUnknown, CorruptTable, Invalid, NotFound, StorageFailed, Unsupported
from tests.services.scripted_http import Reply, scripted_server
from tests.unit.engine.catalog.rest_answers import CONFIG, Script, error, loaded, opened
from tests.unit.engine.commit.tables import metadata

NAMESPACES = "GET /v1/namespaces"
EMPTY = Reply(body={"namespaces": []})


def test_the_server_sets_defaults_and_has_the_last_word() -> None:
    config = {"defaults": {"a": "1", "b": "1", "c": "1"}, "overrides": {"c": "3"}}
    with opened({}, config=config, warehouse="my lake/1", properties={"b": "2", "c": "2"}) as o:
        assert o.session.properties == {"a": "1", "b": "2", "c": "3", "warehouse": "my lake/1"}
        assert o.server.seen[0].query == {"warehouse": "my lake/1"}


def test_paths_have_the_servers_prefix_and_separator() -> None:
    config = {"defaults": {}, "overrides": {"prefix": "ws/1", "namespace-separator": "%2E"}}
    one = {"identifiers": [{"namespace": ["a b", "c/d"], "name": "t"}]}
    listing = {"GET /v1/ws/1/namespaces/a%20b%2Ec%2Fd/tables": [Reply(body=one)]}
    with opened(listing, config=config) as o:
        assert RestCatalog(o.session).list_tables(("a b", "c/d")) == [("a b", "c/d", "t")]
    with opened({NAMESPACES: [Reply(body={"namespaces": [["a", "b", "c"]]})]}) as o:
        assert RestCatalog(o.session).list_namespaces(("a", "b")) == [("a", "b", "c")]
        assert o.server.seen[-1].query["parent"] == "a\x1fb"


def test_what_is_empty_is_asked_for_itself() -> None:
    """Nessie lists nothing in a namespace that does not exist."""
    listing = {NAMESPACES: [EMPTY] * 3, "GET /v1/namespaces/db/tables": [Reply(body={"identifiers": []})] * 2}
    for exists in (True, False):
        itself = Reply(body={"namespace": ["db"]}) if exists else error(404, "NoSuchNamespaceException", "namespace db")
        with opened({**listing, "GET /v1/namespaces/db": [itself] * 2}) as o:
            catalog = RestCatalog(o.session)
            for look in (catalog.list_tables, catalog.list_namespaces):
                if exists:
                    assert look(("db",)) == []
                else:
                    with pytest.raises(NotFound, match="namespace db"):
                        look(("db",))
            assert catalog.list_namespaces() == []


@pytest.mark.parametrize("kind", ["defaults", "overrides"])
def test_secrets_that_a_server_sends_are_not_shown_where_it_repeats_them(kind: str) -> None:
    config = {"defaults": {}, "overrides": {}, kind: {"s3.secret-access-key": "hidden-key"}}
    refusal = error(400, "BadRequestException", "no access with hidden-key to db")
    with opened({NAMESPACES: [refusal]}, config=config) as o, pytest.raises(Invalid) as caught:
        RestCatalog(o.session).list_namespaces()
    assert "to db" in str(caught.value)
    assert "hidden-key" not in str(caught.value)


def test_a_copy_of_a_session_does_not_show_its_token() -> None:
    refusal = error(400, "BadRequestException", "the token t0k3n-of-a-user is expired")
    with opened({NAMESPACES: [refusal]}, token=lambda: "t0k3n-of-a-user") as o, pytest.raises(Invalid) as caught:
        RestCatalog(pickle.loads(pickle.dumps(o.session))).list_namespaces()
    assert "the token *** is expired" in str(caught.value)


def test_a_server_may_send_its_clients_elsewhere() -> None:
    with scripted_server(Script({NAMESPACES: [EMPTY]})) as other:
        with opened({}, config={"defaults": {}, "overrides": {"uri": f"{other.address}/"}}, token="t") as o:
            RestCatalog(o.session).list_namespaces()
            assert o.requests() == []
        assert other.seen[-1].headers["authorization"] == "Bearer t"


def test_headers_of_the_properties_are_sent() -> None:
    with opened({NAMESPACES: [EMPTY]}, properties={"header.X-Team": "lake"}) as o:
        RestCatalog(o.session).list_namespaces()
        assert all(seen.headers["x-team"] == "lake" for seen in o.server.seen)


DELEGATION = "x-iceberg-access-delegation"


@pytest.mark.parametrize(
    ("properties", "sent"),
    [
        ({}, "vended-credentials"),
        ({"header.X-Iceberg-Access-Delegation": "remote-signing"}, "remote-signing"),
        ({"header.x-iceberg-access-delegation": "remote-signing"}, "remote-signing"),
        ({"header.X-Iceberg-Access-Delegation": ""}, None),
    ],
)
def test_how_access_is_delegated_is_the_users_to_say(properties: dict[str, str], sent: str | None) -> None:
    replies = {
        "GET /v1/namespaces/db/tables/t": [Reply(body=loaded(metadata()))],
        "POST /v1/namespaces/db/tables": [Reply(body=loaded(metadata()))],
        "POST /v1/namespaces/db/register": [Reply(body=loaded(metadata()))],
    }
    with opened(replies, properties=properties) as o:
        catalog = RestCatalog(o.session)
        catalog.load_state(("db", "t"))
        catalog.create_table(("db", "t"), metadata())
        catalog.register_table(("db", "t"), "s3://lake/v1.json")
        assert [seen.headers.get(DELEGATION) for seen in o.server.seen[1:]] == [sent] * 3


def test_properties_change_what_is_usual_and_not_what_a_request_needs() -> None:
    names = ("Accept", "ACCEPT-encoding", "content-type", "if-none-match", "authorization", "X-Empty")
    properties = {f"header.{name}": "mine" for name in names[:-1]} | {"header.X-Empty": ""}
    replies = {
        "GET /v1/namespaces/db/tables/t": [Reply(body=loaded(metadata()), headers={"ETag": '"1"'}), Reply(status=304)],
        "POST /v1/namespaces": [Reply(body={"namespace": ["x"]})],
    }
    with opened(replies, properties=properties, token="own") as o:
        catalog = RestCatalog(o.session)
        catalog.load_state(("db", "t"))
        catalog.load_state(("db", "t"))
        catalog.create_namespace(("x",))
        *_, again, made = o.server.seen
    assert again.headers["if-none-match"] == '"1"'
    assert made.headers["content-type"] == "application/json"
    assert made.headers["authorization"] == "Bearer own"
    assert made.headers["accept"] == made.headers["accept-encoding"] == "mine"
    assert "x-empty" not in made.headers


def test_a_header_is_sent_once_in_whatever_case_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    properties = {"header.ACCEPT": "mine", "header.authorization": "mine", "header.CONTENT-TYPE": "mine"}
    with opened({"POST /v1/namespaces": [Reply(body={"namespace": ["x"]})]}, properties=properties, token="own") as o:
        sent: list[str] = []
        send = o.session.http.send

        def noted(method: str, url: str, *, headers: Mapping[str, str], **more: Any) -> Answer:
            sent.extend(headers)
            return send(method, url, headers=headers, **more)

        monkeypatch.setattr(o.session.http, "send", noted)
        RestCatalog(o.session).create_namespace(("x",))
    assert sorted(name.lower() for name in sent) == ["accept", "accept-encoding", "authorization", "content-type"]


def test_what_a_server_does_not_offer_is_not_asked() -> None:
    config = {**CONFIG, "endpoints": [str(LOAD_TABLE)]}
    with opened({}, config=config) as o:
        with pytest.raises(Unsupported, match=r"does not offer GET /v1/\{prefix\}/namespaces"):
            RestCatalog(o.session).list_namespaces()
        assert not o.session.offers(HAS_TABLE)
        # So a table is looked for by loading it.
        assert not RestCatalog(o.session).table_exists(("db", "t"))
        assert o.requests() == ["GET /v1/namespaces/db/tables/t"]


def test_a_server_that_does_not_say_is_taken_for_an_old_one() -> None:
    with opened({}) as o:
        assert o.session.offers(LOAD_TABLE)
        assert not o.session.offers(HAS_TABLE)
        with pytest.raises(Unsupported, match="views"):
            RestViewCatalog(o.session).list_views(("db",))
    with opened({}, properties={"view-endpoints-supported": "true"}) as o:
        assert o.session.offers(LIST_VIEWS)


def test_all_pages_are_read() -> None:
    pages = [
        Reply(body={"namespaces": [["b"]], "next-page-token": "t=1&x"}),
        Reply(body={"namespaces": [], "next-page-token": "2"}),
        Reply(body={"namespaces": [["a"]], "next-page-token": None}),
    ]
    with opened({NAMESPACES: pages}) as o:
        assert RestCatalog(o.session).list_namespaces() == [("a",), ("b",)]
        assert [seen.query["pageToken"] for seen in o.server.seen[1:]] == ["", "t=1&x", "2"]


def test_pages_that_go_round_end() -> None:
    with opened({NAMESPACES: [Reply(body={"namespaces": [["a"]], "next-page-token": "1"})]}) as o:
        with pytest.raises(CorruptTable, match="page token '1'"):
            RestCatalog(o.session).list_namespaces()
        assert len(o.requests()) == 2


def test_a_server_that_takes_keys_gets_each_request_until_it_answers() -> None:
    made = Reply(body={"namespace": ["a"], "properties": {}})
    replies = {"POST /v1/namespaces": [Reply(cut_at=-1), Reply(status=503), made]}
    with opened(replies, config={**CONFIG, "idempotency-key-lifetime": "PT30M"}) as o:
        catalog = RestCatalog(o.session)
        catalog.create_namespace(("a",))
        catalog.create_namespace(("b",))
        keys = [uuid.UUID(seen.headers["idempotency-key"]) for seen in o.server.seen[1:]]
    assert len(keys) == 4
    assert len(set(keys)) == 2
    assert keys[0] == keys[1] == keys[2]
    assert {(key.version, key.variant) for key in keys} == {(7, uuid.RFC_4122)}
    with opened({NAMESPACES: [EMPTY]}) as o:
        RestCatalog(o.session).list_namespaces()
        assert "idempotency-key" not in o.server.seen[-1].headers


class TestEarlierCopies:
    """A request with a key, of which the first copy may have been carried out."""

    MAKE = "POST /v1/namespaces"
    KEYED: ClassVar = {**CONFIG, "idempotency-key-lifetime": "PT30M"}

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 419, 429, 501, 503])
    def test_a_refusal_is_no_answer(self, status: int) -> None:
        said = pytest.raises(CommitStateUnknown, match=f"POST http.*; sent again: .*namespace a: .*{status}")
        with opened({self.MAKE: [Reply(cut_at=-1), error(status)]}, config=self.KEYED) as o, said:
            RestCatalog(o.session).create_namespace(("a",))

    @pytest.mark.parametrize("last", [Reply(body={"namespace": ["a"]}), error(403), Reply(cut_at=-1)])
    def test_they_are_remembered_when_the_token_is_renewed(self, last: Reply) -> None:
        tokens = iter(["old", "new"])
        replies = {self.MAKE: [Reply(status=503), error(401), last]}
        with opened(replies, config=self.KEYED, token=lambda: next(tokens)) as o:
            catalog = RestCatalog(o.session)
            with nullcontext() if last.status == 200 and last.cut_at is None else pytest.raises(CommitStateUnknown):
                catalog.create_namespace(("a",))
            assert o.server.seen[3].headers["authorization"] == "Bearer new"
            assert len({seen.headers["idempotency-key"] for seen in o.server.seen[1:]}) == 1

    @pytest.mark.parametrize(
        ("replies", "expected"),
        [([Reply(status=503), error(401)], CommitStateUnknown), ([error(401)], StopIteration)],
    )
    def test_they_are_remembered_when_there_is_no_new_token(
        self, replies: list[Reply], expected: type[Exception]
    ) -> None:
        tokens = iter(["old"])
        keyed = opened({self.MAKE: replies}, config=self.KEYED, token=lambda: next(tokens))
        with keyed as o, pytest.raises(expected):
            RestCatalog(o.session).create_namespace(("a",))


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply(body="<html>"), CorruptTable),
        (Reply(body={"defaults": {"a": 1}}), CorruptTable),
        (error(404, "NoSuchWarehouseException", "no lake"), NotFound),
        (error(403, "ForbiddenException"), StorageFailed),
        (Reply(status=503), StorageFailed),
        (Reply(status=301, headers={"Location": "https://elsewhere/"}), StorageFailed),
    ],
)
def test_a_catalog_that_cannot_be_opened_says_why(reply: Reply, expected: type[Exception]) -> None:
    with pytest.raises(expected) as raised, opened({"GET /v1/config": [reply]}):
        pass
    assert "127.0.0.1" in str(raised.value)


def test_timeouts_are_checked() -> None:
    with pytest.raises(Invalid, match="socket-timeout-ms='soon'"):
        open_session("http://127.0.0.1:1", properties={"rest.client.socket-timeout-ms": "soon"})


def test_a_configured_token_is_not_kept_beside_the_one_that_is_given() -> None:
    with opened({NAMESPACES: [EMPTY]}, token="given", properties={"token": "configured", "a": "1"}) as o:
        RestCatalog(o.session).list_namespaces()
        assert o.server.seen[-1].headers["authorization"] == "Bearer given"
        assert o.session.properties == {"a": "1"}
