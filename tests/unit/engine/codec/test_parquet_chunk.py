"""Pages made by hand: what writers do that pyarrow's does not, and what no writer does."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from engine.codec import parquet_compiled
from engine.codec import parquet_layout as layout
from engine.codec.parquet_choice import KERNELS, ParquetKernels
from engine.codec.parquet_chunk import Chunk, ChunkForm, KeptRows
from engine.codec.parquet_footer_chunks import listed_by_kernel, listed_in_python
from engine.codec.parquet_inflate import BadPageError
from engine.machine_code import MachineCode


@pytest.fixture(autouse=True, scope="module")
def kernels() -> None:
    assert KERNELS.load()


def varint(value: int) -> bytes:
    made = b""
    while value > 127:
        made += bytes([value & 127 | 128])
        value >>= 7
    return made + bytes([value])


def zigzag(value: int) -> bytes:
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def field(step: int, type_: int, body: bytes) -> bytes:
    """A field so many numbers after the one before."""
    return bytes([step << 4 | type_]) + body


def binary(data: bytes) -> bytes:
    return varint(len(data)) + data


def page(body: bytes, values: int, encoding: int, *, type_: int = 0, crc: int | None = None, levels: int = 3) -> bytes:
    """A data page of version 1, or a dictionary page."""
    head = field(1, 5, zigzag(values)) + field(1, 5, zigzag(encoding))
    own = head + b"\x00" if type_ else head + field(1, 5, zigzag(levels)) + field(1, 5, zigzag(3)) + b"\x00"
    parts = field(1, 5, zigzag(type_)) + field(1, 5, zigzag(len(body))) + field(1, 5, zigzag(len(body)))
    step = 7 if type_ else 5
    if crc is not None:
        return parts + field(1, 5, zigzag(crc)) + field(step - 4, 12, own) + b"\x00" + body
    return parts + field(step - 3, 12, own) + b"\x00" + body


def form(values: int, *, optional: bool = False, width: int = 8, kind: int = layout.SAME, out: int = 8) -> ChunkForm:
    return ChunkForm(
        values=values,
        codec="UNCOMPRESSED",
        is_optional=optional,
        is_integer=True,
        width=width,
        form=kind,
        out_width=out,
    )


def decoded(data: bytes, how: ChunkForm, keep: npt.NDArray[np.bool_] | None = None) -> list[int | None]:
    chunk = Chunk(data, how)
    assert chunk.is_known
    kept = None if keep is None else KeptRows(keep)
    rows = how.values if kept is None else kept.count
    out, bitmap = np.zeros((rows + 1) * (how.out_width // 8), np.int64), np.zeros(rows // 8 + 32, np.uint8)
    nulls = chunk.decode(out.ctypes.data, bitmap.ctypes.data if how.is_optional else 0, rows, kept)
    valid = np.unpackbits(bitmap, bitorder="little")[:rows] if how.is_optional else np.ones(rows)
    assert nulls == rows - valid.sum()
    return [int(value) if there else None for value, there in zip(out.tolist(), valid, strict=False)]


def words(*values: int) -> bytes:
    return np.array(values, "<i8").tobytes()


DICTIONARY = page(words(7, 8, 9), 3, layout.PLAIN, type_=layout.DICTIONARY_PAGE)


def test_runs_of_indices_of_all_kinds() -> None:
    # Two bits: five times index 2, eight packed ones, and a last group that its writer did not fill up.
    packed = bytes([0b10_01_00_10, 0b00_01_10_01])
    body = b"\x02" + varint(5 << 1) + b"\x02" + varint(1 << 1 | 1) + packed + varint(1 << 1 | 1) + packed[:1]
    expected = [9] * 5 + [9, 7, 8, 9, 8, 9, 8, 7] + [9, 7, 8, 9]
    assert decoded(DICTIONARY + page(body, 17, layout.RLE_DICTIONARY), form(17)) == expected
    assert decoded(DICTIONARY + page(body, 17, layout.PLAIN_DICTIONARY), form(17)) == expected


def test_indices_of_no_bits_and_pages_that_are_skipped() -> None:
    first, second = page(b"\x00" + varint(4 << 1), 4, layout.RLE_DICTIONARY), page(words(1, 2), 2, layout.PLAIN)
    assert decoded(DICTIONARY + first + second, form(6)) == [7] * 4 + [1, 2]
    keep = np.array([False] * 5 + [True])
    assert decoded(DICTIONARY + first + second, form(6), keep) == [2]
    # Damage in a page of which no row is kept is not seen, nor is there a need to.
    assert decoded(DICTIONARY + page(b"\x09", 4, layout.RLE_DICTIONARY) + second, form(6), keep) == [2]


def test_levels_in_runs_that_begin_within_a_byte() -> None:
    levels = (
        varint(3 << 1) + b"\x01" + varint(1 << 1 | 1) + b"\x0f" + varint(90 << 1) + b"\x00" + varint(2 << 1) + b"\x01"
    )
    body = len(levels).to_bytes(4, "little") + levels + words(*range(9))
    expected = [0, 1, 2, 3, 4, 5, 6, *[None] * 94, 7, 8]
    assert decoded(page(body, 103, layout.PLAIN), form(103, optional=True)) == expected
    keep = np.arange(103) % 2 == 0
    assert decoded(page(body, 103, layout.PLAIN), form(103, optional=True), keep) == expected[::2]


@pytest.mark.parametrize("width", range(1, 9))
def test_big_endian_numbers_of_every_width(width: int) -> None:
    numbers = [0, 1, -1, 2 ** (8 * width - 1) - 1, -(2 ** (8 * width - 1))]
    body = b"".join(n.to_bytes(width, "big", signed=True) for n in numbers)
    how = form(5, width=width, kind=layout.BIG_ENDIAN)
    assert decoded(page(body, 5, layout.PLAIN), how) == numbers


BAD = {
    "values": (page(words(1), 2, layout.PLAIN), form(2), "a page is cut off"),
    "index": (DICTIONARY + page(b"\x02" + varint(2) + b"\x03", 1, layout.RLE_DICTIONARY), form(1), "beyond"),
    "indices": (DICTIONARY + page(b"\x02" + varint(2) + b"\x00", 2, layout.RLE_DICTIONARY), form(2), "cut off"),
    "bits": (DICTIONARY + page(b"\x21\x02\x00", 1, layout.RLE_DICTIONARY), form(1), "a bit width is too large"),
    "dictionary": (page(b"\x00\x02", 1, layout.RLE_DICTIONARY), form(1), "indices without a dictionary"),
    "short dictionary": (page(words(1), 2, 0, type_=2) + page(b"\x00\x02", 1, 8), form(1), "page is cut off"),
    "level": (page(words(2)[:4] + b"\x02\x02" + words(1), 1, layout.PLAIN), form(1, optional=True), "neither 0 nor 1"),
    "levels": (page(words(99)[:4], 1, layout.PLAIN), form(1, optional=True), "cut off"),
    "no levels": (page(b"\x00", 1, layout.PLAIN), form(1, optional=True), "cut off"),
    "split": (page(bytes(9), 1, layout.BYTE_STREAM_SPLIT), form(1), "no whole number of values"),
    "delta": (page(b"\x03\x01\x01\x00", 1, layout.DELTA_BINARY_PACKED), form(1), "a delta block of impossible size"),
    "delta bits": (
        page(varint(128) + b"\x04\x02\x00\x00" + bytes([65, 0, 0, 0]) + bytes(900), 2, layout.DELTA_BINARY_PACKED),
        form(2),
        "a bit width is too large",
    ),
    "deltas": (page(varint(128) + b"\x04\x01\x00", 2, layout.DELTA_BINARY_PACKED), form(2), "cut off"),
    "checksum": (page(words(1), 1, layout.PLAIN, crc=0), form(1), "CRC"),
    "bomb": (page(bytes(1 << 17), 1, layout.PLAIN), form(1), "claims 131072 bytes for 1 values"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_damaged_page_is_told_apart(name: str) -> None:
    data, how, message = BAD[name]
    with pytest.raises(BadPageError, match=message):
        decoded(data, how)


def test_the_right_checksum_is_right() -> None:
    crc = zlib.crc32(words(5))
    signed = crc - (1 << 32) if crc >> 31 else crc
    assert decoded(page(words(5), 1, layout.PLAIN, crc=signed), form(1)) == [5]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a page is cut off"),
        (page(words(1), 1, layout.PLAIN)[:-1], "a page is cut off"),
        (page(words(1, 2), 2, layout.PLAIN), "more values than the column chunk"),
        (page(words(1), -1, layout.PLAIN), "negative"),
        (b"\x15" + b"\xff" * 12, "too many bits"),
        (b"\x18\x00\x00", "not what the Parquet format says"),
    ],
)
def test_a_damaged_head_is_told_apart(data: bytes, message: str) -> None:
    with pytest.raises(BadPageError, match=message):
        Chunk(data, form(1))


@pytest.mark.parametrize(
    "data",
    [
        page(words(1), 1, 7),
        page(words(1), 1, layout.PLAIN, levels=layout.BIT_PACKED),
        # A list, which no page header has.
        page(words(1), 1, layout.PLAIN)[:-9] + field(4, 9, b"\x15" + zigzag(1)) + b"\x00" + words(1),
    ],
)
def test_what_is_not_known_here_is_left_to_others(data: bytes) -> None:
    assert not Chunk(data, form(1, optional=True)).is_known


def test_what_a_footer_says_is_found_among_what_it_says_besides() -> None:
    statistics = field(12, 12, field(1, 8, binary(b"\x00")) + field(6, 8, binary(b"x")) + b"\x00")
    histogram = field(1, 6, zigzag(3)) + field(1, 9, b"\x26" + zigzag(1) + zigzag(2)) + b"\x00"
    meta = (
        field(1, 5, zigzag(2)) + field(1, 9, b"\x25" + zigzag(0) + zigzag(8)) + field(1, 9, b"\x18" + binary(b"a"))
        + field(1, 5, zigzag(6)) + field(1, 6, zigzag(100)) + field(1, 6, zigzag(9)) + field(1, 6, zigzag(77))
        + field(1, 9, b"\x1c" + field(1, 8, binary(b"k")) + b"\x00") + field(1, 6, zigzag(40)) + field(2, 6, zigzag(4))
        + field(1, 12, statistics[1:]) + field(4, 12, histogram) + b"\x00"
    )  # fmt: skip
    group = (
        field(1, 9, b"\x1c" + field(2, 6, zigzag(4)) + field(1, 12, meta) + b"\x00")
        + field(2, 6, zigzag(100))
        + b"\x00"
    )
    footer = field(1, 5, zigzag(2)) + field(3, 9, b"\x1c" + group) + b"\x00"
    for listed in (listed_in_python, listed_by_kernel):
        chunks, orders = listed(footer, 1, 1)
        assert chunks is not None
        statistics_at = footer.index(b"\x18\x01\x00")
        assert chunks[0, 0].tolist() == [0, 1 << 0 | 1 << 8, 6, 100, 77, 40, 4, 0, 2, statistics_at]
        assert orders == -1
        assert listed(footer, 1, 2) == (None, -1)
        for cut in range(len(footer)):
            assert listed(footer[:cut], 1, 1) == (None, -1)


def test_kernels_are_loaded_when_enough_was_read_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def use(_: int) -> int:
        return 0

    monkeypatch.setattr(MachineCode, "load", lambda _: use)
    waiting = ParquetKernels(values_to_load=100, values_to_compile=1 << 60)
    assert [waiting.pays(60), waiting.pays(60), waiting.pays(1)] == [False, True, True]


def test_kernels_that_nobody_kept_are_compiled_when_still_more_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    compiled = ["slim_footer_at", "list_chunks_at", "scan_pages_at", "decode_page_at"]

    def compile_now(code: MachineCode, function: object) -> Callable[[int], int]:
        asked.append(getattr(function, "__name__", ""))
        return lambda _: 0

    monkeypatch.setattr(MachineCode, "load", lambda _: None)
    monkeypatch.setattr(parquet_compiled, "compiled", compile_now)
    waiting = ParquetKernels(values_to_load=100, values_to_compile=300)
    assert [waiting.pays(100), waiting.pays(100)] == [False, False]
    assert not asked
    assert waiting.pays(100)
    assert asked == compiled
