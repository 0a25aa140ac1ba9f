"""Which columns of a Parquet file are decoded here instead of by pyarrow, and how they become Arrow arrays.

Those are flat columns of fixed width: integers, floating-point numbers, dates, times and decimals. What pyarrow gives
for them this gives too, type by type and value by value, and decimals as narrow as they are wanted. Everything else,
and whatever is stored in a way that is not known here, is pyarrow's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from engine.codec.parquet_chunk import Chunk, ChunkForm, KeptRows
from engine.codec.parquet_footer_chunks import ChunkPlace, FooterChunks
from engine.codec.parquet_layout import BIG_ENDIAN, EXTENDED, SAME
from engine.columnar.array_memory import ARRAY_MEMORY
from engine.columnar.parquet_bytes import Span
from engine.columnar.schemas import narrow_decimal

_WRONG_SIZES = re.compile(r"parquet-mr version (0|1\.[0-2])\b")
"""Writers that left the head of the dictionary page out of the size of a column chunk (PARQUET-816)."""
_WORDS: dict[str, tuple[int, Callable[[pa.DataType], bool]]] = {
    "INT32": (4, lambda t: pat.is_int32(t) or pat.is_date32(t) or pat.is_time32(t)),
    "INT64": (8, lambda t: pat.is_int64(t) or pat.is_time64(t) or pat.is_timestamp(t)),
    "FLOAT": (4, pat.is_float32),
    "DOUBLE": (8, pat.is_float64),
}
_INTEGER_BYTES = {"INT32": 4, "INT64": 8}
_PADDING_BYTES = 24
"""A bitmap goes on for two words more than a multiple of eight bytes, which kernels load and store."""


@dataclass(frozen=True, slots=True)
class Stored:
    """How values of a column are stored, and as what they are wanted.

    Args:
        type: Of the Arrow array.
        width: Bytes of a stored value.
        form: See `engine.codec.parquet_chunk.ChunkForm`.
        out_width: Bytes of a value of the array.
    """

    type: pa.DataType
    width: int
    form: int
    out_width: int


@dataclass(frozen=True, slots=True)
class OwnChunk:
    """A column chunk that is decoded here: how it is stored, where, and the type of the array."""

    form: ChunkForm
    span: Span
    type: pa.DataType


class OwnColumns:
    """What of a file is decoded here.

    Args:
        footer: The file's.
        chunks: Its column chunks.
        schema: The file's columns as pyarrow reads them.
        size_bytes: Of the file.
    """

    def __init__(self, footer: pq.FileMetaData, chunks: FooterChunks, schema: pa.Schema, size_bytes: int) -> None:
        self._footer = footer
        self._chunks = chunks
        self._schema = schema
        self._size = size_bytes
        self._has_right_sizes = _WRONG_SIZES.match(footer.created_by or "") is None
        self._stored: dict[tuple[int, bool], Stored | None] = {}

    def stored(self, leaf: int, place: int, *, narrow: bool) -> Stored | None:
        """How the top-level column at a place, which is a leaf, is stored; None for a column of pyarrow's.

        Args:
            leaf: Its number among the leaves.
            place: Its number among the columns.
            narrow: Decimals are wanted as narrow as their type allows, if they are stored in no more.
        """
        key = leaf, narrow
        if key not in self._stored:
            column = self._footer.schema.column(leaf)
            is_flat = column.max_repetition_level == 0 and column.max_definition_level <= 1
            type_ = self._schema.field(place).type
            known = is_flat and self._has_right_sizes
            self._stored[key] = _stored(column.physical_type, column.length, type_, narrow=narrow) if known else None
        return self._stored[key]

    def place(self, row_group: int, leaf: int) -> ChunkPlace | None:
        """What the footer says of a column chunk; None where it is pyarrow's to read it."""
        return self._chunks.place(row_group, leaf) if self._has_right_sizes else None

    def chunk(self, row_group: int, leaf: int, stored: Stored) -> OwnChunk | None:
        """How a column chunk is stored, and where; None where it is pyarrow's."""
        place = self.place(row_group, leaf)
        # What can not be is pyarrow's to complain of.
        if (
            place is None
            or place.codec is None
            or place.values != self._footer.row_group(row_group).num_rows
            or place.start < 0
            or place.size <= 0
            or place.start + place.size > self._size
        ):
            return None
        column = self._footer.schema.column(leaf)
        form = ChunkForm(
            values=place.values,
            codec=place.codec,
            is_optional=column.max_definition_level == 1,
            is_integer=column.physical_type in _INTEGER_BYTES,
            width=stored.width,
            form=stored.form,
            out_width=stored.out_width,
        )
        return OwnChunk(form, (place.start, place.size), stored.type)


def decoded(pages: Chunk, chunk: OwnChunk, keep: KeptRows | None) -> pa.Array:
    """A column chunk, or its rows to keep, as an Arrow array.

    Raises:
        engine.codec.parquet_inflate.BadPageError: A page is damaged.
        MemoryError: The footer claims more rows than there is memory for.
    """
    form = chunk.form
    rows = form.values if keep is None else keep.count
    values = ARRAY_MEMORY.allocate((rows + 1) * form.out_width)
    validity = None
    if form.is_optional:
        validity = pa.allocate_buffer((rows >> 6 << 3) + _PADDING_BYTES)
        np.frombuffer(validity, np.uint8).fill(0)
    nulls = pages.decode(values.address, 0 if validity is None else validity.address, rows, keep)
    bitmap = validity.slice(0, (rows + 7) >> 3) if validity is not None and nulls else None
    return pa.Array.from_buffers(chunk.type, rows, [bitmap, values.slice(0, rows * form.out_width)], nulls)


def _stored(physical: str, length: int, type_: pa.DataType, *, narrow: bool) -> Stored | None:
    if pat.is_decimal(type_):
        return _stored_decimal(physical, length, type_, narrow=narrow)
    if physical in _WORDS:
        width, fits = _WORDS[physical]
        return Stored(type_, width, SAME, width) if fits(type_) else None
    return None


def _stored_decimal(physical: str, length: int, type_: pa.DataType, *, narrow: bool) -> Stored | None:
    width = length if physical == "FIXED_LEN_BYTE_ARRAY" else _INTEGER_BYTES.get(physical, 0)
    narrowest = narrow_decimal(type_.precision, type_.scale) if narrow and pat.is_decimal128(type_) else type_
    # Of more bytes than the narrow type has, some may matter.
    made = narrowest if narrowest.bit_width // 8 >= width else type_
    out_width = made.bit_width // 8
    if not 1 <= width <= out_width <= 16:
        return None
    if physical == "FIXED_LEN_BYTE_ARRAY":
        return Stored(made, width, BIG_ENDIAN, out_width)
    if width == out_width:
        return Stored(made, width, SAME, out_width)
    return Stored(made, width, EXTENDED, out_width) if out_width == 16 else None
