"""Indexes of data files, as blobs of Puffin files: which values of one column each file may hold.

The blob type ``icebench-file-index-v1`` is this engine's own, and not listed in the table metadata, where PyIceberg
accepts no type that it does not know; see `icebench.engine.file_indexes.lookup`. Values are represented by 64-bit
hashes. Two kinds:

bloom
    A split-block Bloom filter per file (as in Parquet, with these hashes): some 10.5 bits per distinct value for a
    false-positive probability of 1 %.
values
    All hashes with the file of each, sorted by hash: 12 bytes per distinct value of a file, practically no false
    positives; look-up is a binary search.

A blob is ``magic, kind, five counts, arrays, CRC-32``, integers little-endian: offsets (int64) and bytes of the files'
paths, sizes of the files (int64), then offsets in 256-bit blocks (int64) and words (uint32) of the filters, or hashes
(uint64) and files (uint32).
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from icebench.engine.codec.array_views import BoolArray, Int64Array, bytes_array, bytes_array_of, data_of, offsets_of
from icebench.engine.codec.taking import take
from icebench.engine.errors import CorruptTable

FILE_INDEX = "icebench-file-index-v1"
"""The type of the blob."""

IndexKind: TypeAlias = Literal["bloom", "values"]
Hashes: TypeAlias = NDArray[np.uint64]

_MAGIC = b"ifx1"
_KINDS: tuple[IndexKind, ...] = ("bloom", "values")
_HEADER = struct.Struct("<4sI5q")
_TYPES = {
    "bloom": (np.int64, np.uint8, np.int64, np.int64, np.uint32),
    "values": (np.int64, np.uint8, np.int64, np.uint64, np.uint32),
}
_WORDS = 8
_SALT = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)


@dataclass(frozen=True, eq=False, kw_only=True)
class FileIndex:
    """The index of one column over numbered data files.

    Args:
        kind: Which of the two.
        paths: Locations of the files.
        sizes: Their sizes, to detect other files of the same name.
        places: For ``bloom`` the offsets of the files' filters in blocks; for ``values`` the sorted hashes.
        content: For ``bloom`` the words of all filters; for ``values`` the file of each hash.
    """

    kind: IndexKind
    paths: pa.Array
    sizes: Int64Array
    places: NDArray[Any]
    content: NDArray[np.uint32]

    @property
    def count(self) -> int:
        """The number of files."""
        return len(self.sizes)

    @property
    def size_bytes(self) -> int:
        """Memory held by the arrays."""
        return self.paths.nbytes + self.sizes.nbytes + self.places.nbytes + self.content.nbytes

    def may_hold(self, hashes: Hashes) -> BoolArray:
        """Whether each file may hold a value with any of these hashes."""
        found = np.zeros(self.count, np.bool_)
        for value in hashes:
            if self.kind == "values":
                low, high = np.searchsorted(self.places, value, "left"), np.searchsorted(self.places, value, "right")
                found[self.content[low:high]] = True
            else:
                found[self._filters_with(value)] = True
        return found

    def _filters_with(self, value: np.uint64) -> Int64Array:
        """The files whose Bloom filters have all bits of a hash; files without values have no filter."""
        blocks = np.diff(self.places)
        files = np.flatnonzero(blocks)
        first = (self.places[files] + _block(value, blocks[files])) * _WORDS
        held = np.ones(len(files), np.bool_)
        for word, bit in enumerate(_bits(np.array([value]))[0]):
            held &= (self.content[first + word] & bit) != 0
        return files[held]


def build_index(kind: IndexKind, paths: list[str], sizes: list[int], hashes: list[Hashes], fpp: float) -> FileIndex:
    """The index of files by the distinct hashes of each; `fpp` is the share of false positives of a Bloom filter."""
    own = bytes_array_of([path.encode() for path in paths])
    if kind == "values":
        flat = np.concatenate([np.zeros(0, np.uint64), *hashes])
        owners = np.repeat(np.arange(len(hashes), dtype=np.uint32), [len(each) for each in hashes])
        order = np.argsort(flat, kind="stable")
        return FileIndex(
            kind=kind, paths=own, sizes=np.array(sizes, np.int64), places=flat[order], content=owners[order]
        )
    counts = [_block_count(len(each), fpp) for each in hashes]
    words = [_filter(each, blocks) for each, blocks in zip(hashes, counts, strict=True)]
    return FileIndex(
        kind=kind,
        paths=own,
        sizes=np.array(sizes, np.int64),
        places=_offsets(counts),
        content=np.concatenate([np.zeros(0, np.uint32), *words]),
    )


def joined_index(old: FileIndex, kept: BoolArray, new: FileIndex) -> FileIndex:
    """Combine the kept files of `old` with those of `new`; both are of one kind."""
    files = np.flatnonzero(kept)
    paths = pa.concat_arrays([take(old.paths, files), new.paths])
    sizes = np.concatenate([old.sizes[files], new.sizes])
    if old.kind == "values":
        number = np.cumsum(kept, dtype=np.int64) - 1
        mine = kept[old.content]
        hashes = np.concatenate([old.places[mine], new.places])
        owners = np.concatenate([number[old.content[mine]], new.content.astype(np.int64) + len(files)])
        order = np.argsort(hashes, kind="stable")
        return FileIndex(
            kind="values", paths=paths, sizes=sizes, places=hashes[order], content=owners[order].astype(np.uint32)
        )
    blocks = np.diff(old.places)
    words = old.content[np.repeat(kept, blocks * _WORDS)]
    places = _offsets([*blocks[files].tolist(), *np.diff(new.places).tolist()])
    content = np.concatenate([words, new.content])
    return FileIndex(kind="bloom", paths=paths, sizes=sizes, places=places, content=content)


def moved_index(index: FileIndex, moved: Callable[[str], str | None]) -> FileIndex:
    """The index with the files' locations changed by `moved`, which returns None for those that stay."""
    paths = [path.decode() for path in index.paths.to_pylist()]
    return replace(index, paths=bytes_array_of([(moved(path) or path).encode() for path in paths]))


def encode_index(index: FileIndex) -> bytes:
    """The blob of an index."""
    arrays = (offsets_of(index.paths), data_of(index.paths), index.sizes, index.places, index.content)
    raw = [
        np.ascontiguousarray(array, type_).tobytes() for array, type_ in zip(arrays, _TYPES[index.kind], strict=True)
    ]
    header = _HEADER.pack(_MAGIC, _KINDS.index(index.kind), *(len(array) for array in arrays))
    body = b"".join([header, *raw])
    return body + struct.pack("<I", zlib.crc32(body))


def decode_index(data: bytes, *, location: str | None = None) -> FileIndex:
    """Decode the index of a blob; raises CorruptTable for anything else."""
    if len(data) < _HEADER.size + 4 or zlib.crc32(data[:-4]) != struct.unpack_from("<I", data, len(data) - 4)[0]:
        raise CorruptTable("a file index with a wrong checksum", location=location)
    magic, number, *counts = _HEADER.unpack_from(data)
    if magic != _MAGIC or number >= len(_KINDS):
        raise CorruptTable("not a file index", location=location)
    kind = _KINDS[number]
    arrays: list[NDArray[Any]] = []
    at = _HEADER.size
    for count, type_ in zip(counts, _TYPES[kind], strict=True):
        arrays.append(np.frombuffer(data, type_, count, at))
        at += arrays[-1].nbytes
    offsets, paths, sizes, places, content = arrays
    return FileIndex(kind=kind, paths=bytes_array(offsets, paths), sizes=sizes, places=places, content=content)


def _offsets(lengths: list[int]) -> Int64Array:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)


def _block_count(distinct: int, fpp: float) -> int:
    """The number of blocks for that many distinct values."""
    return math.ceil(distinct / _values_in_block(fpp))


@lru_cache(maxsize=64)
def _values_in_block(fpp: float) -> float:
    """The average number of values per block for a false-positive probability.

    The number of values of a block is Poisson-distributed. A block of i values has a bit of a word set with probability
    1 - (31/32)^i, and all eight that a look-up tests with its eighth power.
    """
    low, high = 0.0, 200.0
    for _ in range(40):
        mean = (low + high) / 2
        wrong, share = 0.0, math.exp(-mean)
        for values in range(1, 600):
            share *= mean / values
            wrong += share * (1 - (31 / 32) ** values) ** 8
        low, high = (mean, high) if wrong <= fpp else (low, mean)
    return max(low, 0.01)


def _block(hashes: Hashes | np.uint64, blocks: Int64Array | np.int64) -> Int64Array:
    """The block of each hash in filters of `blocks` blocks; one of the two is an array."""
    high = (hashes >> np.uint64(32)).astype(np.int64)
    return np.asarray((high * blocks) >> 32, np.int64)


def _bits(hashes: Hashes) -> NDArray[np.uint32]:
    """For each hash, one bit in each of the eight words of its block."""
    low = (hashes & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    return np.uint32(1) << ((low[:, None] * _SALT) >> np.uint32(27))


def _filter(hashes: Hashes, blocks: int) -> NDArray[np.uint32]:
    words = np.zeros(blocks * _WORDS, np.uint32)
    if blocks:
        first = _block(hashes, np.int64(blocks)) * _WORDS
        np.bitwise_or.at(words, first[:, None] + np.arange(_WORDS), _bits(hashes))
    return words
