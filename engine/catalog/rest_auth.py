"""Authentication with a REST catalog: none, a bearer token, a callback, user and password, or OAuth2."""

from __future__ import annotations

import binascii
import json
import time
from base64 import b64encode, urlsafe_b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol
from urllib.parse import urlencode

from icebench.engine.catalog.rest_errors import server_error
from icebench.engine.catalog.rest_http import HttpClient
from icebench.engine.codec.metadata_json.rest import token_from_json
from icebench.engine.errors import CorruptTable, Invalid, StorageFailed

_EARLY_SECONDS = 60.0
_EARLY_PART = 0.1
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - a type


class Authentication(Protocol):
    """Creates the ``Authorization`` header."""

    def header(self) -> str | None:
        """Its value for the next request; raises StorageFailed if no token can be obtained."""
        ...

    def renewed(self, refused: str | None) -> bool:
        """Whether a request that was refused with that value may be repeated with another."""
        ...


@dataclass(frozen=True, slots=True)
class BearerToken:
    """A given token, or none."""

    token: str | None = field(repr=False)

    def header(self) -> str | None:
        return None if self.token is None else f"Bearer {self.token}"

    def renewed(self, refused: str | None) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class HeldAuthorization:
    """The value of another process, as it was."""

    value: str | None = field(repr=False)

    def header(self) -> str | None:
        return self.value

    def renewed(self, refused: str | None) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class UserAndPassword:
    """HTTP's basic authentication (RFC 7617)."""

    user: str
    password: str = field(repr=False)

    def header(self) -> str | None:
        return f"Basic {b64encode(f'{self.user}:{self.password}'.encode()).decode()}"

    def renewed(self, refused: str | None) -> bool:
        return False


class _KeptToken:
    """A token that is fetched at first use, when it is due and when it was refused."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._value: str | None = None

    def header(self) -> str | None:
        # Under the lock: many threads at the end of a token's life ask for one new one.
        with self._lock:
            if self._value is None or self._is_due():
                self._fetch()
            return self._value

    def renewed(self, refused: str | None) -> bool:
        with self._lock:
            if self._value == refused:
                self._value = None
        return True

    def _is_due(self) -> bool:
        return False

    def _fetch(self) -> None:
        raise NotImplementedError


class TokenCallback(_KeptToken):
    """Tokens of a function of the user's, which is asked at first use and when its token is refused.

    Args:
        http: Its secrets learn every token.
        give: Returns a bearer token; what it raises passes.
    """

    def __init__(self, http: HttpClient, give: Callable[[], str]) -> None:
        super().__init__()
        self._http = http
        self._give = give

    def _fetch(self) -> None:
        token = self._give()
        self._http.secrets.add(token)
        self._value = f"Bearer {token}"


class ClientCredentials(_KeptToken):
    """OAuth2 client credentials (RFC 6749, 4.4). A token is fetched at first use, before it ends and when refused.

    Args:
        http: Used for the token endpoint; its secrets learn the client's and every token.
        endpoint: The token endpoint's address.
        credential: ``"id:secret"``, or only a secret.
        scope: What to ask for.
        parameters: More of the request's parameters, such as ``audience``.
        monotonic: The clock that lifetimes are measured with, in seconds.
    """

    def __init__(
        self,
        http: HttpClient,
        *,
        endpoint: str,
        credential: str,
        scope: str,
        parameters: Mapping[str, str] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        client, colon, secret = credential.partition(":")
        if not colon:
            client, secret = "", credential
        if not secret:
            raise Invalid("credential= is written id:secret, and the secret is empty")
        self._http = http
        self._endpoint = endpoint
        self._monotonic = monotonic
        self._renew_at: float | None = None
        http.secrets.add(secret)
        form = {"grant_type": "client_credentials", "client_id": client, "client_secret": secret, "scope": scope}
        form |= parameters or {}
        self._form = urlencode({name: value for name, value in form.items() if value}).encode()

    def __repr__(self) -> str:
        return f"ClientCredentials(endpoint={self._endpoint!r})"

    def _is_due(self) -> bool:
        return self._renew_at is not None and self._monotonic() >= self._renew_at

    def _fetch(self) -> None:
        asked_at = self._monotonic()
        # A token more does no harm.
        self._value, life = ask_for_token(self._http, self._endpoint, self._form)
        self._renew_at = None if life is None else asked_at + life - min(_EARLY_SECONDS, life * _EARLY_PART)


class ExchangedToken:
    """A given token that is exchanged for a newer one before it ends (RFC 8693), as Iceberg Java's clients do.

    Where the endpoint refuses, the token is used until the catalog refuses it.

    Args:
        http: Used for the token endpoint; its secrets learn every token.
        endpoint: The token endpoint's address.
        token: What to begin with.
        ends_at_ms: When that ends, in milliseconds since 1970.
        parameters: More of the request's parameters: ``scope``, ``audience``, ``resource``.
        now_ms: The clock.
    """

    def __init__(
        self,
        http: HttpClient,
        *,
        endpoint: str,
        token: str,
        ends_at_ms: int,
        parameters: Mapping[str, str],
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._http = http
        self._endpoint = endpoint
        self._parameters = dict(parameters)
        self._now_ms = now_ms
        self._lock = Lock()
        self._take(f"Bearer {token}", ends_at_ms)

    def __repr__(self) -> str:
        return f"ExchangedToken(endpoint={self._endpoint!r})"

    def header(self) -> str | None:
        with self._lock:
            if self._renew_at_ms is not None and self._now_ms() >= self._renew_at_ms:
                self._exchange()
            return self._value

    def renewed(self, refused: str | None) -> bool:
        return False

    def _exchange(self) -> None:
        own = self._value.removeprefix("Bearer ")
        form = {"grant_type": _EXCHANGE, "subject_token": own, "subject_token_type": _ACCESS_TOKEN} | self._parameters
        asked_at_ms = self._now_ms()
        try:
            value, life = ask_for_token(self._http, self._endpoint, urlencode(form).encode(), authorization=self._value)
        except StorageFailed:
            self._take(self._value, asked_at_ms + 2 * int(_EARLY_SECONDS * 1000))
            return
        ends_at_ms = jwt_ends_at_ms(value) if life is None else asked_at_ms + int(life * 1000)
        self._take(value, ends_at_ms)

    def _take(self, value: str, ends_at_ms: int | None) -> None:
        self._value = value
        life = 0 if ends_at_ms is None else max(ends_at_ms - self._now_ms(), 0)
        early = min(int(_EARLY_SECONDS * 1000), int(life * _EARLY_PART))
        self._renew_at_ms: int | None = None if ends_at_ms is None else ends_at_ms - early


def ask_for_token(
    http: HttpClient, endpoint: str, form: bytes, *, authorization: str | None = None
) -> tuple[str, float | None]:
    """A token's header and its life in seconds, if known; raises StorageFailed."""
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    if authorization is not None:
        headers["Authorization"] = authorization
    answer = http.send("POST", endpoint, headers=headers, body=form, repeatable=True)
    if not answer.is_success:
        said = server_error(answer, http.secrets)
        why = f"{said.message or 'no reason given'} (HTTP {answer.status}{f', {said.type}' if said.type else ''})"
        raise StorageFailed(f"no token from {endpoint}: {why}")
    try:
        token = token_from_json(answer.json())
    except CorruptTable as error:
        raise StorageFailed(f"no token from {endpoint}: {error}") from None
    if token.token_type.lower() not in ("bearer", "n_a"):
        raise StorageFailed(f"{endpoint} gives tokens of type {token.token_type!r}, not bearer tokens")
    http.secrets.add(token.access_token)
    life = token.expires_in_seconds
    return f"Bearer {token.access_token}", None if life is None else float(life)


def jwt_ends_at_ms(token: str) -> int | None:
    """When a JSON Web Token says that it ends, in milliseconds since 1970; None for other tokens."""
    parts = token.removeprefix("Bearer ").split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return None
    ends = claims.get("exp") if isinstance(claims, dict) else None
    return int(ends * 1000) if isinstance(ends, int | float) and 0 < ends < 1e12 else None
