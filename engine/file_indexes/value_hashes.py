"""64-bit hashes of column values for file indexes; promotion of a column does not change them.

Equal values have equal hashes: -0.0 and 0.0, all NaN, an int and the long that it became, a float and its double, a
decimal of any precision. Values of types in different families are never compared.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from icebench.engine.columnar.decimals import is_narrow, unscaled
from icebench.engine.columnar.hashing import byte_spans
from icebench.engine.columnar.scalars import to_arrow_array
from icebench.engine.columnar.schemas import storage_of
from icebench.engine.file_indexes.blob import Hashes
from icebench.engine.spec.types import INCOMPARABLE, DecimalType, PrimitiveType, Type
from icebench.engine.spec.values import Value

_FAMILIES = {"int": "long", "long": "long", "float": "double", "double": "double"}
_NOT_HASHED = INCOMPARABLE | {"unknown"}


def hash_family(type_: Type) -> str | None:
    """The family of types that hash alike, by name; None for types that are not hashed."""
    if not isinstance(type_, PrimitiveType) or type_.name in _NOT_HASHED:
        return None
    if isinstance(type_, DecimalType):
        return f"decimal of scale {type_.scale}"
    return _FAMILIES.get(type_.name, str(type_))


def value_hashes(array: pa.Array) -> Hashes:
    """The hash of each non-null value of an array of an engine type."""
    stored = storage_of(array).drop_null()
    type_ = stored.type
    if pat.is_string(type_) or pat.is_binary(type_) or pat.is_fixed_size_binary(type_):
        offsets, data = byte_spans(stored)
        return bytes_hashes(offsets, data)
    if is_narrow(type_):
        stored, type_ = unscaled(stored), pa.int64()
    if pat.is_decimal(type_):
        words = np.frombuffer(stored.buffers()[1], np.int64, len(stored) * 2, stored.offset * 16).reshape(-1, 2)
        low, high = words[:, 0], words[:, 1]
        wide = np.where(high == low >> 63, 0, high).view(np.uint64)
        return _mixed(low.view(np.uint64) ^ _mixed(wide) ^ _mixed(np.zeros(1, np.uint64)))
    if pat.is_boolean(type_):
        return _mixed(stored.cast(pa.int8()).to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64))
    if pat.is_floating(type_):
        numbers = stored.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0  # -0.0 + 0.0 is 0.0
        return _mixed(np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64))
    integers = stored.view(pa.int32() if stored.type.bit_width == 32 else pa.int64())
    return _mixed(integers.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64))


def literal_hashes(type_: PrimitiveType, values: tuple[Value, ...]) -> Hashes:
    """The hashes of literals in the internal representation, for a column of this type."""
    return value_hashes(to_arrow_array(type_, values))


def _mixed(words: Hashes) -> Hashes:
    """Mix every bit of each word into all bits (the finalizer of SplitMix64)."""
    with np.errstate(over="ignore"):
        mixed = words + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def bytes_hashes(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> Hashes:
    """A 64-bit hash of each byte string, computed eight bytes at a time for all strings."""
    lengths = np.diff(offsets)
    found = _mixed(lengths.astype(np.uint64))
    windows = np.lib.stride_tricks.sliding_window_view(np.concatenate([data, np.zeros(8, np.uint8)]), 8)
    longer = np.flatnonzero(lengths)
    at = 0
    while len(longer):
        words = np.ascontiguousarray(windows[offsets[longer] + at]).view("<u8").reshape(-1)
        left = np.minimum(lengths[longer] - at, 8)
        words &= _LOW_BYTES[left]
        found[longer] = _mixed(found[longer] ^ words)
        at += 8
        longer = longer[left == 8]
        longer = longer[lengths[longer] > at]
    return found


_LOW_BYTES = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)
"""Masks of the first bytes of a little-endian word."""
