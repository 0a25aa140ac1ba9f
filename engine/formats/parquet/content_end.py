"""Where the content of a Parquet file ends, according to its footer."""

from __future__ import annotations

from icebench.engine.formats.parquet.thrift import read_struct

_MAGIC_BYTES = 4
_ROW_GROUPS, _COLUMNS, _META = 4, 1, 3
_PAGES, _CHUNK_BYTES = (9, 10, 11), 7
"""Offsets of the first data, index and dictionary page of a column chunk, and the length of all its pages."""
_OFFSET_INDEX, _COLUMN_INDEX, _BLOOM_FILTER = (4, 5), (6, 7), (14, 15)
"""Offset and length."""


def end_of_content(footer: bytes) -> int | None:
    """The offset after the last page, page index and Bloom filter that a footer refers to: in a whole file, the footer
    begins there. None if unknown.

    Args:
        footer: A FileMetaData of the Parquet format, without length and magic.
    """
    end = _MAGIC_BYTES
    try:
        for group in read_struct(footer)[0].get(_ROW_GROUPS, ()):
            for chunk in group[_COLUMNS]:
                meta = chunk[_META]
                first = min(meta[page] for page in _PAGES if meta.get(page))
                end = max(end, first + meta[_CHUNK_BYTES])
                for holder, (offset, length) in ((chunk, _OFFSET_INDEX), (chunk, _COLUMN_INDEX), (meta, _BLOOM_FILTER)):
                    if offset in holder:
                        end = max(end, holder[offset] + holder[length])
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):  # also where a field is of another type
        return None
    return end
