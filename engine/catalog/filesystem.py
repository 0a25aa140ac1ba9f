"""A catalog that is a directory, as Iceberg Java's HadoopCatalog lays it out.

``<warehouse>/<namespace levels>/<table>/metadata/`` holds ``v1.metadata.json``, ``v2.metadata.json``, ... and
``version-hint.text``. Version N + 1 is committed by creating its file, which only one writer can do. The hint may be
stale or missing: readers go on from it while a next version exists.

A name must never become free again, or a writer that was stalled at v2 could create v3 while the table is at v11: no
version is removed before the table is. Since others may do so all the same, and a table may be dropped and created
again, a writer that created a version then checks that the one before is still the one that it read; if not, it
withdraws its own.

This works only where a file is created atomically and only once (`Store.creates_atomically`): on local file systems,
and on S3 by conditional writes. Other object stores are refused, because two writers could both believe that they
committed. Iceberg Java's catalog writes to S3 without a condition: the two must not write to the same catalog there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from icebench.engine.catalog.catalog import Namespace, not_as_loaded
from icebench.engine.catalog.identifiers import dotted
from icebench.engine.catalog.metadata_files import RecentMetadata
from icebench.engine.catalog.ownership import (
    check_ownership,
    is_own_version,
    new_write_paths,
    surely_own,
    write_path_error,
)
from icebench.engine.catalog.versions import VERSION_HINT, current_version, existing_version, version_of
from icebench.engine.codec.metadata_json.table import encode_metadata
from icebench.engine.commit.committer import Committed, Conflicted, Identifier, Outcome, TableState, Unknown
from icebench.engine.errors import (
    AlreadyExists,
    CommitConflict,
    CommitStateUnknown,
    EngineError,
    FileNotFound,
    Invalid,
    NotFound,
    StorageFailed,
    Unsupported,
)
from icebench.engine.lazy_module import LazyModule
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import (
    GC_ENABLED,
    METADATA_COMPRESSION,
    METADATA_DELETE_AFTER_COMMIT,
    METADATA_PATH,
)
from icebench.engine.storage.canonical_paths import CanonicalPaths
from icebench.engine.storage.store import Store, WriteUncertain

if TYPE_CHECKING:
    from icebench.engine.plan import reachable_files
    from icebench.engine.spec import requirements as table_requirements
    from icebench.engine.spec import updates as table_updates
else:  # loaded by the first commit or drop
    reachable_files = LazyModule("icebench.engine.plan.reachable_files")
    table_requirements = LazyModule("icebench.engine.spec.requirements")
    table_updates = LazyModule("icebench.engine.spec.updates")

_MARKER = ".namespace"
"""An empty file that keeps an empty namespace in existence: storage has no empty directories."""
_HEAD_BYTES = 4096


class FileSystemCatalog:
    """Tables below a warehouse directory. Dropping a table deletes the files in its directory only, not those in
    ``write.data.path`` or those of `add_files`; it is refused where ``gc.enabled`` is false.

    Args:
        warehouse: A location without a slash at the end.
        store: Where it is; must create files atomically.
        name: For messages.
        now_ms: The clock.
    """

    def __init__(
        self,
        warehouse: str,
        store: Store,
        *,
        name: str = "default",
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        if not store.creates_atomically:
            why = "the storage cannot create files atomically; S3 can, with icebench[aws]"
            raise Unsupported(f"a file-system catalog at {warehouse}: {why}")
        self._warehouse = warehouse.rstrip("/")
        self._store = store
        self._name = name
        self._now_ms = now_ms
        self._recent = RecentMetadata()

    @property
    def name(self) -> str:
        return self._name

    def close(self) -> None:
        """Nothing to close."""

    def store_at(self, location: str) -> Store:
        return self._store

    def default_location(self, identifier: Identifier) -> str:
        return "/".join([self._warehouse, *identifier])

    # Tables.

    def load_state(self, identifier: Identifier) -> TableState:
        state = self._load(identifier)[1]
        if state is None:
            raise self._not_found(identifier)
        return state

    def table_exists(self, identifier: Identifier) -> bool:
        return current_version(self._metadata_directory(identifier), self._store)[1] is not None

    def stage_table(self, identifier: Identifier, metadata: TableMetadata) -> TableMetadata:
        location = self.default_location(identifier)
        if metadata.location != location:
            raise Unsupported(f"a location other than {location} for {dotted(identifier)} in a file-system catalog")
        _check_properties(metadata)
        if self.table_exists(identifier):
            raise AlreadyExists(f"table {dotted(identifier)} exists already")
        self._check_alone(identifier)
        self._check_write_paths(identifier, metadata, None)
        return metadata

    def create_table(self, identifier: Identifier, metadata: TableMetadata, *, is_staged: bool = False) -> TableState:
        self.stage_table(identifier, metadata)
        outcome = self._create(identifier, 1, metadata, None)
        if isinstance(outcome, Committed):
            return outcome.state
        if isinstance(outcome, Unknown):
            raise CommitStateUnknown(f"whether {dotted(identifier)} was created is not known: {outcome.cause}")
        raise AlreadyExists(f"table {dotted(identifier)} exists already")

    def register_table(self, identifier: Identifier, metadata_location: str) -> TableState:
        raise Unsupported("registering a table in a file-system catalog: a table is where its name says")

    def commit(
        self,
        identifier: Identifier,
        base: TableState,
        requirements: Sequence[table_requirements.TableRequirement],
        updates: Sequence[table_updates.TableUpdate],
    ) -> Outcome:
        version, current, data = self._load(identifier)
        if current is None:
            raise self._not_found(identifier)
        # A table that was dropped and made anew has the same names.
        if (current.metadata_location, current.metadata.table_uuid) != (
            base.metadata_location,
            base.metadata.table_uuid,
        ):
            return _conflict(identifier)
        try:
            table_requirements.check_requirements(base.metadata, requirements)
            changed = table_updates.apply_updates(
                base.metadata, updates, now_ms=self._now_ms(), base_location=base.metadata_location
            )
        except CommitConflict as conflict:
            return Conflicted(str(conflict))
        if changed is base.metadata:
            return Committed(base)
        if changed.location != base.metadata.location:
            raise Unsupported("moving a table of a file-system catalog")
        self._check_write_paths(identifier, changed, base.metadata)
        return self._create(identifier, version + 1, changed, (base.metadata_location, data))

    def list_tables(self, namespace: Namespace) -> list[Identifier]:
        tables, namespaces = self._scan()
        if namespace not in namespaces:
            raise NotFound(f"no namespace {dotted(namespace)} in catalog {self._name!r}")
        return sorted(table for table in tables if table[:-1] == namespace)

    def rename_table(self, old: Identifier, new: Identifier) -> None:
        raise Unsupported("renaming a table of a file-system catalog: its name is its directory")

    def drop_table(self, identifier: Identifier, *, base: TableState | None = None) -> None:
        """Drop a table with the files in its directory that are surely its own (`surely_own`).

        Raises:
            Invalid: ``gc.enabled`` is false, or the directory has metadata of another table; nothing is dropped.
            CorruptTable: A manifest cannot be read; likewise.
            StorageFailed: Likewise; or it was dropped, and files of it are left, as the message says.
        """
        state = self.load_state(identifier)
        if base not in (None, state):
            raise not_as_loaded(identifier)
        if not GC_ENABLED.of(state.metadata.properties):
            raise Invalid(f"files may not be deleted: {GC_ENABLED.name} is false, other tables may need them")
        listed = list(self._store.list(self.default_location(identifier)))
        canonical = CanonicalPaths(f"{self._warehouse}/")
        runner = LocalRunner()
        check_ownership(listed, state, state, canonical=canonical, store=self._store, runner=runner)
        reach = reachable_files.Reach(store=self._store, runner=runner, canonical=canonical)
        reached = reach.all_of(state.metadata, state.metadata_location, may_be_missing=True)
        own = surely_own(listed, reached, canonical)
        directory = self._metadata_directory(identifier)
        versions = {location: version_of(location.removeprefix(f"{directory}/")) for location in own}
        # Metadata first, the oldest first: until the newest is gone the table is whole, and then it is no more.
        for location in sorted(filter(versions.get, versions), key=versions.__getitem__):
            if not is_own_version(state.metadata, location, self._store, canonical):
                # Another writer dropped the table, and it was made anew.
                break
            self._delete(location)
        # What was committed meanwhile goes, too: its writer saw the version before it.
        uuid = state.metadata.table_uuid
        try:
            while (late := self._load(identifier)[1]) is not None and late.metadata.table_uuid == uuid:
                self._delete(late.metadata_location)
        except StorageFailed as failed:
            raise CommitStateUnknown(f"whether {dotted(identifier)} was dropped is not known: {failed}") from failed
        try:
            for location, version in versions.items():
                if not version:
                    self._delete(location)
        except (StorageFailed, CommitStateUnknown) as error:
            raise StorageFailed(f"{dotted(identifier)} was dropped, but files of it are left: {error}") from error

    def _delete(self, location: str) -> None:
        """Delete a file that may be gone; CommitStateUnknown if that cannot be determined."""
        try:
            self._store.delete(location)
        except FileNotFound:
            return
        except StorageFailed as failed:
            try:
                is_left = self._store.exists(location)
            except EngineError:
                raise CommitStateUnknown(f"whether {location} was deleted is not known: {failed}") from failed
            if is_left:
                raise

    # Namespaces.

    def namespace_exists(self, namespace: Namespace) -> bool:
        return namespace in self._scan()[1]

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str] | None = None) -> None:
        if properties:
            raise Unsupported("namespace properties in a file-system catalog")
        taken = f"namespace {dotted(namespace)} exists already"
        if self.namespace_exists(namespace):
            raise AlreadyExists(taken)
        try:
            self._store.write(self._marker(namespace), b"")
        except AlreadyExists as error:
            raise AlreadyExists(taken) from error
        except WriteUncertain as error:
            raise CommitStateUnknown(
                f"whether namespace {dotted(namespace)} was created is not known: {error}"
            ) from error

    def drop_namespace(self, namespace: Namespace) -> None:
        tables, namespaces = self._scan()
        if namespace not in namespaces:
            raise NotFound(f"no namespace {dotted(namespace)} in catalog {self._name!r}")
        held = sorted(name for name in [*tables, *namespaces] if name[:-1] == namespace)
        if held:
            raise Invalid(f"namespace {dotted(namespace)} is not empty: it holds {held[0][-1]}")
        self._delete(self._marker(namespace))

    def list_namespaces(self, parent: Namespace = ()) -> list[Namespace]:
        namespaces = self._scan()[1]
        if parent and parent not in namespaces:
            raise NotFound(f"no namespace {dotted(parent)} in catalog {self._name!r}")
        return sorted(known for known in namespaces if known[:-1] == parent)

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        if not self.namespace_exists(namespace):
            raise NotFound(f"no namespace {dotted(namespace)} in catalog {self._name!r}")
        return {}

    def update_namespace_properties(
        self, namespace: Namespace, updates: Mapping[str, str], removals: Collection[str] = ()
    ) -> None:
        raise Unsupported("namespace properties in a file-system catalog")

    # Files.

    def _metadata_directory(self, identifier: Identifier) -> str:
        return f"{self.default_location(identifier)}/metadata"

    def _marker(self, namespace: Namespace) -> str:
        return "/".join([self._warehouse, *namespace, _MARKER])

    def _not_found(self, identifier: Identifier) -> NotFound:
        return NotFound(f"no table {dotted(identifier)} in the warehouse {self._warehouse}")

    def _load(self, identifier: Identifier) -> tuple[int, TableState | None, bytes]:
        """The newest version, its state and its file's bytes; 0 and None if there is no table."""
        version, location = current_version(self._metadata_directory(identifier), self._store)
        if location is None:
            return version, None, b""
        data = self._store.read(location)
        metadata = self._recent.decode(location, data)
        return version, TableState(metadata=metadata, metadata_location=location), data

    def _create(
        self, identifier: Identifier, version: int, metadata: TableMetadata, base: tuple[str, bytes] | None
    ) -> Outcome:
        """Create a version's file; `base` is the location and content of the one before, None for the first."""
        _check_properties(metadata)
        directory = self._metadata_directory(identifier)
        location = f"{directory}/v{version}.metadata.json"
        data = encode_metadata(metadata)
        unknown = partial(Unknown, metadata_location=location, metadata=data, base_location=base and base[0])
        try:
            self._store.write(location, data)
        except (AlreadyExists, StorageFailed) as error:
            # What exists may be this: a proxy may have sent the request twice, and hands on the second answer.
            try:
                if self._store.read(location) != data:
                    return _conflict(identifier)
            except FileNotFound:
                if isinstance(error, AlreadyExists | WriteUncertain):
                    return unknown(cause=error)
                raise error from None
            except EngineError:
                return unknown(cause=error)
        try:
            if not self._follows(identifier, metadata, base):
                return self._withdraw(identifier, version, location, data)
        except EngineError as error:
            return unknown(cause=error)
        # Readers look for a next version, so that a hint that was not written costs them little.
        with suppress(EngineError):
            self._store.write(f"{directory}/{VERSION_HINT}", str(version).encode(), overwrite=True)
        self._recent.remember(location, data, metadata)
        return Committed(TableState(metadata=metadata, metadata_location=location))

    def _follows(self, identifier: Identifier, metadata: TableMetadata, base: tuple[str, bytes] | None) -> bool:
        """Whether a version that was just created follows its base, or is the first of its table."""
        if base is None:
            current = self._load(identifier)[1]
            return current is not None and current.metadata.table_uuid == metadata.table_uuid
        location, data = base
        try:
            # The UUID is among the first members: a table that was made anew differs there.
            return self._store.read(location, 0, _HEAD_BYTES) == data[:_HEAD_BYTES]
        except FileNotFound:
            return False

    def _withdraw(self, identifier: Identifier, version: int, location: str, data: bytes) -> Outcome:
        """Delete a version that does not follow its base. Where there is a later one it may have been built upon, by a
        writer that deletes old versions: it stays, and whoever committed it looks for the change."""
        reason = f"{dotted(identifier)} went on, or was dropped, while version {version} was being written"
        if existing_version(self._metadata_directory(identifier), version + 1, self._store):
            return Conflicted(reason, is_certain=False)
        with suppress(FileNotFound):
            if self._store.read(location) == data:
                self._store.delete(location)
        return Conflicted(reason)

    def _check_alone(self, identifier: Identifier) -> None:
        """Raise Invalid if a table would lie in the directory of another one, or another in its own."""
        above = [identifier[:depth] for depth in range(1, len(identifier))]
        outer = next((each for each in above if self.table_exists(each)), None)
        # One of this very name was made meanwhile; creating the first version will find it.
        inner = min(self._scan(identifier)[0] - {identifier}, default=None)
        if outer or inner:
            other = dotted(outer or inner or ())
            raise Invalid(
                f"{dotted(identifier)} and {other} would lie in one another, at {self.default_location(identifier)}: "
                "dropping the outer one would delete the files of the inner one"
            )

    def _check_write_paths(self, identifier: Identifier, metadata: TableMetadata, base: TableMetadata | None) -> None:
        """Raise Invalid if a table would write into the directory of another one."""
        canonical = CanonicalPaths(f"{self._warehouse}/")
        for path in new_write_paths(metadata, base):
            if not canonical.is_inside(f"{path}/-", [self._warehouse]):
                continue
            below = canonical.path(f"{path}/-").removeprefix(canonical.path(f"{self._warehouse}/-").removesuffix("-"))
            levels = tuple(below.split("/")[:-1])
            above = [levels[:depth] for depth in range(1, len(levels) + 1)]
            outer = next((each for each in above if each == identifier or self.table_exists(each)), identifier)
            if outer != identifier:
                raise write_path_error(dotted(identifier), path, dotted(outer))

    def _scan(self, below: Namespace = ()) -> tuple[set[Identifier], set[Namespace]]:
        """All tables and namespaces below one. The whole directory is listed: this layout has no register of them."""
        tables: set[Identifier] = set()
        namespaces: set[Namespace] = set()
        for info in self._store.list("/".join([self._warehouse, *below])):
            *directory, name = info.location[len(self._warehouse) + 1 :].split("/")
            if name == _MARKER:
                namespaces.add(tuple(directory))
            elif len(directory) > 2 and directory[-1] == "metadata" and version_of(name):
                tables.add(tuple(directory[:-1]))
        for known in [*tables, *namespaces]:
            namespaces |= {known[:depth] for depth in range(1, len(known))}
        return tables, namespaces


def _conflict(identifier: Identifier) -> Conflicted:
    return Conflicted(f"{dotted(identifier)} was changed by another commit")


def _check_properties(metadata: TableMetadata) -> None:
    """Refuse properties that would let two commits of one version both succeed, or hide a commit."""
    for set_so, name in (
        (METADATA_COMPRESSION.of(metadata.properties) != "none", METADATA_COMPRESSION.name),
        (METADATA_DELETE_AFTER_COMMIT.of(metadata.properties), METADATA_DELETE_AFTER_COMMIT.name),
        (METADATA_PATH.of(metadata.properties) is not None, METADATA_PATH.name),
    ):
        if set_so:
            raise Unsupported(f"table property {name}={metadata.properties[name]!r} in a file-system catalog")
