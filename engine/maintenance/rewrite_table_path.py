"""Stages a copy of a table's metadata for another place, as Iceberg's procedure ``rewrite_table_path`` does.

Metadata files, manifest lists, manifests, position deletes, deletion vectors and file indexes name files by their full
locations. They are rewritten below a staging directory with one prefix in place of another; all other files stay as
they are. A list says what to copy where.

A manifest list states the length of each manifest, and a manifest the size of each delete file. Both change with the
prefix, so an incremental rewrite encodes manifests and position deletes of the start version, too, and drops the bytes:
the same file always becomes the same bytes.
"""

from __future__ import annotations

import csv
import io
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from icebench.engine.codec.avro.file import read_header
from icebench.engine.codec.manifests.manifest_list import encode_manifest_list
from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.codec.metadata_json.table import decode_metadata, encode_metadata
from icebench.engine.codec.puffin.file import with_blob_properties
from icebench.engine.commit.staging_context import metadata_file_location
from icebench.engine.deletes.files import DeleteFile
from icebench.engine.deletes.positions import position_batches
from icebench.engine.errors import EngineError, Invalid
from icebench.engine.maintenance.moved_manifests import Move, move_manifest
from icebench.engine.maintenance.profile.table_profile import Subject
from icebench.engine.maintenance.statistics_file import with_moved_indexes
from icebench.engine.plan.manifests import ManifestSource
from icebench.engine.plan.reachable_files import Reach
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.locations import normalise
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import DATA_PATH, FOLDER_STORAGE_PATH, METADATA_PATH, OBJECT_STORAGE_PATH
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.spec.statistics import StatisticsFile
from icebench.engine.storage.canonical_paths import CanonicalPaths
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.write.delete_files import copy_position_deletes

_LOCATION_PROPERTIES = (DATA_PATH, OBJECT_STORAGE_PATH, FOLDER_STORAGE_PATH, METADATA_PATH)
_REFERENCED = "referenced-data-file"
_SCRATCH = "memory://moved"
_GZIP_MAGIC = b"\x1f\x8b"

Copy = tuple[str, str]
"""Where a file is, and where it is to go."""


@dataclass(frozen=True, kw_only=True)
class RewrittenTablePath:
    """What a rewrite of locations staged.

    Args:
        latest_version: The name of the newest metadata file.
        staging_location: The directory of what was written.
        file_list_location: The list of files to copy: CSV of source and target, in an order in which they may be
            copied (a file comes after those that it refers to). None if none was asked for.
        listed_files: How many files are to be copied.
        rewritten_manifests: How many of these are manifests.
        rewritten_delete_files: How many are position-delete files, or Puffin files of deletion vectors.
    """

    latest_version: str
    staging_location: str
    file_list_location: str | None
    listed_files: int
    rewritten_manifests: int
    rewritten_delete_files: int


def rewrite_table_path(
    subject: Subject,
    source_prefix: str,
    target_prefix: str,
    *,
    start_version: str | None,
    end_version: str | None,
    staging_location: str | None,
    create_file_list: bool,
    new_id: Callable[[], uuid.UUID],
) -> RewrittenTablePath:
    """See `Maintenance.rewrite_table_path`."""
    move = Move(source_prefix.rstrip("/"), target_prefix.rstrip("/"))
    if not move.source or not move.target:
        raise Invalid("a source and a target prefix are needed, and neither may be a root directory")
    if normalise(move.source) == normalise(move.target):
        raise Invalid(f"source and target prefix are both {source_prefix}")
    versions = _Versions.of(subject, move, start_version, end_version)
    own = f"copy-table-staging-{new_id()}"
    staging = (staging_location or metadata_file_location(subject.metadata, own)).rstrip("/")
    rewrite = _Rewrite(subject=subject, move=move, staging=staging, versions=versions)
    try:
        return rewrite.run(create_file_list=create_file_list)
    except BaseException:
        for location in rewrite.staged:
            with suppress(EngineError):
                subject.store.delete(location)
        raise


@dataclass(frozen=True, kw_only=True)
class _Versions:
    """The metadata files to write again, by their locations and oldest first, and the state they follow."""

    metadata: Mapping[str, TableMetadata]
    compressed: frozenset[str]
    start: TableMetadata | None

    @classmethod
    def of(cls, subject: Subject, move: Move, start: str | None, end: str | None) -> _Versions:
        newest, log = _stated_location(subject, move), [each.metadata_file for each in subject.metadata.metadata_log]
        last = newest if end is None else _named(end, [*log, newest])
        data = {last: subject.store.read(last)}
        former = [each.metadata_file for each in decode_metadata(data[last], location=last).metadata_log]
        begin = None if start is None else _named(start, former)
        wanted = former if begin is None else former[former.index(begin) + 1 :]
        data = {location: subject.store.read(location) for location in wanted} | data
        return cls(
            metadata={location: decode_metadata(text, location=location) for location, text in data.items()},
            compressed=frozenset(location for location, text in data.items() if text.startswith(_GZIP_MAGIC)),
            start=None if begin is None else decode_metadata(subject.store.read(begin), location=begin),
        )

    @property
    def end(self) -> TableMetadata:
        return self.metadata[self.last]

    @property
    def last(self) -> str:
        return list(self.metadata)[-1]

    @property
    def new_snapshots(self) -> list[Snapshot]:
        known = {} if self.start is None else self.start.snapshot_by_id
        return [each for each in self.end.snapshots if each.snapshot_id not in known]


def _stated_location(subject: Subject, move: Move) -> str:
    """The loaded metadata file as the table itself would name it, though it may have been opened in another place."""
    found = subject.metadata_location
    stated = metadata_file_location(subject.metadata, found.rpartition("/")[2])
    return stated if move.find(found) is None and subject.store.physical(stated) == found else found


def _named(version: str, locations: Sequence[str]) -> str:
    """The metadata file of that name or location, which must be among these."""
    for location in locations:
        if version in (location, location.rpartition("/")[2]):
            return location
    raise Invalid(f"the metadata log has no version {version!r} there; it has {len(locations)} files")


def _statistics(metadata: TableMetadata) -> set[str]:
    """The statistics files of both kinds."""
    files = {each.statistics_path for each in metadata.statistics}
    return files | {each.statistics_path for each in metadata.partition_statistics}


@dataclass(frozen=True, kw_only=True)
class _Rewrite:
    subject: Subject
    move: Move
    staging: str
    versions: _Versions
    staged: list[str] = field(default_factory=list)

    def run(self, *, create_file_list: bool) -> RewrittenTablePath:
        old_manifests, old_files = self._of_start()
        listed = {each.snapshot_id: self._source.manifests_of(each) for each in self.versions.new_snapshots}
        manifests = {m.manifest_path: m for found in listed.values() for m in found}
        new = [manifest for path, manifest in manifests.items() if path not in old_manifests]
        deletes, delete_sizes = self._move_deletes(manifests.values(), old_files)
        moved = partial(
            move_manifest,
            move=self.move,
            delete_sizes=delete_sizes,
            metadata=self.versions.end,
            store=self.subject.store,
        )
        lengths: dict[str, int] = {}
        files: dict[str, Copy] = {}
        manifest_copies: list[Copy] = []
        for manifest, made in zip(manifests.values(), self.subject.runner.map(moved, manifests.values()), strict=True):
            lengths[manifest.manifest_path] = len(made.data)
            if manifest.manifest_path not in old_manifests:
                manifest_copies.append(self._stage(manifest.manifest_path, made.data))
                files |= {path: self._as_is(path) for path in made.files if path not in old_files}
        lists = [self._move_list(each, listed[each.snapshot_id], lengths) for each in self.versions.new_snapshots]
        statistics, metadata = self._move_metadata()
        copies = [*files.values(), *statistics, *deletes, *manifest_copies, *filter(None, lists), *metadata]
        return RewrittenTablePath(
            latest_version=self.versions.last.rpartition("/")[2],
            staging_location=self.staging,
            file_list_location=self._write_list(copies) if create_file_list else None,
            listed_files=len(copies),
            rewritten_manifests=len(new),
            rewritten_delete_files=len(deletes),
        )

    @property
    def _source(self) -> ManifestSource:
        return ManifestSource(store=self.subject.store, runner=self.subject.runner)

    def _of_start(self) -> tuple[set[str], set[str]]:
        """Manifests and files of the start version, as far as they can be read: at worst a file is copied twice."""
        start = self.versions.start
        if start is None:
            return set(), set()
        canonical = CanonicalPaths(start.location)
        reach = Reach(store=self.subject.store, runner=self.subject.runner, canonical=canonical)
        return reach.readable(start.snapshots)

    def _at_staging(self, location: str) -> str:
        """Where the copy of a file is staged; raises Invalid for one that is not below the source."""
        return self.staging + self.move(location)[len(self.move.target) :]

    def _stage(self, location: str, data: bytes) -> Copy:
        there = self._at_staging(location)
        self.subject.store.write(there, data)
        self.staged.append(there)
        return there, self.move(location)

    def _as_is(self, location: str) -> Copy:
        return self.subject.store.physical(location), self.move(location)

    def _move_deletes(
        self, manifests: Iterable[ManifestFile], old_files: set[str]
    ) -> tuple[list[Copy], dict[str, int]]:
        """Write the live deletes by position of these manifests again; returns what to copy, and all their sizes."""
        of_deletes = [m for m in manifests if m.content is ManifestContent.DELETES]
        files = {f.file_path: f for found in self.subject.runner.map(self._position_deletes, of_deletes) for f in found}

        def moved(file: DeleteFile) -> tuple[Copy | None, int]:
            return self._move_vectors(file, old_files) if file.is_vector else self._move_positions(file, old_files)

        made = list(self.subject.runner.map(moved, files.values()))
        sizes = {path: size for path, (_, size) in zip(files, made, strict=True)}
        return [copy for copy, _ in made if copy is not None], sizes

    def _position_deletes(self, manifest: ManifestFile) -> list[DeleteFile]:
        data = self.subject.store.read(manifest.manifest_path)
        entries = decode_entries(data, location=manifest.manifest_path, listed=manifest, report=lambda _: None)
        return [
            DeleteFile.of(entry)
            for entry in entries
            # A file without rows names no data file: it stays as it is.
            if entry.status is not EntryStatus.DELETED
            and entry.data_file.content is FileContent.POSITION_DELETES
            and entry.data_file.record_count
        ]

    def _move_vectors(self, file: DeleteFile, old_files: set[str]) -> tuple[Copy | None, int]:
        def changed(properties: Mapping[str, str]) -> Mapping[str, str]:
            if _REFERENCED not in properties:
                return properties
            return {**properties, _REFERENCED: self.move(properties[_REFERENCED])}

        path = file.file_path
        data = with_blob_properties(self.subject.store.read(path), changed, location=path)
        return None if path in old_files else self._stage(path, data), len(data)

    def _move_positions(self, file: DeleteFile, old_files: set[str]) -> tuple[Copy | None, int]:
        def moved(batch: pa.RecordBatch) -> pa.RecordBatch:
            paths = batch.column("path")
            targets = pa.array([self.move(path) for path in paths.dictionary.to_pylist()], pa.string())
            column = pa.DictionaryArray.from_arrays(paths.indices.cast(pa.int32()), targets)
            return pa.RecordBatch.from_arrays([column, batch.column("pos")], names=["path", "pos"])

        path, scratch = file.file_path, MemoryStore()
        copy_position_deletes(
            map(moved, position_batches(file, self.subject.store)),
            _SCRATCH,
            file_format=file.file_format,
            store=scratch,
        )
        data = scratch.read(_SCRATCH)
        return None if path in old_files else self._stage(path, data), len(data)

    def _move_list(
        self, snapshot: Snapshot, manifests: Sequence[ManifestFile], lengths: Mapping[str, int]
    ) -> Copy | None:
        """None for a v1 snapshot that has no list."""
        if snapshot.manifest_list is None:
            return None
        header = read_header(self.subject.store.read(snapshot.manifest_list), location=snapshot.manifest_list)
        data = encode_manifest_list(
            [
                replace(m, manifest_path=self.move(m.manifest_path), manifest_length=lengths[m.manifest_path])
                for m in manifests
            ],
            format_version=int(header.text("format-version") or 1),
            snapshot_id=snapshot.snapshot_id,
            parent_snapshot_id=snapshot.parent_snapshot_id,
            sequence_number=snapshot.sequence_number,
            first_row_id=snapshot.first_row_id,
        )
        return self._stage(snapshot.manifest_list, data)

    def _move_metadata(self) -> tuple[list[Copy], list[Copy]]:
        """Statistics files, and metadata files from the oldest on."""
        versions, start = self.versions, self.versions.start
        files = {f.statistics_path: f for metadata in versions.metadata.values() for f in metadata.statistics}
        paths = {path for metadata in versions.metadata.values() for path in _statistics(metadata)}
        needed, copied = _statistics(versions.end), set() if start is None else _statistics(start)
        copies: list[Copy] = []
        changed: dict[str, StatisticsFile] = {}
        for path in sorted(paths):
            encoded = with_moved_indexes(files[path], self.move.find, self.subject.store) if path in files else None
            if encoded is not None:
                changed[path] = replace(
                    files[path],
                    file_size_in_bytes=len(encoded.data),
                    file_footer_size_in_bytes=encoded.footer.size_bytes,
                )
            # Statistics of former versions alone may have been deleted with them.
            if path not in copied and (path in needed or self.subject.store.exists(path)):
                copies.append(self._as_is(path) if encoded is None else self._stage(path, encoded.data))
        metadata = [
            self._stage(location, encode_metadata(self._moved(own, changed), compress=location in versions.compressed))
            for location, own in versions.metadata.items()
        ]
        return copies, metadata

    def _moved(self, metadata: TableMetadata, statistics: Mapping[str, StatisticsFile]) -> TableMetadata:
        """The metadata with all its locations elsewhere."""
        move = self.move
        own = {name: metadata.properties[name] for p in _LOCATION_PROPERTIES if (name := p.name) in metadata.properties}
        return replace(
            metadata,
            location=move(metadata.location),
            properties={**metadata.properties, **{name: move(location) for name, location in own.items()}},
            snapshots=tuple(
                replace(
                    snapshot,
                    manifest_list=None if snapshot.manifest_list is None else move(snapshot.manifest_list),
                    manifests=tuple(map(move, snapshot.manifests)),
                )
                for snapshot in metadata.snapshots
            ),
            metadata_log=tuple(replace(e, metadata_file=move(e.metadata_file)) for e in metadata.metadata_log),
            statistics=tuple(
                replace(statistics.get(f.statistics_path, f), statistics_path=move(f.statistics_path))
                for f in metadata.statistics
            ),
            partition_statistics=tuple(
                replace(f, statistics_path=move(f.statistics_path)) for f in metadata.partition_statistics
            ),
        )

    def _write_list(self, copies: Iterable[Copy]) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(copies)
        location = f"{self.staging}/file-list"
        self.subject.store.write(location, text.getvalue().encode())
        self.staged.append(location)
        return location
