from __future__ import annotations

import math
import struct
import uuid
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest

from icebench.engine.expressions import vectors
from icebench.engine.expressions.vectors import (
    BytesVector,
    NumberVector,
    cuts_of,
    from_serialized,
    key,
    pack,
    representation,
    vector_of,
)
from icebench.engine.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    UUID,
    VARIANT,
    DecimalType,
    PrimitiveType,
)
from icebench.engine.spec.values import Value

WIDE = DecimalType(38, 1)


def places(type_: PrimitiveType, raw: list[bytes | None], cuts: list[Value]) -> list[int | None]:
    """The intervals of serialized bounds among cuts; None where a bound is not usable."""
    offsets, data = pack([b"" if r is None else r for r in raw])
    vector = from_serialized(type_, offsets, data, np.array([r is not None for r in raw]))
    assert vector is not None
    found = vector.intervals(cuts_of(type_, [key(type_, c) for c in cuts])).tolist()
    return (
        found
        if vector.valid is None
        else [p if ok else None for p, ok in zip(found, vector.valid.tolist(), strict=True)]
    )


@pytest.mark.parametrize(
    ("type_", "raw", "cuts", "expected"),
    [
        (INT, [struct.pack("<i", n) for n in (-1, 0, 5)], [0, 3], [0, 1, 4]),
        (INT, [struct.pack("<q", 1), b"", b"\x01", None], [0], [None, None, None, None]),
        (LONG, [struct.pack("<q", -(2**63)), struct.pack("<i", -7), b"abc"], [-7], [0, 1, None]),
        (BOOLEAN, [b"\x00", b"\x01", b"\x02"], [True], [0, 1, 1]),
        (FLOAT, [struct.pack("<f", -0.0), struct.pack("<f", math.nan), struct.pack("<d", 1.0)], [0.0], [1, None, None]),
        (DOUBLE, [struct.pack("<f", 0.5), struct.pack("<d", -math.inf)], [0.5], [1, 0]),
        (DOUBLE, [struct.pack("<d", math.nan), struct.pack("<f", math.nan)], [0.5], [None, None]),
        (DATE, [struct.pack("<i", -1)], [0], [0]),
        (TIMESTAMP, [struct.pack("<i", 1), struct.pack("<q", 5)], [86_400_000_000], [1, 0]),
        (TIMESTAMP_NS, [struct.pack("<i", 2**31 - 1)], [0], [None]),
        (STRING, [b"", b"ab", b"abc", "\uffff".encode(), "\U0001f600".encode()], ["ab", "\uffff"], [0, 1, 2, 3, 4]),
        (BINARY, [b"\x7f", b"\x80", b"\x80\x00"], [b"\x80"], [0, 1, 2]),
        (UUID, [uuid.UUID(int=2**127).bytes], [uuid.UUID(int=1)], [2]),
        (DecimalType(4, 2), [b"\xff", b"\x00\x00\x00\x01", b"\xff\xff"], [Decimal("0.01")], [0, 1, 0]),
        (DecimalType(4, 2), [b"\x01" * 9, b""], [Decimal("0.01")], [None, None]),
        (WIDE, [b"\xff" * 17, b"\x00" * 16 + b"\x05", b"\x7f", b"\x80"], [Decimal("0.5")], [0, 1, 2, 0]),
        (WIDE, [b"\x01" + b"\x00" * 17], [Decimal("0.5")], [None]),
    ],
)
def test_serialized_bounds(
    type_: PrimitiveType, raw: list[bytes | None], cuts: list[Value], expected: list[int | None]
) -> None:
    assert places(type_, raw, cuts) == expected


def test_eight_bytes_each_need_no_copy_of_lengths() -> None:
    data = np.frombuffer(struct.pack("<3q", 3, -1, 7), np.uint8)
    vector = from_serialized(LONG, np.array([0, 8, 16, 24]), data, None)
    assert isinstance(vector, NumberVector)
    assert vector.values.tolist() == [3, -1, 7]


def test_open_ended_strings_stand_above_their_extensions() -> None:
    offsets, data = pack([b"ab", b"ab", b"a"])
    vector = BytesVector(offsets, data, open_ended=np.array([False, True, True]))
    cuts = cuts_of(STRING, [b"a", b"ab", b"abc", b"b"])
    assert vector.intervals(cuts).tolist() == [3, 6, 6]


def test_values_in_order() -> None:
    vector = vector_of(DOUBLE, [1.0, None, math.nan, -0.0])
    assert vector is not None
    assert vector.valid is not None
    assert vector.valid.tolist() == [True, False, False, True]
    assert vector.intervals(cuts_of(DOUBLE, [0.0]))[[0, 3]].tolist() == [2, 1]
    text = vector_of(STRING, ["b", None])
    assert text is not None
    assert text.intervals(cuts_of(STRING, [b"a"])).tolist() == [2, 0]


def test_types_without_order() -> None:
    assert representation(VARIANT) is None
    assert vector_of(VARIANT, [b""]) is None
    assert from_serialized(VARIANT, *pack([b""]), None) is None


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("sizes", [[4, 4, 4], [8, 8], [4, 0, 4], [8, 0, 0], [0, 0], [], [4, 8], [1, 1], [3, 4]])
def test_numbers_of_any_width(sizes: list[int], first: int, masked: bool):
    offsets = np.cumsum([first, *sizes], dtype=np.int64)
    data = np.arange(250, 250 + int(offsets[-1]) + 2).astype(np.uint8)
    valid = np.arange(len(sizes)) % 2 == 0 if masked else None
    raw = [data[start:end].tobytes() for start, end in pairwise(offsets.tolist())]
    usable = [len(part) in (1, 4, 8) and (valid is None or valid[i]) for i, part in enumerate(raw)]
    values, lengths = vectors._little_endian(offsets, data, valid)
    assert values.tolist() == [
        int.from_bytes(p, "little", signed=True) if u else 0 for p, u in zip(raw, usable, strict=True)
    ]
    assert lengths.tolist() == [len(p) if u else -1 for p, u in zip(raw, usable, strict=True)]


@pytest.mark.parametrize("width", [1, 8, 16, 17])
@pytest.mark.parametrize("numbers", [[], [0, -1], [127, -128, 128, -129, 1 << 62, -(1 << 63), 1 << 126, -(1 << 127)]])
def test_numbers_of_any_length_in_so_many_bytes(numbers: list[int], width: int):
    lengths = [(number.bit_length() + 8) // 8 + more for number in numbers for more in (0, 5)]
    pairs = list(zip([number for number in numbers for _ in range(2)], lengths, strict=True))
    raw = [b"", *(number.to_bytes(length, "big", signed=True) for number, length in pairs), b"\x01"]
    valid = np.arange(len(raw)) < len(raw) - 1
    offsets, data = pack([b"before", *raw])
    keys, fits = vectors.big_endian(offsets[1:], data, valid, width)
    expected = [(number, -1 << 8 * width - 1 <= number < 1 << 8 * width - 1) for number, _ in pairs]
    assert fits.tolist() == [False, *(does for _, does in expected), False]
    found = [bytes(row) for row in keys.reshape(-1, width)]
    flipped = [
        (number + (1 << 8 * width - 1)).to_bytes(width, "big") if does else bytes(width) for number, does in expected
    ]
    assert found == [bytes(width), *flipped, bytes(width)]
