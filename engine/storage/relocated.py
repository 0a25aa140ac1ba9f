"""A read-only view of a table that was copied elsewhere without rewriting its metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from engine.errors import Unsupported
from engine.storage.forwarding import ForwardingStore
from engine.storage.store import FileInfo, OutputFile, Store


class RelocatedStore(ForwardingStore):
    """Reads ``new + rest`` where the metadata has ``old + rest``.

    Locations keep their old spelling everywhere (position deletes refer to data files by it); only bytes come from
    elsewhere, and `physical` returns the new location. Prefixes end at a path segment, the longest one wins, and a
    location under no prefix is read as it is.

    Args:
        store_for: Returns the store of a physical location.
        prefixes: Old prefix -> new prefix.
    """

    def __init__(self, store_for: Callable[[str], Store], prefixes: Mapping[str, str]) -> None:
        self._store_for = store_for
        self._prefixes = sorted(
            ((old.rstrip("/"), new.rstrip("/")) for old, new in prefixes.items()), key=lambda p: -len(p[0])
        )

    @property
    def creates_atomically(self) -> bool:
        return False

    def physical(self, location: str) -> str:
        for old, new in self._prefixes:
            if location == old or location.startswith(old + "/"):
                return new + location[len(old) :]
        return location

    def list(self, prefix: str) -> Iterator[FileInfo]:
        store, physical = self._at(prefix)
        cut = len(physical.rstrip("/"))
        for info in store.list(physical):
            yield FileInfo(prefix.rstrip("/") + info.location[cut:], info.size_bytes, info.modified_ms)

    def write(self, location: str, data: bytes, *, overwrite: bool = False) -> None:
        raise _read_only(location)

    def delete(self, location: str) -> None:
        raise _read_only(location)

    def open_output(self, location: str, *, overwrite: bool = False) -> OutputFile:
        raise _read_only(location)

    def _at(self, location: str) -> tuple[Store, str]:
        physical = self.physical(location)
        return self._store_for(physical), physical


def _read_only(location: str) -> Unsupported:
    return Unsupported(f"a relocated table is read-only, so {location} cannot be written or deleted")
