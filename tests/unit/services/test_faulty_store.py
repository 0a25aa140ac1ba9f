from __future__ import annotations

import pytest

from icebench.engine.storage.memory import MemoryStore
from icebench.errors import StorageFailed
from tests.services.faulty_store import Fault, FaultyStore


def test_one_request_fails_before_it_is_carried_out() -> None:
    inner = MemoryStore()
    store = FaultyStore(inner, Fault(1))
    store.write("memory://a", b"1")
    with pytest.raises(StorageFailed, match="cannot write memory://b: made to fail at request 1"):
        store.write("memory://b", b"2")
    store.write("memory://c", b"3")
    assert [info.location for info in inner.list("memory://")] == ["memory://a", "memory://c"]
    assert store.requests == ["write memory://a", "write memory://b", "write memory://c"]


def test_or_after_it() -> None:
    inner = MemoryStore()
    store = FaultyStore(inner, Fault(0, "after"))
    with pytest.raises(StorageFailed):
        store.write("memory://a", b"1")
    assert inner.read("memory://a") == b"1"


def test_a_crash_fails_everything_from_then_on() -> None:
    inner = MemoryStore()
    inner.write("memory://a", b"1")
    store = FaultyStore(inner, Fault(1, forever=True))
    assert store.exists("memory://a")
    for _ in range(3):
        with pytest.raises(StorageFailed):
            store.read("memory://a")


@pytest.mark.parametrize(("at", "moment", "stays"), [(0, "before", False), (1, "before", False), (1, "after", True)])
def test_closing_is_a_request_of_its_own(at: int, moment: str, *, stays: bool) -> None:
    inner = MemoryStore()
    store = FaultyStore(inner, Fault(at, moment))  # type: ignore[arg-type]

    def write() -> None:
        with store.open_output("memory://a") as output:
            output.write(b"1")

    with pytest.raises(StorageFailed):
        write()
    assert inner.exists("memory://a") is stays


def test_no_fault() -> None:
    store = FaultyStore(MemoryStore())
    with store.open_output("memory://a") as output:
        output.write(b"12")
    assert store.size("memory://a") == 2
    assert store.open_input("memory://a").read() == b"12"
    assert [info.size_bytes for info in store.list("memory://")] == [2]
    store.delete("memory://a")
    assert [request.split()[0] for request in store.requests] == ["create", "close", "size", "open", "list", "delete"]
