"""Manifests of snapshots, and their entries with inheritance applied (spec: "Sequence Number Inheritance")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from icebench.engine.codec.manifests.manifest_list import decode_manifest_list
from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.errors import CorruptTable, FileNotFound, Unsupported
from icebench.engine.plan.manifests import list_location, manifest_location, spec_of
from icebench.engine.spec.inheritance import apply_inheritance
from icebench.engine.spec.manifest import EntryStatus, ManifestEntry, ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.storage.store import Store


@dataclass(frozen=True)
class Contents:
    """Reads manifests and entries for the metadata tables."""

    metadata: TableMetadata
    store: Store

    def manifests(self, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        """The manifests of a snapshot, in the order of its manifest list."""
        location = list_location(snapshot)
        if location is None:
            raise Unsupported(f"snapshot {snapshot.snapshot_id} lists its manifests inline, as early v1 writers did")
        listed = decode_manifest_list(self._read(location, snapshot), location=location)
        for manifest in listed:
            if len(manifest.partitions or ()) > len(spec_of(manifest, self.metadata).fields):
                reason = f"{manifest.manifest_path} has more partition summaries than its partition spec has fields"
                raise CorruptTable(reason, location=location)
        return listed

    def entries(self, manifest: ManifestFile, snapshot: Snapshot) -> Iterator[ManifestEntry]:
        """The entries of a manifest, including deleted ones, after inheritance."""
        data = self._read(manifest_location(manifest), snapshot)
        entries = decode_entries(data, location=manifest.manifest_path, listed=manifest, report=self.store.report)
        spec = spec_of(manifest, self.metadata)
        for file in (entry.data_file for entry in entries[:1]):
            if file.spec_id != spec.spec_id or len(file.partition) != len(spec.fields):
                reason = f"is not of partition spec {spec.spec_id}, as its manifest list says"
                raise CorruptTable(reason, location=manifest.manifest_path)
        return apply_inheritance(entries, manifest)

    def snapshot_entries(self, snapshot: Snapshot | None) -> Iterator[ManifestEntry]:
        """All entries of all manifests of a snapshot; none for None."""
        if snapshot is not None:
            for manifest in self.manifests(snapshot):
                yield from self.entries(manifest, snapshot)

    def all_entries(self) -> Iterator[ManifestEntry]:
        """The entries of every manifest that any snapshot lists, each manifest once."""
        seen: set[str] = set()
        for snapshot in self.metadata.snapshots:
            for manifest in self.manifests(snapshot):
                if manifest.manifest_path not in seen:
                    seen.add(manifest.manifest_path)
                    yield from self.entries(manifest, snapshot)

    def _read(self, location: str, snapshot: Snapshot) -> bytes:
        try:
            return self.store.read(location)
        except FileNotFound as error:
            needed_by = f"snapshot {snapshot.snapshot_id} of the table at {self.metadata.location}"
            raise FileNotFound(location, needed_by) from error


def live(entries: Iterable[ManifestEntry]) -> Iterator[ManifestEntry]:
    """The entries whose files are part of the table."""
    return (entry for entry in entries if entry.status != EntryStatus.DELETED)
