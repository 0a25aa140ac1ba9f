"""How column chunks of a Parquet footer are stored: codec, encodings, sizes, pages (parquet.thrift: ColumnMetaData).

Like `icebench.engine.formats.parquet.footer_chunks`, without pyarrow's objects, some of which end the process for
damaged files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from icebench.engine.formats.parquet.thrift import read_struct

_CODECS = ("uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4", "zstd", "lz4_raw")
_ENCODINGS = (
    "plain",
    "group_var_int",
    "plain_dictionary",
    "rle",
    "bit_packed",
    "delta_binary_packed",
    "delta_length_byte_array",
    "delta_byte_array",
    "rle_dictionary",
    "byte_stream_split",
)
_ROW_GROUPS, _GROUP_COLUMNS, _CHUNK_META = 4, 1, 3
_ENCODINGS_FIELD, _CODEC, _UNCOMPRESSED, _COMPRESSED, _ENCODING_STATS = 2, 4, 6, 7, 13
_PAGE_ENCODING, _PAGE_COUNT = 2, 3


@dataclass(frozen=True, kw_only=True)
class ChunkStorage:
    """One column chunk.

    Args:
        row_group: Its row group.
        leaf: Its column, in the order of the schema's leaves.
        codec: Its compression; the number for one that is not known.
        encodings: Those of its pages of data and dictionaries where the footer counts them, else all that it names.
        compressed_bytes: In the file.
        uncompressed_bytes: Before compression.
        pages: How many, with dictionaries; None if the footer does not count them.
    """

    row_group: int
    leaf: int
    codec: str
    encodings: tuple[str, ...]
    compressed_bytes: int
    uncompressed_bytes: int
    pages: int | None


def chunk_storages(footer: bytes) -> list[ChunkStorage]:
    """The column chunks of a footer, in order.

    Raises:
        IndexError, ValueError: It is damaged.
    """
    try:
        return [
            _storage(chunk.get(_CHUNK_META, {}), group, leaf)
            for group, columns in enumerate(read_struct(footer)[0].get(_ROW_GROUPS, ()))
            for leaf, chunk in enumerate(columns.get(_GROUP_COLUMNS, ()))
        ]
    except (AttributeError, TypeError) as error:
        raise ValueError("a field of another type than the format's") from error


def _storage(meta: Mapping[int, Any], group: int, leaf: int) -> ChunkStorage:
    pages = [(each.get(_PAGE_ENCODING, -1), max(0, each.get(_PAGE_COUNT, 0))) for each in meta.get(_ENCODING_STATS, ())]
    encodings = dict.fromkeys([encoding for encoding, _ in pages] or meta.get(_ENCODINGS_FIELD, ()))
    return ChunkStorage(
        row_group=group,
        leaf=leaf,
        codec=_name(_CODECS, meta.get(_CODEC, -1)),
        encodings=tuple(_name(_ENCODINGS, each) for each in encodings),
        compressed_bytes=max(0, meta.get(_COMPRESSED, 0)),
        uncompressed_bytes=max(0, meta.get(_UNCOMPRESSED, 0)),
        pages=sum(count for _, count in pages) if pages else None,
    )


def _name(names: tuple[str, ...], number: int) -> str:
    return names[number] if 0 <= number < len(names) else str(number)
