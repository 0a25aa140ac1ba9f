"""The changes that each snapshot made to the data files of a table: added, removed, and with other deletes.

The plans of a snapshot and its parent are compared under one filter, so the result does not depend on how a writer
recorded the change (by DELETED entries, dropped manifests, or otherwise). A snapshot that only added data files is not
compared: its own manifests list them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from icebench.engine.codec.array_views import Int64Array
from icebench.engine.columnar.batch_columns import combined
from icebench.engine.errors import NotFound
from icebench.engine.plan.grouping import codes_of
from icebench.engine.plan.incremental import planned_appends
from icebench.engine.plan.manifests import ManifestSource
from icebench.engine.plan.scan import ScanPlan, TableScan
from icebench.engine.plan.snapshots import Selected
from icebench.engine.runtime.counters import Counters
from icebench.engine.spec.manifest import ManifestContent, ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.snapshots import Snapshot

_NONE: Int64Array = np.zeros(0, np.int64)


@dataclass(frozen=True, kw_only=True)
class SnapshotChanges:
    """The changes of one snapshot, limited to files that may have matching rows.

    Args:
        ordinal: The place of the snapshot among those of the line that change rows, from 0.
        snapshot: The snapshot.
        before: The plan of its parent; None if not needed.
        after: The plan of the snapshot.
        removed: Rows of ``before.files``: removed data files.
        added: Rows of ``after.files``: added data files.
        changed_before: Rows of ``before.files``: data files whose deletes have changed.
        changed_after: The same files as rows of ``after.files``.
    """

    ordinal: int
    snapshot: Snapshot
    before: ScanPlan | None = None
    after: ScanPlan
    removed: Int64Array
    added: Int64Array
    changed_before: Int64Array
    changed_after: Int64Array


def changes_of(scan: TableScan, span: Sequence[Snapshot], counters: Counters) -> Iterator[SnapshotChanges]:
    """The changes of each snapshot of a line of snapshots, oldest first. Rewrites (operation ``replace``) change no
    row, and are left out.

    Args:
        scan: Supplies table, schema, filter and runner.
        span: Snapshots in a line, each the parent of the next, oldest first.
        counters: Count the planning.

    Raises:
        NotFound: The parent of a snapshot that does more than add files was expired.
        As `TableScan.plan`.
    """
    source = scan.planner(Counters()).source
    before: tuple[int, ScanPlan] | None = None
    changing = [snapshot for snapshot in span if snapshot.operation != "replace"]
    for ordinal, snapshot in enumerate(changing):
        if _only_adds(snapshot, scan.metadata, source):
            after = planned_appends(_at(scan, snapshot), [snapshot])
            counters.merge(after.counters)
            added = np.arange(after.files.num_rows)
            yield SnapshotChanges(
                ordinal=ordinal,
                snapshot=snapshot,
                after=after,
                removed=_NONE,
                added=added,
                changed_before=_NONE,
                changed_after=_NONE,
            )
            continue
        parent = snapshot.parent_snapshot_id
        known = before[1] if before is not None and before[0] == parent else _plan_of_parent(scan, snapshot, counters)
        after = _planned(_at(scan, snapshot), counters)
        before = snapshot.snapshot_id, after
        yield _difference(ordinal, snapshot, known, after)


def _at(scan: TableScan, snapshot: Snapshot | None) -> TableScan:
    return replace(scan, selected=Selected(snapshot, scan.schema))


def _planned(scan: TableScan, counters: Counters) -> ScanPlan:
    plan = scan.plan()
    counters.merge(plan.counters)
    return plan


def _plan_of_parent(scan: TableScan, snapshot: Snapshot, counters: Counters) -> ScanPlan:
    parent = snapshot.parent_snapshot_id
    if parent is not None and parent not in scan.metadata.snapshot_by_id:
        raise NotFound(
            f"snapshot {parent} was expired, so what snapshot {snapshot.snapshot_id} removed is no longer known"
        )
    return _planned(_at(scan, None if parent is None else scan.metadata.snapshot_by_id[parent]), counters)


def _only_adds(snapshot: Snapshot, metadata: TableMetadata, source: ManifestSource) -> bool:
    """Whether a snapshot certainly only added data files: no delete file was added or removed, and the number of data
    files grew by the number of added ones."""
    parent = snapshot.parent_snapshot_id
    manifests = source.manifests_of(snapshot)
    own = [m for m in manifests if m.added_snapshot_id == snapshot.snapshot_id]
    if any(m.content != ManifestContent.DATA or m.deleted_files_count != 0 for m in own):
        return False
    if parent is not None and parent not in metadata.snapshot_by_id:
        return snapshot.operation == "append"
    former = () if parent is None else source.manifests_of(metadata.snapshot_by_id[parent])
    if _delete_manifests(former) != _delete_manifests(manifests):
        return False
    added, now, then = _files(own, existing=False), _files(manifests), _files(former)
    return added is not None and now is not None and then is not None and now == then + added


def _delete_manifests(manifests: Sequence[ManifestFile]) -> set[str]:
    return {m.manifest_path for m in manifests if m.content == ManifestContent.DELETES}


def _files(manifests: Sequence[ManifestFile], *, existing: bool = True) -> int | None:
    """The number of live data files that manifests list, or of added ones; None if a writer did not record it."""
    total = 0
    for manifest in manifests:
        if manifest.content == ManifestContent.DATA:
            if manifest.added_files_count is None or manifest.existing_files_count is None:
                return None
            total += manifest.added_files_count + (manifest.existing_files_count if existing else 0)
    return total


def _difference(ordinal: int, snapshot: Snapshot, before: ScanPlan, after: ScanPlan) -> SnapshotChanges:
    count = before.files.num_rows
    paths = [combined(plan.files.column("file_path")) for plan in (before, after)]
    codes = codes_of(pa.concat_arrays([paths[0].cast(pa.large_string()), paths[1].cast(pa.large_string())]))
    old, new = codes[:count], codes[count:]
    place = np.full(int(codes.max(initial=-1)) + 1, -1, np.int64)
    place[old] = np.arange(count)
    earlier = place[new]  # for each file of `after` its row in `before`
    kept = np.flatnonzero(earlier >= 0)
    other = _other_deletes(before, after, earlier[kept], kept)
    gone = np.ones(count, np.bool_)
    gone[earlier[kept]] = False
    return SnapshotChanges(
        ordinal=ordinal,
        snapshot=snapshot,
        before=before,
        after=after,
        removed=np.flatnonzero(gone),
        added=np.flatnonzero(earlier < 0),
        changed_before=earlier[kept][other],
        changed_after=kept[other],
    )


def _other_deletes(before: ScanPlan, after: ScanPlan, old: Int64Array, new: Int64Array) -> Int64Array:
    """The positions in `old` and `new`, rows of one file each, at which the two plans have different delete files."""
    names: dict[tuple[str, int | None], int] = {}
    left_counts, left = _delete_codes(before.files.take(pa.array(old)), names)
    right_counts, right = _delete_codes(after.files.take(pa.array(new)), names)
    differs = left_counts != right_counts
    same = np.flatnonzero(~differs)
    owner = np.repeat(same, left_counts[same])
    chosen = [codes[np.repeat(~differs, counts)] for counts, codes in ((left_counts, left), (right_counts, right))]
    differs[owner[chosen[0] != chosen[1]]] = True
    return np.flatnonzero(differs)


def _delete_codes(files: pa.Table, names: dict[tuple[str, int | None], int]) -> tuple[Int64Array, Int64Array]:
    """The number of delete files of each data file, and their numbers in `names`, sorted within each data file.

    A delete file that was added again has another sequence number and the same name: of a data file that it applies to,
    it deletes the same rows.
    """
    counts, codes = [_NONE], [_NONE]
    for chunk in files.column("deletes").chunks:
        references = chunk.flatten()
        indices = references.indices.to_numpy().astype(np.int64)
        used = np.unique(indices)
        entries = references.dictionary.take(pa.array(used)).to_pylist()
        numbers = [names.setdefault((e["file_path"], e["content_offset"]), len(names)) for e in entries]
        counts.append(chunk.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64))
        codes.append(np.array(numbers, np.int64)[np.searchsorted(used, indices)])
    joined, flat = np.concatenate(counts), np.concatenate(codes)
    return joined, flat[np.lexsort((flat, np.repeat(np.arange(len(joined)), joined)))]
