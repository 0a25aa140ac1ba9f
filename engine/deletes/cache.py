"""A cache of decoded delete files.

A process that reads a plan task by task (an executor) needs the same delete files repeatedly: an equality-delete file
of the whole table applies to every task. Delete files never change, so entries stay valid.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")

DEFAULT_MAX_BYTES = 256 << 20


class DeleteCache:
    """Keeps the most recently used entries, up to a number of bytes. Thread-safe; two threads that miss at once both
    load.

    Args:
        max_bytes: The most bytes to keep; larger entries are not kept.
    """

    def __init__(self, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._size_bytes = 0
        self._lock = Lock()

    @property
    def size_bytes(self) -> int:
        """The bytes of all entries."""
        return self._size_bytes

    def find(self, key: Hashable) -> Any | None:  # noqa: ANN401 - each kind of delete file has its own form
        """The entry of a key, or None."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def keep(self, key: Hashable, value: T, size_bytes: int) -> T:
        """Store an entry, evicting others if needed; returns it."""
        with self._lock:
            if key not in self._kept and size_bytes <= self._max_bytes:
                self._kept[key] = (value, size_bytes)
                self._size_bytes += size_bytes
                while self._size_bytes > self._max_bytes:
                    self._size_bytes -= self._kept.popitem(last=False)[1][1]
        return value

    def of(self, key: Hashable, load: Callable[[], T], size_bytes: Callable[[T], int]) -> T:
        """The entry of a key, else the result of `load`."""
        found: T | None = self.find(key)
        if found is not None:
            return found
        value = load()
        return self.keep(key, value, size_bytes(value))
