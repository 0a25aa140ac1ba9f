"""Finds the files that snapshots of a table reference, directly or through manifests."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from icebench.engine.errors import FileNotFound
from icebench.engine.plan.manifests import ManifestSource
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.manifest import EntryStatus, ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.storage.canonical_paths import CanonicalPaths
from icebench.engine.storage.store import Store


@dataclass(frozen=True)
class SnapshotFiles:
    """Files that snapshots reference, by kind: canonical path -> location.

    Args:
        manifest_lists: Manifest lists.
        manifests: Manifests.
        content: Data and delete files that the manifests list as live, by their content.
    """

    manifest_lists: dict[str, str] = field(default_factory=dict)
    manifests: dict[str, str] = field(default_factory=dict)
    content: dict[FileContent, dict[str, str]] = field(default_factory=lambda: {each: {} for each in FileContent})

    def __iter__(self) -> Iterator[dict[str, str]]:
        yield from (*self.content.values(), self.manifests, self.manifest_lists)


@dataclass(frozen=True, kw_only=True)
class Reach:
    """Collects the files that snapshots reference.

    Args:
        store: The table's storage.
        runner: Reads manifests concurrently.
        canonical: Compares locations.
    """

    store: Store
    runner: Runner
    canonical: CanonicalPaths

    def only_of(self, gone: Collection[Snapshot], kept: Collection[Snapshot]) -> SnapshotFiles:
        """The files that only the given snapshots reference.

        Args:
            gone: Those snapshots. Missing metadata files of theirs are ignored.
            kept: All other snapshots.

        Raises:
            FileNotFound, CorruptTable, StorageFailed: A manifest list or manifest of `kept` cannot be read.
        """
        found = SnapshotFiles()
        kept_manifests = self._manifests(kept, may_be_missing=False)
        own = {at: m for at, m in self._manifests(gone, may_be_missing=True).items() if at not in kept_manifests}
        found.manifests.update((at, manifest.manifest_path) for at, manifest in own.items())
        for files in self.runner.map(self._live_or_none, own.values()):
            for content, location in files:
                found.content[content][self.canonical.path(location)] = location
        # Manifests are written again with the same files, so that a file may be in one of each.
        if any(found.content.values()):
            for files in self.runner.map(self._live, kept_manifests.values()):
                for _, location in files:
                    for by_path in found.content.values():
                        by_path.pop(self.canonical.path(location), None)
        kept_lists = {self.canonical.path(each.manifest_list) for each in kept if each.manifest_list is not None}
        for each in gone:
            if each.manifest_list is not None and self.canonical.path(each.manifest_list) not in kept_lists:
                found.manifest_lists[self.canonical.path(each.manifest_list)] = each.manifest_list
        return found

    def all_of(self, metadata: TableMetadata, metadata_location: str, *, may_be_missing: bool) -> dict[str, str]:
        """All files that a table's metadata refers to, metadata files included: canonical path -> location.

        Args:
            metadata: The table.
            metadata_location: Its metadata file.
            may_be_missing: Whether to pass over missing manifest lists and manifests.

        Raises:
            FileNotFound: One of these is missing, and may not be.
            CorruptTable, StorageFailed: One of these cannot be read.
        """
        manifests = self._manifests(metadata.snapshots, may_be_missing=may_be_missing)
        live = self._live_or_none if may_be_missing else self._live
        locations = [
            metadata_location,
            *(each.metadata_file for each in metadata.metadata_log),
            *(each.manifest_list for each in metadata.snapshots if each.manifest_list is not None),
            *(each.manifest_path for each in manifests.values()),
            *(location for files in self.runner.map(live, manifests.values()) for _, location in files),
        ]
        return {self.canonical.path(each): each for each in locations} | statistics_paths(metadata, self.canonical)

    def readable(self, snapshots: Collection[Snapshot]) -> tuple[set[str], set[str]]:
        """Locations of the manifests of these snapshots, and of the files that they list as live, without what only
        files lead to that are gone."""
        manifests = self._manifests(snapshots, may_be_missing=True).values()
        files = {location for found in self.runner.map(self._live_or_none, manifests) for _, location in found}
        return {manifest.manifest_path for manifest in manifests}, files

    def _manifests(self, snapshots: Collection[Snapshot], *, may_be_missing: bool) -> dict[str, ManifestFile]:
        """The manifests of snapshots by canonical path."""

        def load(snapshot: Snapshot) -> tuple[ManifestFile, ...]:
            try:
                return self._source.manifests_of(snapshot)
            except FileNotFound:
                if may_be_missing:
                    return ()
                raise

        return {self.canonical.path(m.manifest_path): m for found in self.runner.map(load, snapshots) for m in found}

    @property
    def _source(self) -> ManifestSource:
        return ManifestSource(store=self.store, runner=self.runner)

    def _live_or_none(self, manifest: ManifestFile) -> list[tuple[FileContent, str]]:
        try:
            return self._live(manifest)
        except FileNotFound:
            return []

    def _live(self, manifest: ManifestFile) -> list[tuple[FileContent, str]]:
        """The files that a manifest lists as live."""
        columns = self._source.columns(manifest, frozenset())
        rows = zip(*(columns[name].to_pylist() for name in ("status", "content", "file_path")), strict=True)
        return [
            (FileContent(content), path.decode())
            for status, content, path in rows
            if status != EntryStatus.DELETED and path is not None
        ]


def statistics_paths(metadata: TableMetadata, canonical: CanonicalPaths) -> dict[str, str]:
    """The statistics files of a table, of both kinds: canonical path -> location."""
    paths = [each.statistics_path for each in metadata.statistics]
    paths += [each.statistics_path for each in metadata.partition_statistics]
    return {canonical.path(path): path for path in paths}
