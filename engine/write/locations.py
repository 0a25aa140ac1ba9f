"""Chooses names and locations of new data and delete files (spec: "File System Operations" leaves them to the writer).

Readers never parse these paths; they follow the conventions of other engines for the benefit of people.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field

from icebench.engine.errors import Unsupported
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import (
    DATA_PATH,
    LOCATION_PROVIDER,
    OBJECT_STORAGE_ENABLED,
    OBJECT_STORAGE_PARTITIONED_PATHS,
)
from icebench.engine.spec.transforms import murmur3

_HASH_BITS = 20
_DIRECTORY_BITS = 4
_DIRECTORIES = 3


@dataclass(frozen=True, kw_only=True)
class DataLocations:
    """Locations of data and delete files of a table.

    Args:
        root: The directory of data files, without a slash at the end.
        hashed: Put a hash between root and file, so that object stores spread the load over key prefixes.
        partitioned: Whether hashed paths show the partition.
    """

    root: str
    hashed: bool = False
    partitioned: bool = True

    @classmethod
    def of(cls, metadata: TableMetadata) -> DataLocations:
        """The locations that the table's properties set; raises Unsupported where a class of Java chooses them."""
        provider = LOCATION_PROVIDER.of(metadata.properties)
        if provider is not None:
            raise Unsupported(f"writing files where {LOCATION_PROVIDER.name}={provider!r} wants them")
        root = DATA_PATH.of(metadata.properties) or metadata.location.rstrip("/") + "/data"
        return cls(
            root=root.rstrip("/"),
            hashed=OBJECT_STORAGE_ENABLED.of(metadata.properties),
            partitioned=OBJECT_STORAGE_PARTITIONED_PATHS.of(metadata.properties),
        )

    def location(self, partition_path: str, file_name: str) -> str:
        """The full location of a new file; `partition_path` is empty for unpartitioned tables."""
        name = f"{partition_path}/{file_name}" if partition_path else file_name
        if not self.hashed:
            return f"{self.root}/{name}"
        if self.partitioned:
            return f"{self.root}/{_hash_path(name)}/{name}"
        return f"{self.root}/{_hash_path(file_name)}-{file_name}"


def _hash_path(name: str) -> str:
    """Twenty bits of the name's hash as ``0101/0110/1001/10110010``."""
    bits = format(murmur3(name.encode()) & ((1 << _HASH_BITS) - 1), f"0{_HASH_BITS}b")
    cut = _DIRECTORIES * _DIRECTORY_BITS
    parts = [bits[i : i + _DIRECTORY_BITS] for i in range(0, cut, _DIRECTORY_BITS)]
    return "/".join([*parts, bits[cut:]])


@dataclass(frozen=True, kw_only=True)
class FileNames:
    """Unique names for the files of one write.

    Args:
        operation_id: Unique for the write.
        partition_id: Which of several parallel writers this is.
        task_id: Unique attempt of that writer.
    """

    operation_id: uuid.UUID = field(default_factory=uuid.uuid4)
    partition_id: int = 0
    task_id: int = 0

    def writer_of(self, location: str) -> int | None:
        """The partition id of the writer of a file of this operation; None for other files."""
        name = location.rpartition("/")[2]
        found = re.search(rf"(?:^|-)([0-9]+)-[0-9]+-{self.operation_id}-", name)  # a hash may come first
        return None if found is None else int(found[1])

    def name(self, count: int, *, suffix: str = "", extension: str = "parquet") -> str:
        """The name of the `count`-th file (from 1); `suffix` is ``"-deletes"`` for delete files."""
        return f"{self.partition_id:05d}-{self.task_id}-{self.operation_id}-{count:05d}{suffix}.{extension}"
