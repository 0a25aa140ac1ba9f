"""The two database tables of Iceberg's JDBC catalog, column for column.

Iceberg Java (`JdbcCatalog`, schema version V1) and PyIceberg (`SqlCatalog`) open the same database. A database of
schema version V0 lacks ``iceberg_type``; it is used as it is and never altered.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Column, ColumnElement, Connection, Engine, MetaData, String, Table, and_, or_, select

from icebench.engine.catalog import ownership
from icebench.engine.catalog.pointers import TABLE_TYPE, VIEW_TYPE

_METADATA = MetaData()

TABLES = Table(
    "iceberg_tables",
    _METADATA,
    Column("catalog_name", String(255), primary_key=True, nullable=False),
    Column("table_namespace", String(255), primary_key=True, nullable=False),
    Column("table_name", String(255), primary_key=True, nullable=False),
    Column("metadata_location", String(1000)),
    Column("previous_metadata_location", String(1000)),
    Column("iceberg_type", String(5)),
)

PROPERTIES = Table(
    "iceberg_namespace_properties",
    _METADATA,
    Column("catalog_name", String(255), primary_key=True, nullable=False),
    Column("namespace", String(255), primary_key=True, nullable=False),
    Column("property_key", String(255), primary_key=True, nullable=False),
    Column("property_value", String(1000)),
)

EXISTS_PROPERTY = "exists"
"""A namespace without properties is a row with this one, as Iceberg Java writes it."""


def row_of(catalog: str, identifier: Sequence[str], kind: str, *, has_types: bool) -> ColumnElement[bool]:
    """The row of the table or view of that name; rows of the other kind are ignored."""
    *namespace, name = identifier
    row = and_(
        TABLES.c.catalog_name == catalog,
        TABLES.c.table_namespace == ".".join(namespace),
        TABLES.c.table_name == name,
    )
    return and_(row, of_kind(kind, has_types=has_types))


def of_kind(kind: str, *, has_types: bool) -> ColumnElement[bool]:
    """Rows of tables, or of views. Rows without a type, from before that column, are tables."""
    if not has_types:
        return TABLES.c.table_name.is_not(None)
    if kind == VIEW_TYPE:
        return TABLES.c.iceberg_type == VIEW_TYPE
    return or_(TABLES.c.iceberg_type == TABLE_TYPE, TABLES.c.iceberg_type.is_(None))


def overlapping(connection: Connection, location: str, *, but: str | None = None) -> str | None:
    """The name of a table or view of the database, of whatever catalog, that shares files with a directory.

    Args:
        connection: To the database.
        location: The directory.
        but: The metadata file of the table or view whose directory it is to be.
    """
    return ownership.overlapping(others(connection, but), location)


def others(connection: Connection, but: str | None) -> list[tuple[str, str]]:
    """Names and metadata files of all tables and views of the database, without the one of a metadata file."""
    columns = (TABLES.c.table_namespace, TABLES.c.table_name, TABLES.c.metadata_location)
    rows = connection.execute(select(*columns).where(TABLES.c.metadata_location.is_not(None)))
    return [(f"{row[0]}.{row[1]}", row[2]) for row in rows if row[2] != but]


def create_all(engine: Engine) -> None:
    """Create the tables that are missing."""
    _METADATA.create_all(engine)
