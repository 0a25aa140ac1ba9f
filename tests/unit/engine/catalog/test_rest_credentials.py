"""How a REST catalog is authenticated with and connected to, by properties."""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

import icebench
from icebench.engine.catalog.rest import RestCatalog
from icebench.engine.catalog.rest_auth import ExchangedToken, jwt_ends_at_ms
from icebench.engine.catalog.rest_credentials import authentication_of, transport_of
from icebench.engine.catalog.rest_http import HttpClient
from icebench.engine.catalog.rest_session import open_session
from icebench.errors import EngineError, Invalid, NotInstalled, PlainTextWarning, StorageFailed, Unsupported
from tests.services.scripted_http import Reply, Seen, scripted_server
from tests.unit.engine.catalog.rest_answers import CONFIG

KEYS = {"rest.access-key-id": "AKIDEXAMPLE", "rest.secret-access-key": "hidden"}
SIGNED = {"rest.sigv4-enabled": "true", "rest.signing-region": "eu-west-1", "rest.signing-name": "glue"}


def signature(seen: Seen, address: str, *, secret: str = "hidden") -> str:
    """The ``Authorization`` that AWS would expect of a request, from what came."""
    scope, signed_names, _ = seen.headers["authorization"].split(", ")
    names = signed_names.removeprefix("SignedHeaders=").split(";")
    _, _, region, service, _ = scope.split("/")
    headers = {name: seen.headers[name] for name in names}
    query = "&".join(f"{key}={value}" for key, value in seen.query.items())
    request = AWSRequest(seen.method, f"{address}{seen.path}{'?' if query else ''}{query}", headers, seen.body)
    signer = SigV4Auth(Credentials("AKIDEXAMPLE", secret), service, region)
    request.context["timestamp"] = headers["x-amz-date"]
    canonical = signer.canonical_request(request)
    key = signer.signature(signer.string_to_sign(request, canonical), request)
    return f"{scope}, {signed_names}, Signature={key}"


class Verifying:
    """A server that refuses what is not signed rightly."""

    def __init__(self, secret: str = "hidden") -> None:
        self.address = ""
        self._secret = secret

    def __call__(self, seen: Seen) -> Reply:
        if seen.headers.get("authorization") != signature(seen, self.address, secret=self._secret):
            return Reply(status=403, body={"error": {"message": "signature", "type": "Forbidden", "code": 403}})
        assert "x-amz-content-sha256" in seen.headers["authorization"]
        assert seen.headers["x-amz-content-sha256"] == hashlib.sha256(seen.body).hexdigest()
        return Reply(body=CONFIG if seen.path == "/v1/config" else {"namespaces": [["db"]], "identifiers": []})


@pytest.mark.parametrize("how", [SIGNED, {**SIGNED, "rest.sigv4-enabled": "false", "rest.auth.type": "sigv4"}])
def test_requests_are_signed_as_aws_expects(how: dict[str, str]) -> None:
    verifying = Verifying()
    with scripted_server(verifying) as server:
        verifying.address = server.address
        catalog = icebench.load_catalog(server.address, token="t0k3n", properties={**how, **KEYS})
        assert catalog.list_namespaces() == ["db"]
        catalog.create_namespace("new ns", {"owner": "ann"})
        assert catalog.list_tables("a+b ü") == []
        assert all("/eu-west-1/glue/aws4_request" in seen.headers["authorization"] for seen in server.seen)
        # The catalog's own token is moved aside, as by Iceberg Java.
        assert {seen.headers["original-authorization"] for seen in server.seen} == {"Bearer t0k3n"}


def test_a_wrong_key_is_refused_without_showing_it() -> None:
    verifying = Verifying(secret="another")
    with scripted_server(verifying) as server:
        verifying.address = server.address
        with pytest.raises(EngineError, match="signature") as caught:
            icebench.load_catalog(server.address, properties={**SIGNED, **KEYS})
    assert "hidden" not in str(caught.value)


def test_what_signing_needs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    enabled = {"rest.sigv4-enabled": "true"}

    def load(properties: dict[str, str]) -> None:
        icebench.load_catalog("http://127.0.0.1:9", properties={**enabled, **properties})

    with pytest.raises(Invalid, match=r"rest\.signing-region"):
        load({})
    with pytest.raises(StorageFailed, match="no AWS credentials"):
        load({"rest.signing-region": "eu-west-1"})
    with pytest.raises(Invalid, match=r"without rest\.secret-access-key"):
        load({"rest.signing-region": "eu-west-1", "rest.access-key-id": "a"})
    with pytest.raises(Invalid, match="nobody"):
        load({"rest.signing-region": "eu-west-1", "client.profile-name": "nobody"})
    with patch.dict(sys.modules, {"botocore.session": None}), pytest.raises(NotInstalled, match=r"\[aws\]"):
        load({"rest.signing-region": "eu-west-1"})
    with pytest.raises(Invalid, match="neither true nor false"):
        load({"rest.sigv4-enabled": "yes"})


def sent(properties: dict[str, str], **more: Any) -> list[str | None]:
    """The ``Authorization`` of each request."""
    with scripted_server(
        lambda seen: Reply(body=CONFIG if seen.path == "/v1/config" else {"namespaces": []})
    ) as server:
        icebench.load_catalog(server.address, properties=properties, **more).list_namespaces()
        return [seen.headers.get("authorization") for seen in server.seen]


def test_types_of_authentication() -> None:
    basic = {"rest.auth.type": "basic", "rest.auth.basic.username": "ann", "rest.auth.basic.password": "hidden"}
    assert sent(basic) == [f"Basic {base64.b64encode(b'ann:hidden').decode()}"] * 2
    assert sent({"rest.auth.type": "none"}, token="t") == [None] * 2
    assert sent({"rest.auth.type": "OAuth2"}, token="t") == ["Bearer t"] * 2
    with pytest.raises(Unsupported, match="google"):
        sent({"rest.auth.type": "google"})
    with pytest.raises(Invalid, match=r"rest\.auth\.basic\.username"):
        sent({"rest.auth.type": "basic"})


def test_a_function_gives_tokens_until_they_are_refused() -> None:
    given = iter(["first", "second"])

    def answer(seen: Seen) -> Reply:
        if seen.path == "/v1/config":
            return Reply(body=CONFIG)
        is_good = seen.headers["authorization"] == "Bearer second"
        return Reply(body={"namespaces": []}) if is_good else Reply(status=401, body={"error": {"message": "first"}})

    with scripted_server(answer) as server:
        catalog = icebench.load_catalog(server.address, token=lambda: next(given))
        assert catalog.list_namespaces() == []
        assert catalog.list_namespaces() == []
        assert len(server.seen) == 4


def jwt(ends: float) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": ends}).encode()).decode().rstrip("=")
    return f"e30.{claims}.s"


@pytest.mark.parametrize("refuses", [False, True])
def test_a_token_is_exchanged_before_it_ends(refuses: bool) -> None:
    now = [0]

    def answer(seen: Seen) -> Reply:
        if refuses:
            return Reply(status=400, body={"error": "unsupported_grant_type"})
        return Reply(body={"access_token": jwt(2_000), "token_type": "bearer"})

    with scripted_server(answer) as server:
        http = HttpClient(server.address, now_ms=lambda: now[0])
        auth = ExchangedToken(
            http,
            endpoint=f"{server.address}/token",
            token=jwt(1_000),
            ends_at_ms=1_000_000,
            parameters={"scope": "lake"},
            now_ms=lambda: now[0],
        )
        for at_ms, token, asked in ((939_999, jwt(1_000), 0), (940_000, jwt(2_000), 1), (1_500_000, jwt(2_000), 1)):
            now[0] = at_ms
            assert auth.header() == f"Bearer {jwt(1_000) if refuses else token}"
            assert len(server.seen) == (2 if refuses and at_ms > 1_000_000 else asked)
        form = parse_qs(server.seen[0].body.decode())
        assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:token-exchange"]
        assert form["subject_token"] == [jwt(1_000)]
        assert form["scope"] == ["lake"]
        assert server.seen[0].headers["authorization"] == f"Bearer {jwt(1_000)}"
        http.close()


@pytest.mark.parametrize(
    ("token", "properties", "exchanged"),
    [
        (jwt(1_000), {}, True),
        (jwt(1_000), {"token-refresh-enabled": "false"}, False),
        (jwt(1_000), {"token-exchange-enabled": "false"}, False),
        ("opaque", {}, False),
        ("opaque", {"token-expires-in-ms": "5000"}, True),
        ("a.!.c", {}, False),
    ],
)
def test_which_tokens_are_exchanged(token: str, properties: dict[str, str], exchanged: bool) -> None:
    http = HttpClient("http://127.0.0.1:9")
    assert isinstance(authentication_of(http, token, None, properties), ExchangedToken) == exchanged
    assert jwt_ends_at_ms(token) == (1_000_000 if token == jwt(1_000) else None)


@pytest.mark.parametrize(
    ("address", "warned"),
    [
        ("http://catalog.test", True),
        ("https://catalog.test", False),
        ("http://127.0.0.1:9", False),
        ("http://[::1]:9", False),
        ("http://localhost", False),
    ],
)
def test_credentials_over_plain_http(address: str, warned: bool) -> None:
    basic = {"rest.auth.type": "basic", "rest.auth.basic.username": "ann", "rest.auth.basic.password": "hidden"}
    for token, credential, properties in (("t", None, {}), (None, "a:hidden", {}), (None, None, basic)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            authentication_of(HttpClient(address), token, credential, properties)
        assert {each.category for each in caught} == ({PlainTextWarning} if warned else set())
        assert not any("hidden" in str(each.message) for each in caught)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        authentication_of(HttpClient(address), None, None, {})


def test_a_proxy_of_the_properties_is_used() -> None:
    proxy = {"rest.client.proxy.hostname": "127.0.0.1", "rest.client.proxy.username": "ann"}
    proxy["rest.client.proxy.password"] = "hidden"
    with scripted_server(lambda seen: Reply(body=CONFIG)) as server:
        proxy["rest.client.proxy.port"] = server.address.rpartition(":")[2]
        open_session("http://catalog.test/api", properties=proxy)
        assert server.seen[0].path == "http://catalog.test/api/v1/config"
        assert server.seen[0].headers["proxy-authorization"].startswith("Basic ")


def test_pages_have_the_size_asked_for() -> None:
    with scripted_server(
        lambda seen: Reply(body=CONFIG if seen.path == "/v1/config" else {"namespaces": []})
    ) as server:
        session = open_session(server.address, properties={"rest-page-size": "7"})
        RestCatalog(session).list_namespaces()
        assert server.seen[-1].query["pageSize"] == "7"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-keyout", "key.pem", "-out", "own.pem", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return folder


def test_certificates_of_both_sides(certificates: Path) -> None:
    own, key = str(certificates / "own.pem"), str(certificates / "key.pem")
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=own)
    server_side.verify_mode = ssl.CERT_REQUIRED
    server_side.load_cert_chain(own, key)
    believed = {"ssl.cabundle": own}
    with scripted_server(lambda seen: Reply(body=CONFIG), tls=server_side) as server:
        open_session(server.address, properties={**believed, "ssl.client.cert": own, "ssl.client.key": key}).close()
        for properties in ({}, believed):
            with pytest.raises(StorageFailed, match=r"(?i)certificate|ssl|connection|eof"):
                open_session(server.address, properties={"rest.client.max-retries": "0", **properties})


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"ssl.cabundle": "/nowhere"}, "ssl.cabundle='/nowhere'"),
        ({"ssl.client.cert": "/nowhere"}, "ssl.client.cert"),
        ({"ssl.client.key": "/nowhere"}, "without ssl.client.cert"),
        ({"rest.client.max-retries": "many"}, "rest.client.max-retries"),
        ({"rest.client.proxy.hostname": "h", "rest.client.proxy.port": "x"}, "rest.client.proxy.port"),
    ],
)
def test_what_a_connection_cannot_be(properties: dict[str, str], said: str) -> None:
    with pytest.raises(Invalid, match=said):
        transport_of(properties)
