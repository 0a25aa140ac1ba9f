"""Tables made of manifests alone: metadata in memory whose data files exist only as entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from icebench.engine.codec.manifests.manifest_list import encode_manifest_list
from icebench.engine.codec.manifests.manifest_writer import encode_manifest
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import UNPARTITIONED, PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import MAIN, Snapshot, SnapshotRef
from icebench.engine.storage.memory import MemoryStore

SNAPSHOT_ID = 77


@dataclass
class TableBuilder:
    """Collects manifests and writes them as one snapshot."""

    schema: Schema
    specs: tuple[PartitionSpec, ...] = (UNPARTITIONED,)
    format_version: int = 2
    schemas: tuple[Schema, ...] | None = None
    store: MemoryStore = field(default_factory=MemoryStore)
    manifests: list[ManifestFile] = field(default_factory=list)

    def add_manifest(
        self,
        entries: Sequence[ManifestEntry],
        *,
        spec_id: int = 0,
        sequence_number: int = 0,
        snapshot_id: int = SNAPSHOT_ID,
        first_row_id: int | None = None,
        summaries: bool = True,
        schema: Schema | None = None,
    ) -> ManifestFile:
        """Write a manifest of entries of one content and spec; `schema` is that of the table then."""
        is_data = all(e.data_file.content == FileContent.DATA for e in entries)
        encoded = encode_manifest(
            entries,
            schema=schema or self.schema,
            spec=next(s for s in self.specs if s.spec_id == spec_id),
            format_version=self.format_version,
            content=ManifestContent.DATA if is_data else ManifestContent.DELETES,
            snapshot_id=snapshot_id,
        )
        path = f"memory://t/metadata/m{len(self.manifests)}.avro"
        self.store.write(path, encoded.data)
        if self.format_version >= 3 and is_data and first_row_id is None:
            first_row_id = 1000 * len(self.manifests)
        made = encoded.manifest_file(path, sequence_number=sequence_number, first_row_id=first_row_id)
        self.manifests.append(made if summaries else replace(made, partitions=None))
        return self.manifests[-1]

    def metadata(self) -> TableMetadata:
        """The table with one snapshot of all manifests, in order."""
        last = max([m.sequence_number for m in self.manifests], default=0)
        location = "memory://t/metadata/snap.avro"
        data = encode_manifest_list(
            self.manifests,
            format_version=self.format_version,
            snapshot_id=SNAPSHOT_ID,
            sequence_number=last,
            first_row_id=0 if self.format_version >= 3 else None,
        )
        self.store.write(location, data, overwrite=True)
        snapshot = Snapshot(
            snapshot_id=SNAPSHOT_ID,
            sequence_number=last,
            timestamp_ms=1000,
            manifest_list=location,
            operation="append",
            schema_id=self.schema.schema_id,
        )
        return TableMetadata(
            format_version=self.format_version,
            table_uuid="9c12d441-03fe-4693-9a96-a0705ddf69c1",
            location="memory://t",
            last_sequence_number=last,
            last_updated_ms=1000,
            last_column_id=self.schema.highest_field_id,
            schemas=self.schemas or (self.schema,),
            current_schema_id=self.schema.schema_id,
            partition_specs=self.specs,
            default_spec_id=self.specs[-1].spec_id,
            last_partition_id=max([999, *(f.field_id for s in self.specs for f in s.fields)]),
            current_snapshot_id=SNAPSHOT_ID,
            snapshots=(snapshot,),
            refs={MAIN: SnapshotRef(snapshot_id=SNAPSHOT_ID, type="branch")},
            next_row_id=1_000_000 if self.format_version >= 3 else None,
        )


def added(file: DataFile, *, sequence_number: int | None = None) -> ManifestEntry:
    """An entry of a new file; without a number it inherits that of its manifest."""
    return ManifestEntry(
        status=EntryStatus.ADDED,
        sequence_number=sequence_number,
        file_sequence_number=sequence_number,
        data_file=file,
    )


def data_file(path: str, *, records: int = 10, size_bytes: int = 1000, **more: object) -> DataFile:
    """A data file of one row group without metrics."""
    own: dict[str, object] = {"file_format": "parquet", "split_offsets": (4,), **more}
    return DataFile(
        file_path=path,
        record_count=records,
        file_size_in_bytes=size_bytes,
        **own,  # type: ignore[arg-type]
    )
