"""Changes of a table's schema, partition spec, sort order, properties and format version: metadata only.

Each is applied to the base of every attempt, so two writers that add different columns both succeed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from icebench.engine.commit.staged_snapshot import Staged
from icebench.engine.commit.staging_context import Staging
from icebench.engine.errors import Invalid
from icebench.engine.spec.checked_properties import check_table_properties
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.metadata_columns import LINEAGE_NAMES, check_column_names
from icebench.engine.spec.name_mapping import evolve_mapping, name_mapping_text, parse_name_mapping
from icebench.engine.spec.partition_evolution import PartitionSpecUpdate
from icebench.engine.spec.partitioning import check_promotions
from icebench.engine.spec.properties import CLUSTERING_KEYS, COLUMN_PROPERTIES, NAME_MAPPING, ORC_BLOOM_COLUMNS
from icebench.engine.spec.requirements import (
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertTableUuid,
)
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.schema_evolution import SchemaUpdate
from icebench.engine.spec.sorting import SortOrder, sort_order_of
from icebench.engine.spec.transforms import Void
from icebench.engine.spec.updates import (
    RemoveProperties,
    SetProperties,
    TableUpdate,
    updates_to_format,
    updates_to_order,
    updates_to_schema,
    updates_to_spec,
)


@dataclass(frozen=True)
class UpdateSchema:
    """Changes the current schema, and with it the name mapping (``schema.name-mapping.default``), if there is one, and
    the properties of single columns.

    Args:
        edit: Makes its changes on the given update; called once for every attempt.
    """

    edit: Callable[[SchemaUpdate], object]

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        update = SchemaUpdate(base.schema, base.highest_column_id, base.format_version)
        self.edit(update)
        schema, last_column_id = update.apply()
        if (schema, last_column_id) == (base.schema, base.highest_column_id):
            return Staged(requirements=(AssertTableUuid(base.table_uuid),))
        # The default spec and sort order need their source columns.
        _check_sources(base, schema)
        base.spec.check(schema)
        check_promotions(base.partition_specs, base.schema, schema)
        base.sort_order.check(schema)
        return Staged(
            requirements=(
                AssertTableUuid(base.table_uuid),
                AssertLastAssignedFieldId(base.last_column_id),
                AssertCurrentSchemaId(base.current_schema_id),
                AssertDefaultSpecId(base.default_spec_id),
                AssertLastAssignedPartitionId(base.last_partition_id),
                AssertDefaultSortOrderId(base.default_sort_order_id),
            ),
            updates=(
                *updates_to_schema(base, schema, last_column_id),
                *mapping_update(base, schema),
                *_column_property_updates(base, schema),
            ),
        )


def _check_sources(base: TableMetadata, schema: Schema) -> None:
    """Raise Invalid where the default spec or sort order needs a column that is dropped."""
    fields = [f for f in base.spec.fields if not isinstance(f.transform, Void)]
    needed = {source_id: f"partition field {f.name!r}" for f in fields for source_id in f.source_ids}
    needed |= {source_id: "the sort order" for f in base.sort_order.fields for source_id in f.source_ids}
    for source_id, use in needed.items():
        if source_id in base.schema.by_id and source_id not in schema.by_id:
            raise Invalid(f"column {base.schema.name_of[source_id]!r} is needed by {use}: change that first")


def mapping_update(base: TableMetadata, schema: Schema) -> tuple[SetProperties, ...]:
    """Update the name mapping, by which files without field ids are read."""
    text = NAME_MAPPING.of(base.properties)
    if text is None:
        return ()
    mapping = parse_name_mapping(text)
    evolved = evolve_mapping(mapping, base.schema, schema)
    return () if evolved == mapping else (SetProperties({NAME_MAPPING.name: name_mapping_text(evolved)}),)


def _column_property_updates(base: TableMetadata, schema: Schema) -> tuple[TableUpdate, ...]:
    """Name columns anew in the properties of single columns and in those that list columns, and remove dropped ones.

    Iceberg Java leaves those of fields in a renamed or dropped struct, and some of Bloom filters and dictionaries.

    Raises:
        Invalid: A key of the clustering is dropped.
    """
    removed: set[str] = set()
    changed: dict[str, str] = {}
    for name, text in base.properties.items():
        prefix = next((each.prefix for each in COLUMN_PROPERTIES if name.startswith(each.prefix)), "")
        field_id = base.schema.id_of.get(name.removeprefix(prefix)) if prefix else None
        if field_id is not None and schema.name_of.get(field_id) != base.schema.name_of[field_id]:
            removed.add(name)
            if field_id in schema.name_of:
                changed[prefix + schema.name_of[field_id]] = text
    for listing in (CLUSTERING_KEYS, ORC_BLOOM_COLUMNS):
        names = [name.strip() for name in base.properties.get(listing.name, "").split(",")]
        ids = [base.schema.id_of.get(name) for name in names]
        kept = [name if i is None else schema.name_of.get(i) for name, i in zip(names, ids, strict=True)]
        if None in kept and listing is CLUSTERING_KEYS:
            dropped = names[kept.index(None)]
            raise Invalid(f"column {dropped} is a key of the clustering: take it out of {listing.name} first")
        left = [name for name in kept if name is not None]
        if not left:
            removed.add(listing.name)
        elif left != names:
            changed[listing.name] = ",".join(left)
    updates = RemoveProperties(frozenset(removed)), SetProperties(changed)
    return tuple(update for update, own in zip(updates, (removed, changed), strict=True) if own)


@dataclass(frozen=True)
class UpdateSpec:
    """Changes the default partition spec; files keep the spec they were written with.

    Args:
        edit: Makes its changes on the given update; called once for every attempt.
    """

    edit: Callable[[PartitionSpecUpdate], object]

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        update = PartitionSpecUpdate(
            base.schema, base.spec, base.partition_specs, base.highest_partition_id, base.format_version
        )
        self.edit(update)
        spec, _ = update.apply()
        return Staged(
            requirements=(
                AssertTableUuid(base.table_uuid),
                AssertLastAssignedPartitionId(base.last_partition_id),
                AssertDefaultSpecId(base.default_spec_id),
                AssertCurrentSchemaId(base.current_schema_id),
            ),
            updates=updates_to_spec(base, spec),
        )


@dataclass(frozen=True)
class ReplaceSortOrder:
    """Makes `order`, or columns to sort by, the table's sort order; its id is assigned by the table."""

    order: SortOrder | Sequence[str]

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        order = sort_order_of(self.order, base.schema)
        order.check(base.schema)
        return Staged(
            requirements=(
                AssertTableUuid(base.table_uuid),
                AssertDefaultSortOrderId(base.default_sort_order_id),
                AssertCurrentSchemaId(base.current_schema_id),
            ),
            updates=updates_to_order(base, order),
        )


@dataclass(frozen=True)
class UpdateProperties:
    """Sets and removes table properties. The last writer of a property wins, as in Iceberg Java."""

    changed: Mapping[str, str] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        """See `icebench.engine.commit.changes.change.Change`; raises Invalid as `check_table_properties`."""
        check_table_properties(self.changed)
        updates = (SetProperties(self.changed), RemoveProperties(self.removed))
        return Staged(requirements=(AssertTableUuid(base.table_uuid),), updates=updates)


@dataclass(frozen=True)
class UpgradeFormat:
    """Upgrades the table to a later format version, irreversibly."""

    format_version: int

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        if base.format_version < 3 <= self.format_version:  # rewritten files get columns of these names
            check_column_names((f.name for f in base.schema.fields), LINEAGE_NAMES)
        updates = updates_to_format(base, self.format_version, str(staging.commit_id))
        return Staged(requirements=(AssertTableUuid(base.table_uuid),), updates=updates)
