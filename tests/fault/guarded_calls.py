"""Compiled kernels whose memory lies between guards: see `tests.fault.guarded_memory`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from random import Random
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.codec.avro import chunk_kernels
from engine.codec.avro.kernel_choice import DECODE_CHUNK, FlatKernel
from engine.formats.parquet import layout as parquet_layout
from engine.formats.parquet.kernel_choice import KERNELS
from tests.fault.guarded_memory import GuardedMemory

_PARQUET = ("list_chunks", "slim_footer")


class GuardedCalls:
    """Stands in for the kernels of this process: the memory that they are told of is copied between guards, and back.

    The arrays of Avro's kernels have lengths, so all are copied; of the Parquet kernels' numbers each is known.

    Args:
        random: Whether memory ends at a guard or begins there.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._free: list[GuardedMemory] = []
        self._list_chunks = KERNELS.list_chunks
        self._slim_footer = KERNELS.slim_footer
        self._call_flat = FlatKernel.__call__
        self._lock = Lock()

    def install(self) -> None:
        """Have them called from now on."""
        for name in _PARQUET:
            setattr(KERNELS, name, getattr(self, name))
        setattr(FlatKernel, "__call__", lambda kernel, *arrays: self.call_flat(kernel, arrays))  # noqa: B010 - a class

    def remove(self) -> None:
        """Have the kernels called as they were."""
        for name in _PARQUET:
            vars(KERNELS).pop(name, None)
        setattr(FlatKernel, "__call__", self._call_flat)  # noqa: B010 - a class

    def call_flat(self, kernel: FlatKernel, arrays: Sequence[NDArray[Any]]) -> int:
        addresses = [array.__array_interface__["data"][0] for array in arrays]

        def call(places: list[int]) -> int:
            there = [_array_at(at, like) for at, like in zip(places, arrays, strict=True)]
            if kernel is DECODE_CHUNK:
                # Its fourth array has addresses of the first, the third and itself, for the C function that inflates.
                own = there[3]
                own[[chunk_kernels.SOURCE, chunk_kernels.SCRATCH]] = places[0], places[2]
                own[chunk_kernels.MADE_AT] = places[3] + chunk_kernels.MADE * own.itemsize
            return self._call_flat(kernel, *there)

        return self._guarded(call, addresses, {slot: array.nbytes for slot, array in enumerate(arrays)})

    def list_chunks(self, numbers: Sequence[int]) -> tuple[int, int]:
        at = parquet_layout
        table = numbers[at.LIST_ROOM] * at.CHUNK_WIDTH * 8
        sizes = {at.LIST_FOOTER: numbers[at.LIST_SIZE], at.LIST_TABLE: table, at.LIST_STACK: 16 * at.STACK_DEPTH}
        found: tuple[int, int] = self._guarded(self._list_chunks, numbers, sizes)
        return found

    def slim_footer(self, numbers: Sequence[int]) -> int:
        at = parquet_layout
        size = numbers[at.SLIM_SIZE]
        sizes = {
            at.SLIM_FOOTER: size,
            at.SLIM_WANTED: 8 * numbers[at.SLIM_WANTED_COUNT],
            at.SLIM_IS_KEPT: 2 * size,
            at.SLIM_STACK: 16 * at.STACK_DEPTH,
            at.SLIM_OUT: size + 64,
        }
        return self._guarded(self._slim_footer, numbers, sizes)

    def _guarded(self, kernel: Callable[[Any], Any], numbers: Any, sizes: dict[int, int]) -> Any:
        """Call a kernel with the memory at some of its numbers, of so many bytes, between guards."""
        at_end = self._random.random() < 0.7
        used, own = [], {slot: numbers[slot] for slot, size in sizes.items() if numbers[slot]}
        made = list(numbers)
        for slot, address in own.items():
            memory = self._taken(sizes[slot])
            made[slot] = memory.put(address, sizes[slot], at_end=at_end)
            used.append((memory, address, made[slot], sizes[slot]))
        found = kernel(made)
        for memory, address, place, size in used:
            ctypes.memmove(address, place, size)
            with self._lock:
                self._free.append(memory)
        return found

    def _taken(self, size: int) -> GuardedMemory:
        with self._lock:
            for place, memory in enumerate(self._free):
                if memory.holds(size):
                    return self._free.pop(place)
        return GuardedMemory(size)


def _array_at(address: int, like: NDArray[Any]) -> NDArray[Any]:
    memory = np.ctypeslib.as_array((ctypes.c_uint8 * like.nbytes).from_address(address))
    return memory.view(like.dtype).reshape(like.shape)
