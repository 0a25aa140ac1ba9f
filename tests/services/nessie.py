"""Nessie's REST catalog as a child process on the loopback address, with its tables on a server of S3.

It needs Java 21 or later, which Spark's Hadoop does not run on: another one than Spark's where that is older.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from urllib.parse import quote

import urllib3

from icebench.bench.ivy_jars import fetched
from icebench.bench.java_home import candidates, major_version
from tests.services.processes import free_port, running
from tests.services.quick_spark import JAVA_OPTIONS
from tests.services.rest_jars import NESSIE
from tests.services.s3_server import S3Server

OLDEST_JAVA = 21
_EMPTY = "2e1cfa82b035c26cbbbdae632cea070514eb8b773f616aaeaf668e2f0be8f10d"
"""The hash that every history begins with."""


@dataclass(frozen=True)
class Nessie:
    """A server; each branch of it is a catalog."""

    address: str
    _numbers: Iterator[int] = field(default_factory=count)

    def new_catalog(self) -> str:
        """The address of a catalog without namespaces: a new branch."""
        name = f"branch-{next(self._numbers)}"
        answer = urllib3.request(
            "POST",
            f"{self.address}/api/v2/trees?name={quote(name)}&type=BRANCH",
            body=json.dumps({"type": "BRANCH", "name": "main", "hash": _EMPTY}),
            headers={"Content-Type": "application/json"},
        )
        assert answer.status == 200, answer.data
        return f"{self.address}/iceberg/{name}"


def find_java() -> Path | None:
    """A Java home that Nessie runs on; None if there is none."""
    found = ((major_version(home) or 0, home) for home in candidates({}))
    return next((home for version, home in found if version >= OLDEST_JAVA), None)


@contextmanager
def nessie(java_home: Path, home: Path, s3: S3Server, bucket: str) -> Iterator[Nessie]:
    """A server that keeps its catalogs in memory and their tables in `bucket`; its log is in the directory `home`."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    storage = "nessie.catalog.service.s3.default-options"
    options = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": port,
        "quarkus.http.access-log.enabled": "false",
        # Cannot be turned off at run time, and has a fixed port by default, which one server of a machine gets.
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": 0,
        "nessie.catalog.default-warehouse": "warehouse",
        "nessie.catalog.warehouses.warehouse.location": f"s3://{bucket}/wh",
        f"{storage}.endpoint": s3.address,
        f"{storage}.path-style-access": "true",
        f"{storage}.region": s3.properties["s3.region"],
        f"{storage}.access-key": "urn:nessie-secret:quarkus:s3-key",
        "s3-key.name": s3.properties["s3.access-key-id"],
        "s3-key.secret": s3.properties["s3.secret-access-key"],
    }
    command = [str(java_home / "bin" / "java"), "-Xmx384m", *JAVA_OPTIONS]
    command += [f"-D{name}={value}" for name, value in options.items()]
    command += ["-jar", str(*fetched(NESSIE))]

    def ready() -> bool:
        try:
            answer = urllib3.request("GET", f"{address}/iceberg/v1/config", retries=False, timeout=5.0)
        except urllib3.exceptions.HTTPError:
            return False
        return answer.status == 200

    with running(command, log=home / "nessie.log", ready=ready):
        yield Nessie(address)
