"""Where the content of a Parquet file ends, according to its footer."""

from __future__ import annotations

from typing import Any

from engine.formats.parquet import thrift
from engine.formats.parquet.layout import STACK_DEPTH

_MAGIC_BYTES = 4
_ROW_GROUPS, _COLUMNS, _META = 4, 1, 3
_PAGES, _CHUNK_BYTES = (9, 10, 11), 7
"""Offsets of the first data, index and dictionary page of a column chunk, and the length of all its pages."""
_OFFSET_INDEX, _COLUMN_INDEX, _BLOOM_FILTER = (4, 5), (6, 7), (14, 15)
"""Offset and length."""


def end_of_content(footer: bytes) -> int | None:
    """The offset after the last page, page index and Bloom filter that a footer refers to: in a whole file, the footer
    begins there. None if it cannot be told.

    Args:
        footer: A FileMetaData of the Parquet format, without length and magic.
    """
    end = _MAGIC_BYTES
    try:
        for group in _struct(footer, 0)[0].get(_ROW_GROUPS, ()):
            for chunk in group[_COLUMNS]:
                meta = chunk[_META]
                first = min(meta[page] for page in _PAGES if meta.get(page))
                end = max(end, first + meta[_CHUNK_BYTES])
                for holder, (offset, length) in ((chunk, _OFFSET_INDEX), (chunk, _COLUMN_INDEX), (meta, _BLOOM_FILTER)):
                    if offset in holder:
                        end = max(end, holder[offset] + holder[length])
    except (IndexError, KeyError, TypeError, ValueError):
        return None
    return end


def _struct(data: bytes, at: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """The integers, structs and lists of structs of a struct by field number, and the position after it."""
    if depth == STACK_DEPTH:
        raise ValueError("structs within each other too often")
    found: dict[int, Any] = {}
    number = 0
    while True:
        number, kind, at = thrift.read_field(data, at, number)
        if kind == thrift.STOP:
            return found, at
        if thrift.INT16 <= kind <= thrift.INT64:
            found[number], at = thrift.read_number(data, at)
        elif kind == thrift.STRUCT:
            found[number], at = _struct(data, at, depth + 1)
        elif kind == thrift.LIST and thrift.read_list(data, at)[1] == thrift.STRUCT:
            count, _, at = thrift.read_list(data, at)
            found[number] = structs = []
            for _ in range(count):
                one, at = _struct(data, at, depth + 1)
                structs.append(one)
        else:
            at = thrift.skip(data, at, kind)
