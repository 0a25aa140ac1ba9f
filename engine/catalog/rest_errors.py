"""Converts statuses of a REST catalog to errors of the engine."""

from __future__ import annotations

from icebench.engine.catalog.rest_http import Answer, Secrets, decoded_or_none
from icebench.engine.codec.metadata_json.rest import ServerError, error_from_json
from icebench.engine.errors import (
    AlreadyExists,
    CommitStateUnknown,
    CorruptTable,
    EngineError,
    Invalid,
    NotFound,
    StorageFailed,
    Unsupported,
)

_LONGEST_MESSAGE = 500
_NAMESPACE_NOT_EMPTY = "NamespaceNotEmptyException"


class NoSuchNamespace(NotFound):
    """The namespace does not exist."""


class NoSuchFile(NotFound):
    """A file that the request names does not exist."""


def server_error(answer: Answer, secrets: Secrets) -> ServerError:
    """The server's message about an error, in one line and without secrets."""
    node = decoded_or_none(answer)
    found = ServerError("", "")
    if node is not None:
        try:
            found = error_from_json(node)
        except CorruptTable:
            found = ServerError("", "")
    line = next(iter(found.message.strip().splitlines()), "")
    return ServerError(found.type, secrets.hidden(line)[:_LONGEST_MESSAGE])


def error_of(answer: Answer, secrets: Secrets, *, subject: str) -> EngineError:
    """The error of a response without success.

    Args:
        answer: Of any status but 2xx.
        secrets: What to hide.
        subject: What the request was about, such as ``"table db.t"``.
    """
    said = server_error(answer, secrets)
    status = answer.status
    text = f"{subject}: {said.message or 'no reason given'} (HTTP {status}{f', {said.type}' if said.type else ''})"
    if status in (401, 403, 407, 419):
        return StorageFailed(f"the REST catalog does not allow this: {text}")
    if status == 404:
        return _missing(said, text)
    if status in (405, 406, 501):
        return Unsupported(f"the REST catalog does not do this: {text}")
    if said.type == _NAMESPACE_NOT_EMPTY:
        return Invalid(text)
    if status == 409:
        return AlreadyExists(text)
    if 400 <= status < 500 and status not in (408, 429):
        return Invalid(text)
    # 408 may be a proxy's that gave up waiting for the server.
    if (status >= 500 or status == 408) and answer.method not in ("GET", "HEAD"):
        return CommitStateUnknown(f"the REST catalog failed at the request, which may have been carried out: {text}")
    if 300 <= status < 400:
        there = secrets.hidden(repr(answer.header("location")))
        return StorageFailed(f"{text}: redirects to {there} are not followed; use that address")
    return StorageFailed(f"the REST catalog failed: {text}")


def _missing(said: ServerError, text: str) -> NotFound:
    if said.type == "NoSuchNamespaceException":
        return NoSuchNamespace(text)
    if said.type == "NotFoundException":
        # Iceberg Java's name for a missing file.
        return NoSuchFile(text)
    return NotFound(text)
