"""Enough of the REST protocol to load and commit tables of another catalog, with faults between it and the client."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Literal
from urllib.parse import unquote

from icebench.engine.codec.metadata_json.objects import JsonObject
from icebench.engine.codec.metadata_json.table import encode_metadata
from icebench.engine.commit.committer import Committed, Committer, Conflicted, Identifier, TableState
from icebench.errors import EngineError, NotFound
from tests.services.commit_requests import requirement_from_json, update_from_json
from tests.services.scripted_http import Reply, Seen

Fault = Literal[
    "none",
    "lost-before",  # the connection breaks before the commit is applied
    "lost-after",  # and after
    "half-an-answer",  # applied; the answer breaks off
    "garbled",  # applied; the answer is not JSON
    "slow",  # applied; the answer comes after the client's patience ended
    "503-before",
    "503-after",
    "502-after",  # a gateway's own page
    "sent-twice",  # a gateway repeats the request and passes on the second answer
    "late",  # the connection breaks, and the commit is applied before the next one that comes, or at the end
    "429",
    "401",  # refused by a gateway, and never applied
    "403",
    "404",
    "419",
]
FAULTS: tuple[Fault, ...] = Fault.__args__  # type: ignore[attr-defined]


class RestOverCatalog:
    """Answers as a REST server whose tables are `catalog`'s.

    Args:
        catalog: Decides commits.
        faults: What happens to the first commits that come, in turn; the others pass.
        takes_keys: Whether a commit with an idempotency key that was applied gets the same answer whenever it comes.
    """

    def __init__(self, catalog: Committer, faults: Iterable[Fault] = (), *, takes_keys: bool = False) -> None:
        self._catalog = catalog
        self._faults = list(faults)
        self._takes_keys = takes_keys
        self._delayed: list[Seen] = []
        self._answers: dict[str, Reply] = {}

    def __call__(self, request: Seen) -> Reply:
        if request.path == "/v1/config":
            lifetime = {"idempotency-key-lifetime": "PT30M"} if self._takes_keys else {}
            return Reply(body={"defaults": {}, "overrides": {}, **lifetime})
        if request.method == "GET":
            return self._load(_identifier(request))
        self.deliver()
        return self._faulty(request, self._faults.pop(0) if self._faults else "none")

    def deliver(self) -> None:
        """Apply the commits that are late."""
        while self._delayed:
            self._commit(self._delayed.pop(0))

    def _faulty(self, request: Seen, fault: Fault) -> Reply:
        match fault:
            case "lost-before":
                return Reply(cut_at=-1)
            case "503-before":
                return Reply(status=503, body=_error("ServiceUnavailableException", "try later"))
            case "429" | "401" | "403" | "404" | "419":
                return Reply(status=int(fault), body=_error("Refused", "slow down" if fault == "429" else "not you"))
            case "late":
                self._delayed.append(request)
                return Reply(cut_at=-1)
        answer = self._commit(request)
        match fault:
            case "lost-after":
                return Reply(cut_at=-1)
            case "half-an-answer":
                return Reply(status=answer.status, body=answer.body, cut_at=20)
            case "garbled":
                return Reply(body="<html>200 OK</html>")
            case "slow":
                return Reply(status=answer.status, body=answer.body, after_seconds=1.0)
            case "503-after":
                return Reply(status=503, body=_error("ServiceUnavailableException", "try later"))
            case "502-after":
                return Reply(status=502, body="<html>Bad Gateway</html>", headers={"Content-Type": "text/html"})
            case "sent-twice":
                return self._commit(request)
        return answer

    def _load(self, identifier: Identifier) -> Reply:
        try:
            return Reply(body=_table(self._catalog.load_state(identifier)))
        except NotFound as error:
            return Reply(status=404, body=_error("NoSuchTableException", str(error)))

    def _commit(self, request: Seen) -> Reply:
        key = request.headers.get("idempotency-key")
        if key is None:
            return self._apply(request)
        if key not in self._answers:
            self._answers[key] = self._apply(request)
        return self._answers[key]

    def _apply(self, request: Seen) -> Reply:
        node = JsonObject(request.json())
        identifier = _identifier(request)
        try:
            outcome = self._catalog.commit(
                identifier,
                self._catalog.load_state(identifier),
                [requirement_from_json(child) for child in node.children("requirements")],
                [update_from_json(child) for child in node.children("updates")],
            )
        except NotFound as error:
            return Reply(status=404, body=_error("NoSuchTableException", str(error)))
        except EngineError as error:
            return Reply(status=400, body=_error("BadRequestException", str(error)))
        if isinstance(outcome, Committed):
            return Reply(body=_table(outcome.state))
        if isinstance(outcome, Conflicted):
            return Reply(status=409, body=_error("CommitFailedException", outcome.reason))
        raise AssertionError(outcome)


def _identifier(request: Seen) -> Identifier:
    namespace, table = request.path.removeprefix("/v1/namespaces/").split("/tables/")
    return (*unquote(namespace).split("\x1f"), unquote(table))


def _table(state: TableState) -> dict[str, object]:
    return {"metadata-location": state.metadata_location, "metadata": json.loads(encode_metadata(state.metadata))}


def _error(kind: str, message: str) -> dict[str, object]:
    return {"error": {"type": kind, "message": message, "code": 0}}
