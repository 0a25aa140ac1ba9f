"""Loads the manifests of a snapshot, and the live entries of a manifest (spec: "Manifest Lists", "Manifests")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pyarrow as pa

from icebench.engine.codec.array_views import Int64Array, ManifestColumns, has_values, number_array, valid_of, values_of
from icebench.engine.codec.manifests.manifest_list import decode_manifest_list
from icebench.engine.codec.manifests.reader import ManifestBytes, decode_columns_together, decode_header, decode_listed
from icebench.engine.codec.taking import take
from icebench.engine.errors import CorruptTable, FileNotFound, Unsupported
from icebench.engine.plan.cache import Key, ManifestCache, Metrics
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.inheritance import row_ids_exceed_long
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import PartitionSpec
from icebench.engine.spec.snapshots import Snapshot, check_snapshot_ids
from icebench.engine.storage.store import Store

# Plain numbers: numpy asks members of an enumeration for methods, which takes longer than comparing a few entries.
_ADDED, _DELETED = int(EntryStatus.ADDED), int(EntryStatus.DELETED)


@dataclass(frozen=True, kw_only=True)
class ManifestSource:
    """The source of manifests: storage, optionally with a cache, and threads for large manifests.

    `needed_by` names table and snapshot, for the error of a missing file.
    """

    store: Store
    runner: Runner
    cache: ManifestCache | None = None
    needed_by: str | None = None

    def manifests_of(self, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        """Load the manifests of a snapshot, in the order of its list. Manifests of a v1 snapshot without a list have no
        counts and no summaries.

        Raises:
            FileNotFound: Naming what refers to the file.
            CorruptTable: The list contradicts the specification.
            Unsupported: It is encrypted.
        """
        location = list_location(snapshot)
        if location is not None:
            if self.cache is None:
                return decode_manifest_list(self._read(location), location=location)
            return self.cache.manifest_list(
                location,
                f"snapshot {snapshot.snapshot_id} of {snapshot.timestamp_ms}",
                lambda: self._read(location),
                lambda data: decode_manifest_list(data, location=location),
            )
        return tuple(self._inline(path, snapshot) for path in snapshot.manifests)

    def columns(self, manifest: ManifestFile, metrics: Metrics, *, in_parts: bool = False) -> ManifestColumns:
        """Load the decoded entries of a manifest with at least these metrics; raises as `manifests_of`.

        Args:
            manifest: The manifest.
            metrics: Ids of columns; None for all.
            in_parts: Decode parts of the manifest in parallel, for when few manifests are decoded at a time.
        """
        return self._columns(manifest, metrics, None, in_parts=in_parts)

    def columns_of_small(self, manifests: Sequence[ManifestFile], metrics: Metrics) -> list[ManifestColumns]:
        """As `columns` for each, which is faster where they are small: those that are not in memory are read in
        parallel and decoded together."""
        if self.cache is not None and self.cache.has_disk:
            return list(self.runner.map(lambda m: self.columns(m, metrics), manifests))
        missing = [m for m in manifests if self.cache is None or self.cache.lacks(_key_of(m), metrics)]
        read = self.runner.map(lambda m: self._read(manifest_location(m)), missing)
        files = [ManifestBytes(data, manifest) for data, manifest in zip(read, missing, strict=True)]
        decoded = dict(
            zip(map(_key_of, missing), decode_columns_together(files, metrics, map_chunks=self.runner.map), strict=True)
        )
        return [self._columns(m, metrics, decoded.get(_key_of(m))) for m in manifests]

    def _columns(
        self, manifest: ManifestFile, metrics: Metrics, decoded: ManifestColumns | None, *, in_parts: bool = False
    ) -> ManifestColumns:
        """As `columns`; `decoded` has these metrics, and saves decoding the manifest unless the cache wants more."""
        path = manifest_location(manifest)
        parts = self.runner.map if in_parts else map

        def decode(wanted: Metrics) -> ManifestColumns:
            if decoded is not None and wanted == metrics:
                return decoded
            return decode_listed(ManifestBytes(self._read(path), manifest), wanted, map_chunks=parts)

        columns = decode(metrics) if self.cache is None else self.cache.get(_key_of(manifest), metrics, decode)
        for contradiction in columns.contradictions:
            self.store.report(contradiction)
        return columns

    def _read(self, location: str) -> bytes:
        try:
            return self.store.read(location)
        except FileNotFound as error:
            raise FileNotFound(location, self.needed_by) from error

    def _inline(self, path: str, snapshot: Snapshot) -> ManifestFile:
        check_snapshot_ids([snapshot], "manifests without a list")
        header = decode_header(self._read(path), location=path)
        return ManifestFile(
            manifest_path=path,
            manifest_length=self.store.size(path),
            partition_spec_id=header.spec.spec_id,
            content=header.content,
            added_snapshot_id=snapshot.snapshot_id,
        )


def list_location(snapshot: Snapshot) -> str | None:
    """Where the snapshot's manifest list is, if it has one; raises Unsupported for an encrypted one."""
    if snapshot.key_id is not None:
        raise Unsupported(f"the encrypted manifest list {snapshot.manifest_list}")
    return snapshot.manifest_list


def manifest_location(manifest: ManifestFile) -> str:
    """Where the manifest is; raises Unsupported for an encrypted one."""
    if manifest.key_metadata is not None:
        raise Unsupported(f"the encrypted manifest {manifest.manifest_path}")
    return manifest.manifest_path


def _key_of(manifest: ManifestFile) -> Key:
    return manifest.manifest_path, manifest.manifest_length


def spec_of(manifest: ManifestFile, metadata: TableMetadata) -> PartitionSpec:
    """The partition spec of a manifest; raises CorruptTable if the table does not have it."""
    spec = metadata.spec_by_id.get(manifest.partition_spec_id)
    if spec is None:
        reason = f"has partition spec {manifest.partition_spec_id}, which is not in the table metadata"
        raise CorruptTable(reason, location=manifest.manifest_path)
    return spec


@dataclass(frozen=True, kw_only=True)
class LiveEntries:
    """Some or all live entries of one manifest, after inheritance.

    `rows` are their ascending indexes in `columns`; the arrays have a value for each of them. `first_row_id` is null if
    the table has no row lineage.
    """

    manifest: ManifestFile
    columns: ManifestColumns
    rows: Int64Array
    snapshot_id: Int64Array
    sequence_number: Int64Array
    file_sequence_number: Int64Array
    first_row_id: pa.Array

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: Int64Array) -> LiveEntries:
        """The entries at these positions in `rows`."""
        return LiveEntries(
            manifest=self.manifest,
            columns=self.columns,
            rows=self.rows[chosen],
            snapshot_id=self.snapshot_id[chosen],
            sequence_number=self.sequence_number[chosen],
            file_sequence_number=self.file_sequence_number[chosen],
            first_row_id=take(self.first_row_id, chosen),
        )


def concatenated(entries: Sequence[LiveEntries], names: Sequence[str] | None = None) -> LiveEntries:
    """Entries of several manifests, whose columns have one schema, as if they were of the first; with all columns, or
    those of `names`."""
    batches = [each.columns.batch if names is None else each.columns.batch.select(names) for each in entries]
    firsts = accumulate((each.columns.count for each in entries), initial=0)
    return LiveEntries(
        manifest=entries[0].manifest,
        columns=ManifestColumns(pa.concat_batches(batches)),
        rows=np.concatenate([each.rows + first for each, first in zip(entries, firsts, strict=False)]),
        snapshot_id=np.concatenate([each.snapshot_id for each in entries]),
        sequence_number=np.concatenate([each.sequence_number for each in entries]),
        file_sequence_number=np.concatenate([each.file_sequence_number for each in entries]),
        first_row_id=pa.concat_arrays([each.first_row_id for each in entries]),
    )


def live_entries(manifest: ManifestFile, columns: ManifestColumns) -> LiveEntries:
    """The live entries, with snapshot ids, sequence numbers and first row ids inherited.

    Raises:
        CorruptTable: A data file among deletes or the reverse, or an existing entry without a sequence number.
    """
    status = columns.numbers("status")
    rows = np.flatnonzero(status != _DELETED)
    is_data = columns.numbers("content")[rows] == 0
    if not (is_data == (manifest.content == ManifestContent.DATA)).all():
        raise CorruptTable(f"a manifest of {manifest.content.name} with other files", location=manifest.manifest_path)
    return LiveEntries(
        manifest=manifest,
        columns=columns,
        rows=rows,
        snapshot_id=_fill_nulls(columns["snapshot_id"], manifest.added_snapshot_id, rows),
        sequence_number=_sequence_numbers(columns, "sequence_number", manifest, rows),
        file_sequence_number=_sequence_numbers(columns, "file_sequence_number", manifest, rows),
        first_row_id=_first_row_ids(columns, manifest, rows),
    )


def _fill_nulls(column: pa.Array, otherwise: int, rows: Int64Array) -> Int64Array:
    if not has_values(column):
        return np.full(len(rows), otherwise, np.int64)
    values, valid = values_of(column)[rows], valid_of(column)
    return values if valid is None else np.where(valid[rows], values, otherwise)


def _sequence_numbers(columns: ManifestColumns, name: str, manifest: ManifestFile, rows: Int64Array) -> Int64Array:
    """Null inherits the manifest's number, for added entries only; in v1 all numbers are 0."""
    column = columns[name]
    if column.null_count and manifest.sequence_number > 0:
        existing = rows[columns.numbers("status")[rows] != _ADDED]
        if len(existing) and not _all_valid(column, existing):
            raise CorruptTable("an existing entry has no sequence number", location=manifest.manifest_path)
    return _fill_nulls(column, manifest.sequence_number, rows)


def _all_valid(column: pa.Array, rows: Int64Array) -> bool:
    valid = valid_of(column)
    return valid is None or bool(valid[rows].all())


def _first_row_ids(columns: ManifestColumns, manifest: ManifestFile, rows: Int64Array) -> pa.Array:
    """Null ids continue from the manifest's, advancing by the rows of the entries before (spec: "First Row ID
    Inheritance")."""
    if manifest.first_row_id is None or manifest.content != ManifestContent.DATA:
        return pa.nulls(len(rows), pa.int64())
    own = take(columns["first_row_id"], rows)
    valid = valid_of(own)
    if valid is None:
        return own
    counts = np.where(valid, 0, columns.numbers("record_count")[rows])
    ends = manifest.first_row_id + np.cumsum(counts)
    if ends.min(initial=0) < 0:
        raise row_ids_exceed_long(manifest)
    inherited = ends - counts
    return number_array(np.where(valid, values_of(own), inherited))
