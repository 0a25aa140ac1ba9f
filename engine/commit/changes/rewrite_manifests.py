"""Regroups the entries of manifests; no file is added or removed (operation ``replace``)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from engine.codec.manifests.reader import decode_entries
from engine.commit.manifests import AttemptCache, WrittenManifest, load_manifests, write_manifests
from engine.commit.snapshots import SnapshotChange, Staged, branch_head, stage_snapshot
from engine.commit.staging import Staging
from engine.commit.summary import summarize
from engine.errors import Invalid
from engine.spec.data_file import DataFile
from engine.spec.inheritance import apply_inheritance
from engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from engine.spec.metadata import TableMetadata
from engine.spec.snapshots import MAIN


@dataclass(kw_only=True)
class RewriteManifests(SnapshotChange):
    """Writes the entries of manifests into new manifests. Files keep their sequence numbers, snapshot ids and row ids.

    It is staged anew on every base, so it can neither lose what others add meanwhile nor bring back what they remove.

    Args:
        cluster_by: Places entries with equal keys next to each other, in the order of the keys' first use; None keeps
            the order. Manifests hold one partition spec and one content, up to ``commit.manifest.target-size-bytes``.
        selects: Selects the manifests to rewrite; None means all.
        branch: Where to.
        properties: Entries for the snapshot summary.
    """

    cluster_by: Callable[[DataFile], Hashable] | None = None
    selects: Callable[[ManifestFile], bool] | None = None
    branch: str = MAIN
    properties: Mapping[str, str] = field(default_factory=dict)
    _rewritten: AttemptCache[list[WrittenManifest]] = field(default_factory=AttemptCache, init=False)

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        """See `engine.commit.changes.change.Change`; Invalid for a branch without a snapshot."""
        parent = branch_head(base, self.branch)
        if parent is None:
            raise Invalid(f"branch {self.branch!r} has no manifests to rewrite")
        snapshot_id = self._chosen_id(base, staging)
        manifests = load_manifests(parent, staging.store)
        chosen = [m for m in manifests if self.selects is None or self.selects(m)]
        paths = {m.manifest_path for m in chosen}
        kept = [m for m in manifests if m.manifest_path not in paths]
        written = [
            each
            for content in ManifestContent
            for each in self._regroup([m for m in chosen if m.content is content], content, base, staging)
        ]
        counts = {
            "manifests-created": str(len(written)),
            "manifests-kept": str(len(kept)),
            "manifests-replaced": str(len(chosen)),
            "entries-processed": str(sum(each.encoded.existing_files_count for each in written)),
        }
        return self._note(
            stage_snapshot(
                base,
                staging,
                branch=self.branch,
                snapshot_id=snapshot_id,
                operation="replace",
                written=written,
                kept=kept,
                summary=summarize(parent=parent, properties={**self.properties, **counts}),
            )
        )

    def _regroup(
        self, manifests: Sequence[ManifestFile], content: ManifestContent, base: TableMetadata, staging: Staging
    ) -> list[WrittenManifest]:
        def load(manifest: ManifestFile) -> list[ManifestEntry]:
            data = staging.store.read(manifest.manifest_path)
            path, report = manifest.manifest_path, staging.store.report
            entries = decode_entries(data, location=path, listed=manifest, report=report)
            found = apply_inheritance(entries, manifest)
            return [replace(e, status=EntryStatus.EXISTING) for e in found if e.status is not EntryStatus.DELETED]

        def regroup() -> list[WrittenManifest]:
            entries = [entry for part in staging.runner.map(load, manifests) for entry in part]
            if self.cluster_by is not None:
                places: dict[Hashable, int] = {}
                keys = [places.setdefault(self.cluster_by(entry.data_file), len(places)) for entry in entries]
                entries = [entries[place] for place in sorted(range(len(entries)), key=keys.__getitem__)]
            return write_manifests(
                entries, base=base, content=content, snapshot_id=self.added_snapshot_id, staging=staging
            )

        return self._rewritten.get(base, manifests, regroup)
