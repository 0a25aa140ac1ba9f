"""pyarrow's client of S3 and botocore's have to speak to one server: files go through the first, commits of directory
catalogs through the second."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from icebench.engine.errors import EngineError
from icebench.engine.storage.object_stores import object_store
from icebench.engine.storage.s3_client import s3_client

PROPERTIES = {
    "s3.access-key-id": "a",
    "s3.secret-access-key": "b",
    "s3.region": "us-east-1",
    "s3.connect-timeout": "5",
    "s3.retry.num-retries": "0",
}
BOTH = {"/bucket/read", "/bucket/.icebench-conditional-put"}
"""What the one client reads, and how the other finds out whether the server creates objects atomically."""


class Server(ThreadingHTTPServer):
    """Has no object, and takes none."""

    def __init__(self) -> None:
        requests: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                requests.append(self.path.partition("?")[0])
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_HEAD = do_PUT = do_GET  # noqa: N815 - as the base class finds them

            def log_message(self, format: str, *args: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.requests = requests
        self.url = f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    both = Server(), Server()
    for server in both:
        Thread(target=server.serve_forever, daemon=True).start()
    yield both
    for server in both:
        server.shutdown()
        server.server_close()


def use(properties: dict[str, str]) -> None:
    """Read with the one client, and create with the other."""
    store = object_store("s3", "s3://bucket/", {**PROPERTIES, **properties}, is_catalog=True)
    with pytest.raises(EngineError):
        store.read("s3://bucket/read")
    with pytest.raises(EngineError):
        store.write("s3://bucket/created", b"rows")


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
def test_both_clients_take_the_endpoint_of_the_environment(
    servers: tuple[Server, Server], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = servers
    monkeypatch.setenv("AWS_ENDPOINT_URL", other.url)
    monkeypatch.setenv(name, own.url)
    use({})
    assert set(own.requests) == BOTH
    assert other.requests == []


def test_a_property_stands_above_the_environment(
    servers: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = servers
    monkeypatch.setenv("AWS_ENDPOINT_URL", other.url)
    use({"s3.endpoint": own.url})
    assert set(own.requests) == BOTH
    assert other.requests == []


def test_endpoints_of_the_environment_can_be_ignored(
    servers: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    own, _ = servers
    monkeypatch.setenv("AWS_ENDPOINT_URL", own.url)
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
    use({"s3.proxy-uri": "http://127.0.0.1:9"})  # where nobody listens
    assert own.requests == []


def test_an_endpoint_that_one_client_alone_would_find_is_used_by_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("[default]\nendpoint_url = http://elsewhere\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    assert s3_client({"region": "us-east-1"}).meta.endpoint_url == "https://s3.amazonaws.com"
