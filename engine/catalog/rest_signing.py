"""Requests to S3 that a REST catalog signs (``RemoteSignRequest`` of ``rest-catalog-open-api.yaml``).

The client names each request, and the server returns the headers and the address with which S3 will take it. Answers
with ``Cache-Control: private`` are used again for as long as Iceberg Java does.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from urllib.parse import unquote

from icebench.engine.catalog.rest_session import Endpoint, Session
from icebench.engine.codec.metadata_json.rest import RemoteSigning, SignedRequest, signed_request_from_json
from icebench.engine.commit.committer import Identifier
from icebench.engine.errors import CommitStateUnknown, StorageFailed
from icebench.engine.storage.signed_s3 import S3Request

_KEPT = 100
_KEPT_SECONDS = 30.0
_SIGNED_HEADERS = re.compile(r"SignedHeaders=([^,&\s]+)", re.IGNORECASE)


SIGN = Endpoint("POST", "/v1/{prefix}/namespaces/{namespace}/tables/{table}/sign")
_OLD_PATH = "v1/aws/s3/sign"
"""Of servers from before there was `SIGN`, if they name no other."""
_URI, _ENDPOINT = ("signer.uri", "s3.signer.uri"), ("signer.endpoint", "s3.signer.endpoint")
"""Iceberg Java's names, and those that PyIceberg and older servers have."""
ENABLED, PYICEBERG_SIGNER = "s3.remote-signing-enabled", "s3.signer"
SIGNING_PROPERTIES = frozenset({ENABLED, PYICEBERG_SIGNER, *_URI, *_ENDPOINT})


@dataclass(frozen=True, slots=True)
class _Kept:
    """An answer, and the headers of the request it was for that are signed."""

    answer: SignedRequest = field(repr=False)
    signed: Mapping[str, str | None] = field(repr=False)
    until: float


class RemoteSigner:
    """Signs requests to S3 by asking a server. Thread-safe.

    Args:
        url: The server's endpoint.
        config: What goes with each request for a signature.
        session: Sends it.
        clock: Monotonic seconds.
    """

    def __init__(
        self, url: str, config: RemoteSigning, session: Session, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._url, self._config, self._session, self._clock = url, config, session, clock
        self._lock = Lock()
        self._kept: OrderedDict[tuple[str, str, str], _Kept] = OrderedDict()

    def __reduce__(self) -> tuple[object, ...]:
        return RemoteSigner, (self._url, self._config, self._session)

    def __call__(self, request: S3Request) -> S3Request:
        """The request as S3 will take it: its own headers, and those that the server adds; raises EngineError."""
        key = request.method, request.region, request.url
        with self._lock:
            kept = self._kept.get(key)
        if kept is None or self._clock() >= kept.until or kept.signed != _named(request, kept.signed):
            kept = self._ask(request)
        return S3Request(request.method, request.region, kept.answer.url, {**kept.answer.headers, **request.headers})

    def _ask(self, request: S3Request) -> _Kept:
        body: dict[str, object] = {
            "region": request.region,
            "method": request.method,
            "uri": request.url,
            "headers": {name: [value] for name, value in request.headers.items()},
            "provider": "s3",
        }
        if self._config.properties:
            body["properties"] = dict(self._config.properties)
        subject = f"a signature for {request.method} {request.url.partition('?')[0]}"
        try:
            answer = self._session.post(self._url, body, headers=self._config.headers, subject=subject)
        except CommitStateUnknown as error:
            # A signature that was made and lost is of no consequence.
            raise StorageFailed(f"cannot get {subject}: {error}") from error
        signed = signed_request_from_json(answer.json())
        # What the request had comes back, and is not part of the answer: another request for these bytes may lack it.
        own = {*request.headers, "cache-control"}
        added = {name: value for name, value in signed.headers.items() if name not in own}
        found = _SIGNED_HEADERS.search(f"{added.get('authorization', '')} {unquote(signed.url)}")
        names = found.group(1).lower().split(";") if found else ()
        kept = _Kept(SignedRequest(signed.url, added), _named(request, names), self._clock() + _KEPT_SECONDS)
        if names and answer.header("cache-control") == "private":
            with self._lock:
                self._kept[request.method, request.region, request.url] = kept
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
        return kept


def remote_signer(
    session: Session, identifier: Identifier, config: RemoteSigning, options: Mapping[str, str]
) -> RemoteSigner:
    """The signer of a table's requests.

    Args:
        session: The catalog's.
        identifier: The table's.
        config: Its own, as it was loaded.
        options: Of its storage: they may name the endpoint, by which the server decides.
    """
    base = next((options[name] for name in _URI if name in options), session.http.base)
    path = next((options[name] for name in _ENDPOINT if name in options), None)
    if path is None and session.offers(SIGN) and not any(name in options for name in _URI):
        return RemoteSigner(session.address(SIGN, identifier[:-1], identifier[-1]), config, session)
    return RemoteSigner(_resolved(base, path or _OLD_PATH), config, session)


def _resolved(base: str, path: str) -> str:
    return path if path.startswith(("http://", "https://")) else f"{base.rstrip('/')}/{path.lstrip('/')}"


def _named(request: S3Request, names: Iterable[str]) -> dict[str, str | None]:
    return {name: request.headers.get(name) for name in names}
