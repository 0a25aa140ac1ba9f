"""Tables, views and namespaces by name: what `icebench.load_catalog` returns."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypedDict, Unpack

import pyarrow as pa

from icebench.engine.catalog import catalog as rooms
from icebench.engine.catalog.identifiers import dotted, namespace_identifier, table_identifier
from icebench.engine.catalog.properties import TABLE_DEFAULT, TABLE_OVERRIDE
from icebench.engine.catalog.views import ViewCatalog
from icebench.engine.columnar.schemas import from_arrow_schema
from icebench.engine.commit.committer import Identifier, TableState
from icebench.engine.display import address_text, printable
from icebench.engine.errors import AlreadyExists, Invalid, Unsupported
from icebench.engine.lazy_module import LazyModule
from icebench.engine.operations.argument_names import also_named
from icebench.engine.plan.cache import ManifestCache
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import UNPARTITIONED, PartitionSpec, partition_spec
from icebench.engine.spec.properties import FORMAT_VERSION, as_texts
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import UNSORTED, SortOrder, sort_order_of
from icebench.engine.spec.transforms import Transform
from icebench.engine.storage.contradictions import Verify, VerifyingStore
from icebench.engine.storage.object_stores import is_storage_property
from icebench.engine.storage.resolve import absolute_location, normalise_location
from icebench.engine.table import Table

if TYPE_CHECKING:
    from icebench.engine.catalog import rest
    from icebench.engine.commit import one_table, target
    from icebench.engine.commit.changes import replace_table
    from icebench.engine.commit.changes.replace_table import ReplaceTable
    from icebench.engine.commit.target import Target
    from icebench.engine.maintenance import purge as purging
    from icebench.engine.operations import staged_table, transaction
    from icebench.engine.operations.transaction import TableTransaction
    from icebench.engine.runtime import metrics_reports
    from icebench.engine.spec import creation, views
else:  # a catalog's libraries are loaded with it: SQLAlchemy, the HTTP client
    rest = LazyModule("icebench.engine.catalog.rest")
    one_table = LazyModule("icebench.engine.commit.one_table")
    replace_table = LazyModule("icebench.engine.commit.changes.replace_table")
    staged_table = LazyModule("icebench.engine.operations.staged_table")
    target = LazyModule("icebench.engine.commit.target")
    transaction = LazyModule("icebench.engine.operations.transaction")
    purging = LazyModule("icebench.engine.maintenance.purge")
    metrics_reports = LazyModule("icebench.engine.runtime.metrics_reports")
    creation = LazyModule("icebench.engine.spec.creation")
    views = LazyModule("icebench.engine.spec.views")

Name = str | Sequence[str]
"""``"db.events"`` or ``("db", "events")``."""

SpecLike = PartitionSpec | Sequence[tuple[str, Transform | str]]
"""A spec, or ``(column, transform)`` pairs such as ``("ts", "day")``, ``("id", "bucket[16]")``."""


class TableOptions(TypedDict, total=False):
    """Options of a new table; see `Catalog.create_table`."""

    partition_spec: SpecLike
    sort_order: SortOrder | Sequence[str]
    properties: Mapping[str, str] | None
    location: str | None


class Catalog:
    """Tables by name, over one of the implementations of `icebench.engine.catalog`.

    Args:
        inner: The implementation.
        cache: Keeps decoded manifests for all its tables; None creates one for each table handle.
        verify: As for `icebench.Table`, for all its tables.
        address: Where it is, for `repr`.
        properties: Catalog properties; those prefixed ``table-default.`` and ``table-override.`` are for new tables.
        reporting: Where scans and commits are reported to; None for nowhere.
        now_ms: The clock.
        new_id: Makes table UUIDs.
    """

    def __init__(
        self,
        inner: rooms.Catalog,
        *,
        cache: ManifestCache | None = None,
        verify: Verify = "warn",
        address: str | None = None,
        properties: Mapping[str, str] | None = None,
        reporting: metrics_reports.Reporting | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        new_id: Callable[[], uuid.UUID] = uuid.uuid4,
    ) -> None:
        self._inner = inner
        self._address = address or None
        self._cache = cache
        self._verify: Verify = verify
        self._reporting = reporting
        self._properties = dict(properties or {})
        self._defaults = _below(TABLE_DEFAULT, self._properties)
        self._overrides = _below(TABLE_OVERRIDE, self._properties)
        self._now_ms = now_ms
        self._new_id = new_id

    def __repr__(self) -> str:
        at = "" if self._address is None else f", {address_text(self._address)}"
        return f"Catalog({printable(self.name)}, {type(self._inner).__name__}{at})"

    @property
    def name(self) -> str:
        """The catalog's name."""
        return self._inner.name

    @also_named(identifier="name")
    def create_table(
        self,
        name: Name,
        schema: Schema | pa.Schema,
        *,
        partition_spec: SpecLike = UNPARTITIONED,
        sort_order: SortOrder | Sequence[str] = UNSORTED,
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
    ) -> Table:
        """Create an empty table. Its namespace need not exist.

        Args:
            name: With a namespace.
            schema: Of the table, or of the Arrow data that it will hold. Fresh column ids are assigned.
            partition_spec: Refers to the columns by the ids of `schema`, or by name.
            sort_order: Refers to the columns by the ids of `schema`, or lists the columns to sort by, ascending.
            properties: Table properties; ``format-version`` is the format version (default 2).
            location: The table's directory; by default below the warehouse, by name. Recorded as an absolute location
                without ``..``, ``.`` and empty segments.

        Raises:
            AlreadyExists: There is a table of that name.
            Invalid: The schema, spec, sort order or a property is wrong.
            Unsupported: The format version, a type or a transform is not supported.
        """
        identifier = table_identifier(name)
        metadata = self._new_metadata(
            identifier,
            schema,
            partition_spec=partition_spec,
            sort_order=sort_order,
            properties=properties,
            location=location,
        )
        return self._table(identifier, self._inner.create_table(identifier, metadata))

    def _new_metadata(
        self,
        identifier: Identifier,
        schema: Schema | pa.Schema,
        *,
        partition_spec: SpecLike = UNPARTITIONED,
        sort_order: SortOrder | Sequence[str] = UNSORTED,
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
    ) -> TableMetadata:
        given, version = self._split(properties)
        columns = _schema(schema)
        return creation.new_table_metadata(
            columns,
            _spec(partition_spec, columns),
            sort_order_of(sort_order, columns),
            location=normalise_location(location) if location else self._inner.default_location(identifier),
            properties=given,
            format_version=FORMAT_VERSION.of({}) if version is None else version,
            uuid=self._new_id(),
            now_ms=self._now_ms(),
        )

    def _split(self, properties: Mapping[str, str] | None) -> tuple[dict[str, str], int | None]:
        """Table properties merged with the catalog's, and the format version if they name one."""
        given = {**self._defaults, **as_texts(properties or {}), **self._overrides}
        version = FORMAT_VERSION.of(given) if FORMAT_VERSION.name in given else None
        given.pop(FORMAT_VERSION.name, None)
        return given, version

    @also_named(identifier="name")
    def create_table_if_not_exists(
        self, name: Name, schema: Schema | pa.Schema, **options: Unpack[TableOptions]
    ) -> Table:
        """Create an empty table as `create_table` does, or load the existing one of that name, whatever its schema."""
        try:
            return self.create_table(name, schema, **options)
        except AlreadyExists:
            return self.load_table(name)

    @also_named(identifier="name")
    def create_table_transaction(
        self, name: Name, schema: Schema | pa.Schema, **options: Unpack[TableOptions]
    ) -> TableTransaction:
        """Begin a transaction that creates a table with its first rows; arguments and errors are `create_table`'s.

        Nothing is visible before it commits, which raises AlreadyExists if another writer created the table first::

            with catalog.create_table_transaction("db.t", rows.schema) as transaction:
                transaction.append(rows)
        """
        identifier = table_identifier(name)
        wanted = self._new_metadata(identifier, schema, **options)
        metadata = self._inner.stage_table(identifier, wanted)
        create = partial(self._inner.create_table, identifier, is_staged=True)
        return transaction.TableTransaction(
            staged_table.NewTarget.begin(self._target(identifier, metadata.location), metadata, create)
        )

    def replace_table_transaction(
        self, name: Name, schema: Schema | pa.Schema, *, or_create: bool = False, **options: Unpack[TableOptions]
    ) -> TableTransaction:
        """Begin a transaction that replaces a table's schema, partition spec, sort order and rows in one step: SQL's
        ``CREATE OR REPLACE TABLE ... AS SELECT``. Arguments as for `create_table`; without ``format-version`` among the
        properties the format version stays, and `location` applies to new files.

        Snapshots, branches, tags, location and other properties stay, so that former states remain readable: snapshots
        and tags with their own schemas, branches with the new one. Concurrent commits are replaced, too. For ids of
        columns and partition fields see `icebench.engine.commit.changes.replace_table`.

        Args:
            name: With a namespace.
            schema: The new schema.
            or_create: Create the table if there is none; see `create_table_transaction`.
            **options: As for `create_table`.

        Raises:
            NotFound: There is no such table, and `or_create` is False.
            Invalid: As `create_table`; or an earlier format version than the table's.
        """
        identifier = table_identifier(name)
        if or_create and not self._inner.table_exists(identifier):
            return self.create_table_transaction(name, schema, **options)
        change = self._replacement(schema, **options)
        own = self._target(identifier, self._inner.load_state(identifier).metadata.location)
        return transaction.TableTransaction(staged_table.StagedTarget.replacing(own, change))

    def _replacement(
        self,
        schema: Schema | pa.Schema,
        *,
        partition_spec: SpecLike = UNPARTITIONED,
        sort_order: SortOrder | Sequence[str] = UNSORTED,
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
    ) -> ReplaceTable:
        columns = _schema(schema)
        given, version = self._split(properties)
        return replace_table.ReplaceTable(
            columns,
            _spec(partition_spec, columns),
            sort_order_of(sort_order, columns),
            location=None if location is None else normalise_location(location),
            properties=given,
            format_version=version,
        )

    def _target(self, identifier: Identifier, location: str) -> Target:
        store = VerifyingStore(self._inner.store_at(location), dotted(identifier), self._verify)
        return target.Target(
            committer=one_table.OneTable(self._inner),
            identifier=identifier,
            store=store,
            cache=self._cache,
            reporting=self._reporting,
        )

    @also_named(identifier="name")
    def load_table(self, name: Name) -> Table:
        """The table at its current state; raises NotFound."""
        identifier = table_identifier(name)
        return self._table(identifier, self._inner.load_state(identifier))

    def storage_options(self, name: Name) -> dict[str, str]:
        """Properties with which `load_table` and PyIceberg open a table's files without the catalog: storage
        properties, and credentials from a REST server, which are valid for at least some minutes. They include secrets.
        Raises NotFound; Unsupported if the server signs each request instead.
        """
        location = self._inner.load_state(table_identifier(name)).metadata.location
        own = self._inner.storage_options(location) if isinstance(self._inner, rest.RestCatalog) else self._properties
        return {key: value for key, value in own.items() if is_storage_property(key)}

    @also_named(identifier="name")
    def register_table(self, name: Name, metadata_location: str) -> Table:
        """Register a table by an existing metadata file; raises AlreadyExists, FileNotFound."""
        identifier = table_identifier(name)
        return self._table(identifier, self._inner.register_table(identifier, absolute_location(metadata_location)))

    @also_named(identifier="name")
    def table_exists(self, name: Name) -> bool:
        """Whether there is a table of that name."""
        return self._inner.table_exists(table_identifier(name))

    def list_tables(self, namespace: Name) -> list[str]:
        """The full names of the tables directly in a namespace; raises NotFound."""
        return [dotted(table) for table in self._inner.list_tables(namespace_identifier(namespace))]

    def rename_table(self, name: Name, new_name: Name) -> Table:
        """Rename a table; its files do not move. Raises NotFound, AlreadyExists, Unsupported."""
        self._inner.rename_table(table_identifier(name), table_identifier(new_name))
        return self.load_table(new_name)

    @also_named(identifier="name")
    def drop_table(self, name: Name, *, purge: bool = False) -> None:
        """Drop a table; raises NotFound. A SQL catalog keeps the files, a directory catalog deletes those in the
        table's directory to which its metadata leads. Files elsewhere are kept: those in ``write.data.path``, and those
        of `add_files`; and so are files of the directory to which nothing leads, which may be another table's data. If
        the directory has metadata of another table, or files would be deleted and ``gc.enabled`` is false, raises
        Invalid and drops nothing.

        `purge` also deletes the table's files, even if they are registered under another name as well. With a REST
        catalog the server does so; for other catalogs see `icebench.engine.maintenance.purge`. If the table is changed
        or renamed meanwhile, raises CommitConflict and deletes nothing.
        """
        identifier = table_identifier(name)
        if not purge:
            self._inner.drop_table(identifier)
        elif isinstance(self._inner, rest.RestCatalog):
            self._inner.drop_table(identifier, purge=True)
        else:
            store = self._inner.store_at(self._inner.load_state(identifier).metadata.location)
            own = target.Target(committer=self._inner, identifier=identifier, store=store)
            purging.purge(own, lambda base: self._inner.drop_table(identifier, base=base))

    @also_named(identifier="name")
    def purge_table(self, name: Name) -> None:
        """Drop a table and delete its files: `drop_table` with `purge`."""
        self.drop_table(name, purge=True)

    def create_view(
        self,
        name: Name,
        queries: Mapping[str, str],
        schema: Schema | pa.Schema,
        *,
        default_namespace: Name = (),
        default_catalog: str | None = None,
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
    ) -> views.ViewMetadata:
        """Create a view. Its namespace need not exist.

        Args:
            name: With a namespace; tables and views share their names.
            queries: SQL by dialect, such as ``{"spark": "select ..."}``.
            schema: Of the rows that the queries return.
            default_namespace: Namespace of names in the queries that have none.
            default_catalog: Likewise, their catalog.
            properties: View properties.
            location: Where its metadata goes; by default below the warehouse, by name.

        Raises:
            AlreadyExists: A view or table has that name.
            Invalid: No query, or two for one dialect; ``version.history.num-entries`` is no positive number.
            Unsupported: The catalog has no views.
        """
        definition = self._definition(queries, default_namespace, default_catalog)
        place = normalise_location(location) if location else None
        identifier = table_identifier(name)
        columns = _schema(schema)
        own = as_texts(properties or {})
        return self._views.create_view(identifier, definition, columns, location=place, properties=own).metadata

    def replace_view(
        self,
        name: Name,
        queries: Mapping[str, str],
        schema: Schema | pa.Schema,
        *,
        default_namespace: Name = (),
        default_catalog: str | None = None,
    ) -> views.ViewMetadata:
        """Replace the definition of a view; the old one stays in its history. Arguments as for `create_view`.

        Raises:
            NotFound: No such view.
            Invalid: A dialect that the view has would be lost; or as `create_view`.
        """
        definition = self._definition(queries, default_namespace, default_catalog)
        return self._views.replace_view(table_identifier(name), definition, _schema(schema)).metadata

    def load_view(self, name: Name) -> views.ViewMetadata:
        """The view at its current state; raises NotFound."""
        return self._views.load_view(table_identifier(name)).metadata

    def view_exists(self, name: Name) -> bool:
        """Whether there is a view of that name."""
        return self._views.view_exists(table_identifier(name))

    def list_views(self, namespace: Name) -> list[str]:
        """The full names of the views directly in a namespace; raises NotFound."""
        return [dotted(view) for view in self._views.list_views(namespace_identifier(namespace))]

    def rename_view(self, name: Name, new_name: Name) -> None:
        """Rename a view; raises NotFound, AlreadyExists."""
        self._views.rename_view(table_identifier(name), table_identifier(new_name))

    def drop_view(self, name: Name) -> None:
        """Drop a view; raises NotFound."""
        self._views.drop_view(table_identifier(name))

    def create_namespace(self, namespace: Name, properties: Mapping[str, str] | None = None) -> None:
        """Create a namespace; raises AlreadyExists."""
        self._inner.create_namespace(namespace_identifier(namespace), as_texts(properties or {}))

    def namespace_exists(self, namespace: Name) -> bool:
        """Whether the namespace was created or is not empty."""
        return self._inner.namespace_exists(namespace_identifier(namespace))

    def list_namespaces(self, parent: Name = ()) -> list[str]:
        """The namespaces directly below `parent`; raises NotFound."""
        above = namespace_identifier(parent) if parent else ()
        return [dotted(namespace) for namespace in self._inner.list_namespaces(above)]

    def drop_namespace(self, namespace: Name) -> None:
        """Remove an empty namespace; raises NotFound, Invalid."""
        self._inner.drop_namespace(namespace_identifier(namespace))

    def namespace_properties(self, namespace: Name) -> dict[str, str]:
        """A namespace's properties; raises NotFound."""
        return self._inner.namespace_properties(namespace_identifier(namespace))

    load_namespace_properties = namespace_properties
    """PyIceberg's name for it."""

    def update_namespace_properties(
        self, namespace: Name, updates: Mapping[str, str], removals: Collection[str] = ()
    ) -> None:
        """Set and remove namespace properties; raises NotFound, Invalid."""
        self._inner.update_namespace_properties(namespace_identifier(namespace), as_texts(updates), removals)

    def close(self) -> None:
        """Close connections."""
        self._inner.close()

    @property
    def _views(self) -> ViewCatalog:
        if not isinstance(self._inner, ViewCatalog):
            raise Unsupported(f"views in catalog {self.name!r}: {type(self._inner).__name__} has none")
        return self._inner

    def _definition(self, queries: Mapping[str, str], namespace: Name, catalog: str | None) -> views.ViewVersion:
        return views.ViewVersion(
            version_id=1,
            schema_id=0,
            timestamp_ms=self._now_ms(),
            representations=tuple(
                views.SqlRepresentation(sql=sql, dialect=dialect) for dialect, sql in queries.items()
            ),
            default_catalog=catalog,
            default_namespace=namespace_identifier(namespace) if namespace else (),
        )

    def _table(self, identifier: tuple[str, ...], state: TableState) -> Table:
        store = self._inner.store_at(state.metadata.location)
        return Table(identifier, state, store, self._inner, self._cache, verify=self._verify, reporting=self._reporting)


def _below(prefix: str, properties: Mapping[str, str]) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in properties.items() if name.startswith(prefix)}


def _schema(given: Schema | pa.Schema) -> Schema:
    if isinstance(given, Schema):
        return given
    if not isinstance(given, pa.Schema):
        raise Invalid(f"a schema is an icebench.Schema or Arrow's (PyIceberg's as_arrow gives one), not {type(given)}")
    return from_arrow_schema(given)


def _spec(given: SpecLike, schema: Schema) -> PartitionSpec:
    return given if isinstance(given, PartitionSpec) else partition_spec(schema, given)
