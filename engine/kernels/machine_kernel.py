"""Kernels of arrays that run as kept machine code, without Numba."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from importlib import import_module
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icebench.engine.kernels.compiling import jit, uninterrupted
from icebench.engine.kernels.machine_code import Function, MachineCode
from icebench.engine.kernels.policy import COMPILE_AFTER_NS, LOAD_AFTER_NS, fits_budget


class MachineKernel:
    """A compiled function of arrays of integers and bytes; call it with them, in order. Thread-safe.

    Args:
        name: The function to compile. It takes the address of the arrays' addresses and lengths, two int64 each.
        arrays: The types of the arrays, a letter of numpy for each.
        module: The module with the function. Importing it imports Numba, so it is imported only to compile.
        sources: The files within `engine/` that the function is compiled from.
        ns_per_byte: What the slower way costs for each byte of work.
        compile_after_ns: How much the slower way may cost before the function is compiled.
    """

    def __init__(
        self,
        name: str,
        arrays: str,
        *,
        module: str,
        sources: Sequence[str],
        ns_per_byte: float,
        compile_after_ns: int = COMPILE_AFTER_NS,
    ) -> None:
        self._name = name
        self._types = [np.dtype(letter) for letter in arrays]
        self._module = module
        self._code = MachineCode(name, sources)
        self._ns_per_byte = ns_per_byte
        self._compile_after_ns = compile_after_ns
        self._lock = Lock()
        self._function: Function | None = None

    def should_use(self, size_bytes: int) -> bool:
        """Whether the kernel is the better choice for that many more bytes, and ready to be called.

        Loads or compiles it when that is due (see `icebench.engine.kernels.policy`), which other threads do not wait
        for.
        """
        if self._function is None:
            work_ns = int(size_bytes * self._ns_per_byte)
            if not fits_budget(work_ns, LOAD_AFTER_NS) and self._lock.acquire(blocking=False):
                try:
                    self._function = self._code.load()
                    if self._function is None and not fits_budget(work_ns, self._compile_after_ns):
                        self._function = uninterrupted(self._compile)
                finally:
                    self._lock.release()
        return self._function is not None

    def load(self) -> bool:
        """Load the kernel now, compiled if need be. Returns False where Numba does not compile."""
        with self._lock:
            self._function = self._function or self._code.load() or uninterrupted(self._compile)
        return self._function is not None

    def __call__(self, *arrays: NDArray[Any]) -> int:
        places: list[int] = []
        for array, of_type in zip(arrays, self._types, strict=True):
            if array.dtype != of_type or not array.flags.c_contiguous:
                raise TypeError(f"{self._name} takes contiguous arrays of {', '.join(map(str, self._types))}")
            places += array.__array_interface__["data"][0], len(array)
        memory = (ctypes.c_int64 * len(places))(*places)
        if self._function is None:
            self.load()
        assert self._function is not None, f"{self._name} cannot be compiled"
        return self._function(ctypes.addressof(memory))

    def _compile(self) -> Function | None:
        # local import: Numba takes longer to load than a small table to plan
        import numba

        if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
            return None
        function = getattr(import_module(self._module), self._name)
        # Without Numba's reference counts, which cost six times the decoding of manifests and protect nothing: the
        # kernels allocate nothing, and the caller holds all memory.
        return self._code.compile(function) or jit(function, _nrt=False)
