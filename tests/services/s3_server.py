"""A server of S3 and Glue for tests: moto's, in a thread of this process. Of Glue it compares versions of tables, which
moto does not."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from threading import Lock, Thread
from typing import Any, Literal

from moto.core.exceptions import JsonRESTError
from moto.glue.responses import GlueResponse
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

KEY, SECRET, REGION = "AKIDEXAMPLE", "hidden-secret", "us-east-1"


@dataclass(eq=False)
class S3Server:
    """Where it listens, and the method, path and query of each request. `seconds` is how long an answer of a number of
    bytes is held back. `fault` is asked with the name of each operation of Glue: whether the server fails before it, or
    after it."""

    address: str
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    buckets: list[str] = field(default_factory=list)
    seconds: Callable[[int], float] = lambda _: 0.0
    fault: Callable[[str], Literal["before", "after"] | None] = lambda _: None

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
    inner = DomainDispatcherApplication(create_backend_app)
    made = S3Server("")

    def application(environment: dict[str, Any], start: Any) -> list[bytes]:
        made.requests.append((environment["REQUEST_METHOD"], environment["PATH_INFO"], environment["QUERY_STRING"]))
        operation = environment.get("HTTP_X_AMZ_TARGET", "").removeprefix("AWSGlue.")
        fault = made.fault(operation) if operation else None
        with one_by_one:
            answer = [] if fault == "before" else list(inner(environment, start))
        if fault is not None:
            start("500 Internal Server Error", [("Content-Type", "application/x-amz-json-1.1")], sys.exc_info())
            return [b"{}"]
        time.sleep(made.seconds(sum(map(len, answer))))
        return answer

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
