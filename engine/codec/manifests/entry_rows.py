"""Encoded entries that are put into manifests in another order: their bytes stay where they are until then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icebench.engine.codec.array_views import valid_of, values_of
from icebench.engine.codec.manifests import schema as ids
from icebench.engine.codec.manifests.entry_columns import EntryColumns, encode_columns
from icebench.engine.codec.manifests.partition_columns import distinct_tuples
from icebench.engine.spec.partitioning import Partition, PartitionKey, partition_key
from icebench.engine.spec.types import StructType

NO_NUMBER = np.iinfo(np.int64).max
"""The sequence number of an entry that inherits it."""
_ROW = np.dtype(
    [
        ("buffer", np.int32),
        ("begin", np.int64),
        ("end", np.int64),
        ("status", np.int8),
        ("record_count", np.int64),
        ("sequence_number", np.int64),
        ("partition", np.int64),
    ]
)


@dataclass(frozen=True, slots=True)
class EntryRows:
    """Entries of one partition spec as Avro objects, and what the manifest list has to say of them.

    Args:
        buffers: Where the objects are.
        rows: Of each entry the index and range of its buffer, its status, rows and sequence number, and the index of
            its partition.
        partitions: Values of the partitions, in the order of their first use.
    """

    buffers: Sequence[memoryview]
    rows: NDArray[Any]
    partitions: Sequence[Partition]

    @property
    def size_bytes(self) -> int:
        """The bytes of all objects."""
        return int((self.rows["end"] - self.rows["begin"]).sum())

    def pieces(self) -> Iterator[memoryview]:
        """The objects in order, neighbours in one piece."""
        rows = self.rows
        is_next = (rows["buffer"][1:] == rows["buffer"][:-1]) & (rows["begin"][1:] == rows["end"][:-1])
        breaks = np.flatnonzero(~is_next)
        begins, ends = np.append(0, breaks + 1), np.append(breaks, len(rows) - 1)
        buffers, starts, stops = (
            a.tolist() for a in (rows["buffer"][begins], rows["begin"][begins], rows["end"][ends])
        )
        return (self.buffers[b][start:stop] for b, start, stop in zip(buffers, starts, stops, strict=True))

    def by_partition(self) -> EntryRows:
        """The entries of each partition next to each other, in the order of the partitions' first use."""
        return replace(self, rows=self.rows[np.argsort(self.rows["partition"], kind="stable")])

    def batches(self, size_bytes: int) -> Iterator[EntryRows]:
        """The entries in batches of at least this size, but for the last one."""
        ends = np.cumsum(self.rows["end"] - self.rows["begin"])
        begin, done = 0, 0
        while begin < len(ends):
            after = min(int(np.searchsorted(ends, done + size_bytes)) + 1, len(ends))
            yield replace(self, rows=self.rows[begin:after])
            begin, done = after, int(ends[after - 1])


def encode_entry_rows(entries: EntryColumns, entry_type: StructType) -> EntryRows:
    """Encode entries; raises as `encode_columns`."""
    rows = np.zeros(entries.count, _ROW)
    partition, partitions = distinct_tuples(entries.partition, entries.count)
    if not entries.count:
        return EntryRows((), rows, ())
    data, ends = encode_columns(entries, entry_type, {})
    rows["end"] = ends
    rows["begin"][1:] = ends[:-1]
    rows["status"] = values_of(entries.columns[ids.STATUS])
    rows["record_count"] = values_of(entries.columns[ids.RECORD_COUNT])
    number, valid = entries.columns[ids.SEQUENCE_NUMBER], valid_of(entries.columns[ids.SEQUENCE_NUMBER])
    rows["sequence_number"] = values_of(number) if valid is None else np.where(valid, values_of(number), NO_NUMBER)
    rows["partition"] = partition
    # A copy: the encoder reserves more than it fills.
    return EntryRows((memoryview(bytes(data)),), rows, partitions)


def joined(parts: Sequence[EntryRows]) -> EntryRows:
    """All entries of these parts, in order; equal partitions (see `partition_key`) get one index."""
    found: dict[PartitionKey, int] = {}
    partitions: list[Partition] = []
    buffers: list[memoryview] = []
    rows = [np.zeros(0, _ROW)]
    for part in parts:
        codes = []
        for partition in part.partitions:
            codes.append(found.setdefault(partition_key(0, partition), len(found)))
            if len(found) > len(partitions):
                partitions.append(partition)
        own = part.rows.copy()
        own["buffer"] += len(buffers)
        own["partition"] = np.array(codes, np.int64)[own["partition"]]
        rows.append(own)
        buffers += part.buffers
    return EntryRows(buffers, np.concatenate(rows), partitions)
