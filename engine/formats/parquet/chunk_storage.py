"""How column chunks of a Parquet footer are stored: codec, encodings, sizes, pages (parquet.thrift: ColumnMetaData).

Like `engine.formats.parquet.footer_chunks`, without pyarrow's objects, some of which end the process for damaged files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.formats.parquet.thrift import BINARY, LIST, STOP, STRUCT, read_field, read_list, read_number, skip

_CODECS = ("uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4", "zstd", "lz4_raw")
_ENCODINGS = ("plain", "group_var_int", "plain_dictionary", "rle", "bit_packed", "delta_binary_packed",
              "delta_length_byte_array", "delta_byte_array", "rle_dictionary", "byte_stream_split")  # fmt: skip
_ROW_GROUPS, _GROUP_COLUMNS, _CHUNK_META = 4, 1, 3
_ENCODINGS_FIELD, _CODEC, _UNCOMPRESSED, _COMPRESSED, _ENCODING_STATS = 2, 4, 6, 7, 13
_PAGE_ENCODING, _PAGE_COUNT = 2, 3
_INT32 = 5


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
    found = []
    for group, at in enumerate(_structs(footer, 0, _ROW_GROUPS)):
        for leaf, chunk in enumerate(_structs(footer, at, _GROUP_COLUMNS)):
            found.append(_storage(footer, chunk, group, leaf))
    return found


def _fields(data: bytes, at: int) -> Iterator[tuple[int, int, int]]:
    """The number, type and position of each field of a struct."""
    number = 0
    while True:
        number, kind, at = read_field(data, at, number)
        if kind == STOP:
            return
        yield number, kind, at
        at = skip(data, at, kind)


def _structs(data: bytes, at: int, wanted: int) -> Iterator[int]:
    """The positions of the structs in a field of a struct that is a list of them."""
    for number, kind, place in _fields(data, at):
        if number == wanted and kind == LIST:
            count, element, inner = read_list(data, place)
            if count and element != STRUCT:
                raise ValueError(f"a list of type {element}")
            for _ in range(count):
                yield inner
                inner = skip(data, inner, STRUCT)


def _storage(data: bytes, at: int, group: int, leaf: int) -> ChunkStorage:
    numbers: dict[int, int] = {}
    named: list[int] = []
    pages: list[tuple[int, int]] = []
    for meta in (place for number, kind, place in _fields(data, at) if (number, kind) == (_CHUNK_META, STRUCT)):
        pages = [_page_count(data, inner) for inner in _structs(data, meta, _ENCODING_STATS)]
        for number, kind, place in _fields(data, meta):
            if number == _ENCODINGS_FIELD and kind == LIST:
                count, _, inner = read_list(data, place)
                for _ in range(count):
                    encoding, inner = read_number(data, inner)
                    named.append(encoding)
            elif kind not in (LIST, STRUCT, BINARY):
                numbers[number] = read_number(data, place)[0]
    encodings = dict.fromkeys(encoding for encoding, _ in pages) if pages else dict.fromkeys(named)
    return ChunkStorage(
        row_group=group,
        leaf=leaf,
        codec=_name(_CODECS, numbers.get(_CODEC, -1)),
        encodings=tuple(_name(_ENCODINGS, each) for each in encodings),
        compressed_bytes=max(0, numbers.get(_COMPRESSED, 0)),
        uncompressed_bytes=max(0, numbers.get(_UNCOMPRESSED, 0)),
        pages=sum(count for _, count in pages) if pages else None,
    )


def _page_count(data: bytes, at: int) -> tuple[int, int]:
    """The encoding of some pages, and how many they are."""
    told = {number: read_number(data, place)[0] for number, kind, place in _fields(data, at) if kind == _INT32}
    return told.get(_PAGE_ENCODING, -1), max(0, told.get(_PAGE_COUNT, 0))


def _name(names: tuple[str, ...], number: int) -> str:
    return names[number] if 0 <= number < len(names) else str(number)
