"""Figures of snapshots and table metadata."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

from icebench.engine.catalog.versions import next_version, version_of
from icebench.engine.commit.changes.expire_snapshots import ExpireSnapshots
from icebench.engine.commit.staging_context import Staging
from icebench.engine.maintenance.profile.figures import HistoryFigures
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import GC_ENABLED, METADATA_DELETE_AFTER_COMMIT
from icebench.engine.spec.snapshots import count_of
from icebench.engine.storage.store import Store

_DAY_MS = 24 * 60 * 60 * 1000


def history_figures(metadata: TableMetadata, metadata_location: str, store: Store, now_ms: int) -> HistoryFigures:
    """Figures of snapshots and metadata. Makes one request, for the size of the metadata file; 0 if its catalog names
    none."""
    times = [each.timestamp_ms for each in metadata.snapshots]
    span = max(times, default=0) - min(times, default=0)
    size = store.size(metadata_location) if metadata_location else 0
    expired = _expired(metadata, store, now_ms)
    line = list(metadata.ancestors(metadata.current_snapshot_id))
    types = [ref.type for ref in metadata.refs.values()]
    return HistoryFigures(
        snapshots=len(times),
        branches=types.count("branch"),
        tags=types.count("tag"),
        oldest_age_ms=max(0, now_ms - min(times)) if times else 0,
        snapshots_per_day=(len(times) - 1) * _DAY_MS / span if span else 0.0,
        expirable_snapshots=len(expired),
        retained_bytes=_removed_bytes(metadata, line[:-1]),
        expirable_bytes=_removed_bytes(metadata, [own for own, parent in pairwise(line) if parent in expired]),
        metadata_bytes=size,
        metadata_bytes_per_snapshot=size // len(times) if times else 0,
        metadata_log_files=len(metadata.metadata_log),
        forgotten_metadata_files=_forgotten(metadata, metadata_location),
        schemas=len(metadata.schemas),
        partition_specs=len(metadata.partition_specs),
    )


def _expired(metadata: TableMetadata, store: Store, now_ms: int) -> frozenset[int]:
    """The snapshots that `expire_snapshots` would remove with default arguments."""
    if not GC_ENABLED.of(metadata.properties):
        return frozenset()
    change = ExpireSnapshots()
    change.stage(metadata, Staging(store=store, now_ms=lambda: now_ms))
    return change.expired


def _removed_bytes(metadata: TableMetadata, snapshot_ids: Collection[int]) -> int:
    """Bytes of files that these snapshots removed, and that only their parents still reference."""
    return sum(count_of(metadata.snapshot_by_id[i].summary.get("removed-files-size")) or 0 for i in snapshot_ids)


def _forgotten(metadata: TableMetadata, metadata_location: str) -> int:
    """Number of former metadata files missing from the log. Directory catalogs count from v1, others from 00000."""
    if METADATA_DELETE_AFTER_COMMIT.of(metadata.properties):
        return 0
    name = metadata_location.rpartition("/")[2]
    former = max(version_of(name), next_version(name)) - 1
    return max(0, former - len(metadata.metadata_log))
