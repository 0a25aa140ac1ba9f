"""Writes the manifests of a change, and loads those of its base."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Generic, TypeAlias, TypeVar, cast

import pyarrow as pa

from icebench.engine.codec.manifests.data_file_columns import DataFileColumns
from icebench.engine.codec.manifests.manifest_writer import (
    Compression,
    EncodedManifest,
    ManifestBuilder,
    ManifestLayout,
    ManifestPart,
    encode_added_part,
    encode_part,
    entry_batches,
)
from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.columnar.data_file_columns import check_file_table, data_file_columns, file_batches
from icebench.engine.commit.new_files import NewFiles
from icebench.engine.commit.staging_context import Staging
from icebench.engine.commit.summary import FileCounts
from icebench.engine.errors import EngineError, Invalid, ValidationFailed
from icebench.engine.plan.manifests import ManifestSource
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import MANIFEST_COMPRESSION, MANIFEST_TARGET_SIZE_BYTES, PARTITION_SUMMARY_LIMIT
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.storage.store import Store

AddedFiles: TypeAlias = Iterable[DataFile] | pa.Table | pa.RecordBatchReader
"""Files as objects, or data files as the rows of a table (see `icebench.engine.columnar.data_file_columns`)."""


@dataclass(frozen=True, slots=True)
class WrittenManifest:
    """A manifest in storage that belongs to no snapshot yet. Every attempt of a commit uses it: sequence numbers are
    inherited from the manifest list, the only file written per attempt. Its bytes are not kept."""

    location: str
    encoded: EncodedManifest

    def manifest_file(self, sequence_number: int) -> ManifestFile:
        """Its manifest-list entry in a snapshot with that sequence number."""
        return self.encoded.manifest_file(self.location, sequence_number=sequence_number)


T = TypeVar("T")


class AttemptCache(Generic[T]):
    """Results derived from manifests in one attempt, for later attempts whose base lists the same manifests.

    Entries inherit numbers and ids from the manifest list, which lists a manifest of the same transaction with other
    numbers at every attempt. So the key is the whole entry of the list, and the format version, by which inheritance
    differs. A manifest of the change itself goes on inheriting; its location is enough.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], T] = {}

    def get(self, base: TableMetadata, sources: Sequence[ManifestFile | WrittenManifest], make: Callable[[], T]) -> T:
        """The result of `make` for these sources, computed once. Threads may request different sources."""
        own = (each.location if isinstance(each, WrittenManifest) else each for each in sources)
        key = (base.format_version, *own)
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


def load_manifests(snapshot: Snapshot | None, store: Store) -> tuple[ManifestFile, ...]:
    """The manifests of a snapshot, in the order of its list; none for None."""
    return () if snapshot is None else ManifestSource(store=store, runner=LocalRunner(1)).manifests_of(snapshot)


def write_manifests(
    entries: Iterable[ManifestEntry],
    *,
    base: TableMetadata,
    content: ManifestContent,
    snapshot_id: int,
    staging: Staging,
) -> list[WrittenManifest]:
    """Write manifests of these entries: one kind of content, split by partition spec and by the target size.

    Args:
        entries: Kept in order within each spec; taken as they come, so that only some of them are in memory.
        base: Gives schema, specs, format version, target size and codec.
        content: DATA or DELETES.
        snapshot_id: The snapshot that adds the manifests.
        staging: Storage and threads.

    Raises:
        Invalid: An entry of the wrong content or of an unknown spec; delete files in a v1 table, deletion vectors in a
            v2 table, or added position-delete files in a v3 table.
    """
    layouts = _Layouts(base, content, snapshot_id)

    def encode(batch: Sequence[ManifestEntry]) -> Encoded:
        for entry in batch:
            _check(entry, content, base)
        layout = layouts.of(batch[0].data_file.spec_id)
        return layout, encode_part(layout, batch)

    return write_parts(staging.runner.map(encode, entry_batches(entries)), base, staging)


Encoded = tuple[ManifestLayout, ManifestPart]


def write_parts(parts: Iterable[Encoded], base: TableMetadata, staging: Staging) -> list[WrittenManifest]:
    """Write parts as manifests, in order for each partition spec, each of about the target size.

    A manifest is written as soon as the next part would exceed the target. On failure, written manifests are deleted.
    """
    locations: list[str] = []

    def named() -> Iterator[tuple[str, ManifestBuilder]]:
        for builder in filled:
            locations.append(staging.new_manifest_location(base))
            yield locations[-1], builder

    def write(manifest: tuple[str, ManifestBuilder]) -> WrittenManifest:
        location, builder = manifest
        encoded = builder.finish()
        staging.write(location, encoded.data)
        return WrittenManifest(location, replace(encoded, data=b""))

    # Parts of the next manifests are encoded while others are stored.
    with closing(_fill(parts, MANIFEST_TARGET_SIZE_BYTES.of(base.properties))) as filled:
        try:
            return list(staging.runner.map(write, named()))
        except BaseException:
            for location in locations:
                with suppress(EngineError):
                    staging.store.delete(location)
            raise


def _fill(parts: Iterable[Encoded], target_bytes: int) -> Generator[ManifestBuilder, None, None]:
    """Yield manifests as soon as they are complete."""
    building: dict[int, ManifestBuilder] = {}
    for layout, part in parts:
        builder = building.get(layout.spec.spec_id)
        if builder is not None and builder.size_bytes + part.size_bytes > target_bytes:
            yield builder
            builder = None
        if builder is None:
            builder = building[layout.spec.spec_id] = ManifestBuilder(layout)
        builder.add(part)
    yield from building.values()


def manifest_layout(base: TableMetadata, content: ManifestContent, snapshot_id: int, spec_id: int) -> ManifestLayout:
    """The layout of the manifests of a partition spec.

    Raises:
        Invalid: The table does not have the spec, or can have no such manifests.
    """
    if spec_id not in base.spec_by_id:
        raise Invalid(f"files were written with partition spec {spec_id}, which the table does not have")
    return ManifestLayout(
        schema=base.schema,
        spec=base.spec_by_id[spec_id],
        format_version=base.format_version,
        content=content,
        snapshot_id=snapshot_id,
        compression=cast("Compression", MANIFEST_COMPRESSION.of(base.properties)),
        former_schemas=base.schemas,
    )


class _Layouts:
    """The layout of the manifests of each partition spec."""

    def __init__(self, base: TableMetadata, content: ManifestContent, snapshot_id: int) -> None:
        self.base = base
        self._content = content
        self._snapshot_id = snapshot_id
        self._by_spec: dict[int, ManifestLayout] = {}

    def of(self, spec_id: int) -> ManifestLayout:
        """The layout; threads may ask."""
        found = self._by_spec.get(spec_id)
        if found is None:
            found = self._by_spec[spec_id] = manifest_layout(self.base, self._content, self._snapshot_id, spec_id)
        return found


def _check(entry: ManifestEntry, content: ManifestContent, base: TableMetadata) -> None:
    file = entry.data_file
    if (file.content is FileContent.DATA) != (content is ManifestContent.DATA):
        raise Invalid(f"{file.file_path} has content {file.content.name} and belongs in no {content.name} manifest")
    if file.spec_id not in base.spec_by_id:
        raise Invalid(f"{file.file_path} was written with partition spec {file.spec_id}, which the table does not have")
    if content is ManifestContent.DELETES and base.format_version < 2:
        raise Invalid("a v1 table has no delete files; upgrade it to format version 2 first")
    is_vector = file.file_format == "puffin"
    if is_vector and base.format_version < 3:
        raise Invalid("deletion vectors need format version 3; upgrade the table or write position delete files")
    is_position_delete = file.content is FileContent.POSITION_DELETES and not is_vector
    # A table that was upgraded keeps those that it has.
    if is_position_delete and entry.status is EntryStatus.ADDED and base.format_version >= 3:
        version = base.format_version
        raise Invalid(
            f"{file.file_path}: format version {version} takes no position-delete files; write deletion vectors"
        )


class AddedManifests:
    """The manifests of the files that a change adds: written in its first attempt, and used by later ones.

    Args:
        files: The files, all of one content. A stream is consumed once, in the first attempt, and never held as a
            whole.
        content: Their content.
        data_sequence_number: Of all the files; None lets them inherit that of their snapshot.
        check_duplicates: Refuse files that the base already lists.
    """

    def __init__(
        self,
        files: AddedFiles,
        content: ManifestContent,
        *,
        data_sequence_number: int | None = None,
        check_duplicates: bool = False,
    ) -> None:
        self._files: AddedFiles | None = files
        self._content = content
        self._data_sequence_number = data_sequence_number
        self._base: TableMetadata | None = None
        self._written: list[WrittenManifest] = []
        self._new = NewFiles(content) if check_duplicates else None
        self.counts = FileCounts()

    def check_new(self, listed: Sequence[ManifestFile], staging: Staging) -> None:
        """Check that a base lists none of the added files; see `NewFiles.check`."""
        if self._new is not None:
            self._new.check(listed, [each.location for each in self._written], staging)

    def written(self, base: TableMetadata, snapshot_id: int, staging: Staging) -> list[WrittenManifest]:
        """The manifests, for a snapshot on this base. They are written again only after a format upgrade, because
        inheritance differs between versions.

        Raises:
            ValidationFailed: The base does not have the partition spec of the files any more, or another one by its id.
        """
        former, self._base = self._base, base
        if self._files is not None:
            self._written = self._write(self._files, base, snapshot_id, staging)
            self._files = None
        elif self._written and former is not None:
            self._check_specs(former, base)
            if former.format_version != base.format_version:
                self._written = write_manifests(
                    self._read_back(base, staging),
                    base=base,
                    content=self._content,
                    snapshot_id=snapshot_id,
                    staging=staging,
                )
        return self._written

    def _check_specs(self, former: TableMetadata, base: TableMetadata) -> None:
        for spec_id in {each.encoded.spec_id for each in self._written}:
            if base.spec_by_id.get(spec_id) != former.spec_by_id[spec_id]:
                raise ValidationFailed(
                    f"another commit changed partition spec {spec_id}, which files were written for; run the operation "
                    "again"
                )

    def _write(
        self, files: AddedFiles, base: TableMetadata, snapshot_id: int, staging: Staging
    ) -> list[WrittenManifest]:
        counts = FileCounts(partition_limit=PARTITION_SUMMARY_LIMIT.of(base.properties))
        noted: list[FileCounts | NewFiles] = [counts, *([] if self._new is None else [self._new])]
        number = self._data_sequence_number if base.format_version > 1 else None
        if isinstance(files, pa.Table | pa.RecordBatchReader):
            made = write_parts(
                _describe(files, _Layouts(base, self._content, snapshot_id), staging, number, noted), base, staging
            )
        else:
            made = write_manifests(
                _added(files, snapshot_id, number, noted),
                base=base,
                content=self._content,
                snapshot_id=snapshot_id,
                staging=staging,
            )
        self.counts = counts
        return made

    def _read_back(self, base: TableMetadata, staging: Staging) -> Iterator[ManifestEntry]:
        """Decode the entries again, a manifest at a time, for this base's format version."""
        number = self._data_sequence_number if base.format_version > 1 else None
        for each in self._written:
            entries = decode_entries(staging.store.read(each.location), location=each.location)
            for entry in entries:
                file = replace(entry.data_file, spec_id=each.encoded.spec_id)
                yield replace(entry, sequence_number=number, file_sequence_number=None, data_file=file)


def _added(
    files: Iterable[DataFile], snapshot_id: int, sequence_number: int | None, noted: Sequence[FileCounts | NewFiles]
) -> Iterator[ManifestEntry]:
    for file in files:
        for each in noted:
            each.add(file)
        # A file that is described by another table's metadata has row ids there (spec, "First Row ID Inheritance").
        own = file if file.first_row_id is None else replace(file, first_row_id=None)
        yield ManifestEntry(
            status=EntryStatus.ADDED, snapshot_id=snapshot_id, sequence_number=sequence_number, data_file=own
        )


def _describe(
    files: pa.Table | pa.RecordBatchReader,
    layouts: _Layouts,
    staging: Staging,
    sequence_number: int | None,
    noted: Sequence[FileCounts | NewFiles],
) -> Iterator[Encoded]:
    def encode(batch: pa.RecordBatch) -> list[tuple[Encoded, DataFileColumns]]:
        made = []
        for columns in data_file_columns(batch, layouts.base):
            layout = layouts.of(columns.spec_id)
            part = encode_added_part(layout, columns, sequence_number=sequence_number)
            made.append(((layout, part), columns))
        return made

    check_file_table(files.schema)
    for parts in staging.runner.map(encode, file_batches(files)):
        for part, columns in parts:
            for each in noted:
                each.add_columns(columns)
            yield part
