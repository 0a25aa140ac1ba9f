"""Metadata table ``partitions``: contents of each partition, from the manifests alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import itemgetter

import pyarrow as pa

from icebench.engine.errors import CorruptTable
from icebench.engine.formats.partition_statistics import PartitionStats
from icebench.engine.inspect.contents import Contents, live
from icebench.engine.inspect.files import partitions_of
from icebench.engine.inspect.instants import instants
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.manifest import ManifestEntry
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import PartitionKey, partition_key
from icebench.engine.spec.snapshots import Snapshot


@dataclass
class _Totals:
    """Counts of a partition, and its newest file."""

    sample: DataFile
    counts: PartitionStats = field(default_factory=PartitionStats)

    def add(self, entry: ManifestEntry, metadata: TableMetadata) -> None:
        self.counts.add(entry.data_file, 1)
        # The snapshot that added a file may be expired; the last update then comes from other files.
        added = None if entry.snapshot_id is None else metadata.snapshot_by_id.get(entry.snapshot_id)
        if self.counts.touch(added):
            self.sample = entry.data_file


def partitions(contents: Contents, snapshot: Snapshot | None) -> pa.Table:
    """One row per partition tuple with live files: partition (absent in a table that was never partitioned), spec_id
    (of the newest file), record_count, file_count and total_data_file_size_in_bytes of data files,
    position_delete_record_count, position_delete_file_count (with deletion vectors), equality_delete_record_count,
    equality_delete_file_count, last_updated_at, last_updated_snapshot_id.

    Record counts are those of data files; deleted rows are not subtracted.
    """
    metadata = contents.metadata
    groups: dict[PartitionKey, _Totals] = {}
    for entry in live(contents.snapshot_entries(snapshot)):
        file = entry.data_file
        spec = metadata.spec_by_id[file.spec_id]
        # Tuples of several specs are one partition if they are equal except for nulls.
        known = [(f.field_id, v) for f, v in zip(spec.fields, file.partition, strict=True) if v is not None]
        flat = (part for pair in sorted(known, key=itemgetter(0)) for part in pair)
        groups.setdefault(partition_key(0, tuple(flat)), _Totals(file)).add(entry, metadata)
    rows = list(groups.values())
    columns: dict[str, pa.Array] = {}
    if any(not spec.is_unpartitioned for spec in metadata.partition_specs):
        columns["partition"] = partitions_of(metadata, [r.sample for r in rows])
    counts = [r.counts for r in rows]
    columns |= {
        "spec_id": pa.array([r.sample.spec_id for r in rows], pa.int32()),
        "record_count": _sums(c.data_record_count for c in counts),
        "file_count": pa.array([c.data_file_count for c in counts], pa.int32()),
        "total_data_file_size_in_bytes": _sums(c.total_data_file_size_in_bytes for c in counts),
        "position_delete_record_count": _sums(c.position_delete_record_count for c in counts),
        "position_delete_file_count": pa.array([c.position_delete_file_count + c.dv_count for c in counts], pa.int32()),
        "equality_delete_record_count": _sums(c.equality_delete_record_count for c in counts),
        "equality_delete_file_count": pa.array([c.equality_delete_file_count for c in counts], pa.int32()),
        "last_updated_at": instants(c.last_updated_at for c in counts),
        "last_updated_snapshot_id": pa.array([c.last_updated_snapshot_id for c in counts], pa.int64()),
    }
    return pa.table(columns)


def _sums(values: Iterable[int]) -> pa.Array:
    """Raises CorruptTable for a sum beyond a long, which only wrong manifests give."""
    try:
        return pa.array(values, pa.int64())
    except OverflowError as error:
        raise CorruptTable("the sizes or records of a partition's files add up to more than a long holds") from error
