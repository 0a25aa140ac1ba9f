"""Rows that are written from columns, against an encoder of the Avro specification that takes a value at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from icebench.engine.codec.avro.compiled.machine_kernels import WRITE_ROWS
from icebench.engine.codec.avro.file import encode_bytes, encode_long
from icebench.engine.codec.avro.writing.row_program import RowProgram
from tests.property.manifest_strategies import INT32, INT64

KEYS = st.integers(0, (1 << 31) - 1)
BEFORE = 3
"""Elements that come before the first row's, as in a slice of an Arrow array."""


@pytest.fixture(params=["interpreted", "compiled"], scope="module", autouse=True)
def kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both ways to run the kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WRITE_ROWS, "should_use", lambda _: request.param != "interpreted")
        yield


def encode_map(pairs: list[tuple[int, bytes]]) -> bytes:
    if not pairs:
        return b"\x00"
    body = b"".join(encode_long(key) + value for key, value in pairs)
    return b"\x02" + encode_long(-len(pairs)) + encode_long(len(body)) + body + b"\x00"


def optional(value: Any, encoded: bytes) -> bytes:
    return b"\x00" if value is None else b"\x02" + encoded


def offsets_of(sizes: list[int], dtype: type) -> Any:
    return np.array(list(accumulate(sizes, initial=BEFORE)), dtype)


def rows_of(program: RowProgram) -> list[bytes]:
    data, ends = program.encode()
    starts = [0, *ends.tolist()[:-1]]
    return [bytes(data[start:end]) for start, end in zip(starts, ends.tolist(), strict=True)]


@given(
    st.lists(st.lists(st.tuples(KEYS, INT64), max_size=40), min_size=1, max_size=4),
    st.sampled_from([np.int32, np.int64]),
)
@example([[(k, -(1 << 63)) for k in range(900)], [(7, 0)], []], np.int32)
@example([[(k, 0) for k in range(16)]], np.int64)
@example([[(1, 5)] * 3000], np.int64)
def test_maps_of_numbers(maps: list[list[tuple[int, int]]], width: type) -> None:
    flat = [pair for pairs in maps for pair in pairs]
    offsets = offsets_of([len(pairs) for pairs in maps], width)
    program = RowProgram(len(maps))
    keys = np.array([0] * BEFORE + [key for key, _ in flat], np.int32)
    values = np.array([0] * BEFORE + [value for _, value in flat], np.int64)
    program.add_maps(offsets, offsets, keys, values)
    assert rows_of(program) == [encode_map([(k, encode_long(v)) for k, v in pairs]) for pairs in maps]


@given(
    st.lists(st.lists(st.tuples(KEYS, st.binary(max_size=30)), max_size=9), min_size=1, max_size=4),
    st.sampled_from([np.int32, np.int64]),
)
@example([[(1, b"x" * 61)], [(1, b"x" * 60), (2, b"")]], np.int32)
@example([[(1, b"x" * 9000)], [(1, b"x" * (1 << 20))]], np.int64)
def test_maps_of_bytes(maps: list[list[tuple[int, bytes]]], width: type) -> None:
    flat = [pair for pairs in maps for pair in pairs]
    offsets = offsets_of([len(pairs) for pairs in maps], width)
    ends: Any = np.array(list(accumulate([len(v) for _, v in flat], initial=5)), width)
    program = RowProgram(len(maps))
    keys = np.array([0] * BEFORE + [key for key, _ in flat], np.int64)
    data = np.frombuffer(b"-----" + b"".join(v for _, v in flat), np.uint8)
    program.add_maps(offsets, offsets, keys, (np.concatenate([np.full(BEFORE, 5, width), ends]), data))
    assert rows_of(program) == [encode_map([(k, encode_bytes(v)) for k, v in pairs]) for pairs in maps]


@given(st.lists(st.tuples(st.none() | INT32, st.none() | INT64, INT64), min_size=1, max_size=9))
def test_numbers_and_literals(rows: list[tuple[int | None, int | None, int]]) -> None:
    program = RowProgram(len(rows))
    program.add_literal(b"\x02")
    program.add_literal(b"ab")
    for index, dtype in enumerate([np.int32, np.int64]):
        values = np.array([row[index] or 0 for row in rows], dtype)
        program.add_numbers(values, np.array([row[index] is not None for row in rows]), required=False)
    program.add_numbers(np.array([row[2] for row in rows], np.int64), None, required=True)
    program.add_literal(b"\x00")
    assert rows_of(program) == [
        b"\x02ab"
        + b"".join(optional(value, encode_long(value or 0)) for value in row[:2])
        + encode_long(row[2])
        + b"\x00"
        for row in rows
    ]


@given(
    st.lists(
        st.tuples(st.none() | st.binary(max_size=40), st.none() | st.lists(INT64, max_size=5)), min_size=1, max_size=9
    )
)
def test_bytes_and_lists(rows: list[tuple[bytes | None, list[int] | None]]) -> None:
    texts, lists = [row[0] or b"" for row in rows], [row[1] or [] for row in rows]
    program = RowProgram(len(rows))
    data = np.frombuffer(b"---" + b"".join(texts), np.uint8)
    text_offsets = offsets_of([len(text) for text in texts], np.int32)
    program.add_bytes(text_offsets, data, np.array([row[0] is not None for row in rows]), required=False)
    program.add_bytes(text_offsets, data, None, required=True, is_fixed=True)
    elements = np.array([0] * BEFORE + [number for each in lists for number in each], np.int64)
    list_offsets = offsets_of([len(each) for each in lists], np.int32)
    program.add_lists(list_offsets, elements, np.array([row[1] is not None for row in rows]), required=False)
    expected = []
    for (text, numbers), plain in zip(rows, texts, strict=True):
        items = b"".join(encode_long(number) for number in numbers or [])
        listed = (encode_long(len(numbers or [])) + items if numbers else b"") + b"\x00"
        expected.append(optional(text, encode_bytes(plain)) + plain + optional(numbers, listed))
    assert rows_of(program) == expected


def test_other_numbers_are_refused() -> None:
    with pytest.raises(TypeError, match="float64"):
        RowProgram(1).add_numbers(np.zeros(1), None, required=True)  # type: ignore[arg-type]
