"""When the kernels of Parquet footers run: loading them takes time, compiling them seconds.

Without them footers are read whole, and their column chunks listed in plain Python. So that no process waits longer for
kernels than it has worked without, the caller says how much work a footer is, counted in values that pyarrow decodes in
that time: code that an earlier process kept on disk is loaded after a few million of them, and none is compiled before
some hundred millions. Both ways give the same.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from threading import Lock

from engine.formats.parquet.layout import LIST_LENGTH, LIST_ORDERS_AT
from engine.kernels.machine_code import Function, MachineCode

_VALUES_TO_LOAD = 3_000_000
"""pyarrow takes some 20 ms for so many; loading takes 60 ms."""
_VALUES_TO_COMPILE = 300_000_000
"""pyarrow takes some 2 s for so many; compiling takes up to 8 s, once on a machine."""
_NAMES = ("slim_footer_at", "list_chunks_at")
_SOURCES = (
    "formats/parquet/layout.py",
    "kernels/intrinsics.py",
    "formats/parquet/thrift_kernels.py",
    "formats/parquet/chunk_kernels.py",
    "formats/parquet/footer_kernels.py",
)


class ParquetKernels:
    """The kernels, where they can be had. Thread-safe.

    Args:
        values_to_load: How many values are decoded without before kept code is looked for.
        values_to_compile: How many before code is compiled.
    """

    def __init__(self, values_to_load: int = _VALUES_TO_LOAD, values_to_compile: int = _VALUES_TO_COMPILE) -> None:
        self._least = values_to_load
        self._to_compile = values_to_compile
        self._codes = [MachineCode(name, _SOURCES) for name in _NAMES]
        self._functions: list[Function] = []
        self._lock = Lock()
        self._values = 0

    def pays(self, values: int) -> bool:
        """Whether the kernels are at hand for so many more values; counts them where they are not."""
        if not self._functions:
            self._values += values
            # Other threads do not wait for the one that compiles.
            if self._values >= self._least and self._lock.acquire(blocking=False):
                try:
                    self._load(compiles=self._values >= self._to_compile)
                    self._least = self._to_compile
                finally:
                    self._lock.release()
        return bool(self._functions)

    def load(self) -> bool:
        """Have the kernels from now on, compiled if need be; whether that is possible."""
        with self._lock:
            self._load(compiles=True)
        return bool(self._functions)

    def _load(self, *, compiles: bool) -> None:
        if self._functions:
            return
        found = [function for code in self._codes if (function := code.load()) is not None]
        if len(found) == len(self._codes):
            self._functions = found
        elif compiles:
            # local import: importing Numba takes longer than reading a small table
            from engine.formats.parquet import compiled as parquet_compiled

            if parquet_compiled.is_possible():
                self._functions = [
                    parquet_compiled.compiled(code, getattr(parquet_compiled, name))
                    for code, name in zip(self._codes, _NAMES, strict=True)
                ]

    def slim_footer(self, numbers: Sequence[int]) -> int:
        """See `engine.formats.parquet.footer_kernels.slim_footer_at`."""
        memory = (ctypes.c_int64 * len(numbers))(*numbers)
        return self._functions[0](ctypes.addressof(memory))

    def list_chunks(self, numbers: Sequence[int]) -> tuple[int, int]:
        """See `engine.formats.parquet.chunk_kernels.list_chunks_at`; and LIST_ORDERS_AT, which it fills."""
        memory = (ctypes.c_int64 * LIST_LENGTH)(*numbers)
        found = self._functions[1](ctypes.addressof(memory))
        return found, memory[LIST_ORDERS_AT]


KERNELS = ParquetKernels()
"""Those of this process."""
