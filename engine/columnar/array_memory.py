"""Memory for decoded columns, which goes from row group to row group.

A scan gives away a row group and decodes the next one of the same size, megabytes a column. An allocator returns such
blocks to the system soon after they are free, which then clears every page of them again before it is written: a tenth
of the processor time of a scan. Here a block of which no array is left serves the next column of about that size, and
is made of huge pages where the system has them, so that writing values of 16 bytes does not wait for page tables.

All blocks together are at most `_MOST_BYTES`: whoever holds all of a large table gets the rest from Arrow's allocator.
What waits to be used the system may take if it needs memory; where it can not be told so, there are no blocks.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from threading import Lock

import pyarrow as pa

from engine.storage.system_memory import CAN_BE_OFFERED, SystemBlock

_STEP_BYTES = 256 << 10
"""Blocks are multiples of this, so that columns of almost as many rows fit; smaller arrays are the allocator's."""
_SHARE_MORE = 8
"""A block may have an eighth more than is needed, and one step."""
_MOST_BYTES = 256 << 20


class ArrayMemory:
    """Blocks of memory that are used again. Threads may share it.

    Taking a block back takes no lock: an array may end in any thread, at any time, by the garbage collector within one.

    Args:
        most_bytes: How much all blocks may be, in use or not; arrays beyond that are Arrow's allocator's.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most = most_bytes if CAN_BE_OFFERED else 0
        self._held_bytes = 0
        self._lock = Lock()
        self._idle: dict[int, deque[SystemBlock]] = {}

    @property
    def idle_bytes(self) -> int:
        """What waits to be used."""
        return sum(size * len(blocks) for size, blocks in list(self._idle.items()))

    def allocate(self, size_bytes: int) -> pa.Buffer:
        """A buffer with anything in it, to be written through its address.

        Raises:
            MemoryError: There is no room for so much.
        """
        if size_bytes < _STEP_BYTES or size_bytes > self._most:
            return pa.allocate_buffer(size_bytes)
        size = -(-size_bytes // _STEP_BYTES) * _STEP_BYTES
        block = self._found(size) or self._new(size)
        if block is None:
            return pa.allocate_buffer(size_bytes)
        return pa.foreign_buffer(block.address, size_bytes, base=_Lease(self, block))

    def _found(self, size: int) -> SystemBlock | None:
        most = size + size // _SHARE_MORE + _STEP_BYTES
        for found in sorted(own for own in list(self._idle) if size <= own <= most):
            # Another thread may have taken the last one.
            with suppress(IndexError):
                return self._idle[found].pop()
        return None

    def _new(self, size: int) -> SystemBlock | None:
        """Another block, for which others of another size may have to go; None where all are in use, or for lack of
        memory, of which the allocator may find some."""
        with self._lock:
            while self._held_bytes + size > self._most:
                if not self._drop():
                    return None
            try:
                block = SystemBlock(size)
            except MemoryError:
                return None
            self._held_bytes += size
            return block

    def _drop(self) -> bool:
        """Give a block that waits back to the system, if there is one; for one who holds the lock."""
        for blocks in list(self._idle.values()):
            with suppress(IndexError):
                self._held_bytes -= blocks.popleft().size_bytes
                return True
        return False

    def take_back(self, block: SystemBlock) -> None:
        """Keep a block that nobody uses any more for the next column."""
        with suppress(OSError):
            block.offer()
        self._idle.setdefault(block.size_bytes, deque()).append(block)


class _Lease:
    """A block in use; when nothing refers to it any more, the block is free."""

    __slots__ = ("_block", "_memory")

    def __init__(self, memory: ArrayMemory, block: SystemBlock) -> None:
        self._memory = memory
        self._block = block

    def __del__(self) -> None:
        self._memory.take_back(self._block)


ARRAY_MEMORY = ArrayMemory()
"""That of this process."""
