"""Appends data files and merges manifests (a merge append).

Many small manifests cost every plan an open each. As Iceberg Java does, manifests of one partition spec are packed, the
oldest first, into bins of ``commit.manifest.target-size-bytes``; a bin of several becomes one manifest. The bin with
the new manifests is merged only once it holds ``commit.manifest.min-count-to-merge``, so that not every commit rewrites
what the last one wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from icebench.engine.codec.manifests.entry_rows import EntryRows
from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.manifest_rows import ManifestRewriting
from icebench.engine.commit.manifests import AttemptCache, WrittenManifest
from icebench.engine.commit.staging_context import Staging
from icebench.engine.spec.manifest import ManifestContent, ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import (
    MANIFEST_MERGE_ENABLED,
    MANIFEST_MIN_COUNT_TO_MERGE,
    MANIFEST_TARGET_SIZE_BYTES,
)


@dataclass(frozen=True, slots=True)
class _Listed:
    """A manifest to list; `written` if this commit wrote it."""

    manifest: ManifestFile
    written: WrittenManifest | None


@dataclass(kw_only=True)
class MergeAppend(Append):
    """Adds data files as `Append` does, and merges data manifests unless ``commit.manifest-merge.enabled=false``."""

    _merged: AttemptCache[list[WrittenManifest]] = field(default_factory=AttemptCache, init=False)

    def _arranged(
        self,
        written: Sequence[WrittenManifest],
        kept: Sequence[ManifestFile],
        base: TableMetadata,
        staging: Staging,
    ) -> tuple[Sequence[WrittenManifest], Sequence[ManifestFile]]:
        if not MANIFEST_MERGE_ENABLED.of(base.properties):
            return written, kept
        # Its own manifests come first, and then the base's, whose list has the newest first.
        listed = [_Listed(m.manifest_file(base.last_sequence_number + 1), m) for m in written]
        listed += [_Listed(m, None) for m in kept]
        by_spec: dict[int, list[_Listed]] = {}
        for each in listed:
            if each.manifest.content is ManifestContent.DATA:
                by_spec.setdefault(each.manifest.partition_spec_id, []).append(each)
        result = [m for m in listed if m.manifest.content is not ManifestContent.DATA]
        new: list[WrittenManifest] = []
        for group in by_spec.values():
            for bin_ in _bins(group, MANIFEST_TARGET_SIZE_BYTES.of(base.properties)):
                waits = bin_[0].written is not None and len(bin_) < MANIFEST_MIN_COUNT_TO_MERGE.of(base.properties)
                if len(bin_) == 1 or waits:
                    result += bin_
                else:
                    new += self._merge(bin_, base, staging)
        new += [each.written for each in result if each.written is not None]
        return new, [each.manifest for each in result if each.written is None]

    def _merge(self, bin_: Sequence[_Listed], base: TableMetadata, staging: Staging) -> list[WrittenManifest]:
        rewriting = ManifestRewriting(
            base=base,
            spec_id=bin_[0].manifest.partition_spec_id,
            content=ManifestContent.DATA,
            snapshot_id=self.added_snapshot_id,
            staging=staging,
        )

        def rows(each: _Listed) -> EntryRows:
            if each.written is None:
                return rewriting.live(each.manifest)
            # The numbers of its own files are known only when it is committed: they go on being inherited.
            return rewriting.own(each.manifest)

        own = [each.written or each.manifest for each in bin_]
        return self._merged.get(base, own, lambda: rewriting.write(staging.runner.map(rows, bin_)))


def _bins(manifests: Sequence[_Listed], target_bytes: int) -> list[list[_Listed]]:
    """Neighbours in bins of at most the target size (or one manifest), packed from the oldest: the newest bin alone is
    left open for later commits. Newest bin first, each newest first."""
    bins: list[list[_Listed]] = []
    size = 0
    for each in reversed(manifests):
        length = each.manifest.manifest_length
        if not bins or size + length > target_bytes:
            bins.append([])
            size = 0
        bins[-1].insert(0, each)
        size += length
    return bins[::-1]
