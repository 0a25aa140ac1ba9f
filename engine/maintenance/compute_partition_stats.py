"""Partition statistics files: sizes and counts of each partition of a snapshot (spec: "Partition Statistics File").

Rows are those of Iceberg Java 1.12: one for each partition tuple of each spec in the snapshot's manifests, also for
removed files, with what last changed it. If an ancestor has a file, only manifests added since then are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import pyarrow as pa

from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.commit.changes.statistics import UpdateStatistics
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.manifests import load_manifests
from icebench.engine.commit.staging_context import metadata_file_location
from icebench.engine.commit.target import Target
from icebench.engine.errors import CorruptTable, FileNotFound, Invalid, Unsupported
from icebench.engine.formats.partition_statistics import (
    PartitionRows,
    PartitionStats,
    encode_partition_rows,
    partition_rows_table,
    read_partition_rows,
)
from icebench.engine.maintenance.statistics_file import commit_statistics
from icebench.engine.plan.manifests import spec_of
from icebench.engine.spec.encryption import check_not_encrypted
from icebench.engine.spec.inheritance import apply_inheritance
from icebench.engine.spec.manifest import EntryStatus, ManifestEntry, ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import common_partition_type, untyped_fields
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.spec.statistics import PartitionStatisticsFile
from icebench.engine.spec.types import UNKNOWN, StructType
from icebench.engine.storage.store import Store


@dataclass(frozen=True, kw_only=True)
class ComputedPartitionStats:
    """The result of computing partition statistics.

    Args:
        snapshot_id: The snapshot.
        statistics_path: Its partition statistics file.
        partitions: The number of its rows.
        manifests_read: Manifests that were read; 0 if the snapshot had the file already.
    """

    snapshot_id: int
    statistics_path: str
    partitions: int
    manifests_read: int


def compute_partition_stats(table: Target, snapshot_id: int | None) -> tuple[TableState, ComputedPartitionStats]:
    """Write the partition statistics of a snapshot; see `Maintenance.compute_partition_stats`."""
    state = table.load()
    metadata = state.metadata
    snapshot = metadata.current_snapshot if snapshot_id is None else metadata.snapshot(snapshot_id)
    if snapshot is None:
        raise Invalid("a table without a snapshot has no partitions to count")
    type_ = _partition_type(metadata)
    known = next((f for f in metadata.partition_statistics if f.snapshot_id == snapshot.snapshot_id), None)
    if known is not None:
        found = _read(known, type_, table.store)
        if found is not None and _agrees(found, snapshot):
            return state, ComputedPartitionStats(
                snapshot_id=snapshot.snapshot_id,
                statistics_path=known.statistics_path,
                partitions=len(found.rows),
                manifests_read=0,
            )
    rows, manifests = _since_ancestor(metadata, snapshot, type_, table.store) or _whole(
        metadata, snapshot, type_, table.store
    )
    check_not_encrypted(metadata)
    data = encode_partition_rows(rows, metadata.format_version)
    staging = table.staging()
    name = f"partition-stats-{snapshot.snapshot_id}-{staging.commit_id}.parquet"
    location = metadata_file_location(metadata, name)
    table.store.write(location, data)
    file = PartitionStatisticsFile(
        snapshot_id=snapshot.snapshot_id, statistics_path=location, file_size_in_bytes=len(data)
    )
    state = commit_statistics(table, staging, [UpdateStatistics(partition=[file])], snapshot, location)
    return state, ComputedPartitionStats(
        snapshot_id=snapshot.snapshot_id, statistics_path=location, partitions=len(rows.rows), manifests_read=manifests
    )


def read_partition_stats(metadata: TableMetadata, file: PartitionStatisticsFile, store: Store) -> pa.Table:
    """The rows of a partition statistics file, as the table would write them now.

    Raises:
        CorruptTable, FileNotFound: The file is damaged or gone.
        Unsupported: Its format is not read.
    """
    return partition_rows_table(
        read_partition_rows(store, file.statistics_path, _partition_type(metadata)), metadata.format_version
    )


def _partition_type(metadata: TableMetadata) -> StructType:
    """The fields of all specs by id; raises Invalid for a table that was never partitioned."""
    found = common_partition_type(metadata.partition_specs, metadata.schema, metadata.schemas).fields
    if not found:
        raise Invalid("partition statistics of a table that is not partitioned")
    untyped = untyped_fields(metadata.partition_specs)
    for each in found:
        if each.type == UNKNOWN or each.field_id in untyped:
            raise Unsupported(f"partition statistics of partition field {each.name!r}, whose type is not known")
    return StructType(tuple(sorted(found, key=lambda f: f.field_id)))


def _whole(metadata: TableMetadata, snapshot: Snapshot, type_: StructType, store: Store) -> tuple[PartitionRows, int]:
    rows = PartitionRows(type_, {})
    manifests = load_manifests(snapshot, store)
    for manifest in manifests:
        for entry, row in _entries(metadata, manifest, rows, store):
            if entry.status != EntryStatus.DELETED:
                row.add(entry.data_file, 1)
    return rows, len(manifests)


def _since_ancestor(
    metadata: TableMetadata, snapshot: Snapshot, type_: StructType, store: Store
) -> tuple[PartitionRows, int] | None:
    """The rows of the nearest ancestor that has a file, and what the snapshots since then changed; None without one.

    A snapshot's own manifests have all files that it added and removed, until another one merges them.
    """
    known = {file.snapshot_id: file for file in metadata.partition_statistics}
    since: list[Snapshot] = []
    rows = None
    for snapshot_id in metadata.ancestors(snapshot.snapshot_id):
        if snapshot_id in known and (rows := _read(known[snapshot_id], type_, store)) is not None:
            break
        since.append(metadata.snapshot(snapshot_id))
    if rows is None:
        return None
    manifests = 0
    for each in since:
        for manifest in load_manifests(each, store):
            if manifest.added_snapshot_id != each.snapshot_id:
                continue
            manifests += 1
            for entry, row in _entries(metadata, manifest, rows, store):
                if entry.status != EntryStatus.EXISTING:
                    row.add(entry.data_file, 1 if entry.status == EntryStatus.ADDED else -1)
    return (rows, manifests) if _agrees(rows, snapshot) else None


def _agrees(rows: PartitionRows, snapshot: Snapshot) -> bool:
    """Whether the counts are those of the snapshot's summary, as far as it has them."""
    stats = [row for _, _, row in rows.rows.values()]
    totals = {
        "total-data-files": sum(row.data_file_count for row in stats),
        "total-records": sum(row.data_record_count for row in stats),
        "total-position-deletes": sum(row.position_delete_record_count for row in stats),
        "total-equality-deletes": sum(row.equality_delete_record_count for row in stats),
    }
    agrees = all(snapshot.summary.get(name, str(total)) == str(total) for name, total in totals.items())
    return agrees and all((value or 0) >= 0 for row in stats for value in asdict(row).values())


def _entries(
    metadata: TableMetadata, manifest: ManifestFile, rows: PartitionRows, store: Store
) -> Iterator[tuple[ManifestEntry, PartitionStats]]:
    """The entries of a manifest, each with the row of its partition, of which it is noted as a change."""
    spec = spec_of(manifest, metadata)
    place = {f.field_id: i for i, f in enumerate(spec.fields)}
    places = [place.get(f.field_id) for f in rows.type.fields]
    data = store.read(manifest.manifest_path)
    entries = decode_entries(data, location=manifest.manifest_path, listed=manifest, report=store.report)
    for entry in apply_inheritance(entries, manifest):
        own = entry.data_file.partition
        row = rows.row(spec.spec_id, tuple(None if i is None else own[i] for i in places))
        row.touch(None if entry.snapshot_id is None else metadata.snapshot_by_id.get(entry.snapshot_id))
        yield entry, row


def _read(file: PartitionStatisticsFile, type_: StructType, store: Store) -> PartitionRows | None:
    """The rows of a file; None for one that cannot be used."""
    try:
        return read_partition_rows(store, file.statistics_path, type_)
    except (FileNotFound, CorruptTable, Unsupported):
        return None
