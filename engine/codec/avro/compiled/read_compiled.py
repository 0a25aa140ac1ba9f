"""`kernels` and `chunk_kernels` for Numba, which importing this module imports; run as `machine_kernels` says.

There is one signature, whatever the writer schema.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import types
from numba.core.cgutils import ir  # type: ignore[attr-defined]
from numba.extending import intrinsic, overload, register_jitable

from icebench.engine.codec.avro.compiled import chunk_kernels, kernels
from icebench.engine.codec.avro.compiled.kernels import Integers
from icebench.engine.kernels.intrinsics import array_at

_HELPERS: tuple[Callable[..., Any], ...] = (
    kernels.decode_object,
    kernels.find_slot,
    kernels.has_room,
    kernels.read_long_rest,
    kernels.read_length,
    kernels.skip_fixed,
    kernels.skip_value,
    kernels.put_bytes,
    kernels.read_block,
    kernels.check_block_end,
    kernels.skip_empty,
    kernels.skip_pairs,
    kernels.skip_varints_compiled,
    kernels.find_key,
    kernels.put_slots,
    kernels.put_value,
    kernels.gather,
    chunk_kernels.decode_chunk,
    chunk_kernels.decode_inflated,
    chunk_kernels.keep_rows,
    chunk_kernels.copy_bytes,
)

for _helper in _HELPERS:
    register_jitable(_helper)


@overload(kernels.read_long)
def _read_long(buffer: Integers, position: int, end: int) -> tuple[int, int]:
    del buffer, position, end  # Numba asks with types, and calls what is returned.
    return kernels.read_long_compiled  # type: ignore[return-value]


@overload(kernels.skip_varints)
def _skip_varints(buffer: Integers, position: int, end: int, count: int) -> int:
    del buffer, position, end, count
    return kernels.skip_varints_compiled  # type: ignore[return-value]


@overload(kernels.skip_rest)
def _skip_rest(buffer: Integers, position: int, end: int, is_bytes: int, count: int) -> int:
    del buffer, position, end, is_bytes, count
    return kernels.skip_rest_compiled  # type: ignore[return-value]


@intrinsic
def _call_inflate(typing_context, function, decompressor, source, size, target, room, made):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0917
    """Calls a C function with the arguments of ``libdeflate_deflate_decompress``, given its address."""
    del typing_context, function, decompressor, source, size, target, room, made

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        del context, signature
        address, *rest = arguments
        type_ = ir.FunctionType(ir.IntType(32), [argument.type for argument in rest])
        called = builder.call(builder.inttoptr(address, type_.as_pointer()), rest)
        return builder.sext(called, ir.IntType(64))

    return types.int64(*[types.int64] * 7), generate


@overload(chunk_kernels.inflate_block)
def _inflate_block(function, decompressor, source, size, target, room, made):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0917
    del function, decompressor, source, size, target, room, made

    def call(function, decompressor, source, size, target, room, made):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0917
        return _call_inflate(function, decompressor, source, size, target, room, made)  # type: ignore[call-arg]

    return call


_integers = array_at(types.Array(types.int64, 1, "C"))
_rows = array_at(types.Array(types.int64, 2, "C"))
_bytes = array_at(types.Array(types.uint8, 1, "C"))


def decode_chunk_at(address: int) -> int:
    """`decode_chunk` of arrays whose addresses and lengths, two integers each, are at an address."""
    at = _integers(address, 24)
    return chunk_kernels.decode_chunk(
        _bytes(at[0], at[1]),
        _rows(at[2], at[3], 3),
        _bytes(at[4], at[5]),
        _integers(at[6], at[7]),
        _integers(at[8], at[9]),
        _integers(at[10], at[11]),
        _rows(at[12], at[13], chunk_kernels.WIDTH),
        _rows(at[14], at[15], chunk_kernels.TABLE_WIDTH),
        (
            _integers(at[16], at[17]),
            _bytes(at[18], at[19]),
            _integers(at[20], at[21]),
            _bytes(at[22], at[23]),
        ),
    )


def gather_at(address: int) -> int:
    """`gather` of arrays whose addresses and lengths, two integers each, are at an address."""
    at = _integers(address, 8)
    kernels.gather(
        _bytes(at[0], at[1]),
        _integers(at[2], at[3]),
        _integers(at[4], at[5]),
        _bytes(at[6], at[7]),
    )
    return 0
