"""Descriptions of files in encoded manifests, decoded one manifest at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import overload

from icebench.engine.codec.avro.file import read_blocks, read_header
from icebench.engine.codec.manifests.manifest_writer import encode_manifest
from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry
from icebench.engine.spec.partitioning import PartitionSpec
from icebench.engine.spec.schema import Schema

_FORMAT_VERSION = 3
_NO_SNAPSHOT = 0


def encode_files(files: Iterable[DataFile], *, schema: Schema, spec: PartitionSpec) -> bytes:
    """Encode a manifest that describes new data files, for `EncodedFiles`.

    Args:
        files: Of one partition spec.
        schema: The schema of their columns.
        spec: The partition spec.
    """
    return encode_manifest(
        (ManifestEntry(status=EntryStatus.ADDED, snapshot_id=_NO_SNAPSHOT, data_file=file) for file in files),
        schema=schema,
        spec=spec,
        format_version=_FORMAT_VERSION,
        content=ManifestContent.DATA,
        snapshot_id=_NO_SNAPSHOT,
        compression="zstd",
    ).data


class EncodedFiles(Sequence[DataFile]):
    """The files listed by encoded manifests, in order. Each iteration decodes anew.

    Args:
        manifests: The bytes of each.
    """

    def __init__(self, manifests: Iterable[bytes]) -> None:
        self._manifests = [data for data in manifests if data]
        self._count = sum(block.count for data in self._manifests for block in read_blocks(data, read_header(data)))

    def __len__(self) -> int:
        return self._count

    def __add__(self, other: EncodedFiles) -> EncodedFiles:
        return EncodedFiles([*self._manifests, *other._manifests])

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
