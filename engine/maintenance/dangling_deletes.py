"""Removes delete files that no longer apply to any data file.

A delete file becomes dangling when the data files that it applies to are rewritten or removed. Each plan still reads
its manifest entry, and a delete file of a partition or of the whole table may be opened in vain. Whether it applies is
decided as in a plan: by data file, partition, sequence numbers, and key ranges of equality deletes. A dangling file
never applies again: new data files have greater sequence numbers, and those of a rewrite have rows of old ones.
"""

from __future__ import annotations

from collections.abc import Mapping

from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.commit.changes.rewrite_files import RewriteFiles
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.conflicts import Validation
from icebench.engine.commit.file_refs import FileKey, key_of, ref_to
from icebench.engine.commit.manifests import load_manifests
from icebench.engine.commit.target import Target
from icebench.engine.plan.scan import table_scan
from icebench.engine.read.plans import planned_files
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.inheritance import apply_inheritance
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.storage.store import Store


def live_deletes(store: Store, runner: Runner, snapshot: Snapshot | None) -> list[ManifestEntry]:
    """The entries of a snapshot's delete files, with nothing left to inherit."""

    def live(manifest: ManifestFile) -> list[ManifestEntry]:
        data = store.read(manifest.manifest_path)
        entries = decode_entries(data, location=manifest.manifest_path, listed=manifest, report=store.report)
        return [e for e in apply_inheritance(entries, manifest) if e.status is not EntryStatus.DELETED]

    manifests = [m for m in load_manifests(snapshot, store) if m.content is ManifestContent.DELETES]
    return [entry for found in runner.map(live, manifests) for entry in found]


def remove_dangling_deletes(
    table: Target, *, branch: str, properties: Mapping[str, str]
) -> tuple[TableState, Snapshot | None, int]:
    """Remove delete files that apply to no data file of a branch's current snapshot.

    Args:
        table: The table.
        branch: Where.
        properties: Entries for the snapshot summary.

    Returns:
        The table, the snapshot (None if there was nothing to remove), and the number of removed delete files.

    Raises:
        NotFound, Invalid: There is no such branch, or it is a tag.
        CommitFailed: See `Target.commit`.
    """
    state = table.load()
    head = state.metadata.existing_head(branch)
    entries = live_deletes(table.store, table.runner, head)
    if head is None or not entries:
        return state, None, 0
    plan = table_scan(state.metadata, table.store, ref=branch, runner=table.runner, cache=table.cache).plan()
    used: set[FileKey] = {
        (each.file_path, each.content_offset if each.is_vector else None)
        for file in planned_files(plan)
        for each in file.deletes
    }
    gone = [ref_to(entry.data_file) for entry in entries if key_of(entry.data_file) not in used]
    if not gone:
        return state, None, 0
    change = RewriteFiles(
        removed_deletes=gone,
        validation=Validation(starting_snapshot_id=head.snapshot_id),
        branch=branch,
        properties=properties,
    )
    state = table.commit([change])
    return state, change.snapshot_in(state.metadata), len(gone)
