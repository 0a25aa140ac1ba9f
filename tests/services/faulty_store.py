"""A store that fails at chosen calls: for finding out what a crash at any moment leaves behind.

Every request is numbered from 0 in the order it is made, so a test can fail each one in turn and replay a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Literal, TypeVar

from icebench.engine.storage.store import FileInfo, InputFile, OutputFile, Store
from icebench.errors import Contradiction, StorageFailed

T = TypeVar("T")

Moment = Literal["before", "after", "twice"]


@dataclass(frozen=True, slots=True)
class Fault:
    """Which requests fail.

    Args:
        at: The number of the first request that fails.
        moment: ``before`` it is carried out, or ``after``, when only its answer is lost; or ``twice``, when a proxy
            sends it again, and the second answer is the one that comes back (of writes and deletions alone).
        forever: Every later request fails too, before it is carried out, as after a crash.
        is_interrupt: It raises KeyboardInterrupt.
    """

    at: int
    moment: Moment = "before"
    forever: bool = False
    is_interrupt: bool = False


class FaultyStore:
    """Carries out requests on another store until `fault` says otherwise; its failures are `StorageFailed`, or
    KeyboardInterrupt."""

    def __init__(self, inner: Store, fault: Fault | None = None) -> None:
        self._inner = inner
        self.fault = fault
        self._lock = Lock()
        self._requests: list[str] = []

    @property
    def requests(self) -> list[str]:
        """What was asked for so far, in order: ``"write memory://t/f"``."""
        with self._lock:
            return list(self._requests)

    @property
    def creates_atomically(self) -> bool:
        return self._inner.creates_atomically

    def run(self, request: str, location: str, action: Callable[[], T]) -> T:
        """Carry out a request, or fail it."""
        with self._lock:
            number = len(self._requests)
            self._requests.append(f"{request} {location}")
        fault = self.fault
        text = f"cannot {request} {location}: made to fail at request {number}"
        failure = KeyboardInterrupt(text) if fault is not None and fault.is_interrupt else StorageFailed(text)
        if fault is not None and number > fault.at and fault.forever:
            raise failure
        if fault is None or number != fault.at:
            return action()
        if fault.moment == "twice":
            if request in ("write", "delete"):
                action()
            return action()
        if fault.moment == "after":
            action()
        raise failure

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        return self.run("read", location, lambda: self._inner.read(location, offset, length))

    def size(self, location: str) -> int:
        return self.run("size", location, lambda: self._inner.size(location))

    def exists(self, location: str) -> bool:
        return self.run("exists", location, lambda: self._inner.exists(location))

    def write(self, location: str, data: bytes, *, overwrite: bool = False) -> None:
        self.run("write", location, lambda: self._inner.write(location, data, overwrite=overwrite))

    def delete(self, location: str) -> None:
        self.run("delete", location, lambda: self._inner.delete(location))

    def list(self, prefix: str) -> Iterator[FileInfo]:
        return self.run("list", prefix, lambda: self._inner.list(prefix))

    def open_input(self, location: str) -> InputFile:
        opened: list[InputFile] = []
        try:
            self.run("open", location, lambda: opened.append(self._inner.open_input(location)))
        except (StorageFailed, KeyboardInterrupt):
            for source in opened:
                source.close()
            raise
        return opened[0]

    def open_output(self, location: str, *, overwrite: bool = False) -> FaultyOutputFile:
        opened: list[OutputFile] = []
        try:
            self.run("create", location, lambda: opened.append(self._inner.open_output(location, overwrite=overwrite)))
        except (StorageFailed, KeyboardInterrupt):
            for output in opened:
                output.abort()
            raise
        return FaultyOutputFile(self, location, opened[0])

    def physical(self, location: str) -> str:
        return self._inner.physical(location)

    def report(self, contradiction: Contradiction) -> None:
        self._inner.report(contradiction)


class FaultyOutputFile(OutputFile):
    """An output file whose `close` is a request of its own, which may fail."""

    def __init__(self, store: FaultyStore, location: str, inner: OutputFile) -> None:
        self._store = store
        self._location = location
        self._inner = inner

    @property
    def closed(self) -> bool:
        return self._inner.closed

    def write(self, data: bytes, /) -> int:
        return self._inner.write(data)

    def tell(self) -> int:
        return self._inner.tell()

    def close(self) -> None:
        if self._inner.closed:
            return
        try:
            self._store.run("close", self._location, self._inner.close)
        except (StorageFailed, KeyboardInterrupt):
            self._inner.abort()
            raise

    def abort(self) -> None:
        self._inner.abort()
