"""What Hive's metastore and AWS Glue have in common: databases of one level, whose tables have columns and parameters.

A table's current metadata file is its parameter ``metadata_location``. Columns, location and the table's properties are
recorded beside it for engines and people that look there; the metadata file decides.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from icebench.engine.catalog.catalog import Namespace
from icebench.engine.catalog.identifiers import dotted
from icebench.engine.catalog.ownership import overlap_error, overlapping
from icebench.engine.catalog.pointers import TABLE_TYPE, PointerCatalog
from icebench.engine.commit.committer import Identifier, TableState
from icebench.engine.errors import AlreadyExists, Invalid, NotFound, Unsupported
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import GC_ENABLED
from icebench.engine.spec.types import DecimalType, FixedType, ListType, MapType, StructType, Type

TYPE, ICEBERG = "table_type", "ICEBERG"
LOCATION, PREVIOUS = "metadata_location", "previous_metadata_location"
_TRANSLATED = {GC_ENABLED.name: "external.table.purge"}
"""Table properties that have another name among the parameters, as in Iceberg Java."""
_STATISTICS = {"numFiles": "total-data-files", "numRows": "total-records", "totalSize": "total-files-size"}
"""Parameters by which Hive plans, and where a snapshot's summary has them."""
_STALE = frozenset(
    {
        *_STATISTICS,
        "COLUMN_STATS_ACCURATE",
        "current-schema",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "default-partition-spec",
        "default-sort-order",
        "snapshot-count",
    }
)
"""What another engine recorded of the former metadata; nobody needs it, and it must not stay."""

_TYPES = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "date": "date",
    "time": "string",
    "timestamp": "timestamp",
    "timestamp_ns": "timestamp",
    "string": "string",
    "uuid": "string",
    "binary": "binary",
    "unknown": "void",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A database, by its properties: `location` is where new tables go."""

    location: str | None = None
    comment: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def properties(self) -> dict[str, str]:
        """The namespace's properties."""
        own = {"location": self.location, "comment": self.comment}
        return {**self.parameters, **{key: value for key, value in own.items() if value}}

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Database:
        """The database with these properties."""
        rest = {key: value for key, value in properties.items() if key not in ("location", "comment")}
        return cls(location=properties.get("location"), comment=properties.get("comment"), parameters=rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A table of a database, of whatever format."""

    name: str
    parameters: Mapping[str, str]
    location: str | None

    @property
    def is_iceberg(self) -> bool:
        """Whether it is an Iceberg table; views have another type."""
        return is_iceberg(self.parameters)


class MetastoreCatalog(PointerCatalog):
    """Tables in databases. Names have one namespace level and no upper-case letters, which the service would fold."""

    _service: str
    """The service's name, for messages."""

    # Tables.

    def table_exists(self, identifier: Identifier) -> bool:
        found = self._parameters(self._checked(identifier))
        return found is not None and is_iceberg(found)

    def list_tables(self, namespace: Namespace) -> list[Identifier]:
        database = self._existing(namespace)
        return sorted((database, table.name) for table in self._tables(database) if table.is_iceberg)

    def rename_table(self, old: Identifier, new: Identifier) -> None:
        self._checked(new)
        super().rename_table(old, new)

    # Namespaces.

    def namespace_exists(self, namespace: Namespace) -> bool:
        return self._find_database(self._level(namespace)) is not None

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str] | None = None) -> None:
        name = self._level(namespace)
        if name != name.lower():
            raise Invalid(f"namespace {name!r}: {self._service} keeps names in lower case")
        default = {} if self._warehouse is None else {"location": f"{self._warehouse}/{name}.db"}
        try:
            self._create_database(name, Database.of({**default, **(properties or {})}))
        except AlreadyExists as error:
            raise AlreadyExists(f"namespace {name} exists already") from error

    def list_namespaces(self, parent: Namespace = ()) -> list[Namespace]:
        if parent:
            self._existing(parent)
            return []
        return sorted((name,) for name in self._databases())

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        return self._database(self._existing(namespace)).properties

    def update_namespace_properties(
        self, namespace: Namespace, updates: Mapping[str, str], removals: Collection[str] = ()
    ) -> None:
        """Neither service compares versions: of two concurrent writers, the later one's properties stay."""
        both = sorted(set(updates) & set(removals))
        if both:
            raise Invalid(f"namespace property {both[0]!r} is both to set and to remove")
        name = self._existing(namespace)
        kept = {key: value for key, value in self._database(name).properties.items() if key not in removals}
        self._alter_database(name, Database.of({**kept, **updates}))

    # What the service does.

    @abstractmethod
    def _parameters(self, identifier: Identifier) -> Mapping[str, str] | None:
        """A table's parameters; None where there is nothing of that name."""

    @abstractmethod
    def _tables(self, database: str) -> Iterator[Listed]:
        """All tables and views of a database."""

    @abstractmethod
    def _databases(self) -> list[str]:
        """The names of all databases."""

    @abstractmethod
    def _find_database(self, name: str) -> Database | None:
        """A database; None where there is none."""

    @abstractmethod
    def _create_database(self, name: str, database: Database) -> None:
        """Create a database; raises AlreadyExists."""

    @abstractmethod
    def _alter_database(self, name: str, database: Database) -> None:
        """Replace a database's properties."""

    # Look-ups.

    def _checked(self, identifier: Identifier) -> Identifier:
        """The name of a table that may exist; raises Unsupported, Invalid."""
        self._level(identifier[:-1])
        if any(part != part.lower() for part in identifier):
            raise Invalid(f"{dotted(identifier)!r}: {self._service} keeps names in lower case")
        return identifier

    def _level(self, namespace: Namespace) -> str:
        if len(namespace) != 1:
            raise Unsupported(f"namespace {dotted(namespace)}: {self._service} has namespaces of one level")
        return namespace[0]

    def _existing(self, namespace: Namespace) -> str:
        """The name of a namespace that exists; raises NotFound."""
        name = self._level(namespace)
        self._database(name)
        return name

    def _database(self, name: str) -> Database:
        found = self._find_database(name)
        if found is None:
            raise NotFound(f"no namespace {name} in catalog {self._name!r}")
        return found

    def _named_location(self, identifier: Identifier) -> str:
        database, table = self._checked(identifier)
        found = self._find_database(database)
        if found is not None and found.location:
            return f"{found.location.rstrip('/')}/{table}"
        if self._warehouse is None:
            raise Invalid(f"{dotted(identifier)} needs a location: neither the catalog nor {database} has one")
        return f"{self._warehouse}/{database}.db/{table}"

    def _entry(self, identifier: Identifier, kind: str = TABLE_TYPE) -> tuple[str | None] | None:
        found = self._parameters(self._checked(identifier))
        if found is None:
            return None
        if not is_iceberg(found):
            raise NotFound(f"{dotted(identifier)} is not an Iceberg table: its {TYPE} is {found.get(TYPE)!r}")
        return (found.get(LOCATION),)

    def _pointer(self, identifier: Identifier, kind: str = TABLE_TYPE) -> str | None:
        return (self._parameters(self._checked(identifier)) or {}).get(LOCATION)

    def _check_alone(self, identifier: Identifier, state: TableState) -> None:
        """Refuse a directory in which another table of the database has files, or that is within such a one."""
        location = state.metadata.location
        other = overlapping(self._others(identifier, None), location)
        if other:
            raise overlap_error(dotted(identifier), location, other)

    def _others(self, identifier: Identifier, base: TableState | None) -> list[tuple[str, str]]:
        # Of a table of another format, only the directory is known.
        return [
            (f"{identifier[0]}.{table.name}", table.parameters.get(LOCATION) or f"{table.location}/-")
            for table in self._tables(identifier[0])
            if table.name != identifier[1] and (table.location or LOCATION in table.parameters)
        ]

    def _ensure_database(self, name: str) -> None:
        if self._find_database(name) is None:
            try:
                self.create_namespace((name,))
            except AlreadyExists:
                return


def is_iceberg(parameters: Mapping[str, str]) -> bool:
    """Whether a table with these parameters is an Iceberg table."""
    return parameters.get(TYPE, "").upper() == ICEBERG


def parameters_of(state: TableState, *, present: Mapping[str, str], base: TableState | None) -> dict[str, str]:
    """A table's parameters with new metadata: those that other engines set stay.

    Args:
        state: The new metadata.
        present: What the service has.
        base: The metadata before; None for a new table.
    """
    metadata, former = state.metadata, {} if base is None else base.metadata.properties
    gone = _STALE | {_TRANSLATED.get(name, name) for name in former}
    own = {_TRANSLATED.get(name, name): value for name, value in metadata.properties.items()}
    snapshot = metadata.current_snapshot
    summary = {} if snapshot is None else snapshot.summary
    return {
        **{name: value for name, value in present.items() if name not in gone},
        **own,
        **{name: summary[key] for name, key in _STATISTICS.items() if key in summary},
        "uuid": metadata.table_uuid,
        TYPE: ICEBERG,
        LOCATION: state.metadata_location,
        **({} if base is None else {PREVIOUS: base.metadata_location}),
    }


def column_type(of: Type, *, zoned: str = "timestamp") -> str:
    """The type in Hive's language; `zoned` is that of a timestamp with time zone."""
    match of:
        case StructType():
            return f"struct<{','.join(f'{each.name}:{column_type(each.type, zoned=zoned)}' for each in of.fields)}>"
        case ListType():
            return f"array<{column_type(of.element.type, zoned=zoned)}>"
        case MapType():
            return f"map<{column_type(of.key.type, zoned=zoned)},{column_type(of.value.type, zoned=zoned)}>"
        case DecimalType():
            return f"decimal({of.precision},{of.scale})"
        case FixedType():
            return "binary"
        case _ if str(of).startswith("timestamptz"):
            return zoned
        case _:
            return _TYPES.get(str(of), "binary")


def current_schema_columns(metadata: TableMetadata, *, zoned: str = "timestamp") -> list[tuple[str, str, str | None]]:
    """Name, type and comment of each column."""
    return [(each.name, column_type(each.type, zoned=zoned), each.doc) for each in metadata.schema.fields]
