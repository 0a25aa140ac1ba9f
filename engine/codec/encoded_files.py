"""Files as manifests that describe them, decoded one manifest at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import overload

from engine.codec.avro_file import read_blocks, read_header
from engine.codec.manifest import decode_entries
from engine.spec.data_file import DataFile


class EncodedFiles(Sequence[DataFile]):
    """The files of manifests in their order. Going through them decodes them, each time anew: in memory are the
    manifests as they are, compressed, and the entries of one. With statistics of thousands of columns the objects would
    take fifty times as much.

    Args:
        manifests: The bytes of each.
    """

    def __init__(self, manifests: Iterable[bytes]) -> None:
        self._manifests = [data for data in manifests if data]
        self._count = sum(block.count for data in self._manifests for block in read_blocks(data, read_header(data)))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[DataFile]:
        for data in self._manifests:
            for entry in decode_entries(data):
                yield entry.data_file

    @overload
    def __getitem__(self, place: int) -> DataFile: ...
    @overload
    def __getitem__(self, place: slice) -> list[DataFile]: ...
    def __getitem__(self, place: int | slice) -> DataFile | list[DataFile]:
        if isinstance(place, slice):
            return list(self)[place]
        at = place + self._count if place < 0 else place
        if not 0 <= at < self._count:
            raise IndexError(place)
        return next(islice(iter(self), at, None))
