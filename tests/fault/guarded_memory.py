"""Memory between two pages that nobody may touch: a load or store beyond its ends ends the process there and then."""

from __future__ import annotations

import ctypes
import mmap

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_NO_ACCESS = 0


class GuardedMemory:
    """Room for bytes between two such pages, used again and again.

    Args:
        room: How many bytes there may be.
    """

    def __init__(self, room: int) -> None:
        self._room = -(-max(room, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        self.size_bytes = self._room + 2 * mmap.PAGESIZE
        access = mmap.PROT_READ | mmap.PROT_WRITE
        base = _LIBC.mmap(None, self.size_bytes, access, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        assert base not in (None, ctypes.c_void_p(-1).value), "no memory"
        self._first = base + mmap.PAGESIZE
        for guard in (base, self._first + self._room):
            assert _LIBC.mprotect(guard, mmap.PAGESIZE, _NO_ACCESS) == 0, "memory that can not be protected"

    def free(self) -> None:
        """Give the memory back; nothing may use it any more."""
        assert _LIBC.munmap(self._first - mmap.PAGESIZE, self.size_bytes) == 0

    def holds(self, size: int) -> bool:
        return size <= self._room

    def put(self, address: int, size: int, *, at_end: bool) -> int:
        """Copy bytes to where they end at the guard, or begin after the other; their address there."""
        assert self.holds(size)
        place = self._first + self._room - size if at_end else self._first
        ctypes.memmove(place, address, size)
        return place
