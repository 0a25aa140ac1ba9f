"""Tables of a REST catalog: what is sent, what is remembered, which storage options are taken on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from icebench.engine.catalog.rest import RestCatalog
from icebench.errors import (
    AlreadyExists,
    CommitConflict,
    CommitStateUnknown,
    CorruptTable,
    Invalid,
    NotFound,
    Unsupported,
)
from tests.services.scripted_http import Reply
from tests.unit.engine.catalog.rest_answers import error, loaded, opened
from tests.unit.engine.commit.tables import metadata

NAME = ("db", "t")
TABLES = "POST /v1/namespaces/db/tables"
TABLE = "/v1/namespaces/db/tables/t"


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


class TestStaged:
    """A table that is created with its first snapshots."""

    def test_the_server_chooses_and_sees_what_was_staged(self) -> None:
        made = replace(metadata(), location="s3://lake/db/t")
        replies = {TABLES: [Reply(body=loaded(made))], f"POST {TABLE}": [Reply(body=loaded(made))]}
        with opened(replies) as o:
            catalog = RestCatalog(o.session)
            staged = catalog.stage_table(NAME, replace(metadata(), location=""))
            assert staged == made
            assert o.server.seen[-1].json()["stage-create"] is True
            assert catalog.create_table(NAME, staged, is_staged=True).metadata == made
            sent = o.server.seen[-1].json()
        assert sent["requirements"] == [{"type": "assert-create"}]
        assert [update["action"] for update in sent["updates"]] == [
            "assign-uuid",
            "upgrade-format-version",
            "add-schema",
            "set-current-schema",
            "add-spec",
            "set-default-spec",
            "add-sort-order",
            "set-default-sort-order",
            "set-location",
            "set-properties",
        ]

    @pytest.mark.parametrize("reply", [Reply(cut_at=-1), error(500), error(409)])
    def test_one_that_is_there_was_created_whatever_the_answer(self, reply: Reply) -> None:
        with opened({f"POST {TABLE}": [reply], f"GET {TABLE}": [Reply(body=loaded(metadata()))]}) as o:
            assert RestCatalog(o.session).create_table(NAME, metadata(), is_staged=True).metadata == metadata()

    @pytest.mark.parametrize(
        ("reply", "is_another_there", "expected"),
        [
            (error(409), True, AlreadyExists),
            (error(409), False, AlreadyExists),
            (error(500), True, CommitStateUnknown),
            (Reply(cut_at=-1), False, CommitStateUnknown),
            (error(429), False, CommitConflict),
            (error(400), False, Invalid),
        ],
    )
    def test_one_that_is_not_there(self, reply: Reply, is_another_there: bool, expected: type[Exception]) -> None:
        other = Reply(body=loaded(replace(metadata(), table_uuid="other")))
        found = other if is_another_there else error(404, "NoSuchTableException")
        with opened({f"POST {TABLE}": [reply] * 9, f"GET {TABLE}": [found]}) as o, pytest.raises(expected):
            RestCatalog(o.session).create_table(NAME, metadata(), is_staged=True)


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
        (error(408), CommitStateUnknown),
        (error(500), CommitStateUnknown),
        (Reply(cut_at=-1), CommitStateUnknown),
    ],
)
def test_a_rename_that_fails(reply: Reply, expected: type[Exception]) -> None:
    script = {"POST /v1/tables/rename": [reply], "GET /v1/namespaces/x": [Reply(body={"namespace": ["x"]})]}
    with opened(script) as o, pytest.raises(expected, match=r"rename|db\.t to x\.y"):
        RestCatalog(o.session).rename_table(NAME, ("x", "y"))


@pytest.mark.parametrize(
    ("request_", "change", "refusal"),
    [
        (f"DELETE {TABLE}", lambda catalog: catalog.drop_table(NAME), 404),
        ("POST /v1/tables/rename", lambda catalog: catalog.rename_table(NAME, ("x", "y")), 404),
        ("POST /v1/tables/rename", lambda catalog: catalog.rename_table(NAME, ("x", "y")), 409),
        (f"POST {TABLE}", lambda catalog: catalog.create_table(NAME, metadata(), is_staged=True), 409),
        (f"POST {TABLE}", lambda catalog: catalog.create_table(NAME, metadata(), is_staged=True), 400),
    ],
)
def test_a_refused_change_of_a_name_that_cannot_be_looked_up_may_have_happened(
    request_: str, change: Callable[[RestCatalog], object], refusal: int
) -> None:
    """The server may have carried out a first copy of the request, and refused the second."""
    hidden = {f"{method} {TABLE}": [error(403, "ForbiddenException")] * 9 for method in ("GET", "HEAD")}
    with (
        opened({**hidden, request_: [error(refusal)] * 9}) as o,
        pytest.raises(CommitStateUnknown, match="is not known"),
    ):
        change(RestCatalog(o.session))


def test_a_server_that_repeats_the_token_does_not_show_it() -> None:
    replies = {f"GET {TABLE}": [error(400, message="no such token: t0k3n")]}
    with opened(replies, token="t0k3n") as o, pytest.raises(Invalid) as raised:
        RestCatalog(o.session).load_state(NAME)
    assert "no such token: ***" in str(raised.value)
