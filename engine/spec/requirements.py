"""What a commit assumes of the table, as the REST catalog specification names it (`TableRequirement`).

A requirement is checked against the metadata that is current at the moment of the commit. One that does not hold means
that somebody else committed first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from icebench.engine.errors import CommitConflict
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.snapshots import MAIN


class TableRequirement:
    """Base of all requirements."""

    @property
    def subject(self) -> tuple[object, ...]:
        """What it is about; of requirements about one subject only equal ones hold together."""
        return (type(self),)

    def check(self, metadata: TableMetadata | None) -> None:
        """Raise CommitConflict where the requirement does not hold; None means that the table does not exist."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class AssertCreate(TableRequirement):
    """The table does not exist."""

    def check(self, metadata: TableMetadata | None) -> None:
        if metadata is not None:
            raise CommitConflict("the table was created by another commit")


@dataclass(frozen=True, slots=True)
class AssertTableUuid(TableRequirement):
    """The table is still the same one: it was not dropped and made again."""

    uuid: str

    def check(self, metadata: TableMetadata | None) -> None:
        _same("table uuid", self.uuid, _existing(metadata).table_uuid)


@dataclass(frozen=True, slots=True)
class AssertRefSnapshotId(TableRequirement):
    """A branch or tag points at this snapshot; None: it does not exist."""

    ref: str
    snapshot_id: int | None

    @property
    def subject(self) -> tuple[object, ...]:
        return type(self), self.ref

    def check(self, metadata: TableMetadata | None) -> None:
        found = _existing(metadata).refs.get(self.ref)
        actual = None if found is None else found.snapshot_id
        what = f"the snapshot of {'branch' if self.ref == MAIN else 'reference'} {self.ref!r}"
        _same(what, self.snapshot_id, actual)


@dataclass(frozen=True, slots=True)
class AssertLastAssignedFieldId(TableRequirement):
    """No column was added."""

    last_assigned_field_id: int

    def check(self, metadata: TableMetadata | None) -> None:
        _same("the last assigned column id", self.last_assigned_field_id, _existing(metadata).last_column_id)


@dataclass(frozen=True, slots=True)
class AssertCurrentSchemaId(TableRequirement):
    """The current schema did not change."""

    current_schema_id: int

    def check(self, metadata: TableMetadata | None) -> None:
        _same("the current schema id", self.current_schema_id, _existing(metadata).current_schema_id)


@dataclass(frozen=True, slots=True)
class AssertLastAssignedPartitionId(TableRequirement):
    """No partition field was added."""

    last_assigned_partition_id: int

    def check(self, metadata: TableMetadata | None) -> None:
        actual = _existing(metadata).last_partition_id
        _same("the last assigned partition field id", self.last_assigned_partition_id, actual)


@dataclass(frozen=True, slots=True)
class AssertDefaultSpecId(TableRequirement):
    """The default partition spec did not change."""

    default_spec_id: int

    def check(self, metadata: TableMetadata | None) -> None:
        _same("the default partition spec id", self.default_spec_id, _existing(metadata).default_spec_id)


@dataclass(frozen=True, slots=True)
class AssertDefaultSortOrderId(TableRequirement):
    """The default sort order did not change."""

    default_sort_order_id: int

    def check(self, metadata: TableMetadata | None) -> None:
        _same("the default sort order id", self.default_sort_order_id, _existing(metadata).default_sort_order_id)


def check_requirements(metadata: TableMetadata | None, requirements: Iterable[TableRequirement]) -> None:
    """Raise CommitConflict for the first requirement that does not hold."""
    for requirement in requirements:
        requirement.check(metadata)


def _existing(metadata: TableMetadata | None) -> TableMetadata:
    if metadata is None:
        raise CommitConflict("the table does not exist any more")
    return metadata


def _same(what: str, expected: object, actual: object) -> None:
    if expected != actual:
        raise CommitConflict(f"{what} has changed: expected {expected}, found {actual}")
