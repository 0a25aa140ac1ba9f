"""Writes the entries of manifests into other manifests, by column.

Memory is bounded: entries whose order is kept stream, and those that are clustered by partition are gathered for as
many partitions at a time as fit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from icebench.engine.codec.array_views import ManifestColumns, number_array
from icebench.engine.codec.manifests import schema as ids
from icebench.engine.codec.manifests.entry_columns import EntryColumns
from icebench.engine.codec.manifests.entry_rows import EntryRows, joined
from icebench.engine.codec.manifests.manifest_writer import ManifestLayout, encode_row_part, encode_rows_again
from icebench.engine.codec.manifests.partition_columns import distinct_tuples
from icebench.engine.codec.manifests.reader import decode_entry_columns
from icebench.engine.commit.manifests import WrittenManifest, manifest_layout, write_parts
from icebench.engine.commit.staging_context import Staging
from icebench.engine.errors import Unsupported
from icebench.engine.plan.manifests import live_entries
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import PartitionKey, partition_key

_GATHERED_BYTES = 128 << 20
"""Encoded bytes of manifests whose entries are gathered at a time; inflated they are two to five times as many."""
_BATCH_BYTES = 1 << 19
"""Entries compressed at a time: several blocks."""


@dataclass(frozen=True, kw_only=True)
class ManifestRewriting:
    """Writes entries of one partition spec and content again.

    Args:
        base: Gives schema, spec, format version, target size and codec.
        spec_id: The spec.
        content: The content.
        snapshot_id: The snapshot that adds the manifests.
        staging: Storage and threads.
    """

    base: TableMetadata
    spec_id: int
    content: ManifestContent
    snapshot_id: int
    staging: Staging

    @cached_property
    def _layout(self) -> ManifestLayout:
        return manifest_layout(self.base, self.content, self.snapshot_id, self.spec_id)

    def write(self, rows: Iterable[EntryRows]) -> list[WrittenManifest]:
        """Write entries in order, as manifests of about the target size."""
        layout = self._layout
        parts = self.staging.runner.map(lambda batch: (layout, encode_row_part(layout, batch)), _batches(rows))
        return write_parts(parts, self.base, self.staging)

    def live(self, manifest: ManifestFile, chosen: Collection[PartitionKey] | None = None) -> EntryRows:
        """The live entries of a manifest (of the chosen partitions) as EXISTING, with nothing left to inherit.

        Raises:
            CorruptTable: The manifest contradicts the specification, or its list.
            Unsupported: It is encrypted, or has a file format that Iceberg does not use.
            Invalid: The format version of the table forbids an entry.
        """
        entries = self._live_columns(manifest)
        if chosen is not None:
            codes, tuples = distinct_tuples(entries.partition, entries.count)
            wanted = np.array([partition_key(self.spec_id, each) in chosen for each in tuples], np.bool_)
            entries = entries.take(np.flatnonzero(wanted[codes]))
        return encode_rows_again(self._layout, entries)

    def own(self, manifest: ManifestFile) -> EntryRows:
        """All entries of a manifest that this commit wrote, as they are: they go on inheriting."""
        return encode_rows_again(self._layout, self._load(manifest)[1])

    def by_partition(self, manifests: Sequence[ManifestFile]) -> Iterator[EntryRows]:
        """The live entries of these manifests, those of each partition next to each other, in the order of the
        partitions' first use. Manifests are read several times if all their entries would not fit into memory."""
        run = self.staging.runner.map
        if sum(m.manifest_length for m in manifests) <= _GATHERED_BYTES:
            yield joined(list(run(self.live, manifests))).by_partition()
            return
        found = dict(zip(manifests, run(self._partition_bytes, manifests), strict=True))
        for chosen in _slices(found.values()):
            own = [manifest for manifest in manifests if not chosen.isdisjoint(found[manifest])]
            rows = run(self._live_of(chosen), own)
            if len(chosen) == 1:
                yield from rows
            else:
                yield joined(list(rows)).by_partition()

    def _live_of(self, chosen: Collection[PartitionKey]) -> Callable[[ManifestFile], EntryRows]:
        return lambda manifest: self.live(manifest, chosen)

    def _partition_bytes(self, manifest: ManifestFile) -> dict[PartitionKey, int]:
        """About how many bytes of the manifest each partition's live entries have."""
        entries = self._live_columns(manifest)
        codes, tuples = distinct_tuples(entries.partition, entries.count)
        counts = np.bincount(codes, minlength=len(tuples)) * manifest.manifest_length // max(1, entries.count)
        found: dict[PartitionKey, int] = {}
        for partition, size in zip(tuples, counts.tolist(), strict=True):
            key = partition_key(self.spec_id, partition)
            found[key] = found.get(key, 0) + size
        return found

    def _live_columns(self, manifest: ManifestFile) -> EntryColumns:
        plain, entries = self._load(manifest)
        live = live_entries(manifest, plain)
        return entries.take(live.rows).with_columns(
            {
                ids.STATUS: number_array(np.full(len(live), EntryStatus.EXISTING, np.int64)),
                ids.SNAPSHOT_ID: number_array(live.snapshot_id),
                ids.SEQUENCE_NUMBER: number_array(live.sequence_number),
                ids.FILE_SEQUENCE_NUMBER: number_array(live.file_sequence_number),
                ids.FIRST_ROW_ID: live.first_row_id,
            }
        )

    def _load(self, manifest: ManifestFile) -> tuple[ManifestColumns, EntryColumns]:
        path, store = manifest.manifest_path, self.staging.store
        if manifest.key_metadata is not None:
            raise Unsupported(f"the encrypted manifest {path}")
        return decode_entry_columns(store.read(path), location=path, listed=manifest, report=store.report)


def _slices(found: Iterable[Mapping[PartitionKey, int]]) -> Iterator[set[PartitionKey]]:
    """Partitions in the order of their first use, as many at a time as may be gathered."""
    sizes: dict[PartitionKey, int] = {}
    for each in found:
        for key, size in each.items():
            sizes[key] = sizes.get(key, 0) + size
    chosen: set[PartitionKey] = set()
    total = 0
    for key, size in sizes.items():
        if chosen and total + size > _GATHERED_BYTES:
            yield chosen
            chosen, total = set(), 0
        chosen.add(key)
        total += size
    yield chosen


def _batches(stream: Iterable[EntryRows]) -> Iterator[EntryRows]:
    """The entries in batches of about equal size, however many each part of the stream has."""
    waiting: list[EntryRows] = []
    size = 0
    for rows in stream:
        for batch in rows.batches(_BATCH_BYTES):
            waiting.append(batch)
            size += batch.size_bytes
            if size >= _BATCH_BYTES:
                yield joined(waiting)
                waiting, size = [], 0
    if waiting:
        yield joined(waiting)
