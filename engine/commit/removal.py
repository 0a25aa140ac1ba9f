"""Taking files out of a snapshot: manifests that list them are written anew, with DELETED entries in their place.

Such an entry lets incremental readers see the file go; the files beside it become EXISTING entries with the numbers
they had. Manifests that list none of the files are kept as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress

from icebench.engine.codec.manifests.reader import decode_columns, decode_entries
from icebench.engine.commit.file_refs import FileRef, key_of
from icebench.engine.commit.manifests import AttemptCache, WrittenManifest, write_manifests
from icebench.engine.commit.staging_context import Staging
from icebench.engine.errors import ValidationFailed
from icebench.engine.plan.partition_lookup import may_list_partitions
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.inheritance import apply_inheritance
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import Partition, PartitionKey

_MOST_PARTITIONS = 1_000
"""With more partitions than this, summaries are not looked at: nearly every manifest would be a candidate."""


@dataclass(frozen=True, slots=True)
class _Rewritten:
    manifests: tuple[WrittenManifest, ...]
    removed: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remaining:
    """The manifests of one content without the removed files.

    Args:
        kept: Manifests as they were.
        written: Manifests in place of others; their DELETED entries belong to the new snapshot.
        removed: The files, as their entries described them.
    """

    kept: tuple[ManifestFile, ...] = ()
    written: tuple[WrittenManifest, ...] = ()
    removed: tuple[DataFile, ...] = ()


class Removal:
    """Files of one content to be removed. A manifest that was rewritten serves every attempt whose base still has it.

    Args:
        files: What to remove.
        content: Whether they are data or delete files.
        if_there: Files to be removed where the base still has them.
    """

    def __init__(self, files: Iterable[FileRef], content: ManifestContent, if_there: Iterable[FileRef] = ()) -> None:
        self._content = content
        if_there = tuple(if_there)
        self._may_be_missing = {file.key for file in if_there}
        self._files = [*files, *if_there]
        self._keys = {file.key for file in self._files}
        self._paths = frozenset(path.encode() for path, _ in self._keys)
        self._rewritten: AttemptCache[_Rewritten | None] = AttemptCache()

    def applied(
        self, manifests: Sequence[ManifestFile], base: TableMetadata, snapshot_id: int, staging: Staging
    ) -> Remaining:
        """What remains of a base's manifests.

        Raises:
            ValidationFailed: One of the files is not in the base (any more).
        """
        own = [manifest for manifest in manifests if manifest.content is self._content]
        candidates = may_list(own, self._files, base)

        def rewrite(manifest: ManifestFile) -> _Rewritten | None:
            return self._rewritten.get(base, [manifest], lambda: self._rewrite(manifest, base, snapshot_id, staging))

        results = zip(candidates, staging.runner.map(rewrite, candidates), strict=True)
        found = {manifest.manifest_path: result for manifest, result in results if result is not None}
        removed = [file for result in found.values() for file in result.removed]
        self._check_complete(removed)
        return Remaining(
            kept=tuple(manifest for manifest in own if manifest.manifest_path not in found),
            written=tuple(written for result in found.values() for written in result.manifests),
            removed=tuple(removed),
        )

    def _check_complete(self, removed: Sequence[DataFile]) -> None:
        missing = self._keys - self._may_be_missing - {key_of(file) for file in removed}
        if missing:
            others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise ValidationFailed(
                f"{min(path for path, _ in missing)}{others} not in the table any more: another commit removed it "
                "after the change was prepared; run the operation again"
            )

    def _rewrite(
        self, manifest: ManifestFile, base: TableMetadata, snapshot_id: int, staging: Staging
    ) -> _Rewritten | None:
        """The manifest without the files, or None where it lists none of them."""
        data = staging.store.read(manifest.manifest_path)
        # Whole entries are expensive to decode; the paths alone rule out most manifests.
        path, report = manifest.manifest_path, staging.store.report
        paths = decode_columns(data, location=path, listed=manifest, report=report)["file_path"].to_pylist()
        if self._paths.isdisjoint(path for path in paths if path is not None):
            return None
        entries: list[ManifestEntry] = []
        removed: list[DataFile] = []
        found = decode_entries(data, location=path, listed=manifest, report=report)
        for entry in apply_inheritance(found, manifest):
            if entry.status is EntryStatus.DELETED:
                continue
            if key_of(entry.data_file) in self._keys:
                removed.append(entry.data_file)
                entries.append(replace(entry, status=EntryStatus.DELETED, snapshot_id=snapshot_id))
            else:
                entries.append(replace(entry, status=EntryStatus.EXISTING))
        if not removed:
            return None
        written = write_manifests(entries, base=base, content=self._content, snapshot_id=snapshot_id, staging=staging)
        return _Rewritten(tuple(written), tuple(removed))


def may_list(manifests: Sequence[ManifestFile], files: Iterable[FileRef], base: TableMetadata) -> list[ManifestFile]:
    """The manifests that may list one of the files, by their specs and their partition summaries."""
    partitions_of: dict[int, dict[PartitionKey | None, Partition | None]] = {}
    for file in files:
        partitions_of.setdefault(file.spec_id, {})[file.scope] = file.partition
    by_spec: dict[int, list[ManifestFile]] = {}
    for manifest in manifests:
        if manifest.added_files_count != 0 or manifest.existing_files_count != 0:
            by_spec.setdefault(manifest.partition_spec_id, []).append(manifest)
    found: set[str] = set()
    for spec_id, scopes in partitions_of.items():
        own = by_spec.get(spec_id, [])
        spec = base.spec_by_id.get(spec_id)
        partitions = [partition for partition in scopes.values() if partition is not None]
        if own and spec is not None and len(scopes) == len(partitions) <= _MOST_PARTITIONS:
            own = list(compress(own, may_list_partitions(own, partitions, spec, base)))
        found.update(manifest.manifest_path for manifest in own)
    return [manifest for manifest in manifests if manifest.manifest_path in found]
