"""The binary encoding of variants (Parquet: "Variant Binary Encoding", version 1).

A variant is two byte strings: metadata, a dictionary of the field names in it, and a value that refers to them by
number. The input is untrusted: whatever contradicts the encoding raises CorruptTable.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from icebench.engine.errors import CorruptTable, Unsupported
from icebench.engine.spec.types import MAX_DEPTH

Fields: TypeAlias = Mapping[bytes, tuple[int, bytes]]
"""The fields of an object: name -> (number of the name in the metadata, encoded value)."""

NULL = b"\x00"
"""The value that is a variant null."""
_PRIMITIVE, _SHORT_STRING, _OBJECT = 0, 1, 2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BOOLEANS = {1: True, 2: False}
_NUMBERS = {3: "<b", 4: "<h", 5: "<i", 6: "<q", 7: "<d", 14: "<f"}
_DECIMAL_BYTES = {8: 4, 9: 8, 10: 16}
_BINARY, _STRING, _UUID = 15, 16, 20


def decode_variant(metadata: bytes, value: bytes) -> Any:  # noqa: ANN401 - whatever the variant holds
    """The Python value of a variant: None, bool, int, float, Decimal, str, bytes, date, time, datetime (aware where the
    variant is, in UTC), numpy.datetime64 for nanoseconds (in UTC where it has a zone), UUID, list, or dict.

    Raises:
        CorruptTable: The bytes are not a variant.
        Unsupported: A later version or a later type, or a date that Python does not have.
    """
    try:
        return _decoded(value, field_names(metadata), 1)
    except UnicodeDecodeError as error:
        raise CorruptTable("a text of a variant is not UTF-8") from error
    except OverflowError as error:
        raise Unsupported("a date or time of a variant is out of Python's range") from error
    except (struct.error, IndexError) as error:
        raise _truncated() from error


def field_names(metadata: bytes) -> list[bytes]:
    """The dictionary of a variant's metadata; raises as `decode_variant`."""
    if not metadata:
        raise _truncated()
    if metadata[0] & 0x0F != 1:
        raise Unsupported(f"version {metadata[0] & 0x0F} of the variant encoding")
    width = (metadata[0] >> 6) + 1
    count = int.from_bytes(_slice(metadata, 1, width), "little")
    return _slices(metadata, 1 + width, count, width)


def object_fields(value: bytes, names: Sequence[bytes]) -> Fields | None:
    """The fields of a value that is an object, else None; raises as `decode_variant`.

    Args:
        value: An encoded value.
        names: The dictionary of its metadata.
    """
    if not value:
        raise _truncated()
    header = value[0] >> 2
    if value[0] & 3 != _OBJECT:
        return None
    id_width, width = (header >> 2 & 3) + 1, (header & 3) + 1
    count, at = _count(value, is_large=bool(header >> 4 & 1))
    ids = _numbers(value, at, count, id_width)
    if any(i >= len(names) for i in ids):
        raise CorruptTable("a variant has no such field name in its metadata")
    at += count * id_width
    starts = _numbers(value, at, count + 1, width)
    at += (count + 1) * width
    # The values may be in any order: each ends where another begins, or at the end.
    ordered = sorted({*starts})
    if len(ordered) <= count or ordered[-1] != starts[-1]:
        raise CorruptTable("fields of a variant overlap")
    ends = dict(pairwise(ordered))
    return {names[i]: (i, _slice(value, at + s, ends[s] - s)) for i, s in zip(ids, starts, strict=False)}


def encode_object(fields: Fields) -> bytes:
    """The value that is an object of these fields."""
    ordered = sorted(fields.items())
    ids = [i for _, (i, _) in ordered]
    starts = [0]
    for _, (_, value) in ordered:
        starts.append(starts[-1] + len(value))
    is_large = len(ids) > 255
    id_width, width = byte_width(max(ids, default=0)), byte_width(starts[-1])
    head = bytes([object_header(is_large=is_large, id_width=id_width, width=width)])
    numbers = [(len(ids), 4 if is_large else 1), *((i, id_width) for i in ids), *((s, width) for s in starts)]
    return b"".join([head, *(n.to_bytes(w, "little") for n, w in numbers), *(value for _, (_, value) in ordered)])


def object_header(*, is_large: bool, id_width: int, width: int) -> int:
    """The first byte of an object, given whether its count has 4 bytes, and the bytes of ids and of offsets."""
    return (is_large << 4 | id_width - 1 << 2 | width - 1) << 2 | _OBJECT


def array_header(*, is_large: bool, width: int) -> int:
    """The first byte of an array, given whether its count has 4 bytes, and the bytes of offsets."""
    return (is_large << 2 | width - 1) << 2 | 3


def byte_width(number: int) -> int:
    """The least number of bytes, 1 to 4, that hold an unsigned number."""
    return max(1, (number.bit_length() + 7) // 8)


def _decoded(value: bytes, names: Sequence[bytes], depth: int) -> Any:  # noqa: ANN401
    if depth > MAX_DEPTH:
        raise Unsupported(f"a variant nested over {MAX_DEPTH} deep")
    basic, header = value[0] & 3, value[0] >> 2
    if basic == _PRIMITIVE:
        return _primitive(value, header)
    if basic == _SHORT_STRING:
        return _slice(value, 1, header).decode()
    if basic == _OBJECT:
        fields = object_fields(value, names)
        assert fields is not None
        return {name.decode(): _decoded(inner, names, depth + 1) for name, (_, inner) in fields.items()}
    count, at = _count(value, is_large=bool(header >> 2 & 1))
    return [_decoded(inner, names, depth + 1) for inner in _slices(value, at, count, (header & 3) + 1)]


def _primitive(value: bytes, kind: int) -> Any:  # noqa: ANN401
    if kind == 0:
        return None
    if kind in _BOOLEANS:
        return _BOOLEANS[kind]
    if kind in _NUMBERS:
        return struct.unpack_from(_NUMBERS[kind], value, 1)[0]
    if kind in _DECIMAL_BYTES:
        unscaled = int.from_bytes(_slice(value, 2, _DECIMAL_BYTES[kind]), "little", signed=True)
        return Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -value[1]))
    if kind in (_BINARY, _STRING):
        found = _slice(value, 5, int.from_bytes(_slice(value, 1, 4), "little"))
        return found.decode() if kind == _STRING else found
    if kind == _UUID:
        return uuid.UUID(bytes=_slice(value, 1, 16))
    if kind in _MOMENTS:
        return _MOMENTS[kind](int.from_bytes(_slice(value, 1, 4 if kind == 11 else 8), "little", signed=True))
    raise Unsupported(f"the primitive type {kind} of a variant")


def _time_of_day(micros: int) -> time:
    if not 0 <= micros < 86_400_000_000:
        raise CorruptTable("a time of a variant is not within a day")
    return (_EPOCH + timedelta(microseconds=micros)).time()


_MOMENTS: dict[int, Callable[[int], Any]] = {
    11: lambda n: date(1970, 1, 1) + timedelta(n),
    12: lambda n: _EPOCH + timedelta(microseconds=n),
    13: lambda n: _EPOCH.replace(tzinfo=None) + timedelta(microseconds=n),
    17: _time_of_day,
    18: lambda n: np.datetime64(n, "ns"),
    19: lambda n: np.datetime64(n, "ns"),
}


def _count(value: bytes, *, is_large: bool) -> tuple[int, int]:
    """The number of elements of an object or array, and the position after it."""
    width = 4 if is_large else 1
    return int.from_bytes(_slice(value, 1, width), "little"), 1 + width


def _slices(data: bytes, at: int, count: int, width: int) -> list[bytes]:
    """Consecutive byte strings behind their `count` + 1 offsets."""
    bounds = _numbers(data, at, count + 1, width)
    at += (count + 1) * width
    return [_slice(data, at + start, end - start) for start, end in pairwise(bounds)]


def _numbers(data: bytes, at: int, count: int, width: int) -> list[int]:
    raw = _slice(data, at, count * width)
    return [int.from_bytes(raw[i : i + width], "little") for i in range(0, len(raw), width)]


def _slice(data: bytes, at: int, length: int) -> bytes:
    if length < 0 or at + length > len(data):
        raise _truncated()
    return data[at : at + length]


def _truncated() -> CorruptTable:
    return CorruptTable("a variant ends too early")
