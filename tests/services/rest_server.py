"""Iceberg's own REST catalog server as a child process on the loopback address."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import urllib3

from icebench.bench.java_home import find_java_home
from tests.services.processes import free_port, running
from tests.services.quick_spark import JAVA_OPTIONS
from tests.services.rest_jars import class_path

_CONFIGURATION = Path(__file__).with_name("rest_server.xml")


@contextmanager
def rest_server(home: Path) -> Iterator[str]:
    """The address of a server whose database and warehouse are in the directory `home`."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    # The heap is small because other tests run beside.
    command = [str(find_java_home() / "bin" / "java"), "-Xmx256m", *JAVA_OPTIONS]
    command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    command += ["-cp", os.pathsep.join(map(str, class_path())), "org.eclipse.jetty.xml.XmlConfiguration"]
    command += [f"catalog.uri=jdbc:sqlite:{home / 'catalog.db'}", f"catalog.warehouse={home / 'warehouse'}"]
    command += [f"port={port}", str(_CONFIGURATION)]

    def ready() -> bool:
        try:
            answer = urllib3.request("GET", f"{address}/v1/config", retries=False, timeout=5.0)
        except urllib3.exceptions.HTTPError:
            return False
        return answer.status == 200

    with running(command, log=home / "server.log", ready=ready):
        yield address
