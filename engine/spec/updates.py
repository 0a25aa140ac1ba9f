"""Changes of table metadata, as the REST catalog specification names them (`TableUpdate`).

An update is a frozen value. `apply_updates` folds a batch of them over one base and returns new metadata; nothing is
changed in place and nothing is written. A batch is one commit: ids of ``-1`` mean "the one added last in this batch",
snapshots that were current only inside the batch leave no trace in the snapshot log, and one metadata-log entry is
made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from icebench.engine.errors import CommitConflict, Invalid, Unsupported
from icebench.engine.spec.metadata import LATEST_FORMAT_VERSION, TableMetadata
from icebench.engine.spec.partitioning import PartitionSpec, check_kept_names
from icebench.engine.spec.properties import METADATA_PREVIOUS_VERSIONS_MAX
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import MAIN, MetadataLogEntry, Snapshot, SnapshotLogEntry, SnapshotRef
from icebench.engine.spec.sorting import UNSORTED, SortOrder
from icebench.engine.spec.statistics import PartitionStatisticsFile, StatisticsFile
from icebench.engine.spec.texts import check_text
from icebench.engine.spec.types import INCOMPARABLE, UNKNOWN, V3_ONLY, NestedField, PrimitiveType, Type
from icebench.engine.spec.values import as_value

LAST_ADDED = -1
"""Stands for the id of the schema, spec or sort order that the batch added last."""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """Metadata in the middle of a batch, and what the batch did so far."""

    metadata: TableMetadata
    now_ms: int
    last_schema_id: int | None = None
    last_spec_id: int | None = None
    last_order_id: int | None = None
    added_snapshot_ids: frozenset[int] = frozenset()
    removed_snapshots: bool = False

    def with_metadata(self, **changes: object) -> Draft:
        """The draft with these fields of the metadata replaced."""
        return replace(self, metadata=replace(self.metadata, **changes))  # type: ignore[arg-type]


class TableUpdate:
    """Base of all updates."""

    def apply(self, draft: Draft) -> Draft:
        """The draft after this update; raises Invalid where it does not fit, CommitConflict where the base is stale."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class AssignUuid(TableUpdate):
    """Give the table its UUID. A table that has another one refuses."""

    uuid: str

    def apply(self, draft: Draft) -> Draft:
        if draft.metadata.table_uuid not in ("", self.uuid):
            raise Invalid(f"cannot change the table's uuid from {draft.metadata.table_uuid} to {self.uuid}")
        return draft.with_metadata(table_uuid=self.uuid)


@dataclass(frozen=True, slots=True)
class UpgradeFormatVersion(TableUpdate):
    """Move to a later format version."""

    format_version: int

    def apply(self, draft: Draft) -> Draft:
        current = draft.metadata.format_version
        if self.format_version > LATEST_FORMAT_VERSION:
            raise Unsupported(f"format version {self.format_version}; the latest supported is {LATEST_FORMAT_VERSION}")
        if self.format_version < current:
            raise Invalid(f"cannot downgrade a table from format version {current} to {self.format_version}")
        if self.format_version == current:
            return draft
        next_row_id = draft.metadata.next_row_id or 0 if self.format_version >= 3 else None
        return draft.with_metadata(format_version=self.format_version, next_row_id=next_row_id)


@dataclass(frozen=True, slots=True)
class AddSchema(TableUpdate):
    """Add a schema. An equal one is used again; else its id becomes one more than the highest there is.

    `last_column_id` None means the larger of the table's and the schema's highest field id.
    """

    schema: Schema
    last_column_id: int | None = None

    def apply(self, draft: Draft) -> Draft:
        metadata = draft.metadata
        check_types(self.schema, metadata.format_version)
        last = self.last_column_id
        if last is None:
            last = max(metadata.highest_column_id, self.schema.highest_field_id)
        if last < metadata.last_column_id:
            raise Invalid(f"last column id {last} is below the table's, {metadata.last_column_id}")
        known = _equal_schema(metadata, self.schema)
        if known is not None:
            return replace(draft.with_metadata(last_column_id=last), last_schema_id=known.schema_id)
        new_id = _new_schema_id(metadata)
        schemas = (*metadata.schemas, replace(self.schema, schema_id=new_id))
        return replace(draft.with_metadata(schemas=schemas, last_column_id=last), last_schema_id=new_id)


@dataclass(frozen=True, slots=True)
class SetCurrentSchema(TableUpdate):
    """Make a schema current."""

    schema_id: int = LAST_ADDED

    def apply(self, draft: Draft) -> Draft:
        schema_id = _resolve(self.schema_id, draft.last_schema_id, draft.metadata.schema_by_id, "schema")
        return draft.with_metadata(current_schema_id=schema_id)


@dataclass(frozen=True, slots=True)
class AddPartitionSpec(TableUpdate):
    """Add a partition spec. One with the same fields is used again."""

    spec: PartitionSpec

    def apply(self, draft: Draft) -> Draft:
        metadata = draft.metadata
        known = _equal_spec(metadata, self.spec)
        if known is not None:
            return replace(draft, last_spec_id=known.spec_id)
        self.spec.check(metadata.schema)
        new_id = _new_spec_id(metadata)
        last = max([metadata.highest_partition_id, *(f.field_id for f in self.spec.fields)])
        specs = (*metadata.partition_specs, replace(self.spec, spec_id=new_id))
        return replace(draft.with_metadata(partition_specs=specs, last_partition_id=last), last_spec_id=new_id)


@dataclass(frozen=True, slots=True)
class SetDefaultSpec(TableUpdate):
    """Make a partition spec the one that writers use."""

    spec_id: int = LAST_ADDED

    def apply(self, draft: Draft) -> Draft:
        spec_id = _resolve(self.spec_id, draft.last_spec_id, draft.metadata.spec_by_id, "partition spec")
        return draft.with_metadata(default_spec_id=spec_id)


@dataclass(frozen=True, slots=True)
class AddSortOrder(TableUpdate):
    """Add a sort order. One with the same fields is used again; id 0 is the unsorted order."""

    sort_order: SortOrder

    def apply(self, draft: Draft) -> Draft:
        metadata = draft.metadata
        known = _equal_order(metadata, self.sort_order)
        if known is not None:
            return replace(draft, last_order_id=known.order_id)
        self.sort_order.check(metadata.schema)
        new_id = _new_order_id(metadata, self.sort_order)
        orders = (*metadata.sort_orders, replace(self.sort_order, order_id=new_id))
        return replace(draft.with_metadata(sort_orders=orders), last_order_id=new_id)


@dataclass(frozen=True, slots=True)
class SetDefaultSortOrder(TableUpdate):
    """Make a sort order the one that writers use."""

    order_id: int = LAST_ADDED

    def apply(self, draft: Draft) -> Draft:
        known = {o.order_id: o for o in draft.metadata.sort_orders}
        order_id = _resolve(self.order_id, draft.last_order_id, known, "sort order")
        return draft.with_metadata(default_sort_order_id=order_id)


@dataclass(frozen=True, slots=True)
class AddSnapshot(TableUpdate):
    """Add a snapshot, which no reference points at yet.

    A sequence number or first row id that another commit has taken meanwhile is a conflict: the snapshot has to be
    staged again. That also holds between commits to different branches, and after an upgrade to format version 3.
    """

    snapshot: Snapshot

    def apply(self, draft: Draft) -> Draft:
        metadata, added = draft.metadata, self.snapshot
        if added.snapshot_id in metadata.snapshot_by_id:
            raise Invalid(f"snapshot {added.snapshot_id} exists already")
        if metadata.format_version > 1 and added.sequence_number <= metadata.last_sequence_number:
            raise CommitConflict(
                f"sequence number {added.sequence_number} is taken; the table is at {metadata.last_sequence_number}"
            )
        changed = draft.with_metadata(
            snapshots=(*metadata.snapshots, added),
            last_sequence_number=max(metadata.last_sequence_number, added.sequence_number),
            last_updated_ms=added.timestamp_ms,
        )
        if metadata.format_version >= 3:
            if added.first_row_id is None or added.added_rows is None:
                raise CommitConflict(
                    f"snapshot {added.snapshot_id} lacks first-row-id or added-rows of format version 3"
                )
            next_row_id = metadata.next_row_id or 0
            if added.first_row_id < next_row_id:
                raise CommitConflict(f"first row id {added.first_row_id} is taken; the table is at {next_row_id}")
            changed = changed.with_metadata(next_row_id=added.first_row_id + added.added_rows)
        return replace(changed, added_snapshot_ids=draft.added_snapshot_ids | {added.snapshot_id})


@dataclass(frozen=True, slots=True)
class RemoveSnapshots(TableUpdate):
    """Forget snapshots, with the statistics of each and the references that point at one."""

    snapshot_ids: frozenset[int]

    def apply(self, draft: Draft) -> Draft:
        metadata, gone = draft.metadata, self.snapshot_ids & draft.metadata.snapshot_by_id.keys()
        if not gone:
            return draft
        changed = draft.with_metadata(
            snapshots=tuple(s for s in metadata.snapshots if s.snapshot_id not in gone),
            refs={name: ref for name, ref in metadata.refs.items() if ref.snapshot_id not in gone},
            current_snapshot_id=None if metadata.current_snapshot_id in gone else metadata.current_snapshot_id,
            statistics=tuple(s for s in metadata.statistics if s.snapshot_id not in gone),
            partition_statistics=tuple(s for s in metadata.partition_statistics if s.snapshot_id not in gone),
        )
        return replace(changed, removed_snapshots=True)


@dataclass(frozen=True, slots=True)
class SetSnapshotRef(TableUpdate):
    """Point a branch or tag at a snapshot, making it where it does not exist."""

    name: str
    ref: SnapshotRef

    def apply(self, draft: Draft) -> Draft:
        check_text(f"the name of a {self.ref.type}", self.name)
        metadata, old = draft.metadata, draft.metadata.refs.get(self.name)
        snapshot = metadata.snapshot_by_id.get(self.ref.snapshot_id)
        if snapshot is None:
            raise Invalid(f"cannot set {self.name!r} to snapshot {self.ref.snapshot_id}, which the table does not have")
        if self.name == MAIN and self.ref.type != "branch":
            raise Invalid(f"{MAIN!r} is a branch and cannot become a tag")
        if old is not None and old.type != self.ref.type:
            raise Invalid(f"{self.name!r} is a {old.type} and cannot become a {self.ref.type}")
        if old == self.ref:
            return draft
        changed = draft.with_metadata(refs={**metadata.refs, self.name: self.ref})
        if self.name != MAIN or metadata.current_snapshot_id == self.ref.snapshot_id:
            return changed
        # Going back to an older snapshot happens now, not when that snapshot was made.
        is_new = snapshot.snapshot_id in draft.added_snapshot_ids
        at_ms = snapshot.timestamp_ms if is_new else max(draft.now_ms, metadata.last_updated_ms)
        entry = SnapshotLogEntry(timestamp_ms=at_ms, snapshot_id=snapshot.snapshot_id)
        return changed.with_metadata(
            current_snapshot_id=snapshot.snapshot_id, snapshot_log=(*metadata.snapshot_log, entry)
        )


@dataclass(frozen=True, slots=True)
class RemoveSnapshotRef(TableUpdate):
    """Remove a branch or tag; nothing happens when it is not there."""

    name: str

    def apply(self, draft: Draft) -> Draft:
        metadata = draft.metadata
        refs = {name: ref for name, ref in metadata.refs.items() if name != self.name}
        current = None if self.name == MAIN else metadata.current_snapshot_id
        return draft.with_metadata(refs=refs, current_snapshot_id=current)


@dataclass(frozen=True, slots=True)
class SetLocation(TableUpdate):
    """Move where new files are written; existing files stay where they are."""

    location: str

    def apply(self, draft: Draft) -> Draft:
        return draft.with_metadata(location=self.location.rstrip("/"))


@dataclass(frozen=True, slots=True)
class SetProperties(TableUpdate):
    """Set table properties."""

    updates: Mapping[str, str] = field(default_factory=dict)

    def apply(self, draft: Draft) -> Draft:
        return draft.with_metadata(properties={**draft.metadata.properties, **self.updates})


@dataclass(frozen=True, slots=True)
class RemoveProperties(TableUpdate):
    """Remove table properties; names that are not set are passed over."""

    removals: frozenset[str]

    def apply(self, draft: Draft) -> Draft:
        kept = {name: value for name, value in draft.metadata.properties.items() if name not in self.removals}
        return draft.with_metadata(properties=kept)


@dataclass(frozen=True, slots=True)
class SetStatistics(TableUpdate):
    """Set the statistics file of its snapshot."""

    statistics: StatisticsFile

    def apply(self, draft: Draft) -> Draft:
        others = tuple(s for s in draft.metadata.statistics if s.snapshot_id != self.statistics.snapshot_id)
        return draft.with_metadata(statistics=(*others, self.statistics))


@dataclass(frozen=True, slots=True)
class RemoveStatistics(TableUpdate):
    """Remove the statistics file of a snapshot."""

    snapshot_id: int

    def apply(self, draft: Draft) -> Draft:
        kept = tuple(s for s in draft.metadata.statistics if s.snapshot_id != self.snapshot_id)
        return draft.with_metadata(statistics=kept)


@dataclass(frozen=True, slots=True)
class SetPartitionStatistics(TableUpdate):
    """Set the partition statistics file of its snapshot."""

    statistics: PartitionStatisticsFile

    def apply(self, draft: Draft) -> Draft:
        others = tuple(s for s in draft.metadata.partition_statistics if s.snapshot_id != self.statistics.snapshot_id)
        return draft.with_metadata(partition_statistics=(*others, self.statistics))


@dataclass(frozen=True, slots=True)
class RemovePartitionStatistics(TableUpdate):
    """Remove the partition statistics file of a snapshot."""

    snapshot_id: int

    def apply(self, draft: Draft) -> Draft:
        kept = tuple(s for s in draft.metadata.partition_statistics if s.snapshot_id != self.snapshot_id)
        return draft.with_metadata(partition_statistics=kept)


@dataclass(frozen=True, slots=True)
class RemovePartitionSpecs(TableUpdate):
    """Remove partition specs that no manifest uses any more (the caller's to know); never the default one."""

    spec_ids: frozenset[int]

    def apply(self, draft: Draft) -> Draft:
        if draft.metadata.default_spec_id in self.spec_ids:
            raise Invalid("cannot remove the default partition spec")
        kept = tuple(s for s in draft.metadata.partition_specs if s.spec_id not in self.spec_ids)
        return draft.with_metadata(partition_specs=kept, last_partition_id=draft.metadata.highest_partition_id)


@dataclass(frozen=True, slots=True)
class RemoveSchemas(TableUpdate):
    """Remove schemas that no snapshot refers to any more (the caller's to know); never the current one."""

    schema_ids: frozenset[int]

    def apply(self, draft: Draft) -> Draft:
        if draft.metadata.current_schema_id in self.schema_ids:
            raise Invalid("cannot remove the current schema")
        kept = tuple(s for s in draft.metadata.schemas if s.schema_id not in self.schema_ids)
        return draft.with_metadata(schemas=kept, last_column_id=draft.metadata.highest_column_id)


def updates_to_format(base: TableMetadata, version: int, new_uuid: str) -> tuple[TableUpdate, ...]:
    """The updates that upgrade a table. One of version 1 need not have a UUID, and later versions need one: it then
    gets `new_uuid`."""
    upgrade = UpgradeFormatVersion(version)
    return (upgrade,) if base.table_uuid or version == 1 else (AssignUuid(new_uuid), upgrade)


def updates_to_schema(base: TableMetadata, schema: Schema, last_column_id: int) -> tuple[TableUpdate, ...]:
    """The updates that make a schema current.

    An equal one is named by its id: a REST server that has it adds none, and then knows of none that was added last. A
    new one is sent with the id that it gets, as Iceberg Java sends it: not every server assigns ids (Nessie).

    Raises:
        Invalid: As `check_kept_names`.
    """
    check_kept_names(base.partition_specs, schema)
    known = _equal_schema(base, schema)
    if known is not None:
        return (SetCurrentSchema(known.schema_id),)
    return AddSchema(replace(schema, schema_id=_new_schema_id(base)), last_column_id), SetCurrentSchema()


def updates_to_spec(base: TableMetadata, spec: PartitionSpec) -> tuple[TableUpdate, ...]:
    """The updates that make a partition spec the default; as `updates_to_schema`."""
    known = _equal_spec(base, spec)
    if known is not None:
        return (SetDefaultSpec(known.spec_id),)
    return AddPartitionSpec(replace(spec, spec_id=_new_spec_id(base))), SetDefaultSpec()


def updates_to_order(base: TableMetadata, order: SortOrder) -> tuple[TableUpdate, ...]:
    """The updates that make a sort order the default; as `updates_to_schema`."""
    known = _equal_order(base, order)
    if known is not None:
        return (SetDefaultSortOrder(known.order_id),)
    return AddSortOrder(replace(order, order_id=_new_order_id(base, order))), SetDefaultSortOrder()


def _new_schema_id(metadata: TableMetadata) -> int:
    return max((s.schema_id for s in metadata.schemas), default=-1) + 1


def _new_spec_id(metadata: TableMetadata) -> int:
    return max((s.spec_id for s in metadata.partition_specs), default=-1) + 1


def _new_order_id(metadata: TableMetadata, order: SortOrder) -> int:
    if order.is_unsorted:
        return UNSORTED.order_id
    return max((o.order_id for o in metadata.sort_orders), default=0) + 1


def _equal_schema(metadata: TableMetadata, schema: Schema) -> Schema | None:
    wanted = schema.fields, schema.identifier_field_ids
    return next((s for s in metadata.schemas if (s.fields, s.identifier_field_ids) == wanted), None)


def _equal_spec(metadata: TableMetadata, spec: PartitionSpec) -> PartitionSpec | None:
    return next((s for s in metadata.partition_specs if s.fields == spec.fields), None)


def _equal_order(metadata: TableMetadata, order: SortOrder) -> SortOrder | None:
    return next((s for s in metadata.sort_orders if s.fields == order.fields), None)


def apply_updates(
    base: TableMetadata, updates: Iterable[TableUpdate], *, now_ms: int, base_location: str | None = None
) -> TableMetadata:
    """The metadata after a batch of updates.

    Args:
        base: What to change.
        updates: Applied in order.
        now_ms: The time of the change; never earlier in the result than the base's own time.
        base_location: The file that `base` was read from; it becomes the newest metadata-log entry, and the log is cut
            to ``write.metadata.previous-versions-max`` entries.

    Returns:
        New metadata, or `base` itself where nothing changed.

    Raises:
        Invalid: An update does not fit the table.
        CommitConflict: A snapshot was staged on a base that is not current any more.
    """
    draft = Draft(metadata=base, now_ms=now_ms)
    for update in updates:
        draft = update.apply(draft)
    if draft.metadata == base:
        return base
    result = draft.metadata
    last_updated_ms = result.last_updated_ms
    if not draft.added_snapshot_ids:
        last_updated_ms = max(now_ms, base.last_updated_ms)
    return replace(
        result,
        last_updated_ms=last_updated_ms,
        snapshot_log=_snapshot_log(draft),
        metadata_log=_metadata_log(base, result, base_location),
    )


def check_types(schema: Schema, format_version: int) -> None:
    """Raise Invalid where a column's type or default needs a later format version, its type has no such default, its
    documentation is no text, two columns have one full name, a column of type unknown is required, or an identifier
    field is none by the spec ("Identifier Field IDs"; Unsupported for types without order): Iceberg Java opens no table
    with such a schema."""
    if schema.shared_names:
        raise Invalid(f"several columns would be called {min(schema.shared_names)!r}")
    for nested in schema.walk():
        _check_values(nested, schema.name_of[nested.field_id])
    for each in schema.identifier_field_ids:
        schema.check_identifier(each)
    if format_version >= 3:
        return
    for nested in schema.walk():
        if isinstance(nested.type, PrimitiveType) and nested.type.name in V3_ONLY:
            name = schema.name_of[nested.field_id]
            raise Invalid(
                f"column {name!r} of type {nested.type} needs format version 3, the table has {format_version}"
            )
        if nested.initial_default is not None or nested.write_default is not None:
            name = schema.name_of[nested.field_id]
            raise Invalid(f"the default of column {name!r} needs format version 3, the table has {format_version}")


def _check_values(nested: NestedField, name: str) -> None:
    check_text("the name of a column", nested.name)
    if not isinstance(nested.type, Type):
        raise Invalid(f"column {name!r}: {nested.type!r} is no type, such as icebench.LONG")
    if nested.doc is not None:
        check_text(f"the documentation of column {name!r}", nested.doc)
    if not isinstance(nested.required, bool):
        raise Invalid(f"column {name!r} is required or not, and not {nested.required!r}")
    if nested.required and nested.type == UNKNOWN:
        raise Invalid(f"column {name!r} of type unknown cannot be required")
    for default in (nested.initial_default, nested.write_default):
        if default is None:
            continue
        if not isinstance(nested.type, PrimitiveType) or nested.type.name in INCOMPARABLE:
            raise Invalid(f"column {name!r} of type {nested.type} has no default but null")
        try:
            made = as_value(nested.type, default)
            if isinstance(default, Decimal) and str(made) != str(default):
                raise ValueError(f"{default} has another scale than {nested.type}")
        except ValueError as error:
            raise Invalid(f"the default of column {name!r}: {error}") from error


def _resolve(wanted: int, last_added: int | None, known: Mapping[int, object], what: str) -> int:
    if wanted == LAST_ADDED:
        if last_added is None:
            raise Invalid(f"cannot set the {what} added last: none has been added")
        return last_added
    if wanted not in known:
        raise Invalid(f"there is no {what} with id {wanted}")
    return wanted


def _snapshot_log(draft: Draft) -> tuple[SnapshotLogEntry, ...]:
    metadata, log = draft.metadata, draft.metadata.snapshot_log
    passing = draft.added_snapshot_ids - {metadata.current_snapshot_id}
    log = tuple(entry for entry in log if entry.snapshot_id not in passing)
    if draft.removed_snapshots:
        # A hole would make the snapshot before it seem current for longer than it was: history starts after the last.
        gone = [index for index, entry in enumerate(log) if entry.snapshot_id not in metadata.snapshot_by_id]
        log = log[gone[-1] + 1 :] if gone else log
    return log


def _metadata_log(
    base: TableMetadata, result: TableMetadata, base_location: str | None
) -> tuple[MetadataLogEntry, ...]:
    if base_location is None:
        return result.metadata_log
    entry = MetadataLogEntry(timestamp_ms=base.last_updated_ms, metadata_file=base_location)
    kept = max(1, METADATA_PREVIOUS_VERSIONS_MAX.of(result.properties))
    return (*result.metadata_log, entry)[-kept:]
