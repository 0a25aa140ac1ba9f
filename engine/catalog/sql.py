"""A catalog in a SQL database: SQLite, PostgreSQL, and whatever else SQLAlchemy speaks.

The database is the one of Iceberg's JDBC catalog (`icebench.engine.catalog.sql_tables`). A commit writes a new metadata
file and then changes one row, ``UPDATE ... WHERE metadata_location = <base>``: of several commits on one base the
database lets exactly one find its row.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Mapping

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, inspect, select, union, update
from sqlalchemy.exc import NoSuchTableError, SQLAlchemyError

from icebench.engine.catalog.catalog import Namespace
from icebench.engine.catalog.identifiers import dotted
from icebench.engine.catalog.ownership import overlap_error
from icebench.engine.catalog.pointers import TABLE_TYPE, PointerCatalog
from icebench.engine.catalog.sql_database import Database
from icebench.engine.catalog.sql_tables import (
    EXISTS_PROPERTY,
    PROPERTIES,
    TABLES,
    create_all,
    of_kind,
    others,
    overlapping,
    row_of,
)
from icebench.engine.commit.committer import Identifier, TableState
from icebench.engine.errors import (
    AlreadyExists,
    Invalid,
    NotFound,
    NotInCatalog,
)
from icebench.engine.storage.store import Store


class SqlCatalog(PointerCatalog):
    """Tables in a SQL database. Dropping a table keeps its files.

    Args:
        url: An SQLAlchemy URL, such as ``sqlite:////path/catalog.db`` or ``postgresql+psycopg://host/db``.
        warehouse: The location below which tables are created by default, without a slash at the end.
        name: Distinguishes catalogs that share a database; other engines call it the catalog's name.
        creates: Whether to create the database and its tables if they are missing; else they must exist.
        store_at: The store of a location.
        now_ms: The clock.
        new_id: Makes the unique part of names.
    """

    def __init__(
        self,
        url: str,
        *,
        warehouse: str | None = None,
        name: str = "default",
        creates: bool = True,
        store_at: Callable[[str], Store] | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        new_id: Callable[[], uuid.UUID] = uuid.uuid4,
    ) -> None:
        super().__init__(name=name, warehouse=warehouse, store_at=store_at, now_ms=now_ms, new_id=new_id)
        self._database = Database(url, creates=creates)
        if creates:
            self._create_missing()
        self._has_types = self._rows_have_types()

    def close(self) -> None:
        self._database.close()

    def list_tables(self, namespace: Namespace) -> list[Identifier]:
        return self._list(namespace)

    def _is_taken(self, place: str) -> bool:
        with self._database.reading() as connection:
            return overlapping(connection, place) is not None

    def _named_location(self, identifier: Identifier) -> str:
        *namespace, table = identifier
        own = select(PROPERTIES.c.property_value).where(
            self._properties_of(tuple(namespace)), PROPERTIES.c.property_key == "location"
        )
        with self._database.reading() as connection:
            found = connection.scalars(own).first()
        if found:
            return f"{found.rstrip('/')}/{table}"
        if self._warehouse is None:
            raise Invalid(f"{dotted(identifier)} needs a location: the catalog has no warehouse")
        return "/".join([self._warehouse, *identifier])

    # Namespaces.

    def namespace_exists(self, namespace: Namespace) -> bool:
        with self._database.reading() as connection:
            return namespace in self._namespaces(connection)

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str] | None = None) -> None:
        taken = f"namespace {dotted(namespace)} exists already"
        with self._database.writing(taken) as connection:
            if namespace in self._namespaces(connection):
                raise AlreadyExists(taken)
            self._insert_properties(connection, namespace, {**(properties or {}), EXISTS_PROPERTY: "true"})

    def drop_namespace(self, namespace: Namespace) -> None:
        with self._database.writing("") as connection:
            self._check_namespace(connection, namespace)
            below = [dotted(known) for known in self._namespaces(connection) if known[:-1] == namespace]
            inside = select(TABLES.c.table_name).where(
                TABLES.c.catalog_name == self._name, TABLES.c.table_namespace == dotted(namespace)
            )
            held = sorted([*below, *connection.scalars(inside)])
            if held:
                raise Invalid(f"namespace {dotted(namespace)} is not empty: it holds {held[0]}")
            connection.execute(delete(PROPERTIES).where(self._properties_of(namespace)))

    def list_namespaces(self, parent: Namespace = ()) -> list[Namespace]:
        with self._database.reading() as connection:
            if parent:
                self._check_namespace(connection, parent)
            return sorted(known for known in self._namespaces(connection) if known[:-1] == parent)

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        query = select(PROPERTIES.c.property_key, PROPERTIES.c.property_value).where(self._properties_of(namespace))
        with self._database.reading() as connection:
            self._check_namespace(connection, namespace)
            return {key: value for key, value in connection.execute(query) if key != EXISTS_PROPERTY}

    def update_namespace_properties(
        self, namespace: Namespace, updates: Mapping[str, str], removals: Collection[str] = ()
    ) -> None:
        both = sorted(set(updates) & set(removals))
        if both:
            raise Invalid(f"namespace property {both[0]!r} is both to set and to remove")
        with self._database.writing(f"another writer set properties of {dotted(namespace)}") as connection:
            self._check_namespace(connection, namespace)
            changed = PROPERTIES.c.property_key.in_([*updates, *removals, EXISTS_PROPERTY])
            connection.execute(delete(PROPERTIES).where(self._properties_of(namespace), changed))
            self._insert_properties(connection, namespace, {**updates, EXISTS_PROPERTY: "true"})

    # The database.

    def _create_missing(self) -> None:
        try:
            create_all(self._database.engine)
        except SQLAlchemyError:
            # Another process may have made them in the same moment, so that now they are there.
            with self._database.reading():
                create_all(self._database.engine)

    def _rows_have_types(self) -> bool:
        """Whether rows say if they are a table or a view."""
        with self._database.reading() as connection:
            try:
                columns = {column["name"] for column in inspect(connection).get_columns(TABLES.name)}
            except NoSuchTableError:
                raise NotFound(f"database {self._database} is of no catalog: it has no {TABLES.name}") from None
        return TABLES.c.iceberg_type.name in columns

    # Rows, of tables or of views.

    def _row(self, identifier: Identifier, kind: str = TABLE_TYPE) -> ColumnElement[bool]:
        return row_of(self._name, identifier, kind, has_types=self._has_types)

    def _list(self, namespace: Namespace, kind: str = TABLE_TYPE) -> list[Identifier]:
        query = select(TABLES.c.table_name).where(
            TABLES.c.catalog_name == self._name,
            TABLES.c.table_namespace == dotted(namespace),
            of_kind(kind, has_types=self._has_types),
        )
        with self._database.reading() as connection:
            self._check_namespace(connection, namespace)
            return sorted((*namespace, name) for name in connection.scalars(query))

    def _entry(self, identifier: Identifier, kind: str = TABLE_TYPE) -> tuple[str | None] | None:
        with self._database.reading() as connection:
            row = connection.execute(select(TABLES.c.metadata_location).where(self._row(identifier, kind))).first()
        return row and (row[0],)

    def _others(self, identifier: Identifier, base: TableState | None) -> list[tuple[str, str]]:
        with self._database.reading() as connection:
            return others(connection, None if base is None else base.metadata_location)

    def _add(self, identifier: Identifier, state: TableState, *, is_new: bool) -> None:
        self._insert_row(identifier, state.metadata_location, state.metadata.location if is_new else None)

    def _insert_row(self, identifier: Identifier, location: str, directory: str | None, kind: str = TABLE_TYPE) -> None:
        *namespace, name = identifier
        row: dict[str, str | None] = {
            "catalog_name": self._name,
            "table_namespace": dotted(namespace),
            "table_name": name,
            "metadata_location": location,
            "previous_metadata_location": None,
        }
        if self._has_types:
            row["iceberg_type"] = kind
        with self._database.writing(f"{dotted(identifier)} exists already") as connection:
            connection.execute(insert(TABLES).values(**row))
            # After the row is there: a table that another writer made under this name and renamed is seen by now.
            other = directory and overlapping(connection, directory, but=location)
            if directory and other:
                raise overlap_error(dotted(identifier), directory, other)

    def _move(self, old: Identifier, new: Identifier, kind: str) -> bool:
        change = update(TABLES).where(self._row(old, kind)).values(table_namespace=dotted(new[:-1]), table_name=new[-1])
        return self._database.change(change, f"{dotted(new)} exists already") > 0

    def _remove(self, identifier: Identifier, kind: str, base: str | None) -> bool:
        change = delete(TABLES).where(self._row(identifier, kind))
        return self._database.change(change if base is None else change.where(TABLES.c.metadata_location == base)) > 0

    def _point(self, identifier: Identifier, base: TableState, new: TableState) -> bool:
        return self._swap_row(identifier, base.metadata_location, new.metadata_location)

    def _swap_row(self, identifier: Identifier, base: str, new: str, kind: str = TABLE_TYPE) -> bool:
        """Point the row to another metadata file if it still points to `base`; whether it did."""
        change = (
            update(TABLES)
            .where(self._row(identifier, kind), TABLES.c.metadata_location == base)
            .values(metadata_location=new, previous_metadata_location=base)
        )
        return self._database.change(change) > 0

    def _namespaces(self, connection: Connection) -> set[Namespace]:
        """Every namespace that was created or has a table or view, and those above it."""
        known = union(
            select(TABLES.c.table_namespace).where(TABLES.c.catalog_name == self._name),
            select(PROPERTIES.c.namespace).where(PROPERTIES.c.catalog_name == self._name),
        )
        levels = [tuple(name.split(".")) for name in connection.scalars(known)]
        return {full[:depth] for full in levels for depth in range(1, len(full) + 1)}

    def _check_namespace(self, connection: Connection, namespace: Namespace) -> None:
        if namespace not in self._namespaces(connection):
            raise NotFound(f"no namespace {dotted(namespace)} in catalog {self._name!r}")

    def _properties_of(self, namespace: Namespace) -> ColumnElement[bool]:
        return and_(PROPERTIES.c.catalog_name == self._name, PROPERTIES.c.namespace == dotted(namespace))

    def _insert_properties(self, connection: Connection, namespace: Namespace, properties: Mapping[str, str]) -> None:
        row = {"catalog_name": self._name, "namespace": dotted(namespace)}
        rows = [{**row, "property_key": key, "property_value": value} for key, value in properties.items()]
        connection.execute(insert(PROPERTIES), rows)

    def _not_found(self, identifier: Identifier) -> NotFound:
        with self._database.reading() as connection:
            catalogs = sorted(set(connection.scalars(select(TABLES.c.catalog_name).distinct())))
        missing, others = f"no table {dotted(identifier)} in catalog {self._name!r}", {*catalogs} - {self._name}
        if not others:
            return NotFound(missing)
        named = f"; the database also has catalogs named {', '.join(sorted(others))}"
        return NotInCatalog(missing + named, tuple(catalogs))
