"""`avro_kernels` compiled by Numba, without the GIL. Importing this module imports Numba, so it is imported late.

The compiled code is kept on disk (see `engine.compiling.jit`): only the first run on a machine compiles. There is one
signature, whatever the writer schema.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import types
from numba.core.cgutils import ir  # type: ignore[attr-defined]
from numba.extending import intrinsic, overload, register_jitable

from engine.codec import avro_chunk_kernels as chunk_kernels
from engine.codec import avro_kernels as kernels
from engine.codec import avro_write_kernels as write_kernels
from engine.codec.avro_kernels import Integers
from engine.compiling import jit

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
    chunk_kernels.decode_inflated,
    chunk_kernels.keep_rows,
    chunk_kernels.copy_bytes,
    write_kernels.write_long,
    write_kernels.long_size,
    write_kernels.write_blob,
    write_kernels.write_list,
    write_kernels.write_map,
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
    """Calls a C function of Numba integers: its address, then as ``libdeflate_deflate_decompress`` takes them."""
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


# Without Numba's reference counts of arrays, which cost six times the decoding itself and protect nothing here: the
# kernels allocate nothing, and the caller holds every array.
_OPTIONS: dict[str, Any] = {"_nrt": False}

decode_chunk = jit(chunk_kernels.decode_chunk, **_OPTIONS)
gather = jit(kernels.gather, **_OPTIONS)
write_rows = jit(write_kernels.write_rows, **_OPTIONS)
