"""An HTTP server inside the test that answers by a script: errors, silence, half an answer."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import unquote


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A request as it came; `path` is still percent-encoded, header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What to answer.

    Args:
        status: HTTP.
        body: Text, bytes, or something to be written as JSON.
        headers: More of them.
        after_seconds: How long to keep the client waiting.
        cut_at: Send so many bytes of the body and close the connection; -1 closes it before the status line.
    """

    status: int = 200
    body: object = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    after_seconds: float = 0
    cut_at: int | None = None


@dataclass(frozen=True)
class ScriptedServer:
    """Where it listens and what it saw."""

    address: str
    seen: list[Seen]

    def count(self, method: str) -> int:
        return sum(request.method == method for request in self.seen)


@contextmanager
def scripted_server(answer: Callable[[Seen], Reply], *, tls: ssl.SSLContext | None = None) -> Iterator[ScriptedServer]:
    """A server on the loopback address; `answer` is called by several threads."""
    seen: list[Seen] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _handle(self) -> None:
            path, _, query = self.path.partition("?")
            pairs = [part.partition("=") for part in query.split("&") if part]
            request = Seen(
                method=self.command,
                path=path,
                query={unquote(key): unquote(value) for key, _, value in pairs},
                headers={name.lower(): value for name, value in self.headers.items()},
                body=self.rfile.read(int(self.headers.get("content-length", 0))),
            )
            seen.append(request)
            self._reply(answer(request))

        def _reply(self, reply: Reply) -> None:
            time.sleep(reply.after_seconds)
            if reply.cut_at == -1:
                self.close_connection = True
                return
            raw = reply.body if isinstance(reply.body, bytes | str) else json.dumps(reply.body)
            body = raw if isinstance(raw, bytes) else raw.encode()
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            if reply.status not in (204, 304):
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body if reply.cut_at is None else body[: reply.cut_at])
            if reply.cut_at is not None:
                self.close_connection = True

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _handle  # noqa: N815 the names that http.server calls

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: a test reads `seen`."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that gave up waiting is part of a test."""

    server = Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield ScriptedServer(f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}", seen)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
