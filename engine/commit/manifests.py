"""Writing the manifests of a change, and reading those of its base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from engine.codec.manifest_writer import Compression, EncodedManifest, encode_manifest
from engine.commit.staging import Staging
from engine.errors import Invalid
from engine.plan.manifests import ManifestSource
from engine.runtime.local import LocalRunner
from engine.spec.data_file import DataFile, FileContent
from engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from engine.spec.metadata import TableMetadata
from engine.spec.properties import MANIFEST_COMPRESSION, MANIFEST_TARGET_SIZE_BYTES
from engine.spec.snapshots import Snapshot
from engine.storage.store import Store

_SAMPLE = 500
"""So many entries are encoded to see how many the target size has room for."""


@dataclass(frozen=True, slots=True)
class WrittenManifest:
    """A manifest in storage that belongs to no snapshot yet. It serves every attempt of its commit: sequence numbers
    are inherited from the manifest list, which alone is written anew."""

    location: str
    encoded: EncodedManifest

    def listed(self, sequence_number: int) -> ManifestFile:
        """Its manifest-list entry in a snapshot with that sequence number."""
        return self.encoded.manifest_file(self.location, sequence_number=sequence_number)


def load_manifests(snapshot: Snapshot | None, store: Store) -> tuple[ManifestFile, ...]:
    """The manifests of a snapshot, in the order of its list; none for None."""
    return () if snapshot is None else ManifestSource(store=store, runner=LocalRunner(1)).manifests_of(snapshot)


def write_manifests(
    entries: Sequence[ManifestEntry],
    *,
    base: TableMetadata,
    content: ManifestContent,
    snapshot_id: int,
    staging: Staging,
) -> list[WrittenManifest]:
    """Write manifests of these entries: one kind of content, split by partition spec and by the target size.

    Args:
        entries: Kept in order within each spec.
        base: Gives schema, specs, format version, target size and codec.
        content: DATA or DELETES.
        snapshot_id: The snapshot that adds the manifests.
        staging: Storage and threads.

    Raises:
        Invalid: An entry of the wrong content or of an unknown spec, or delete files in a v1 table.
    """
    by_spec: dict[int, list[ManifestEntry]] = {}
    for entry in entries:
        _check(entry.data_file, content, base)
        by_spec.setdefault(entry.data_file.spec_id, []).append(entry)
    codec = cast("Compression", MANIFEST_COMPRESSION.of(base.properties))

    def encode(part: Sequence[ManifestEntry]) -> EncodedManifest:
        return encode_manifest(
            part,
            schema=base.schema,
            spec=base.spec_by_id[part[0].data_file.spec_id],
            format_version=base.format_version,
            content=content,
            snapshot_id=snapshot_id,
            compression=codec,
        )

    def write(part: Sequence[ManifestEntry]) -> WrittenManifest:
        encoded = encode(part)
        location = staging.new_manifest_location(base)
        staging.write(location, encoded.data)
        return WrittenManifest(location, encoded)

    parts: list[Sequence[ManifestEntry]] = []
    for group in by_spec.values():
        size = len(group)
        if size > _SAMPLE:
            sampled_bytes = len(encode(group[:_SAMPLE]).data)
            size = max(_SAMPLE, MANIFEST_TARGET_SIZE_BYTES.of(base.properties) * _SAMPLE // sampled_bytes)
        parts += [group[at : at + size] for at in range(0, len(group), size)]
    return list(staging.runner.map(write, parts))


def _check(file: DataFile, content: ManifestContent, base: TableMetadata) -> None:
    if (file.content is FileContent.DATA) != (content is ManifestContent.DATA):
        raise Invalid(f"{file.file_path} has content {file.content.name} and belongs in no {content.name} manifest")
    if file.spec_id not in base.spec_by_id:
        raise Invalid(f"{file.file_path} was written with partition spec {file.spec_id}, which the table does not have")
    if content is ManifestContent.DELETES and base.format_version < 2:
        raise Invalid("a v1 table has no delete files; upgrade it to format version 2 first")
    if file.file_format == "puffin" and base.format_version < 3:
        raise Invalid("deletion vectors need format version 3; upgrade the table or write position delete files")


class AddedManifests:
    """The manifests of the files that a change adds: written at its first attempt, used again by the later ones.

    Args:
        files: The files, all of one content.
        content: Which.
        data_sequence_number: Of all the files; None lets them inherit that of their snapshot.
    """

    def __init__(
        self, files: Sequence[DataFile], content: ManifestContent, *, data_sequence_number: int | None = None
    ) -> None:
        self._files = files
        self._content = content
        self._data_sequence_number = data_sequence_number
        self._format_version: int | None = None
        self._written: list[WrittenManifest] = []

    def written(self, base: TableMetadata, snapshot_id: int, staging: Staging) -> list[WrittenManifest]:
        """The manifests, for a snapshot on this base. They are written again only after a format upgrade, because
        inheritance differs between versions."""
        if self._files and self._format_version != base.format_version:
            entries = [
                ManifestEntry(
                    status=EntryStatus.ADDED,
                    snapshot_id=snapshot_id,
                    sequence_number=self._data_sequence_number if base.format_version > 1 else None,
                    data_file=file,
                )
                for file in self._files
            ]
            self._written = write_manifests(
                entries, base=base, content=self._content, snapshot_id=snapshot_id, staging=staging
            )
            self._format_version = base.format_version
        return self._written
