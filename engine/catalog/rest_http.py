"""HTTP for the REST catalog: a request is repeated only if the server cannot carry it out twice.

A request fails in one of two ways, which commits must distinguish: `Unreachable`, it was never sent, and `AnswerLost`,
it may have been carried out.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, ProxyError, SSLError

from icebench.engine.codec.budget import budget_of, too_large
from icebench.engine.codec.metadata_json.objects import JSON_COPIES, JsonObject, parse_json
from icebench.engine.commit.retry import Backoff, Waiting
from icebench.engine.errors import CommitStateUnknown, CorruptTable, Invalid, StorageFailed, TooLarge

_SAFE_METHODS = frozenset({"GET", "HEAD"})
_BUSY = frozenset({502, 503, 504})
_TOO_MANY_REQUESTS = 429
_LONGEST_RETRY_AFTER_SECONDS = 30.0
_PIECE_BYTES = 64 << 10
"""What is read at once; gzip inflates to a thousand times as much at most."""


class Unreachable(StorageFailed):
    """The request was not sent, so nothing happened."""


class AnswerLost(CommitStateUnknown):
    """The request was sent and no response came: it may have been carried out, or be so later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Timeouts for a connection, and between two parts of a response."""

    connect_seconds: float = 10.0
    read_seconds: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """How a server is reached.

    Args:
        timeouts: Of every request.
        retries: The most times that a request is sent again.
        proxy: The proxy's address; None takes that of the environment (``https_proxy``, ``no_proxy``).
        proxy_user: ``user:password`` at the proxy.
        tls: Certificates; None for those of the system.
    """

    timeouts: Timeouts = Timeouts()
    retries: int = 4
    proxy: str | None = field(default=None, repr=False)
    proxy_user: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The server's response, of any status. `sent_bytes` is the size of the body before it was inflated; None if it was
    not compressed. `lost` is set if an earlier copy of the request may have been carried out: only a success then says
    what happened."""

    method: str
    url: str
    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    sent_bytes: int | None = None
    lost: AnswerLost | None = None

    @property
    def is_success(self) -> bool:
        """Whether the request was carried out."""
        return 200 <= self.status < 300

    def json(self) -> JsonObject:
        """The body; raises CorruptTable where it is no JSON object."""
        return JsonObject(parse_json(self.body, location=self.url, file_size=self.sent_bytes), location=self.url)

    def header(self, name: str) -> str | None:
        """A header by its name, in any case."""
        return self.headers.get(name.lower())


class Secrets:
    """Texts that must not appear in a message: tokens and client secrets, which servers sometimes return."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._lock = Lock()
        self._known = {secret for secret in known if secret}

    def add(self, secret: str) -> None:
        """Add a secret."""
        with self._lock:
            self._known |= {secret} - {""}

    def hidden(self, text: str) -> str:
        """The text with every secret replaced."""
        with self._lock:
            known = sorted(self._known, key=len, reverse=True)
        for secret in known:
            text = text.replace(secret, "***")
        return text


class HttpClient:
    """A pool of connections to one server. Thread-safe. Redirects are not followed.

    Args:
        base: The address, such as ``https://host/api``.
        transport: How it is reached.
        secrets: Texts to replace in messages.
        waiting: Waits between retries.
        now_ms: The clock by which tokens end.
    """

    def __init__(
        self,
        base: str,
        *,
        transport: Transport = Transport(),
        secrets: Secrets | None = None,
        waiting: Waiting | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        try:
            parts = urlsplit(base)
        except ValueError as error:
            raise Invalid(f"{base!r} is not an address: {error}") from error
        if parts.username is not None or parts.password is not None:
            raise Invalid("the address of a REST catalog has no user or password; give token= or credential= instead")
        if not parts.hostname or parts.query or parts.fragment:
            raise Invalid(f"{base!r} is not the address of a REST catalog, such as https://host/catalog")
        self.base = base.rstrip("/")
        self.secrets = secrets or Secrets()
        self.now_ms = now_ms
        self._waiting = waiting or Waiting()
        self._backoff = Backoff(
            retries=transport.retries,
            min_wait_ms=100,
            max_wait_ms=5_000,
            total_timeout_ms=120_000,
            waiting=self._waiting,
        )
        timeouts = transport.timeouts
        self._timeout = urllib3.Timeout(connect=timeouts.connect_seconds, read=timeouts.read_seconds)
        self._pool = _pool(parts.scheme, parts.hostname, transport)

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        self._pool.clear()

    def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        repeatable: bool = False,
    ) -> Answer:
        """Send a request and return the response, of any status.

        Args:
            method: GET and HEAD are always repeatable.
            url: In full, percent-encoded.
            headers: All of them.
            body: What to send.
            repeatable: Whether the server carries the request out once, however often it comes.

        Raises:
            Unreachable: No connection; nothing was sent. Also where a repeatable request got no answer.
            AnswerLost: Sent, and no answer, for a request that is not repeatable; it was sent once.
            TooLarge: What a GET was answered would take too much memory.
        """
        is_safe = method in _SAFE_METHODS
        answer: Answer | None = None
        lost: AnswerLost | None = None
        reason = ""
        for _ in self._backoff.attempts():
            try:
                answer = self._once(method, url, headers, body)
            except Unreachable as error:
                answer, reason = None, str(error)
                continue
            except AnswerLost as error:
                if not (is_safe or repeatable):
                    raise
                answer, reason = None, str(error)
                lost = None if is_safe else error
                continue
            if answer.status in _BUSY and repeatable and not is_safe:
                lost = AnswerLost(f"{method} {self.secrets.hidden(url)}: HTTP {answer.status}")
            answer = replace(answer, lost=lost)
            if answer.status != _TOO_MANY_REQUESTS and not (answer.status in _BUSY and (is_safe or repeatable)):
                return answer
            self._wait_retry_after(answer)
        if answer is not None:
            return answer
        if lost is not None:
            raise lost
        raise Unreachable(reason)

    def _once(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        what = f"{method} {self.secrets.hidden(url)}"
        try:
            response = self._pool.request(
                method,
                url,
                headers=dict(headers),
                body=body,
                timeout=self._timeout,
                retries=False,
                redirect=False,
                preload_content=False,
            )
            content = _content(response, self.secrets.hidden(url))
        except TooLarge as error:
            if method in _SAFE_METHODS:
                raise
            raise AnswerLost(f"{what}: {error}") from None
        except (NewConnectionError, ConnectTimeoutError, ProxyError) as error:
            raise Unreachable(f"{what}: {self._reason(error)}") from None
        except SSLError as error:
            if isinstance(error.args[0] if error.args else None, ssl.SSLCertVerificationError):
                raise Unreachable(f"{what}: {self._reason(error)}") from None
            raise AnswerLost(f"{what}: {self._reason(error)}") from None
        except HTTPError as error:
            raise AnswerLost(f"{what}: {self._reason(error)}") from None
        lowered = {name.lower(): value for name, value in response.headers.items()}
        return Answer(
            method=method, url=url, status=response.status, headers=lowered, body=content, sent_bytes=response.tell()
        )

    def _reason(self, error: HTTPError) -> str:
        # The text of urllib3's errors starts with the connection object; the last part says what happened.
        text = str(error).rpartition(">: ")[2] or type(error).__name__
        return self.secrets.hidden(text.splitlines()[0])

    def _wait_retry_after(self, answer: Answer) -> None:
        seconds = answer.header("retry-after") or ""
        if seconds.isdecimal():
            self._waiting.sleep(min(float(seconds), _LONGEST_RETRY_AFTER_SECONDS))


def decoded_or_none(answer: Answer) -> JsonObject | None:
    """The body as a JSON object; None where it is none, as of a gateway's error page."""
    try:
        return answer.json()
    except CorruptTable:
        return None


def _content(response: urllib3.BaseHTTPResponse, url: str) -> bytes:
    """The inflated body; raises TooLarge, before inflating all of it, where it is much larger than what was sent."""
    pieces: list[bytes] = []
    size = 0
    for piece in response.stream(_PIECE_BYTES):
        pieces.append(piece)
        size += len(piece)
        sent = response.tell()
        if size > (limit := budget_of(sent) // JSON_COPIES):
            response.close()
            raise too_large(f"an answer of {sent} bytes so far", limit, location=url)
    return b"".join(pieces)


def _pool(scheme: str, host: str, transport: Transport) -> urllib3.PoolManager:
    proxy = transport.proxy or (None if proxy_bypass(host) else getproxies().get(scheme))
    # Each thread of a catalog's user may hold one.
    options: dict[str, Any] = {"maxsize": 16} | ({"ssl_context": transport.tls} if transport.tls else {})
    if not proxy:
        return urllib3.PoolManager(**options)
    user = transport.proxy_user
    return urllib3.ProxyManager(proxy, proxy_headers=urllib3.make_headers(proxy_basic_auth=user), **options)
