"""Files in the simulated world."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from icebench.engine.errors import AlreadyExists, Contradiction, FileNotFound, refuse
from icebench.engine.storage.memory import MemoryInputFile, MemoryOutputFile
from icebench.engine.storage.store import FileInfo
from tests.simulation.world import World


@dataclass(eq=False)
class SimulatedStore:
    """The world's files, each call of which is a point of the schedule.

    Args:
        world: See there.
        written: Called with each file that was made.
        deleted: Called with each file that is gone.
    """

    world: World
    written: Callable[[str], None] = lambda _: None
    deleted: Callable[[str], None] = lambda _: None

    @property
    def creates_atomically(self) -> bool:
        return True

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        data = self.world.call("read", location, lambda: self._data(location))
        return data[offset : None if length is None else offset + length]

    def size(self, location: str) -> int:
        return len(self.world.call("size", location, lambda: self._data(location)))

    def exists(self, location: str) -> bool:
        return self.world.call("exists", location, lambda: location in self.world.files)

    def write(self, location: str, data: bytes, *, overwrite: bool = False) -> None:
        def done() -> None:
            if not overwrite and location in self.world.files:
                raise AlreadyExists(f"{location} exists already")
            self.world.files[location] = (bytes(data), self.world.now_ms)
            self.written(location)

        self.world.call("write", location, done)

    def delete(self, location: str) -> None:
        def done() -> None:
            if self.world.files.pop(location, None) is None:
                raise FileNotFound(location)
            self.deleted(location)

        self.world.call("delete", location, done)

    def list(self, prefix: str) -> Iterator[FileInfo]:
        directory = prefix.rstrip("/") + "/"

        def found() -> list[FileInfo]:
            return [
                FileInfo(at, len(d), ms) for at, (d, ms) in sorted(self.world.files.items()) if at.startswith(directory)
            ]

        return iter(self.world.call("list", prefix, found))

    def open_input(self, location: str) -> MemoryInputFile:
        return MemoryInputFile(self.world.call("open", location, lambda: self._data(location)))

    def open_output(self, location: str, *, overwrite: bool = False) -> MemoryOutputFile:
        return MemoryOutputFile(self, location, overwrite=overwrite)

    def physical(self, location: str) -> str:
        return location

    def report(self, contradiction: Contradiction) -> None:
        refuse(contradiction)

    def _data(self, location: str) -> bytes:
        found = self.world.files.get(location)
        if found is None:
            raise FileNotFound(location)
        return found[0]
