"""Tables on S3 whose requests the REST catalog signs: the client has no credentials, and S3 checks each signature."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.errors import FileNotFound, StorageFailed
from tests.services.rest_over_catalog import RestOverCatalog
from tests.services.s3_server import REGION, S3Server
from tests.services.s3_signer import Signer, signed_requests_only, storage
from tests.services.scripted_http import Reply, ScriptedServer, Seen, scripted_server

ROWS = pa.table({"id": range(100), "day": [f"d{n // 50}" for n in range(100)]})
ALWAYS = "2999-01-01T00:00:00Z"
NEW_PATH, OLD_PATH = "/v1/namespaces/db/tables/t/sign", "/v1/aws/s3/sign"
SIGN = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign"
LOAD = [f"{method} /v1/{{prefix}}/namespaces/{{namespace}}/tables/{{table}}" for method in ("GET", "POST")]


class Server:
    """A REST catalog with one table on S3, which signs requests to it."""

    def __init__(self, s3: S3Server, inner: icebench.Catalog, signer: Signer) -> None:
        self.signer = signer
        self.config = storage(s3)
        self.signing: dict[str, object] | None = None
        self.endpoints: list[str] | None = None
        self.http: ScriptedServer | None = None
        self._rest = RestOverCatalog(inner._inner)

    def __call__(self, request: Seen) -> Reply:
        if request.path in {NEW_PATH, OLD_PATH, "/elsewhere"}:
            return self.signer(request)
        reply = self._rest(request)
        assert isinstance(reply.body, dict)
        if request.path == "/v1/config" and self.endpoints is not None:
            reply.body["endpoints"] = self.endpoints
        elif "metadata" in reply.body:
            reply.body.update({"config": self.config, "remote-signing-config": self.signing})
        return reply

    def asked(self) -> list[Seen]:
        """The requests for signatures since the last call."""
        assert self.http is not None
        found = [seen for seen in self.http.seen if seen.path in {NEW_PATH, OLD_PATH, "/elsewhere"}]
        self.http.seen.clear()
        return found

    def load(self) -> icebench.Table:
        assert self.http is not None
        with closing(icebench.load_catalog(self.http.address, token="hidden-token")) as catalog:
            return catalog.load_table("db.t")


@pytest.fixture
def server(s3_server: S3Server, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with signed_requests_only(s3_server) as credentials:
        own = {"s3.endpoint": s3_server.address, "s3.region": REGION}
        own |= {"s3.access-key-id": credentials.access_key, "s3.secret-access-key": credentials.secret_key}
        address, warehouse = f"sqlite:///{tmp_path}/catalog.db", f"s3://{bucket}/wh"
        with closing(icebench.load_catalog(address, warehouse=warehouse, properties=own)) as inner:
            table = inner.create_table("db.t", ROWS.schema, properties={"write.delete.mode": "merge-on-read"})
            made = Server(s3_server, inner, Signer(credentials, table.location.removeprefix("s3:/")))
            with scripted_server(made) as made.http:
                yield made


def test_a_tables_life_without_credentials(server: Server) -> None:
    table = server.load()
    table.append(ROWS)
    table.append(ROWS.slice(0, 10))
    assert table.delete("id < 5") is not None
    rows = server.load().scan(filter="day = 'd0'").to_arrow()
    assert sorted(rows["id"].to_pylist()) == sorted([*range(5, 50), *range(5, 10)])
    stray = f"{table.location}/data/a stray+file.parquet"
    table.store.write(stray, b"0123456789")
    assert table.store.read(stray, 3, 4) == b"3456"
    assert table.store.read(stray, 10, 4) == b""
    asked = [request.json() for request in server.asked()]
    assert {request["method"] for request in asked} == {"GET", "HEAD", "PUT"}
    assert {request["region"] for request in asked} == {REGION}
    assert {request["provider"] for request in asked} == {"s3"}
    assert stray in table.maintenance.remove_orphan_files(older_than=ALWAYS, dry_run=False).locations
    with pytest.raises(FileNotFound):
        table.store.read(stray)


def test_parts_of_a_file_share_a_signature_and_nothing_else(server: Server) -> None:
    table = server.load()
    place = f"{table.location}/data/digits"
    table.store.write(place, b"0123456789")
    server.asked()
    assert [table.store.read(place, start, 2) for start in range(0, 10, 2)] == [b"01", b"23", b"45", b"67", b"89"]
    assert table.store.read(place) == b"0123456789"
    assert len(server.asked()) == 1
    server.signer.signs_range = True
    other = f"{table.location}/data/letters"
    table.store.write(other, b"abcdefghij")
    server.asked()
    assert [table.store.read(other, start, 2) for start in (0, 4, 4)] == [b"ab", b"ef", b"ef"]
    assert len(server.asked()) == 2
    assert table.store.read(other) == b"abcdefghij"
    server.signer.cache_control = "no-cache"
    third = f"{table.location}/data/signs"
    table.store.write(third, b"+-")
    server.asked()
    assert [table.store.read(third, 0, 1) for _ in range(3)] == [b"+"] * 3
    assert len(server.asked()) == 3


@pytest.mark.parametrize(
    ("config", "endpoints", "expected"),
    [
        ({}, None, OLD_PATH),
        ({}, [*LOAD, SIGN], NEW_PATH),
        ({"s3.signer.endpoint": "v1/aws/s3/sign"}, [*LOAD, SIGN], OLD_PATH),
        ({"signer.endpoint": "/elsewhere"}, None, "/elsewhere"),
        ({"signer.uri": "{address}/", "signer.endpoint": "elsewhere"}, None, "/elsewhere"),
        ({"s3.signer.uri": "{address}", "s3.signer": "S3V4RestSigner"}, None, OLD_PATH),
        ({"s3.signer.endpoint": "{address}/elsewhere"}, None, "/elsewhere"),
    ],
)
def test_the_endpoint_is_the_servers_choice(
    server: Server, config: dict[str, str], endpoints: list[str] | None, expected: str
) -> None:
    assert server.http is not None
    server.config |= {name: value.replace("{address}", server.http.address) for name, value in config.items()}
    server.endpoints = endpoints
    server.signing = {"headers": {"X-Tenant": ["a", "b"]}, "properties": {"warehouse": "w"}}
    server.load().append(ROWS)
    asked = server.asked()
    assert {request.path for request in asked} == {expected}
    assert {request.headers["x-tenant"] for request in asked} == {"a, b"}
    assert [request.json()["properties"] for request in asked] == [{"warehouse": "w"}] * len(asked)


def test_what_is_not_signed_is_reported(server: Server) -> None:
    table = server.load()
    elsewhere = table.location.replace("/wh/", "/other/") + "/data/f"
    with pytest.raises(StorageFailed, match=r"a signature for GET .*/other/.*: not a file of the table \(HTTP 403"):
        table.store.read(elsewhere)


def test_another_process_reads_with_the_token_of_this_one(server: Server) -> None:
    table = server.load()
    table.append(ROWS)
    store = pickle.loads(pickle.dumps(table.store))
    found = next(each for each in store.list(f"{table.location}/data") if each.location.endswith(".parquet"))
    server.asked()
    with closing(store.open_input(found.location)) as file:
        assert file.read(4) == b"PAR1"
        file.seek(-4, io.SEEK_END)
        assert (file.read(), file.tell(), file.read()) == (b"PAR1", found.size_bytes, b"")
    assert [request.json()["method"] for request in server.asked()] == ["HEAD", "GET"]
