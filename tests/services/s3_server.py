"""A server of S3 and Glue for tests: moto's, in a thread of this process. Of Glue it compares versions of tables, which
moto does not."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from socket import SHUT_RDWR
from threading import Lock, Thread
from typing import Any, Literal

from moto.core.exceptions import JsonRESTError
from moto.glue.responses import GlueResponse
from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import make_server

from icebench.bench.processes.delayed_s3 import moto_application

KEY, SECRET, REGION = "AKIDEXAMPLE", "hidden-secret", "us-east-1"

Transient = Literal["500", "503", "reset-before", "reset-after", "timeout", "cut"]
"""What happens to a request of S3: an error, without being carried out; the connection breaks before it is carried out,
or after, so that its answer is lost; the answer comes after the client's patience; half of its body comes."""
TRANSIENT: tuple[Transient, ...] = Transient.__args__  # type: ignore[attr-defined]


@dataclass(eq=False)
class S3Server:
    """Where it listens, and the method, path and query of each request.

    `patience_seconds` is to be given as ``s3.request-timeout`` where answers come late; `seconds` is how long an answer
    of a number of bytes is held back. `fault` is asked with the name of each operation of Glue: whether the server
    fails before it, or after it; `transient` with method and path of each request of S3.
    """

    address: str
    patience_seconds: float = 1.0
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    buckets: list[str] = field(default_factory=list)
    seconds: Callable[[int], float] = lambda _: 0.0
    fault: Callable[[str], Literal["before", "after"] | None] = lambda _: None
    transient: Callable[[str], Transient | None] = lambda _: None

    @property
    def properties(self) -> dict[str, str]:
        """Catalog properties for it."""
        return {
            "s3.endpoint": self.address,
            "s3.region": REGION,
            "s3.access-key-id": KEY,
            "s3.secret-access-key": SECRET,
        }

    @property
    def glue_properties(self) -> dict[str, str]:
        """Properties of a Glue catalog there, without its warehouse."""
        own = {"glue.endpoint": self.address, "glue.region": REGION, "glue.access-key-id": KEY}
        return {"type": "glue", **own, "glue.secret-access-key": SECRET}

    @cache  # noqa: B019 - there is one server
    def client(self, service: str = "s3") -> Any:
        """botocore's client."""
        import botocore.session  # local import: half a second

        return botocore.session.Session().create_client(
            service,
            endpoint_url=self.address,
            region_name=REGION,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
        )


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """A server on the loopback address, without buckets."""
    originals = {name: getattr(GlueResponse, name) for name in ("create_table", "update_table")}
    # moto fails to answer a read of what is replaced meanwhile, and AWS answers.
    one_by_one = Lock()
    for name, original in originals.items():
        setattr(GlueResponse, name, _at_its_version(original))
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    inner = moto_application()
    made = S3Server("")

    def application(environment: dict[str, Any], start: Any) -> Iterable[bytes]:
        made.requests.append((environment["REQUEST_METHOD"], environment["PATH_INFO"], environment["QUERY_STRING"]))
        operation = environment.get("HTTP_X_AMZ_TARGET", "").removeprefix("AWSGlue.")
        fault = made.fault(operation) if operation else None
        transient = None if operation else made.transient(f"{environment['REQUEST_METHOD']} {environment['PATH_INFO']}")
        if transient in ("500", "503", "reset-before"):
            # Else what is left of the body would be taken for the next request.
            environment["wsgi.input"].read(int(environment.get("CONTENT_LENGTH") or 0))
        if transient in ("500", "503"):
            start(f"{transient} Slow Down", [("Content-Type", "application/xml"), ("Connection", "close")])
            return [b"<Error><Code>SlowDown</Code></Error>" if transient == "503" else b""]
        if transient == "reset-before":
            environment["werkzeug.socket"].shutdown(SHUT_RDWR)
            return []
        with one_by_one:
            answer = [] if fault == "before" else list(inner(environment, start))
        if fault is not None:
            start("500 Internal Server Error", [("Content-Type", "application/x-amz-json-1.1")], sys.exc_info())
            return [b"{}"]
        time.sleep(made.seconds(sum(map(len, answer))))
        if transient == "timeout":
            time.sleep(made.patience_seconds * 2)
        if transient == "reset-after":
            environment["werkzeug.socket"].shutdown(SHUT_RDWR)
            return []
        return _cut(environment, b"".join(answer)) if transient == "cut" else answer

    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=MotoRequestHandler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        made.address = f"http://127.0.0.1:{server.server_port}"
        yield made
    finally:
        for name, original in originals.items():
            setattr(GlueResponse, name, original)
        server.shutdown()
        server.server_close()
        thread.join()


def _cut(environment: dict[str, Any], body: bytes) -> Iterator[bytes]:
    """Half of an answer, and the end of the connection; all of an answer without a body."""
    if len(body) < 2:
        yield body
        return
    yield body[: len(body) // 2]
    environment["werkzeug.socket"].shutdown(SHUT_RDWR)


def _at_its_version(operation: Callable[[GlueResponse], Any]) -> Callable[[GlueResponse], Any]:
    """Have Glue carry out an operation as AWS does: only at the version that it names."""

    def carried_out(self: GlueResponse) -> Any:
        expected = self.parameters.get("VersionId")
        if expected is not None:
            name = self.parameters["TableInput"]["Name"]
            table = self.glue_backend.get_table(self.parameters["DatabaseName"], name)
            if table.as_dict()["VersionId"] != expected:
                raise JsonRESTError("ConcurrentModificationException", f"{name} is not at version {expected}")
        return operation(self)

    return carried_out
