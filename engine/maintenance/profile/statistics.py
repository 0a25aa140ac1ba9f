"""Figures of the statistics files of a snapshot and its ancestors, from the metadata alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from icebench.engine.codec.puffin.theta import NDV, THETA_SKETCH
from icebench.engine.maintenance.profile.figures import StatisticsFigures
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.snapshots import Snapshot, count_of

_CHANGES = ("added-records", "deleted-records", "added-position-deletes", "added-equality-deletes")


def table_statistics(metadata: TableMetadata, snapshot: Snapshot | None) -> StatisticsFigures | None:
    """The newest sketches of distinct values of a snapshot and its ancestors; None if there are none."""
    with_sketches = {
        file.snapshot_id for file in metadata.statistics if any(b.type == THETA_SKETCH for b in file.blob_metadata)
    }
    return _newest(metadata, snapshot, with_sketches)


def partition_statistics(metadata: TableMetadata, snapshot: Snapshot | None) -> StatisticsFigures | None:
    """The newest partition statistics file of a snapshot and its ancestors; None if there is none."""
    return _newest(metadata, snapshot, {file.snapshot_id for file in metadata.partition_statistics})


def _newest(
    metadata: TableMetadata, snapshot: Snapshot | None, snapshot_ids: Collection[int]
) -> StatisticsFigures | None:
    changed = 0
    for each in _line(metadata, snapshot) if snapshot_ids else ():
        if each.snapshot_id in snapshot_ids:
            total = count_of(each.summary.get("total-records")) or 0
            return StatisticsFigures(snapshot_id=each.snapshot_id, changed_share=changed / max(1, total))
        if each.operation != "replace":  # which keeps the rows
            changed += sum(count_of(each.summary.get(name)) or 0 for name in _CHANGES)
    return None


def distinct_values(metadata: TableMetadata, snapshot: Snapshot | None) -> dict[int, int]:
    """Estimated distinct values of columns, by id: from the newest sketches of a snapshot and its ancestors."""
    files = {each.snapshot_id: each for each in metadata.statistics}
    found: dict[int, int] = {}
    for each in _line(metadata, snapshot) if files else ():
        for blob in files[each.snapshot_id].blob_metadata if each.snapshot_id in files else ():
            estimate = count_of(blob.properties.get(NDV))
            if blob.type == THETA_SKETCH and len(blob.fields) == 1 and estimate is not None:
                found.setdefault(blob.fields[0], estimate)
    return found


def _line(metadata: TableMetadata, snapshot: Snapshot | None) -> Iterator[Snapshot]:
    return map(metadata.snapshot, metadata.ancestors(None if snapshot is None else snapshot.snapshot_id))
