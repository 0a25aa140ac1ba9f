"""Decoded delete files, kept for the next one who reads them.

A process that reads a plan task by task (an executor) meets the same delete files again: an equality-delete file of the
whole table concerns every task. Delete files never change, so what was decoded of one stays right.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")

DEFAULT_MAX_BYTES = 256 << 20


class DeleteCache:
    """Keeps what was used last, up to a number of bytes. Threads may share it; two that miss at once both load.

    Args:
        max_bytes: Room for decoded deletes; what is larger than that alone is not kept.
    """

    def __init__(self, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._size_bytes = 0
        self._lock = Lock()

    @property
    def size_bytes(self) -> int:
        """What is kept now."""
        return self._size_bytes

    def find(self, key: Hashable) -> Any | None:  # noqa: ANN401 - each kind of delete file has its own form
        """What was kept under a key; None for nothing."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def keep(self, key: Hashable, value: T, size_bytes: int) -> T:
        """Keep a value, making room for it; gives the value."""
        with self._lock:
            if key not in self._kept and size_bytes <= self._max_bytes:
                self._kept[key] = (value, size_bytes)
                self._size_bytes += size_bytes
                while self._size_bytes > self._max_bytes:
                    self._size_bytes -= self._kept.popitem(last=False)[1][1]
        return value

    def of(self, key: Hashable, load: Callable[[], T], size_bytes: Callable[[T], int]) -> T:
        """What was kept under a key, or else what `load` gives."""
        found: T | None = self.find(key)
        if found is not None:
            return found
        value = load()
        return self.keep(key, value, size_bytes(value))
