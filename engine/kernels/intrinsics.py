"""Loads, stores and arrays at memory addresses, for compiled code. Importing this module imports Numba.

Numbers are int64 everywhere, as Numba makes floats of signed and unsigned ones together. No load or store needs an
aligned address.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.cgutils import ir, raw_memcpy  # type: ignore[attr-defined]
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

_I64 = ir.IntType(64)


def _at(builder: Any, address: Any, type_: Any) -> Any:  # noqa: ANN401 - llvmlite's values
    return builder.inttoptr(address, type_.as_pointer())


def _loader(bits: int, *, signed: bool) -> Any:  # noqa: ANN401 - Numba's intrinsic
    @intrinsic
    def load(typing_context, address):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        del typing_context, address

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
            del context, signature
            type_ = ir.IntType(bits)
            value = builder.load(_at(builder, arguments[0], type_), align=1)
            if bits == 64:
                return value
            return builder.sext(value, _I64) if signed else builder.zext(value, _I64)

        return types.int64(types.int64), generate

    return load


load8 = _loader(8, signed=False)
load32 = _loader(32, signed=True)
load64 = _loader(64, signed=True)


def _store8(typing_context, address, value):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Stores a byte."""
    del typing_context, address, value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        byte = ir.IntType(8)
        builder.store(builder.trunc(arguments[1], byte), _at(builder, arguments[0], byte), align=1)
        return context.get_constant(signature.return_type, 0)

    return types.int64(types.int64, types.int64), generate


store8: Any = intrinsic(_store8)


def _copy_bytes(typing_context, target, source, count):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """`memcpy`."""
    del typing_context, target, source, count

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        byte = ir.IntType(8)
        target, source, count = arguments
        raw_memcpy(builder, _at(builder, target, byte), _at(builder, source, byte), count, 1)  # type: ignore[no-untyped-call]
        return context.get_constant(signature.return_type, 0)

    return types.int64(types.int64, types.int64, types.int64), generate


copy_bytes: Any = intrinsic(_copy_bytes)


def array_at(kind: Any) -> Any:  # noqa: ANN401 - Numba's types
    """A function for compiled code: the array of this type at an address, with a length in each dimension."""

    def one(typing_context, address, length):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        del typing_context, address, length
        return kind(types.int64, types.int64), _make_array

    def two(typing_context, address, length, width):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        del typing_context, address, length, width
        return kind(types.int64, types.int64, types.int64), _make_array

    return intrinsic(one if kind.ndim == 1 else two)


def _make_array(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
    """What Numba's `carray` does, which does not compile without reference counts."""
    address, *shape = arguments
    kind = signature.return_type
    array = make_array(kind)(context, builder)  # type: ignore[no-untyped-call]
    itemsize = context.get_constant(types.intp, kind.dtype.bitwidth // 8)
    strides = [itemsize]
    for length in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    data = builder.inttoptr(address, array.data.type)
    parts = {"data": data, "shape": shape, "strides": strides, "itemsize": itemsize, "meminfo": None}
    populate_array(array, **parts)  # type: ignore[no-untyped-call]
    return array._getvalue()  # noqa: SLF001 - of Numba's structures


bytes_at = array_at(types.Array(types.uint8, 1, "C", aligned=False))
int64s_at = array_at(types.Array(types.int64, 1, "C", aligned=False))
