"""Regroups the entries of manifests; no file is added or removed (operation ``replace``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from icebench.engine.commit.manifest_rows import ManifestRewriting
from icebench.engine.commit.manifests import AttemptCache, WrittenManifest, load_manifests
from icebench.engine.commit.staged_snapshot import SnapshotChange, Staged, stage_snapshot
from icebench.engine.commit.staging_context import Staging
from icebench.engine.commit.summary import summarize
from icebench.engine.errors import Invalid
from icebench.engine.spec.manifest import ManifestContent, ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.snapshots import MAIN


@dataclass(kw_only=True)
class RewriteManifests(SnapshotChange):
    """Writes the entries of manifests into new manifests. Files keep their sequence numbers, snapshot ids and row ids.

    It is staged anew on every base, so it can neither lose what others add meanwhile nor bring back what they remove.

    Args:
        by_partition: Place the entries of each partition next to each other, in the order of the partitions' first use;
            otherwise the order is kept. Manifests hold one partition spec and one content, up to
            ``commit.manifest.target-size-bytes``.
        selects: Selects the manifests to rewrite; None means all.
        branch: Where to.
        properties: Entries for the snapshot summary.
    """

    by_partition: bool = False
    selects: Callable[[ManifestFile], bool] | None = None
    branch: str = MAIN
    properties: Mapping[str, str] = field(default_factory=dict)
    _rewritten: AttemptCache[list[WrittenManifest]] = field(default_factory=AttemptCache, init=False)

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        """See `icebench.engine.commit.changes.change.Change`; NotFound for a branch that does not exist, Invalid for a
        branch without a snapshot or a tag."""
        parent = base.existing_head(self.branch)
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
        def regroup() -> list[WrittenManifest]:
            by_spec: dict[int, list[ManifestFile]] = {}
            for manifest in manifests:
                by_spec.setdefault(manifest.partition_spec_id, []).append(manifest)
            written: list[WrittenManifest] = []
            for spec_id, own in by_spec.items():
                rewriting = ManifestRewriting(
                    base=base, spec_id=spec_id, content=content, snapshot_id=self.added_snapshot_id, staging=staging
                )
                is_clustered = self.by_partition and not base.spec_by_id[spec_id].is_unpartitioned
                rows = rewriting.by_partition(own) if is_clustered else staging.runner.map(rewriting.live, own)
                written += rewriting.write(rows)
            return written

        return self._rewritten.get(base, manifests, regroup)
