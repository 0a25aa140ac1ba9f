"""Table metadata (spec: "Table Metadata Fields")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from icebench.engine.errors import CorruptTable, Invalid, NotFound
from icebench.engine.spec.partitioning import PartitionSpec
from icebench.engine.spec.properties import DATA_PATH, FOLDER_STORAGE_PATH, METADATA_PATH, OBJECT_STORAGE_PATH
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import MAIN, MetadataLogEntry, Snapshot, SnapshotLogEntry, SnapshotRef
from icebench.engine.spec.sorting import SortOrder
from icebench.engine.spec.statistics import PartitionStatisticsFile, StatisticsFile

T = TypeVar("T")

LATEST_FORMAT_VERSION = 3
DEFAULT_FORMAT_VERSION = 2


@dataclass(frozen=True, kw_only=True)
class TableMetadata:
    """One version of a table, complete and immutable. A change makes a new value (`icebench.engine.spec.updates`)."""

    format_version: int
    table_uuid: str
    location: str
    last_sequence_number: int = 0
    last_updated_ms: int
    last_column_id: int
    schemas: tuple[Schema, ...]
    current_schema_id: int
    partition_specs: tuple[PartitionSpec, ...]
    default_spec_id: int
    last_partition_id: int
    properties: Mapping[str, str] = field(default_factory=dict)
    current_snapshot_id: int | None = None
    snapshots: tuple[Snapshot, ...] = ()
    snapshot_log: tuple[SnapshotLogEntry, ...] = ()
    metadata_log: tuple[MetadataLogEntry, ...] = ()
    sort_orders: tuple[SortOrder, ...] = (SortOrder(),)
    default_sort_order_id: int = 0
    refs: Mapping[str, SnapshotRef] = field(default_factory=dict)
    statistics: tuple[StatisticsFile, ...] = ()
    partition_statistics: tuple[PartitionStatisticsFile, ...] = ()
    next_row_id: int | None = None
    encryption_keys: tuple[Mapping[str, Any], ...] = ()

    @cached_property
    def schema_by_id(self) -> dict[int, Schema]:
        """All schemas by id."""
        return {s.schema_id: s for s in self.schemas}

    @cached_property
    def spec_by_id(self) -> dict[int, PartitionSpec]:
        """All partition specs by id."""
        return {s.spec_id: s for s in self.partition_specs}

    @cached_property
    def snapshot_by_id(self) -> dict[int, Snapshot]:
        """All snapshots by id."""
        return {s.snapshot_id: s for s in self.snapshots}

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return _existing(self.schema_by_id, self.current_schema_id, "current-schema-id")

    @property
    def spec(self) -> PartitionSpec:
        """The default partition spec."""
        return _existing(self.spec_by_id, self.default_spec_id, "default-spec-id")

    @property
    def sort_order(self) -> SortOrder:
        """The default sort order."""
        return _existing({s.order_id: s for s in self.sort_orders}, self.default_sort_order_id, "default-sort-order-id")

    @property
    def highest_column_id(self) -> int:
        """The highest column id ever assigned, after which new columns are numbered. Some writers leave
        ``last-column-id`` too low: a new column would have the values of one that is, or was, in the schema."""
        return max([self.last_column_id, *(schema.highest_field_id for schema in self.schemas)])

    @property
    def highest_partition_id(self) -> int:
        """The highest partition field id ever assigned, as `highest_column_id`."""
        return max([self.last_partition_id, *(f.field_id for spec in self.partition_specs for f in spec.fields)])

    @property
    def own_locations(self) -> tuple[str, ...]:
        """Directories whose files the table may delete: its location, and those that properties name."""
        named = (
            path.of(self.properties) for path in (DATA_PATH, METADATA_PATH, OBJECT_STORAGE_PATH, FOLDER_STORAGE_PATH)
        )
        return (self.location, *(path for path in named if path))

    @property
    def current_snapshot(self) -> Snapshot | None:
        """The head of main; None for a table without one."""
        return None if self.current_snapshot_id is None else self.snapshot(self.current_snapshot_id)

    def snapshot(self, snapshot_id: int) -> Snapshot:
        """The snapshot of that id; raises NotFound."""
        found = self.snapshot_by_id.get(snapshot_id)
        if found is None:
            raise NotFound(f"no snapshot {snapshot_id} in the table at {self.location}; it may have been expired")
        return found

    def ref(self, name: str) -> SnapshotRef:
        """The branch or tag of that name; raises NotFound."""
        found = self.refs.get(name)
        if found is None:
            known = ", ".join(sorted(self.refs)) or "none"
            raise NotFound(f"no branch or tag {name!r} in the table at {self.location}; there are: {known}")
        return found

    def head(self, branch: str = MAIN) -> Snapshot | None:
        """The snapshot that a branch points at; None when the branch does not exist yet."""
        found = self.refs.get(branch)
        return None if found is None else self.snapshot(found.snapshot_id)

    def existing_head(self, branch: str = MAIN) -> Snapshot | None:
        """The snapshot that an existing branch points at; None for main in a table without snapshots.

        Raises:
            NotFound: There is no such branch.
            Invalid: It is a tag.
        """
        if branch == MAIN and branch not in self.refs:
            return None
        ref = self.ref(branch)
        if ref.type != "branch":
            raise Invalid(f"{branch!r} is a tag; only branches can be written to")
        return self.snapshot(ref.snapshot_id)

    def ancestors(self, snapshot_id: int | None) -> Iterator[int]:
        """A snapshot and those it was built on, newest first, as far back as the metadata goes; none for None.

        It ends: metadata whose snapshots descend from themselves are not decoded.
        """
        while snapshot_id is not None and snapshot_id in self.snapshot_by_id:
            yield snapshot_id
            snapshot_id = self.snapshot_by_id[snapshot_id].parent_snapshot_id

    def snapshot_as_of(self, timestamp_ms: int) -> Snapshot:
        """The snapshot that was current at that time, by the snapshot log; raises NotFound before the first."""
        past = [entry for entry in self.snapshot_log if entry.timestamp_ms <= timestamp_ms]
        if not past:
            raise NotFound(f"the table at {self.location} had no snapshot at {timestamp_ms} ms")
        return self.snapshot(past[-1].snapshot_id)

    def without_history(self) -> TableMetadata:
        """The table without snapshots, refs, logs and statistics: what writing its files needs."""
        return replace(
            self,
            snapshots=(),
            snapshot_log=(),
            metadata_log=(),
            refs={},
            current_snapshot_id=None,
            statistics=(),
            partition_statistics=(),
        )

    def schema_of(self, snapshot: Snapshot | None) -> Schema:
        """The schema that a snapshot was written with; the current one where the snapshot does not say."""
        if snapshot is None or snapshot.schema_id is None:
            return self.schema
        return self.schema_by_id.get(snapshot.schema_id, self.schema)


def _existing(known: Mapping[int, T], wanted: int, path: str) -> T:
    found = known.get(wanted)
    if found is None:
        raise CorruptTable(f"refers to id {wanted}, which is not in the metadata", path=path)
    return found
