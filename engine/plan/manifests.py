"""Loads the manifests of a snapshot, and the live entries of a manifest (spec: "Manifest Lists", "Manifests")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from icebench.engine.codec.array_views import (
    BoolArray,
    Int64Array,
    ManifestColumns,
    has_values,
    number_array,
    valid_of,
    values_of,
)
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
    those of `names`. The manifests were written for schemas with the same highest id, or nobody asks."""
    batches = [each.columns.batch if names is None else each.columns.batch.select(names) for each in entries]
    firsts = accumulate((each.columns.count for each in entries), initial=0)
    return LiveEntries(
        manifest=entries[0].manifest,
        columns=ManifestColumns(pa.concat_batches(batches), highest_field_id=entries[0].columns.highest_field_id),
        rows=np.concatenate([each.rows + first for each, first in zip(entries, firsts, strict=False)]),
        snapshot_id=np.concatenate([each.snapshot_id for each in entries]),
        sequence_number=np.concatenate([each.sequence_number for each in entries]),
        file_sequence_number=np.concatenate([each.file_sequence_number for each in entries]),
        first_row_id=pa.concat_arrays([each.first_row_id for each in entries]),
    )


_OF_INHERITANCE = (
    "status",
    "content",
    "record_count",
    "snapshot_id",
    "sequence_number",
    "file_sequence_number",
    "first_row_id",
)


def live_entries(manifest: ManifestFile, columns: ManifestColumns) -> LiveEntries:
    """The live entries, with snapshot ids, sequence numbers and first row ids inherited.

    Raises:
        CorruptTable: A data file among deletes or the reverse, or an existing entry without a sequence number.
    """
    return live_entries_together([manifest], [columns])[0]


def live_entries_together(manifests: Sequence[ManifestFile], columns: Sequence[ManifestColumns]) -> list[LiveEntries]:
    """As `live_entries` for each of these manifests, which is faster where they are small."""
    counts = [each.count for each in columns]
    joined = columns[0]
    if len(columns) > 1:
        joined = ManifestColumns(pa.concat_batches([each.batch.select(_OF_INHERITANCE) for each in columns]))
    rows = np.flatnonzero(joined.numbers("status") != _DELETED)
    is_one = len(columns) == 1
    place = np.zeros(len(rows), np.int64) if is_one else np.repeat(np.arange(len(columns)), counts)[rows]
    live = _Live(joined, rows, manifests, place)
    live.check_contents()
    snapshot_id = live.filled("snapshot_id", [each.added_snapshot_id for each in manifests])
    sequence_number, file_sequence_number = live.sequence_numbers("sequence_number", "file_sequence_number")
    first_row_id = live.first_row_ids()
    firsts = accumulate(counts, initial=0)
    ends = np.searchsorted(live.place, np.arange(len(manifests) + 1)).tolist()
    return [
        LiveEntries(
            manifest=manifest,
            columns=own,
            rows=rows[begin:end] - first if first else rows[begin:end],
            snapshot_id=snapshot_id[begin:end],
            sequence_number=sequence_number[begin:end],
            file_sequence_number=file_sequence_number[begin:end],
            first_row_id=first_row_id[begin:end],
        )
        for manifest, own, first, begin, end in zip(manifests, columns, firsts, ends, ends[1:], strict=False)
    ]


@dataclass(frozen=True)
class _Live:
    """The live entries of some manifests, one after the other: `rows` of `columns`, each with the place of its manifest
    among `manifests`."""

    columns: ManifestColumns
    rows: Int64Array
    manifests: Sequence[ManifestFile]
    place: Int64Array

    def check_contents(self) -> None:
        """Raise CorruptTable for a data file among deletes or the reverse."""
        is_data = self.columns.numbers("content")[self.rows] == 0
        wrong = is_data != self._inherited([each.content == ManifestContent.DATA for each in self.manifests])
        if wrong.any():
            manifest = self._first(wrong)
            raise CorruptTable(
                f"a manifest of {manifest.content.name} with other files", location=manifest.manifest_path
            )

    def filled(self, name: str, otherwise: Sequence[int]) -> Int64Array:
        """A column; null inherits what is given for the manifest."""
        column = self.columns[name]
        if not has_values(column):
            return np.full(len(self.rows), self._inherited(otherwise))
        values, valid = values_of(column)[self.rows], valid_of(column)
        return values if valid is None else np.where(valid[self.rows], values, self._inherited(otherwise))

    def sequence_numbers(self, *names: str) -> list[Int64Array]:
        """Null inherits the manifest's number, for added entries only; in v1 all numbers are 0."""
        numbers = [each.sequence_number for each in self.manifests]
        needs_own = (self.columns.numbers("status")[self.rows] != _ADDED) & (self._inherited(numbers) > 0)
        for name in names if needs_own.any() else ():
            valid = valid_of(self.columns[name])
            if valid is not None and (lacking := needs_own & ~valid[self.rows]).any():
                location = self._first(lacking).manifest_path
                raise CorruptTable("an existing entry has no sequence number", location=location)
        return [self.filled(name, numbers) for name in names]

    def first_row_ids(self) -> pa.Array:
        """Null ids continue from the manifest's, advancing by the rows of the entries before (spec: "First Row ID
        Inheritance"); null without row lineage."""
        has_lineage = [m.first_row_id is not None and m.content == ManifestContent.DATA for m in self.manifests]
        if not any(has_lineage):
            return pa.nulls(len(self.rows), pa.int64())
        own = take(self.columns["first_row_id"], self.rows)
        valid = valid_of(own)
        if valid is None and all(has_lineage):
            return own
        counts = self.columns.numbers("record_count")[self.rows]
        counts = np.zeros_like(counts) if valid is None else np.where(valid, 0, counts)
        sums = np.concatenate([[0], np.cumsum(counts)])
        before = sums[np.searchsorted(self.place, np.arange(len(self.manifests)))]
        ends = self._inherited([each.first_row_id or 0 for each in self.manifests]) + sums[1:] - before[self.place]
        lineage = np.array(has_lineage)[self.place]
        exceeding = lineage & (ends < 0)  # a sum of more than 64 bits; differences of such sums are exact
        if exceeding.any():
            raise row_ids_exceed_long(self._first(exceeding))
        ids = values_of(own) if valid is None else np.where(valid, values_of(own), ends - counts)
        return number_array(ids, None if all(has_lineage) else lineage)

    def _inherited(self, values: Sequence[int]) -> NDArray[Any]:
        """What its manifest gives to each entry, one value where there is one manifest."""
        return np.array(values)[self.place] if len(values) > 1 else np.array(values)

    def _first(self, entries: BoolArray) -> ManifestFile:
        """The manifest of the first of these entries."""
        return self.manifests[self.place[np.argmax(entries)]]
