"""Whether to run the Avro kernels as machine code or as plain Python; see `engine.kernels`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernels import compiling
from engine.kernels.machine_code import Function, MachineCode

_NS_PER_BYTE = 140
"""What plain Python takes for each uncompressed byte of a manifest."""
_LOADING_NS = 60_000_000
"""What loading kept machine code takes, so that a process pays twice at worst."""


def _reading() -> Any:  # noqa: ANN401 - the module
    # local import: importing Numba takes longer than planning a small table
    from engine.codec.avro import compiled as avro_compiled

    return avro_compiled


def _writing() -> Any:  # noqa: ANN401 - the module
    # local import: importing Numba takes longer than committing many files
    from engine.codec.avro import write_compiled as avro_write_compiled

    return avro_write_compiled


class FlatKernel:
    """A compiled function of arrays of integers and bytes; called with them, in order.

    Args:
        name: Of the function that takes where they are.
        arrays: Their types.
        sources: The files in `engine/` that it is compiled from.
        module: The module that has it, and compiles; by default `compiled`.
    """

    def __init__(
        self,
        name: str,
        arrays: str,
        sources: Sequence[str] = ("codec/avro/kernels.py", "codec/avro/chunk_kernels.py", "codec/avro/compiled.py"),
        module: Callable[[], Any] = _reading,
    ) -> None:
        self._name = name
        self._types = [np.dtype(letter) for letter in arrays]
        self._code = MachineCode(name, sources)
        self._module = module
        self._function: Function | None = None

    def interprets(self, size_bytes: int) -> bool:
        """Whether plain Python is the better choice for this many more bytes; counts them when it is.

        It soon is not where machine code was kept, which loads faster than Numba.
        """
        work_ns = size_bytes * _NS_PER_BYTE
        if self._function is None and compiling.spent_ns() + work_ns > _LOADING_NS:
            self._function = self._code.load()
        return self._function is None and compiling.interprets(work_ns)

    def load(self) -> None:
        """Have the machine code from now on, compiled if need be."""
        self._loaded()

    def __call__(self, *arrays: NDArray[Any]) -> int:
        places: list[int] = []
        for array, of_type in zip(arrays, self._types, strict=True):
            if array.dtype != of_type or not array.flags.c_contiguous:
                raise TypeError(f"{self._name} takes contiguous arrays of {', '.join(map(str, self._types))}")
            places += array.__array_interface__["data"][0], len(array)
        memory = (ctypes.c_int64 * len(places))(*places)
        return self._loaded()(ctypes.addressof(memory))

    def _loaded(self) -> Function:
        if self._function is None:
            self._function = self._code.load()
        if self._function is None:
            module = self._module()
            self._function = module.compiled(self._code, getattr(module, self._name))
        return self._function


DECODE_CHUNK = FlatKernel("decode_chunk_at", "BqBqqqqqqBqB")
GATHER = FlatKernel("gather_at", "BqqB")
WRITE_ROWS = FlatKernel(
    "write_rows_at",
    "qqBq",
    ("codec/avro/write_kernels.py", "codec/avro/write_compiled.py", "kernels/intrinsics.py"),
    _writing,
)


def interprets_chunk(size_bytes: int) -> bool:
    """Whether plain Python is the better choice for decoding this many more bytes; counts them when it is."""
    return DECODE_CHUNK.interprets(size_bytes)
