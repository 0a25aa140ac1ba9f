"""Compiled kernels whose memory lies between guards: see `tests.fault.guarded_memory`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from random import Random
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icebench.engine.codec.avro.compiled import chunk_kernels
from icebench.engine.codec.avro.compiled.machine_kernels import DECODE_CHUNK
from icebench.engine.kernels.machine_kernel import MachineKernel
from tests.fault.guarded_memory import GuardedMemory


class GuardedCalls:
    """Stands in for the kernels of this process: the memory that they are passed is copied between guards, and back.

    Args:
        random: Whether memory ends at a guard or begins there.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._free: list[GuardedMemory] = []
        self._call = MachineKernel.__call__
        self._lock = Lock()

    def install(self) -> None:
        """Have them called from now on."""
        setattr(MachineKernel, "__call__", lambda kernel, *arrays: self.call(kernel, arrays))  # noqa: B010 - a class

    def remove(self) -> int:
        """Have the kernels called as they were; the bytes that the copies took."""
        setattr(MachineKernel, "__call__", self._call)  # noqa: B010 - a class
        size_bytes = sum(memory.size_bytes for memory in self._free)
        for memory in self._free:
            memory.free()
        self._free = []
        return size_bytes

    def call(self, kernel: MachineKernel, arrays: Sequence[NDArray[Any]]) -> int:
        addresses = [array.__array_interface__["data"][0] for array in arrays]

        def call(places: list[int]) -> int:
            there = [_array_at(at, like) for at, like in zip(places, arrays, strict=True)]
            if kernel is DECODE_CHUNK:
                # Its fourth array has addresses of the first, the third and itself, for the C function that inflates.
                own = there[3]
                own[[chunk_kernels.SOURCE, chunk_kernels.SCRATCH]] = places[0], places[2]
                own[chunk_kernels.MADE_AT] = places[3] + chunk_kernels.MADE * own.itemsize
            return self._call(kernel, *there)

        return self._guarded(call, addresses, {slot: array.nbytes for slot, array in enumerate(arrays)})

    def _guarded(self, kernel: Callable[[Any], Any], numbers: Any, sizes: dict[int, int]) -> Any:
        """Call a kernel with the memory at some of its numbers, of so many bytes, between guards."""
        at_end = self._random.random() < 0.7
        used, own = [], {slot: numbers[slot] for slot, size in sizes.items() if numbers[slot]}
        made = list(numbers)
        for slot, address in own.items():
            memory = self._taken(sizes[slot])
            made[slot] = memory.put(address, sizes[slot], at_end=at_end)
            used.append((memory, address, made[slot], sizes[slot]))
        try:
            found = kernel(made)
            for _, address, place, size in used:
                ctypes.memmove(address, place, size)
        finally:
            with self._lock:
                self._free += [memory for memory, *_ in used]
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
