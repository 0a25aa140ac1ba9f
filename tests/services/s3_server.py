"""A server of S3 (and Glue) for tests: moto's, in a thread of this process."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

KEY, SECRET, REGION = "AKIDEXAMPLE", "hidden-secret", "us-east-1"


@dataclass
class S3Server:
    """Where it listens, and the method, path and query of each request. `seconds` is how long an answer of a number of
    bytes is held back."""

    address: str
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    buckets: list[str] = field(default_factory=list)
    seconds: Callable[[int], float] = lambda _: 0.0

    @property
    def properties(self) -> dict[str, str]:
        """Catalog properties for it."""
        return {
            "s3.endpoint": self.address,
            "s3.region": REGION,
            "s3.access-key-id": KEY,
            "s3.secret-access-key": SECRET,
        }

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
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    inner = DomainDispatcherApplication(create_backend_app)
    made = S3Server("")

    def application(environment: dict[str, Any], start: Any) -> list[bytes]:
        made.requests.append((environment["REQUEST_METHOD"], environment["PATH_INFO"], environment["QUERY_STRING"]))
        answer = list(inner(environment, start))
        time.sleep(made.seconds(sum(map(len, answer))))
        return answer

    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=MotoRequestHandler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        made.address = f"http://127.0.0.1:{server.server_port}"
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
