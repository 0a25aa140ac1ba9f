"""An S3 server on this machine that answers as late as one far away: moto's, in a process of its own."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from threading import Thread
from typing import Any

from icebench.bench.engines.access import Access
from icebench.bench.engines.engine import EngineMissing

_OPTIONS = {"s3.region": "us-east-1", "s3.access-key-id": "icebench", "s3.secret-access-key": "icebench"}
_READS = ("GET", "HEAD")

Answering = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
"""An application of WSGI."""


@dataclass(frozen=True, kw_only=True)
class Delay:
    """How late a bucket answers requests that read.

    Args:
        seconds: From a request to the first byte of its answer.
        bytes_per_second: Of one answer, at most.
    """

    seconds: float
    bytes_per_second: float

    def of(self, size: int) -> float:
        """How long an answer of so many bytes is held back, in seconds."""
        return self.seconds + size / self.bytes_per_second


@contextmanager
def delayed_s3(delays: Mapping[str, Delay]) -> Iterator[Access]:
    """A server with a bucket for each delay, by name; what is written is in its memory until the end.

    Gives what opens the files there.

    Raises:
        EngineMissing: moto is not installed.
    """
    described = json.dumps({name: asdict(delay) for name, delay in delays.items()})
    # In a group of its own it does not see Ctrl-C: a run stops after the sample, and then closes its input.
    process = subprocess.Popen(
        [sys.executable, "-m", "icebench.bench.processes.delayed_s3", described],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port = process.stdout.readline().strip()
        process.wait()
        if not port:
            raise EngineMissing("a store with delays is moto's server: pip install 'icebench[s3-server]'")
        yield Access("s3", {"s3.endpoint": f"http://127.0.0.1:{port}", **_OPTIONS})
    finally:
        process.stdin.close()
        process.stdout.close()


def moto_application() -> Answering:
    """All services of moto as one application.

    Raises:
        ImportError: It is not installed.
    """
    # local import: half a second, and an extra
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

    found = DomainDispatcherApplication(create_backend_app)
    # For each request it lists the directories of its package.
    found.get_backend_for_host = cache(found.get_backend_for_host)  # type: ignore[method-assign]
    return found


def delayed(inner: Answering, delays: Mapping[str, Delay], sleep: Callable[[float], None] = time.sleep) -> Answering:
    """The application, with answers held back as their buckets say."""

    def application(environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        answer = list(inner(environment, start))
        delay = delays.get(environment["PATH_INFO"].split("/")[1])
        if delay is not None and environment["REQUEST_METHOD"] in _READS:
            sleep(delay.of(sum(map(len, answer))))
        return answer

    return application


def _make_bucket(application: Answering, name: str) -> None:
    from werkzeug.test import Client  # local import: as below

    answer = Client(application).put(
        f"/{name}", headers={"Authorization": "AWS4-HMAC-SHA256 Credential=k/d/us-east-1/s3/"}
    )
    assert answer.status_code == 200, answer.text


def main() -> None:
    """Serves until the input is closed; prints the port first. The process that was started ends at once, and leaves
    another one, which is nobody's child: what an engine's processes take is not what this one takes."""
    try:
        # local import: an extra
        from moto.moto_server.werkzeug_app import MotoRequestHandler
        from werkzeug.serving import make_server

        application = moto_application()
    except ImportError:
        sys.exit(1)
    delays = {name: Delay(**values) for name, values in json.loads(sys.argv[1]).items()}
    for name in delays:
        _make_bucket(application, name)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    if os.fork():
        os._exit(0)
    answering = delayed(application, delays)
    server = make_server("127.0.0.1", 0, answering, threaded=True, request_handler=MotoRequestHandler)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
