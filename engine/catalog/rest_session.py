"""A session with a REST catalog: configuration, paths, authentication, and errors of the engine."""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, urlsplit

from icebench.engine.catalog.rest_auth import Authentication, BearerToken, HeldAuthorization
from icebench.engine.catalog.rest_credentials import (
    CREDENTIAL_PROPERTIES,
    OAUTH_PROPERTIES,
    Token,
    authentication_of,
    signer_of,
    transport_of,
)
from icebench.engine.catalog.rest_errors import error_of
from icebench.engine.catalog.rest_http import Answer, AnswerLost, HttpClient, Secrets
from icebench.engine.catalog.rest_sigv4 import SigV4Signer
from icebench.engine.codec.metadata_json.objects import JsonObject, write_json
from icebench.engine.codec.metadata_json.rest import Page, RestConfig, config_from_json
from icebench.engine.commit.retry import Waiting
from icebench.engine.errors import CorruptTable, Invalid, Unsupported, secrets_of

_NAMESPACE = "/v1/{prefix}/namespaces/{namespace}"
_TABLE = f"{_NAMESPACE}/tables/{{table}}"
_DEFAULT_ENDPOINTS = frozenset(
    {
        "GET /v1/{prefix}/namespaces",
        "POST /v1/{prefix}/namespaces",
        f"GET {_NAMESPACE}",
        f"DELETE {_NAMESPACE}",
        f"POST {_NAMESPACE}/properties",
        f"GET {_NAMESPACE}/tables",
        f"POST {_NAMESPACE}/tables",
        f"GET {_TABLE}",
        f"POST {_TABLE}",
        f"DELETE {_TABLE}",
        f"POST {_NAMESPACE}/register",
        "POST /v1/{prefix}/tables/rename",
    }
)
"""Endpoints of a server that lists none (specification of ``GET /v1/config``), as far as this engine uses them."""

_VIEW = f"{_NAMESPACE}/views/{{view}}"
_VIEW_ENDPOINTS = frozenset(
    {
        f"GET {_NAMESPACE}/views",
        f"POST {_NAMESPACE}/views",
        f"GET {_VIEW}",
        f"POST {_VIEW}",
        f"DELETE {_VIEW}",
        "POST /v1/{prefix}/views/rename",
    }
)
_USUAL_HEADERS = {"Accept": "application/json", "Accept-Encoding": "gzip"}
_REAUTHENTICATE = (401, 419)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint, written as the specification and the ``endpoints`` of a configuration write it."""

    method: str
    template: str

    def __str__(self) -> str:
        return f"{self.method} {self.template}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to an endpoint.

    Args:
        endpoint: The endpoint.
        subject: What the request is about, for messages.
        namespace: Fills ``{namespace}``.
        name: Fills ``{table}`` or ``{view}``.
        query: Parameters, already percent-encoded.
        body: Sent as JSON.
        headers: Headers that no property overrides.
        default_headers: Headers that a property ``header.<name>`` overrides, or removes where it is empty.
    """

    endpoint: Endpoint
    subject: str
    namespace: Sequence[str] = ()
    name: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    default_headers: Mapping[str, str] = field(default_factory=dict)


class Session:
    """Requests to one catalog of one server. Thread-safe. A copy in another process sends the authorization of the
    moment when it was pickled.

    Args:
        http: The connections.
        authentication: The client's credentials.
        config: The server's answer to ``/v1/config``; empty until it is known.
        properties: The client's properties, which override the server's defaults and are overridden by its overrides.
        signer: Signs every request.
        now_ms: The clock of idempotency keys and expiry times.
        random_bits: Random bits of idempotency keys, by their number.
    """

    def __init__(
        self,
        http: HttpClient,
        authentication: Authentication,
        config: RestConfig,
        properties: Mapping[str, str],
        *,
        signer: SigV4Signer | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        random_bits: Callable[[int], int] = secrets.randbits,
    ) -> None:
        self.http = http
        self.properties = {**config.defaults, **properties, **config.overrides}
        self._authentication = authentication
        self._signer = signer
        self.now_ms = now_ms
        self._random_bits = random_bits
        self._takes_keys = config.idempotency_key_lifetime is not None
        self._page_size = self.properties.get("rest-page-size")
        self._separator = self.properties.get("namespace-separator", "%1F")
        self._endpoints = config.endpoints if config.endpoints is not None else self._assumed_endpoints()
        self._headers = {
            name.removeprefix("header."): value for name, value in self.properties.items() if name.startswith("header.")
        }

    def __str__(self) -> str:
        return self.http.base

    def __reduce__(self) -> tuple[object, ...]:
        return _copied, (self.http.base, self.properties, self._authentication.header())

    def offers(self, endpoint: Endpoint) -> bool:
        """Whether the server has that endpoint."""
        return str(endpoint) in self._endpoints

    def call(self, request: Request) -> Answer:
        """Send a request, and return the response of any status; raises as `HttpClient.send`.

        Raises AnswerLost, too, for a response without success if an earlier copy of the request may have been carried
        out.
        """
        endpoint = request.endpoint
        if not self.offers(endpoint):
            raise Unsupported(f"{request.subject}: the REST catalog at {self} does not offer {endpoint}")
        parameters = "&".join(f"{key}={value}" for key, value in request.query.items())
        address = self.address(endpoint, request.namespace, request.name)
        url = f"{address}{'?' if parameters else ''}{parameters}"
        own = dict(request.headers)
        body = None
        if request.body is not None:
            own["Content-Type"] = "application/json"
            body = write_json(request.body)
        keyed = self._takes_keys and endpoint.method not in ("GET", "HEAD")
        if keyed:
            own["Idempotency-Key"] = str(_uuid7(self.now_ms(), self._random_bits(74)))
        headers = _merge_headers(_USUAL_HEADERS, request.default_headers, self._headers, own)
        answer = self._send(endpoint.method, url, headers, body, repeatable=keyed)
        if answer.lost is not None and not answer.is_success:
            refusal = error_of(answer, self.http.secrets, subject=request.subject)
            raise AnswerLost(f"{answer.lost}; sent again: {refusal}") from answer.lost
        return answer

    def ask(self, request: Request) -> Answer:
        """As `call`, but a response without success raises its error."""
        return self._successful(self.call(request), request.subject)

    def post(self, url: str, body: Mapping[str, Any], *, headers: Mapping[str, str], subject: str) -> Answer:
        """Send JSON, with the client's credentials, to an address that the server gave; repeating it does no harm.

        Raises:
            Unsupported: Plain http, while the catalog's own address is not.
            EngineError: As `ask`.
        """
        if urlsplit(self.http.base).scheme == "https" != urlsplit(url).scheme:
            raise Unsupported(f"{subject}: the REST catalog at {self} wants it sent to {url}, without encryption")
        own = {"Content-Type": "application/json"}
        merged = _merge_headers(_USUAL_HEADERS, self._headers, headers, own)
        return self._successful(self._send("POST", url, merged, write_json(body), repeatable=True), subject)

    def pages(self, request: Request, read: Callable[[JsonObject], Page]) -> Iterator[tuple[str, ...]]:
        """The names on every page of a listing."""
        # A server that does pages starts them at the empty token; one that does not, ignores it.
        token, seen = "", {""}
        while True:
            query = {**request.query, "pageToken": quote(token, safe="")}
            if self._page_size:
                query["pageSize"] = quote(self._page_size)
            answer = self.ask(replace(request, query=query))
            page = read(answer.json())
            yield from page.names
            if page.next_page_token is None:
                return
            token = page.next_page_token
            if token in seen:
                raise CorruptTable(f"the page token {token!r} leads back to itself", location=answer.url)
            seen.add(token)

    def encode_namespace(self, namespace: Sequence[str]) -> str:
        """A namespace as in paths and parameters: levels percent-encoded, the separator between them."""
        return self._separator.join(quote(level, safe="") for level in namespace)

    def close(self) -> None:
        """Close the connections."""
        self.http.close()

    def _send(self, method: str, url: str, headers: dict[str, str], body: bytes | None, *, repeatable: bool) -> Answer:
        def send(authorization: str | None) -> Answer:
            own = _with(headers, authorization)
            if self._signer is not None:
                own = self._signer.sign(method, url, own, body)
            return self.http.send(method, url, headers=own, body=body, repeatable=repeatable)

        used = self._authentication.header()
        answer = send(used)
        if answer.status not in _REAUTHENTICATE or not self._authentication.renewed(used):
            return answer
        # A refused request was not carried out: with a new token, any may be sent again. Its earlier copies may have.
        lost = answer.lost
        try:
            answer = send(self._authentication.header())
        except Exception as error:
            if lost is None:
                raise
            raise lost from error
        return replace(answer, lost=answer.lost or lost)

    def _successful(self, answer: Answer, subject: str) -> Answer:
        if not answer.is_success:
            raise error_of(answer, self.http.secrets, subject=subject)
        return answer

    def address(self, endpoint: Endpoint, namespace: Sequence[str], name: str) -> str:
        """The address of an endpoint of a namespace, table or view."""
        prefix = self.properties.get("prefix", "").strip("/")
        path = endpoint.template.replace("/{prefix}", f"/{prefix}" if prefix else "")
        path = path.replace("{namespace}", self.encode_namespace(namespace))
        return self.http.base + path.replace("{table}", quote(name, safe="")).replace("{view}", quote(name, safe=""))

    def _assumed_endpoints(self) -> frozenset[str]:
        if self.properties.get("view-endpoints-supported", "false").lower() == "true":
            return _DEFAULT_ENDPOINTS | _VIEW_ENDPOINTS
        return _DEFAULT_ENDPOINTS


def open_session(
    address: str,
    *,
    warehouse: str | None = None,
    token: Token | None = None,
    credential: str | None = None,
    properties: Mapping[str, str] | None = None,
    waiting: Waiting | None = None,
) -> Session:
    """Load a server's configuration, and open a session with it.

    Args:
        address: Up to, and without, ``/v1``.
        warehouse: Which of the server's catalogs, in the server's own terms.
        token: A bearer token, or a function that returns one.
        credential: ``"id:secret"`` of OAuth2 client credentials.
        properties: More properties by the names of Iceberg Java and PyIceberg, `SESSION_PROPERTIES`, and those of
            storage.
        waiting: How waits between retries are made.

    Raises:
        Invalid: An invalid address, timeout or credential; both a token and a credential.
        Unsupported: A type of authentication; signing without botocore.
        StorageFailed: The server cannot be reached, or refuses the client.
        CorruptTable: The answer contradicts the specification.
    """
    own = dict(properties or {})
    configured = own.pop("token", None), own.pop("credential", None)
    token, credential = token or configured[0], credential or configured[1]
    if token is not None and credential is not None:
        raise Invalid("give a REST catalog a token or a credential, not both")
    if warehouse is not None:
        own["warehouse"] = warehouse
    hidden = Secrets([*(text for text in (token, credential) if isinstance(text, str)), *secrets_of(own)])
    transport = transport_of(own)
    http = HttpClient(address, transport=transport, secrets=hidden, waiting=waiting)
    authentication = authentication_of(http, token, credential, own)
    signer = signer_of(own, http.base)
    first = RestConfig(defaults={}, overrides={}, endpoints=frozenset({str(_CONFIG)}), idempotency_key_lifetime=None)
    query = {} if warehouse is None else {"warehouse": quote(warehouse, safe="")}
    subject = f"the REST catalog at {http.base}"
    try:
        session = Session(http, authentication, first, own, signer=signer)
        answer = session.ask(Request(endpoint=_CONFIG, subject=subject, query=query))
        config = config_from_json(answer.json())
    except BaseException:
        http.close()
        raise
    merged = {**config.defaults, **own, **config.overrides}
    for secret in secrets_of(merged):
        hidden.add(secret)
    moved = config.overrides.get("uri")
    is_moved = moved is not None and moved.rstrip("/") != http.base
    if moved is not None and is_moved:
        http.close()
        http = HttpClient(moved, transport=transport, secrets=hidden, waiting=waiting)
    if is_moved or any(merged.get(name) != own.get(name) for name in OAUTH_PROPERTIES):
        authentication = authentication_of(http, token, credential, merged)
    if any(merged.get(name) != own.get(name) for name in _SIGNING):
        signer = signer_of(merged, http.base)
    given = config.overrides.get("token") or (config.defaults.get("token") if token is None else None)
    if given is not None and credential is None:
        hidden.add(given)
        authentication = BearerToken(given)
    return Session(http, authentication, _without_secrets(config), own, signer=signer)


def _copied(base: str, properties: Mapping[str, str], authorization: str | None) -> Session:
    # The token too, which servers return without its scheme.
    held = () if authorization is None else (authorization, authorization.rpartition(" ")[-1])
    hidden = Secrets([*held, *secrets_of(properties)])
    http = HttpClient(base, transport=transport_of(properties), secrets=hidden)
    empty = RestConfig(defaults={}, overrides={}, endpoints=None, idempotency_key_lifetime=None)
    return Session(http, HeldAuthorization(authorization), empty, properties, signer=signer_of(properties, base))


_CONFIG = Endpoint("GET", "/v1/config")
_SIGNING = ("rest.sigv4-enabled", "rest.auth.type", "rest.signing-name", "rest.signing-region")
SESSION_PROPERTIES = CREDENTIAL_PROPERTIES | {
    "prefix",
    "namespace-separator",
    "view-endpoints-supported",
    "header.",
    "rest-page-size",
}
"""Properties that are read here."""


def _without_secrets(config: RestConfig) -> RestConfig:
    kept = {"token", "credential"}
    return replace(
        config,
        defaults={name: value for name, value in config.defaults.items() if name not in kept},
        overrides={name: value for name, value in config.overrides.items() if name not in kept},
    )


def _with(headers: Mapping[str, str], authorization: str | None) -> dict[str, str]:
    return _merge_headers(headers, {} if authorization is None else {"Authorization": authorization})


def _merge_headers(*headers: Mapping[str, str]) -> dict[str, str]:
    """Merge headers: the last of each name counts, in any case; one without a value is not sent."""
    found = {name.lower(): (name, value) for each in headers for name, value in each.items()}
    return {name: value for name, value in found.values() if value}


def _uuid7(now_ms: int, random: int) -> uuid.UUID:
    """A UUID of version 7 (RFC 9562): 48 bits of time, and 74 of chance around the version and the variant."""
    high, low = random >> 62, random & (1 << 62) - 1
    return uuid.UUID(int=(now_ms & (1 << 48) - 1) << 80 | 7 << 76 | high << 64 | 0b10 << 62 | low)
