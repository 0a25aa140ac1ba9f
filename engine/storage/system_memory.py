"""Memory that the system gives by itself, to be held on to and used again (no file is behind it)."""

from __future__ import annotations

import ctypes
import mmap
from contextlib import suppress

CAN_BE_OFFERED = hasattr(mmap, "MADV_FREE") and hasattr(mmap, "MAP_ANONYMOUS")
"""Whether `SystemBlock` works here."""


class SystemBlock:
    """Some memory, of huge pages as far as the system has them; it goes back to the system with the object.

    Args:
        size_bytes: How much.

    Attributes:
        address: Where it begins.
        size_bytes: How much it is.

    Raises:
        MemoryError: There is no room for so much.
    """

    __slots__ = ("_mapped", "address", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        try:
            self._mapped = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError as error:
            raise MemoryError(f"no room for {size_bytes} bytes") from error
        if hasattr(mmap, "MADV_HUGEPAGE"):
            # A kernel without huge pages refuses.
            with suppress(OSError):
                self._mapped.madvise(mmap.MADV_HUGEPAGE)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._mapped))
        self.size_bytes = size_bytes

    def offer(self) -> None:
        """Let the system take what is in it, if it needs memory before somebody writes there again.

        Raises:
            OSError: The system does not know of such an offer.
        """
        self._mapped.madvise(mmap.MADV_FREE)
