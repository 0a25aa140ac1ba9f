"""`write_kernels` for Numba, which importing this module imports; run as `machine_kernels` says.

Arrays are addresses, and their numbers are loaded with their own width: nothing is copied or widened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.extending import overload, register_jitable

from icebench.engine.codec.avro.compiled import write_kernels as kernels
from icebench.engine.codec.avro.compiled.write_kernels import Memory
from icebench.engine.kernels.intrinsics import copy_bytes, int64s_at, load8, load32, load64, store8

_HELPERS: tuple[Callable[..., Any], ...] = (
    kernels.write_rows,
    kernels.write_value,
    kernels.write_map,
    kernels.put_numbers,
    kernels.put_strings,
    kernels.long_size,
    kernels.write_long,
    kernels.move,
)

for _helper in _HELPERS:
    register_jitable(_helper)


@overload(kernels.number)
def _number(source: Memory, width: int, index: int) -> int:
    del source, width, index  # Numba asks with types, and calls what is returned.

    def call(source: Memory, width: int, index: int) -> int:
        found: int = load32(source + 4 * index) if width == 4 else load64(source + 8 * index)
        return found

    return call  # type: ignore[return-value]


@overload(kernels.byte_of)
def _byte_of(source: Memory, index: int) -> int:
    del source, index

    def call(source: Memory, index: int) -> int:
        found: int = load8(source + index)
        return found

    return call  # type: ignore[return-value]


@overload(kernels.put_byte)
def _put_byte(out: Memory, position: int, value: int) -> int:
    del out, position, value

    def call(out: Memory, position: int, value: int) -> int:
        store8(out + position, value)
        return position + 1

    return call  # type: ignore[return-value]


@overload(kernels.put_bytes)
def _put_bytes(out: Memory, position: int, source: Memory, begin: int, end: int) -> int:
    del out, position, source, begin, end

    def call(out: Memory, position: int, source: Memory, begin: int, end: int) -> int:
        copy_bytes(out + position, source + begin, end - begin)
        return position + end - begin

    return call  # type: ignore[return-value]


def write_rows_at(address: int) -> int:
    """`write_rows` of arrays whose addresses and lengths, two integers each, are at an address."""
    at = int64s_at(address, 8)
    return kernels.write_rows(int64s_at(at[0], at[1]), int64s_at(at[2], at[3]), at[4], int64s_at(at[6], at[7]))
