"""One column chunk of a Parquet file, of a flat column of fixed width: its pages, decoded into given memory."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import deflate
import numpy as np
import numpy.typing as npt

from engine.codec import parquet_layout as layout
from engine.codec.parquet_choice import KERNELS
from engine.codec.parquet_inflate import BadPageError, Bytes, inflater

_VALUES_ENCODINGS = frozenset(
    {layout.PLAIN, layout.PLAIN_DICTIONARY, layout.RLE_DICTIONARY, layout.DELTA_BINARY_PACKED, layout.BYTE_STREAM_SPLIT}
)
_DICTIONARY_ENCODINGS = frozenset({layout.PLAIN_DICTIONARY, layout.RLE_DICTIONARY})
_DATA_PAGES = frozenset({layout.DATA_PAGE, layout.DATA_PAGE_V2})
_FIRST_PAGES = 64
_LARGEST_HEAD_BYTES = 1 << 16
"""What a page may hold beside its values and their levels."""


@dataclass(frozen=True, kw_only=True)
class ChunkForm:
    """How a column chunk is stored, and as what its values are wanted.

    Args:
        values: With nulls, as the footer says.
        codec: See `ChunkPlace`.
        is_optional: Whether there are definition levels, of one bit.
        is_integer: INT32 or INT64, the only types that have DELTA_BINARY_PACKED.
        width: Bytes of a stored value, 1 to 16.
        form: How it becomes a value of the array: `engine.codec.parquet_layout.SAME`, `EXTENDED`, `BIG_ENDIAN`.
        out_width: Bytes of that: 4, 8 or 16.
    """

    values: int
    codec: str
    is_optional: bool
    is_integer: bool
    width: int
    form: int
    out_width: int


class KeptRows:
    """Which rows of a row group are wanted.

    Args:
        keep: True for those.

    Attributes:
        bits: One bit a row, the first lowest, with at least 16 bytes more than they need.
        count: How many rows are wanted.
    """

    def __init__(self, keep: npt.NDArray[np.bool_]) -> None:
        self._keep = keep
        self._within: dict[tuple[int, int], int] = {}
        size = (len(keep) + 7) // 8
        self.bits = np.zeros(size + 16, np.uint8)
        self.bits[:size] = np.packbits(keep, bitorder="little")
        self.count = self.within(0, len(keep))

    def within(self, start: int, end: int) -> int:
        """How many of the rows from `start` to before `end` are wanted. Columns mostly have pages of the same rows."""
        found = self._within.get((start, end))
        if found is None:
            found = self._within[start, end] = int(np.count_nonzero(self._keep[start:end]))
        return found


class Chunk:
    """The pages of a column chunk.

    Args:
        data: Its bytes, from its first page on.
        form: How it is stored.

    Attributes:
        is_known: Whether all pages are of a kind that is decoded here. What is not need not be wrong.

    Raises:
        BadPageError: A page header is not what the Parquet format says.
    """

    def __init__(self, data: Bytes, form: ChunkForm) -> None:
        self._data = np.frombuffer(data, np.uint8)
        self._form = form
        self._pages = self._scanned()
        self.is_known = self._pages is not None and all(self._knows(page) for page in self._pages)

    def _scanned(self) -> list[list[int]] | None:
        room = _FIRST_PAGES
        while True:
            table = np.empty((room, layout.PAGE_WIDTH), np.int64)
            numbers = [_address(self._data), len(self._data), self._form.values, _address(table), room]
            count = KERNELS.scan_pages(numbers)
            if count >= 0:
                pages: list[list[int]] = table[:count].tolist()
                return pages
            if count == layout.UNKNOWN:
                return None
            if count != layout.NO_ROOM:
                raise BadPageError(layout.MESSAGES[count])
            room *= 8

    def _knows(self, page: Sequence[int]) -> bool:
        encoding = page[layout.PAGE_ENCODING]
        match page[layout.PAGE_TYPE]:
            case layout.DICTIONARY_PAGE:
                return encoding in {layout.PLAIN, layout.PLAIN_DICTIONARY}
            case layout.DATA_PAGE:
                known = not self._form.is_optional or page[layout.PAGE_LEVEL_ENCODING] == layout.RLE
            case layout.DATA_PAGE_V2:
                known = not page[layout.PAGE_REPETITIONS_SIZE]
            case _:
                return True
        return (
            known
            and encoding in _VALUES_ENCODINGS
            and (self._form.is_integer or encoding != layout.DELTA_BINARY_PACKED)
        )

    def decode(self, out: int, validity: int, room: int, keep: KeptRows | None = None) -> int:
        """Decode the pages with rows to keep.

        Args:
            out: Address of the array's values: room for one more than `room`.
            validity: Address of its bitmap, zeroed, of at least 16 bytes more than it needs; 0 for a required column.
            room: How many rows there will be.
            keep: The rows to put there; None for all.

        Returns:
            How many of them are null.

        Raises:
            BadPageError: A page is damaged.
        """
        assert self._pages is not None
        form = self._form
        numbers = (ctypes.c_int64 * layout.DECODE_LENGTH)()
        numbers[layout.WIDTH], numbers[layout.FORM] = form.width, form.form
        numbers[layout.OUT_WIDTH] = form.out_width
        decoding = _Decoding(self._data, form, numbers)
        before = accumulate(
            (p[layout.PAGE_VALUES] * (p[layout.PAGE_TYPE] in _DATA_PAGES) for p in self._pages), initial=0
        )
        done = 0
        for page, row in zip(self._pages, before, strict=False):
            if page[layout.PAGE_TYPE] == layout.DICTIONARY_PAGE:
                decoding.read_dictionary(page)
            elif page[layout.PAGE_TYPE] in _DATA_PAGES:
                wanted = page[layout.PAGE_VALUES] if keep is None else keep.within(row, row + page[layout.PAGE_VALUES])
                if wanted:
                    is_part = keep is not None and wanted < page[layout.PAGE_VALUES]
                    numbers[layout.KEEP_AT] = _address(keep.bits) if keep is not None and is_part else 0
                    numbers[layout.KEEP_ROW] = row
                    numbers[layout.OUT_AT], numbers[layout.OUT_ROW], numbers[layout.OUT_ROWS] = out, done, room
                    numbers[layout.VALIDITY_AT] = validity
                    decoding.read_page(page)
                    done += wanted
        if done != room:
            raise BadPageError(f"pages with {done} rows, where {room} are expected")
        return int(numbers[layout.NULLS])


class _Decoding:
    """Memory that the pages of a chunk are decoded with, one after the other."""

    def __init__(self, data: npt.NDArray[np.uint8], form: ChunkForm, numbers: ctypes.Array[ctypes.c_int64]) -> None:
        inflate = inflater(form.codec)
        assert inflate is not None
        self._data = data
        self._form = form
        self._numbers = numbers
        self._inflate = inflate
        self._scratch = np.empty(0, np.uint8)
        self._dictionary = np.empty(0, np.uint8)

    def _body(self, page: Sequence[int]) -> npt.NDArray[np.uint8]:
        """The bytes of a page as they are stored, if they have the checksum that they should."""
        start = page[layout.PAGE_START]
        body = self._data[start : start + page[layout.PAGE_SIZE]]
        crc = page[layout.PAGE_CRC]
        if crc >= 0 and deflate.crc32(body) != crc:
            raise BadPageError("could not verify page integrity, CRC checksum verification failed")
        return body

    def _inflated(self, page: Sequence[int], body: npt.NDArray[np.uint8], before: int = 0) -> Bytes:
        """The inflated bytes after the first `before`, which are not compressed."""
        size = page[layout.PAGE_INFLATED] - before
        # Eight bytes for a level and an index, or a delta and what its block tells.
        if size > page[layout.PAGE_VALUES] * (self._form.width + 8) + _LARGEST_HEAD_BYTES:
            raise BadPageError(f"claims {size} bytes for {page[layout.PAGE_VALUES]} values")
        if size == 0:
            return _NOTHING
        if not page[layout.PAGE_IS_COMPRESSED]:
            return body[before:]
        return self._inflate(body[before:], size)

    def read_dictionary(self, page: Sequence[int]) -> None:
        """Decode a dictionary page, whose values the next pages' indices mean."""
        form, numbers = self._form, self._numbers
        count = page[layout.PAGE_VALUES]
        values = np.frombuffer(self._inflated(page, self._body(page)), np.uint8)
        if count * form.width > len(values):
            raise BadPageError("a dictionary page is cut off")
        if form.form == layout.BIG_ENDIAN:
            self._dictionary = np.empty((count + 1) * form.out_width, np.uint8)
            numbers[layout.LEVELS] = layout.NO_LEVELS
            numbers[layout.ENCODING] = layout.PLAIN
            numbers[layout.VALIDITY_AT] = numbers[layout.KEEP_AT] = 0
            numbers[layout.OUT_AT] = _address(self._dictionary)
            numbers[layout.OUT_ROW], numbers[layout.OUT_ROWS] = 0, count
            self._decode(count, values)
            numbers[layout.DICTIONARY_WIDTH] = form.out_width
        else:
            # Narrow ones take less of the processor's cache. Nulls may be looked up as the first value.
            self._dictionary = values if count else np.zeros(form.width, np.uint8)
            numbers[layout.DICTIONARY_WIDTH] = form.width
        numbers[layout.DICTIONARY_AT] = _address(self._dictionary)
        numbers[layout.DICTIONARY_VALUES] = count

    def read_page(self, page: Sequence[int]) -> None:
        """Decode a data page to where the numbers say."""
        form, numbers = self._form, self._numbers
        encoding = page[layout.PAGE_ENCODING]
        if encoding in _DICTIONARY_ENCODINGS and not numbers[layout.DICTIONARY_AT]:
            raise BadPageError("dictionary indices without a dictionary")
        body = self._body(page)
        before = 0
        if page[layout.PAGE_TYPE] == layout.DATA_PAGE:
            numbers[layout.LEVELS] = layout.LEVELS_BEFORE_VALUES if form.is_optional else layout.NO_LEVELS
        else:
            before = page[layout.PAGE_LEVELS_SIZE]
            numbers[layout.LEVELS] = layout.LEVELS_APART if form.is_optional else layout.NO_LEVELS
            numbers[layout.LEVELS_AT], numbers[layout.LEVELS_SIZE] = _address(body), before
        values = np.frombuffer(self._inflated(page, body, before), np.uint8)
        numbers[layout.ENCODING] = encoding
        self._decode(page[layout.PAGE_VALUES], values)

    def _decode(self, count: int, values: npt.NDArray[np.uint8]) -> None:
        numbers = self._numbers
        size = layout.scratch_size(
            count,
            self._form.width,
            has_levels=numbers[layout.LEVELS] != layout.NO_LEVELS,
            encoding=numbers[layout.ENCODING],
        )
        if len(self._scratch) < size:
            self._scratch = np.empty(size, np.uint8)
        numbers[layout.SCRATCH_AT], numbers[layout.SCRATCH_SIZE] = _address(self._scratch), len(self._scratch)
        numbers[layout.VALUES] = count
        numbers[layout.VALUES_AT], numbers[layout.VALUES_SIZE] = _address(values), len(values)
        found = KERNELS.decode_page(numbers)
        if found < 0:
            raise BadPageError(layout.MESSAGES.get(found, "pages with more rows than there is room for"))


_NOTHING = np.empty(0, np.uint8)


def _address(array: npt.NDArray[np.generic]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
