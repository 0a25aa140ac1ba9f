"""Authentication with a REST catalog: none, a bearer token, or OAuth2 client credentials."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol
from urllib.parse import urlencode

from engine.catalog.rest_errors import server_error
from engine.catalog.rest_http import HttpClient
from engine.codec.metadata_json.rest import token_from_json
from engine.errors import CorruptTable, Invalid, StorageFailed

_EARLY_SECONDS = 60.0
_EARLY_PART = 0.1


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


class ClientCredentials:
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
        client, colon, secret = credential.partition(":")
        if not colon:
            client, secret = "", credential
        if not secret:
            raise Invalid("credential= is written id:secret, and the secret is empty")
        self._http = http
        self._endpoint = endpoint
        self._monotonic = monotonic
        self._lock = Lock()
        self._value: str | None = None
        self._renew_at: float | None = None
        http.secrets.add(secret)
        form = {"grant_type": "client_credentials", "client_id": client, "client_secret": secret, "scope": scope}
        form |= parameters or {}
        self._form = urlencode({name: value for name, value in form.items() if value}).encode()

    def __repr__(self) -> str:
        return f"ClientCredentials(endpoint={self._endpoint!r})"

    def header(self) -> str | None:
        # Under the lock: many threads at the end of a token's life ask for one new one.
        with self._lock:
            if self._value is None or (self._renew_at is not None and self._monotonic() >= self._renew_at):
                self._fetch()
            return self._value

    def renewed(self, refused: str | None) -> bool:
        with self._lock:
            if self._value == refused:
                self._value = None
        return True

    def _fetch(self) -> None:
        asked_at = self._monotonic()
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        # A token more does no harm.
        answer = self._http.send("POST", self._endpoint, headers=headers, body=self._form, repeatable=True)
        if not answer.is_success:
            said = server_error(answer, self._http.secrets)
            why = f"{said.message or 'no reason given'} (HTTP {answer.status}{f', {said.type}' if said.type else ''})"
            raise StorageFailed(f"no token from {self._endpoint}: {why}")
        try:
            token = token_from_json(answer.json())
        except CorruptTable as error:
            raise StorageFailed(f"no token from {self._endpoint}: {error}") from None
        if token.token_type.lower() not in ("bearer", "n_a"):
            raise StorageFailed(f"{self._endpoint} gives tokens of type {token.token_type!r}, not bearer tokens")
        self._http.secrets.add(token.access_token)
        self._value = f"Bearer {token.access_token}"
        self._renew_at = None
        if token.expires_in_seconds is not None:
            life = float(token.expires_in_seconds)
            self._renew_at = asked_at + life - min(_EARLY_SECONDS, life * _EARLY_PART)
