"""What tests of the REST client share: a scripted server, and waits that are only noted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from icebench.engine.catalog.rest_credentials import Token
from icebench.engine.catalog.rest_session import Session, open_session
from icebench.engine.codec.metadata_json.table import encode_metadata
from icebench.engine.commit.retry import Waiting
from icebench.engine.spec.metadata import TableMetadata
from tests.services.scripted_http import Reply, ScriptedServer, Seen, scripted_server

CONFIG: dict[str, object] = {"defaults": {}, "overrides": {}}


def error(status: int, kind: str = "SomeException", message: str = "because") -> Reply:
    return Reply(status=status, body={"error": {"type": kind, "message": message, "code": status}})


@dataclass
class Script:
    """Replies by method and path, each list used up in turn with its last reply repeated; 404 for what is not there."""

    replies: dict[str, list[Reply]]
    config: Mapping[str, object] = field(default_factory=lambda: CONFIG)

    def __call__(self, seen: Seen) -> Reply:
        key = f"{seen.method} {seen.path}"
        waiting = self.replies.get(key)
        if waiting:
            return waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if key == "GET /v1/config":
            return Reply(body=self.config)
        return error(404, "NoSuchThingException", f"nothing at {key}")


@dataclass
class Opened:
    """A session, its server, and what it waited."""

    session: Session
    server: ScriptedServer
    slept: list[float]

    def requests(self) -> list[str]:
        """What was asked after the configuration."""
        return [f"{seen.method} {seen.path}" for seen in self.server.seen if seen.path != "/v1/config"]


@contextmanager
def opened(
    replies: dict[str, list[Reply]],
    *,
    config: Mapping[str, object] = CONFIG,
    warehouse: str | None = None,
    token: Token | None = None,
    credential: str | None = None,
    properties: Mapping[str, str] | None = None,
    answer: Callable[[Seen], Reply] | None = None,
) -> Iterator[Opened]:
    """A session with a server that answers so, by `replies` or by a function."""
    slept: list[float] = []
    waiting = Waiting(sleep=slept.append, monotonic=lambda: 0.0, random=lambda: 0.0)
    with scripted_server(answer or Script(replies, config)) as server:
        session = open_session(
            server.address,
            warehouse=warehouse,
            token=token,
            credential=credential,
            properties=properties,
            waiting=waiting,
        )
        yield Opened(session, server, slept)
        session.close()


def document(table: TableMetadata) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(encode_metadata(table))
    return found


def loaded(table: TableMetadata, **more: object) -> dict[str, Any]:
    return {"metadata-location": f"{table.location}/metadata/v1.json", "metadata": document(table), **more}
