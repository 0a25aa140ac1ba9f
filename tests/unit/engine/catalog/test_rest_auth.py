"""Tokens: fetched once, renewed before their end and when refused, never shown."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import parse_qs

import pytest

from icebench.engine.catalog.rest import RestCatalog
from icebench.engine.catalog.rest_auth import BearerToken, ClientCredentials
from icebench.engine.catalog.rest_http import HttpClient
from icebench.engine.commit.retry import Waiting
from icebench.errors import EngineError, Invalid, StorageFailed
from tests.services.scripted_http import Reply, ScriptedServer, Seen, scripted_server
from tests.unit.engine.catalog.rest_answers import CONFIG, error, opened

SECRET = "s3cr3t-of-ann"
TOKENS = "/v1/oauth/tokens"
NAMESPACES = "GET /v1/namespaces"
EMPTY = Reply(body={"namespaces": []})


def token(value: str, **more: object) -> Reply:
    return Reply(body={"access_token": value, "token_type": "bearer", **more})


@contextmanager
def credentials(
    replies: list[Reply], clock: Callable[[], float] = lambda: 0.0, **options: str
) -> Iterator[tuple[ClientCredentials, ScriptedServer]]:
    def answer(seen: Seen) -> Reply:
        return replies.pop(0) if len(replies) > 1 else replies[0]

    with scripted_server(answer) as server:
        http = HttpClient(server.address, waiting=Waiting(sleep=lambda _: None))
        yield (
            ClientCredentials(
                http,
                endpoint=f"{server.address}/token",
                credential=options.pop("credential", f"ann:{SECRET}"),
                scope="catalog",
                parameters=options,
                monotonic=clock,
            ),
            server,
        )
        http.close()


def test_client_credentials_are_exchanged_for_a_token() -> None:
    with credentials([token("t1")], audience="lake") as (auth, server):
        assert auth.header() == "Bearer t1"
        assert auth.header() == "Bearer t1"
    [asked] = server.seen
    assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
    assert parse_qs(asked.body.decode()) == {
        "grant_type": ["client_credentials"],
        "client_id": ["ann"],
        "client_secret": [SECRET],
        "scope": ["catalog"],
        "audience": ["lake"],
    }


def test_a_secret_alone_and_one_with_a_colon() -> None:
    with credentials([token("t")], credential="only-secret") as (auth, server):
        auth.header()
    assert "client_id" not in parse_qs(server.seen[0].body.decode())
    with credentials([token("t")], credential="id:a:b") as (auth, server):
        auth.header()
    assert parse_qs(server.seen[0].body.decode())["client_secret"] == ["a:b"]
    with pytest.raises(Invalid, match="empty"), credentials([token("t")], credential="id:"):
        pass


def test_a_token_is_renewed_before_it_ends() -> None:
    now = [0.0]
    replies = [token("t1", expires_in=3600), token("t2", expires_in=100), token("t3")]
    with credentials(replies, lambda: now[0]) as (auth, _):
        seen = []
        # A minute early, or a tenth of a life that is shorter than ten minutes.
        for at in (0, 3539, 3540, 3540 + 89, 3540 + 90, 1e9):
            now[0] = at
            seen.append(auth.header())
    assert seen == [f"Bearer {name}" for name in ("t1", "t1", "t2", "t2", "t3", "t3")]


def test_many_threads_fetch_one_token() -> None:
    with credentials([Reply(body=token("t1").body, after_seconds=0.1)]) as (auth, server):
        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(lambda _: auth.header(), range(16))) == {"Bearer t1"}
        assert len(server.seen) == 1


def test_a_token_that_another_thread_renewed_is_kept() -> None:
    with credentials([token("t1"), token("t2"), token("t3")]) as (auth, _):
        old = auth.header()
        assert auth.renewed(old)
        assert auth.header() == "Bearer t2"
        assert auth.renewed(old)
        assert auth.header() == "Bearer t2"


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(status=401, body={"error": "invalid_client", "error_description": f"{SECRET} is wrong"}), "is wrong"),
        (Reply(status=400, body={"error": "invalid_scope"}), "invalid_scope"),
        (Reply(status=404, body="<html>"), "HTTP 404"),
        (Reply(body="not json"), "not valid JSON"),
        (Reply(body={"token_type": "bearer"}), "access_token"),
        (Reply(body={"access_token": "x", "token_type": "mac"}), "'mac'"),
        (Reply(status=503), "HTTP 503"),
        (Reply(cut_at=-1), "POST"),
    ],
)
def test_no_token_is_a_plain_failure_without_the_secret(reply: Reply, message: str) -> None:
    with credentials([reply]) as (auth, _), pytest.raises(EngineError, match=message) as raised:
        auth.header()
    assert SECRET not in str(raised.value)


def test_a_refused_change_is_sent_again_with_a_new_token() -> None:
    replies = {
        f"POST {TOKENS}": [token("t1"), token("t2")],
        "POST /v1/namespaces": [error(401, "NotAuthorizedException", "expired"), Reply(body={"namespace": ["a"]})],
    }
    with opened(replies, credential=f"ann:{SECRET}") as o:
        RestCatalog(o.session).create_namespace(("a",))
        used = [seen.headers.get("authorization") for seen in o.server.seen if seen.path == "/v1/namespaces"]
    assert used == ["Bearer t1", "Bearer t2"]


def test_a_given_token_that_is_refused_is_not_tried_again() -> None:
    with opened({NAMESPACES: [error(401, "NotAuthorizedException", "not tok-1")]}, token="tok-1") as o:
        with pytest.raises(StorageFailed, match="does not allow") as raised:
            RestCatalog(o.session).list_namespaces()
        assert o.requests() == [NAMESPACES]
    assert "tok-1" not in str(raised.value)


def test_the_server_may_name_another_token_endpoint_or_give_a_token() -> None:
    with scripted_server(lambda _: token("from-elsewhere")) as elsewhere:
        properties = {"oauth2-server-uri": f"{elsewhere.address}/oauth", "scope": "lake"}
        with opened({NAMESPACES: [EMPTY]}, credential="a:b", properties=properties) as o:
            RestCatalog(o.session).list_namespaces()
            assert o.server.seen[-1].headers["authorization"] == "Bearer from-elsewhere"
        assert "scope=lake" in elsewhere.seen[0].body.decode()
    config = {**CONFIG, "defaults": {"token": "given"}}
    with opened({NAMESPACES: [EMPTY]}, config=config) as o:
        RestCatalog(o.session).list_namespaces()
        assert o.server.seen[-1].headers["authorization"] == "Bearer given"
        assert "token" not in o.session.properties


def test_the_server_has_the_last_word_on_tokens() -> None:
    config = {"defaults": {"audience": "lake"}, "overrides": {"scope": "theirs"}}
    replies = {f"POST {TOKENS}": [token("t1"), token("t2")], NAMESPACES: [EMPTY]}
    with opened(replies, config=config, credential="a:b", properties={"scope": "mine"}) as o:
        RestCatalog(o.session).list_namespaces()
        first, second = [parse_qs(seen.body.decode()) for seen in o.server.seen if seen.path == TOKENS]
    assert first["scope"] == ["mine"]
    assert (second["scope"], second["audience"]) == (["theirs"], ["lake"])


def test_nothing_is_shown_and_nothing_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    replies = {f"POST {TOKENS}": [token("t0k3n")], NAMESPACES: [EMPTY]}
    with opened(replies, credential=f"ann:{SECRET}") as o:
        RestCatalog(o.session).list_namespaces()
        shown = repr([o.session, vars(o.session), vars(o.session.http)]) + caplog.text
    assert caplog.records
    for secret in (SECRET, "t0k3n"):
        assert secret not in shown
    assert "t0k3n" not in repr(BearerToken("t0k3n"))


def test_one_of_token_and_credential() -> None:
    with pytest.raises(Invalid, match="not both"), opened({}, token="a", credential="b:c"):
        pass
