"""Connections to a Hive metastore that break."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from threading import Thread

import pytest

from icebench.engine.catalog.hive_client import Metastore, RequestPending
from icebench.errors import StorageFailed


@pytest.fixture
def broken() -> Iterator[Metastore]:
    """A metastore that takes each request and answers none."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    with closing(listening.accept()[0]) as connection:
                        connection.recv(1)
                except OSError:
                    return

        thread = Thread(target=serve)
        thread.start()
        yield Metastore(f"thrift://127.0.0.1:{listening.getsockname()[1]}")
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize(("method", "kind"), [("change", RequestPending), ("read", StorageFailed)])
def test_a_request_without_an_answer(broken: Metastore, method: str, kind: type[Exception]) -> None:
    def ask() -> None:
        with broken.connected() as server:
            request: Callable[..., object] = getattr(server, method)
            request("drop_table", "db", "t", False)

    with pytest.raises(StorageFailed) as raised:
        ask()
    assert type(raised.value) is kind
    assert broken._idle == []
