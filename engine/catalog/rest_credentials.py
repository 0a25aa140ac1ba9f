"""Chooses how a REST catalog is authenticated with and connected to, by the names of Iceberg Java and PyIceberg."""

from __future__ import annotations

import ssl
import warnings
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from urllib.parse import quote, urlsplit

from icebench.engine.catalog.rest_auth import (
    Authentication,
    BearerToken,
    ClientCredentials,
    ExchangedToken,
    TokenCallback,
    UserAndPassword,
    jwt_ends_at_ms,
)
from icebench.engine.catalog.rest_http import HttpClient, Timeouts, Transport
from icebench.engine.catalog.rest_sigv4 import SIGV4_PROPERTIES, SigV4Signer
from icebench.engine.errors import Invalid, PlainTextWarning, Unsupported
from icebench.engine.storage.object_stores import flag

Token = str | Callable[[], str]
"""A bearer token, or a function that returns one: asked at first use, and when one was refused."""

OAUTH_PROPERTIES = ("oauth2-server-uri", "scope", "audience", "resource")
_OPTIONAL = ("audience", "resource")
CREDENTIAL_PROPERTIES = frozenset(
    {
        "token", "credential", *OAUTH_PROPERTIES, *SIGV4_PROPERTIES, "token-exchange-enabled", "token-refresh-enabled",
        "token-expires-in-ms", "rest.auth.type", "rest.auth.basic.username", "rest.auth.basic.password",
        "rest.auth.sigv4.delegate-auth-type", "rest.sigv4-enabled",
        "rest.client.connection-timeout-ms", "rest.client.socket-timeout-ms", "rest.client.max-retries",
        "rest.client.proxy.hostname", "rest.client.proxy.port", "rest.client.proxy.username",
        "rest.client.proxy.password", "ssl.cabundle", "ssl.client.cert", "ssl.client.key",
    }
)  # fmt: skip
"""Properties that are read here."""

_TYPES = ("none", "basic", "oauth2", "sigv4")
_MOST_DIGITS = 15


def transport_of(properties: Mapping[str, str]) -> Transport:
    """Timeouts, retries, certificates and the proxy; raises Invalid."""
    proxy = None
    if host := properties.get("rest.client.proxy.hostname"):
        proxy = f"http://{host}:{_number(properties, 'rest.client.proxy.port', 80)}"
    user = properties.get("rest.client.proxy.username")
    return Transport(
        timeouts=Timeouts(
            connect_seconds=_milliseconds(properties, "rest.client.connection-timeout-ms", Timeouts().connect_seconds),
            read_seconds=_milliseconds(properties, "rest.client.socket-timeout-ms", Timeouts().read_seconds),
        ),
        retries=_number(properties, "rest.client.max-retries", Transport().retries),
        proxy=proxy,
        proxy_user=None if user is None else f"{user}:{properties.get('rest.client.proxy.password', '')}",
        tls=_tls(properties),
    )


def authentication_of(
    http: HttpClient, token: Token | None, credential: str | None, properties: Mapping[str, str]
) -> Authentication:
    """How requests are authenticated, beside a signature.

    Raises:
        Invalid: The properties contradict each other.
        Unsupported: The type of authentication.
    """
    kind = _type(properties)
    if kind == "sigv4":
        kind = properties.get("rest.auth.sigv4.delegate-auth-type", "oauth2").lower()
    if kind not in _TYPES:
        raise Unsupported(f"rest.auth.type={kind!r}; there are {', '.join(_TYPES)}")
    if kind == "none":
        return BearerToken(None)
    if kind == "basic":
        user, password = (properties.get(f"rest.auth.basic.{name}") for name in ("username", "password"))
        if user is None or password is None:
            raise Invalid("rest.auth.type=basic needs rest.auth.basic.username and rest.auth.basic.password")
        _warn_if_plain(http.base)
        return UserAndPassword(user, password)
    if token is None and credential is None:
        return BearerToken(None)
    _warn_if_plain(http.base)
    endpoint = properties.get("oauth2-server-uri", f"{http.base}/v1/oauth/tokens")
    scope = properties.get("scope", "catalog")
    parameters = {name: properties[name] for name in _OPTIONAL if name in properties}
    if credential is not None:
        _warn_if_plain(endpoint)
        return ClientCredentials(http, endpoint=endpoint, credential=credential, scope=scope, parameters=parameters)
    if not isinstance(token, str):
        assert token is not None
        return TokenCallback(http, token)
    ends_at_ms = _token_ends_at_ms(token, properties, http)
    if ends_at_ms is None:
        return BearerToken(token)
    return ExchangedToken(
        http, endpoint=endpoint, token=token, ends_at_ms=ends_at_ms, parameters={"scope": scope, **parameters}
    )


def signer_of(properties: Mapping[str, str], address: str) -> SigV4Signer | None:
    """What signs requests, if they are to be signed; raises as `SigV4Signer`."""
    return SigV4Signer(properties, subject=f"the REST catalog at {address}") if _type(properties) == "sigv4" else None


def _type(properties: Mapping[str, str]) -> str:
    name = "rest.sigv4-enabled"
    if name in properties and flag(name, properties[name]):
        return "sigv4"
    return properties.get("rest.auth.type", "oauth2").lower()


def _token_ends_at_ms(token: str, properties: Mapping[str, str], http: HttpClient) -> int | None:
    """When a token is to be exchanged; None for never."""
    for name in ("token-refresh-enabled", "token-exchange-enabled"):
        if name in properties and not flag(name, properties[name]):
            return None
    if "token-expires-in-ms" in properties:
        return http.now_ms() + _number(properties, "token-expires-in-ms", 0)
    return jwt_ends_at_ms(token)


def _warn_if_plain(address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme == "http" and not _is_here(parts.hostname or ""):
        host = parts.netloc.rpartition("@")[2]
        message = f"credentials are sent over plain http to {host}: whoever sees the traffic can use them"
        warnings.warn(message, PlainTextWarning, stacklevel=2)


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tls(properties: Mapping[str, str]) -> ssl.SSLContext | None:
    """The certificates to believe in, and the client's own; None for those of the system, and none."""
    bundle, own, key = (properties.get(f"ssl.{name}") for name in ("cabundle", "client.cert", "client.key"))
    if key is not None and own is None:
        raise Invalid("ssl.client.key without ssl.client.cert")
    if bundle is None and own is None:
        return None
    try:
        context = ssl.create_default_context(cafile=bundle)
    except OSError as error:
        raise Invalid(f"ssl.cabundle={bundle!r} is not a file of certificates: {_reason(error)}") from None
    if own is not None:
        try:
            context.load_cert_chain(own, key)
        except OSError as error:
            raise Invalid(f"ssl.client.cert={own!r} is not a certificate with its key: {_reason(error)}") from None
    return context


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _number(properties: Mapping[str, str], name: str, default: int) -> int:
    text = properties.get(name)
    if text is None:
        return default
    if not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise Invalid(f"{name}={quote(text)!r} is not a number")
    return int(text)


def _milliseconds(properties: Mapping[str, str], name: str, default_seconds: float) -> float:
    text = properties.get(name)
    if text is None:
        return default_seconds
    if not text.isdecimal() or len(text) > _MOST_DIGITS or int(text) == 0:
        raise Invalid(f"{name}={text!r} is not a positive number of milliseconds")
    return int(text) / 1000
