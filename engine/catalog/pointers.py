"""Catalogs in which a service keeps, for each table's name, which metadata file is its current one.

A commit writes a new metadata file and then has the service point to it if it still points to the base: of several
commits on one base exactly one succeeds. What the service is, and how it compares, is the implementation's.
"""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from icebench.engine.catalog.catalog import not_as_loaded
from icebench.engine.catalog.identifiers import dotted
from icebench.engine.catalog.lost_changes import AnswerLost, CatalogBusy, settle
from icebench.engine.catalog.metadata_files import MetadataFiles
from icebench.engine.catalog.ownership import (
    around,
    new_write_paths,
    overlap_error,
    overlapping,
    write_path_error,
)
from icebench.engine.commit.committer import Committed, Conflicted, Identifier, Outcome, TableState, Unknown
from icebench.engine.errors import (
    AlreadyExists,
    CommitConflict,
    CommitStateUnknown,
    CorruptTable,
    EngineError,
    NotFound,
)
from icebench.engine.lazy_module import LazyModule
from icebench.engine.spec.locations import lies_inside, normalise
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import METADATA_DELETE_AFTER_COMMIT
from icebench.engine.storage.resolve import Stores
from icebench.engine.storage.store import Store

if TYPE_CHECKING:
    from icebench.engine.spec import requirements as table_requirements
    from icebench.engine.spec import updates as table_updates
else:  # loaded by the first commit
    table_requirements = LazyModule("icebench.engine.spec.requirements")
    table_updates = LazyModule("icebench.engine.spec.updates")

TABLE_TYPE, VIEW_TYPE = "TABLE", "VIEW"


class PointerCatalog(ABC):
    """Tables by name. Dropping a table keeps its files.

    Args:
        name: The catalog's name.
        warehouse: The location below which tables are created by default, without a slash at the end.
        store_at: The store of a location.
        now_ms: The clock.
        new_id: Makes the unique part of names.
    """

    def __init__(
        self,
        *,
        name: str = "default",
        warehouse: str | None = None,
        store_at: Callable[[str], Store] | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        new_id: Callable[[], uuid.UUID] = uuid.uuid4,
    ) -> None:
        self._name = name
        self._warehouse = warehouse
        self._store_at = store_at or Stores()
        self._now_ms = now_ms
        self._new_id = new_id
        self._files = MetadataFiles(self._store_at, new_id)

    @property
    def name(self) -> str:
        return self._name

    def store_at(self, location: str) -> Store:
        return self._store_at(location)

    def default_location(self, identifier: Identifier) -> str:
        """The directory named after the table; with a UUID appended if that directory belongs, or overlaps with one
        that belongs, to a table or view that was renamed or dropped."""
        place = self._named_location(identifier)
        is_taken = self._is_taken(place)
        store = self._store_at(place)
        if is_taken or any(True for name in ("metadata", "data") for _ in store.list(f"{place}/{name}")):
            return f"{place}-{self._new_id()}"
        return place

    # Tables.

    def load_state(self, identifier: Identifier) -> TableState:
        location = self._location_of(identifier)
        if location is None:
            raise self._not_found(identifier)
        return TableState(metadata=self._files.load(location), metadata_location=location)

    def table_exists(self, identifier: Identifier) -> bool:
        return self._location_of(identifier) is not None

    def stage_table(self, identifier: Identifier, metadata: TableMetadata) -> TableMetadata:
        if self.table_exists(identifier):
            raise AlreadyExists(f"table {dotted(identifier)} exists already")
        self._check_write_paths(identifier, metadata, None)
        return metadata

    def create_table(self, identifier: Identifier, metadata: TableMetadata, *, is_staged: bool = False) -> TableState:
        self.stage_table(identifier, metadata)
        location = self._files.write_next(metadata, None)
        state = TableState(metadata=metadata, metadata_location=location)
        try:
            self._insert(identifier, state, is_new=True)
        except CommitStateUnknown:
            raise
        except EngineError:
            self._files.delete(location)
            raise
        return state

    def register_table(self, identifier: Identifier, metadata_location: str) -> TableState:
        state = TableState(metadata=self._files.load(metadata_location), metadata_location=metadata_location)
        self._insert(identifier, state, is_new=False)
        return state

    def commit(
        self,
        identifier: Identifier,
        base: TableState,
        requirements: Sequence[table_requirements.TableRequirement],
        updates: Sequence[table_updates.TableUpdate],
    ) -> Outcome:
        current = self._location_of(identifier)
        if current is None:
            raise self._not_found(identifier)
        if current != base.metadata_location:
            # The swap would find that too, but only after a metadata file was written for nothing.
            return _conflict(identifier)
        try:
            table_requirements.check_requirements(base.metadata, requirements)
            metadata = table_updates.apply_updates(
                base.metadata, updates, now_ms=self._now_ms(), base_location=base.metadata_location
            )
        except CommitConflict as conflict:
            return Conflicted(str(conflict))
        if metadata is base.metadata:
            return Committed(base)
        self._check_moved(identifier, metadata, base)
        self._check_write_paths(identifier, metadata, base)
        # Read before the swap: an error after it would be taken for a failed commit, and delete what was committed.
        deletes_outdated = METADATA_DELETE_AFTER_COMMIT.of(metadata.properties)
        location = self._files.write_next(metadata, base.metadata_location)
        try:
            outcome = self._swap(identifier, base, TableState(metadata=metadata, metadata_location=location))
        except EngineError:
            self._files.delete(location)
            raise
        if isinstance(outcome, Conflicted):
            self._files.delete(location)
        elif isinstance(outcome, Committed) and deletes_outdated:
            with suppress(EngineError):
                self._files.delete_outdated(base.metadata, metadata)
        return outcome

    def rename_table(self, old: Identifier, new: Identifier) -> None:
        if not self._rename(old, new, lambda location: self._files.load(location).table_uuid):
            raise self._not_found(old)

    def drop_table(self, identifier: Identifier, *, base: TableState | None = None) -> None:
        if not self._drop(identifier, base=None if base is None else base.metadata_location):
            raise not_as_loaded(identifier) if base and self._has(identifier) else self._not_found(identifier)

    # What the service does.

    @abstractmethod
    def _named_location(self, identifier: Identifier) -> str:
        """The directory named after a table; raises Invalid without a warehouse."""

    def _is_taken(self, place: str) -> bool:
        """Whether the service itself knows of a table in a directory; files there are looked for in any case."""
        return False

    @abstractmethod
    def _entry(self, identifier: Identifier, kind: str = TABLE_TYPE) -> tuple[str | None] | None:
        """The metadata file of a table or view; None where there is nothing of that name."""

    @abstractmethod
    def _add(self, identifier: Identifier, state: TableState, *, is_new: bool) -> None:
        """Add a table.

        Args:
            identifier: Its name.
            state: Its metadata.
            is_new: Whether nobody may have files in its directory.

        Raises:
            AlreadyExists: Something has the name.
            AnswerLost: It may have been added.
            Invalid: Others have files in the directory of a new table.
        """

    @abstractmethod
    def _point(self, identifier: Identifier, base: TableState, new: TableState) -> bool:
        """Point to another metadata file if the table is still at `base`; whether it was. Raises CatalogBusy,
        AnswerLost."""

    @abstractmethod
    def _move(self, old: Identifier, new: Identifier, kind: str) -> bool:
        """Rename a table or view; whether there was one. Raises AlreadyExists, AnswerLost."""

    @abstractmethod
    def _remove(self, identifier: Identifier, kind: str, base: str | None) -> bool:
        """Drop a table or view, with `base` only if that is its metadata file; whether there was one. Raises
        AnswerLost."""

    # Look-ups.

    def _has(self, identifier: Identifier, kind: str = TABLE_TYPE) -> bool:
        return self._entry(identifier, kind) is not None

    def _is_at(self, identifier: Identifier, base: str | None) -> bool:
        """Whether there is a table, and at the metadata file `base`, if given."""
        entry = self._entry(identifier)
        return entry is not None and base in (None, entry[0])

    def _pointer(self, identifier: Identifier, kind: str = TABLE_TYPE) -> str | None:
        """The metadata file that an entry names; None where it names none, or is not there."""
        entry = self._entry(identifier, kind)
        return entry and entry[0]

    def _location_of(self, identifier: Identifier, kind: str = TABLE_TYPE) -> str | None:
        entry = self._entry(identifier, kind)
        if entry is None:
            return None
        if entry[0] is None:
            raise CorruptTable(f"the catalog has no metadata location for {dotted(identifier)}")
        return entry[0]

    def _not_found(self, identifier: Identifier) -> NotFound:
        return NotFound(f"no table {dotted(identifier)} in catalog {self._name!r}")

    # Directories of other tables.

    @abstractmethod
    def _others(self, identifier: Identifier, base: TableState | None) -> list[tuple[str, str]]:
        """Names and metadata files of the other tables and views whose directories are compared with a table's.

        Args:
            identifier: The table's name.
            base: The table; None if it does not exist yet.
        """

    def _check_moved(self, identifier: Identifier, metadata: TableMetadata, base: TableState) -> None:
        """Raise Invalid if a commit gives a table a location that overlaps with another table's. That of a new table is
        checked by `_add`."""
        if normalise(metadata.location) == normalise(base.metadata.location):
            return
        other = overlapping(self._others(identifier, base), metadata.location)
        if other:
            raise overlap_error(dotted(identifier), metadata.location, other)

    def _check_write_paths(self, identifier: Identifier, metadata: TableMetadata, base: TableState | None) -> None:
        """Raise Invalid if a commit lets a table write into the directory of another one. Other tables are looked at
        only if ``write.data.path`` or its kind changes, and names a directory outside the table's location."""
        for path in new_write_paths(metadata, None if base is None else base.metadata):
            for other, metadata_location in around(self._others(identifier, base), path):
                if self._is_inside(path, metadata_location):
                    raise write_path_error(dotted(identifier), path, other)

    def _is_inside(self, path: str, metadata_location: str) -> bool:
        """Whether a path is in the directory of the table with a metadata file that seems to be around it."""
        try:
            return lies_inside(path, self._files.load(metadata_location).location)
        except CorruptTable:
            # Of a view, which has no files but those.
            return False
        except EngineError:
            # Of a table of another format only the directory is known.
            return True

    # Changes, whose lost answers are settled.

    def _insert(self, identifier: Identifier, state: TableState, *, is_new: bool) -> None:
        try:
            self._add(identifier, state, is_new=is_new)
        except AnswerLost as lost:
            location = state.metadata_location
            settle(f"{dotted(identifier)} was created", lambda: self._location_of(identifier) == location, lost)

    def _rename(
        self,
        old: Identifier,
        new: Identifier,
        uuid_in: Callable[[str], str],
        kind: str = TABLE_TYPE,
    ) -> bool:
        """Rename a table or view; whether there was one. `uuid_in` reads a metadata file."""
        before = self._pointer(old, kind)

        def happened() -> bool:
            now = self._pointer(new, kind)
            if before is None or now is None:
                return False
            # A commit may have come after the rename.
            return now == before or uuid_in(now) == uuid_in(before)

        try:
            return self._move(old, new, kind)
        except AnswerLost as lost:
            settle(f"{dotted(old)} was renamed to {dotted(new)}", happened, lost)
            return True

    def _drop(self, identifier: Identifier, kind: str = TABLE_TYPE, *, base: str | None = None) -> bool:
        """Drop a table or view, with `base` only if that is its metadata file; whether there was one."""
        try:
            return self._remove(identifier, kind, base)
        except AnswerLost as lost:
            settle(f"{dotted(identifier)} was dropped", lambda: not self._has(identifier, kind), lost)
            return True

    def _swap(self, identifier: Identifier, base: TableState, new: TableState) -> Outcome:
        try:
            changed = self._point(identifier, base, new)
        except CatalogBusy as busy:
            return Conflicted(str(busy))
        except AnswerLost as lost:
            return Unknown(cause=lost, metadata_location=new.metadata_location, base_location=base.metadata_location)
        return Committed(new) if changed else _conflict(identifier)


def _conflict(identifier: Identifier) -> Conflicted:
    return Conflicted(f"{dotted(identifier)} was changed by another commit")
