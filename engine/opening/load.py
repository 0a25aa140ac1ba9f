"""Opens catalogs and tables by address: a URL, a directory, a file, or the name of a configuration."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, overload

from icebench.engine.catalog import catalog as rooms
from icebench.engine.catalog.addresses import CatalogAddress, Kind, catalog_address, is_name
from icebench.engine.catalog.properties import (
    INIT_TABLES,
    METRICS_REPORTER,
    TABLE_DEFAULT,
    TABLE_OVERRIDE,
    check_properties,
    is_property,
)
from icebench.engine.catalog.versions import current_metadata_file
from icebench.engine.codec.metadata_json.table import decode_metadata
from icebench.engine.commit.committer import TableState
from icebench.engine.errors import Invalid, RelocationWarning
from icebench.engine.lazy_module import LazyModule
from icebench.engine.opening.catalog import Catalog
from icebench.engine.plan.cache import ManifestCache
from icebench.engine.spec.locations import is_relative
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import as_texts
from icebench.engine.storage.contradictions import Verify
from icebench.engine.storage.object_stores import flag
from icebench.engine.storage.relocated import RelocatedStore, home_of, root_of_relative_locations, was_moved
from icebench.engine.storage.resolve import Stores, absolute_location, normalise_location, store_for
from icebench.engine.storage.user_configuration import configured_catalogs
from icebench.engine.table import Table

if TYPE_CHECKING:
    from icebench.engine.catalog import filesystem, glue, hive, hive_client, rest, rest_session, rest_views, sql_views
    from icebench.engine.opening import metrics_reporters
    from icebench.engine.runtime.metrics_reports import Reporting
else:  # a catalog's libraries are loaded with it: SQLAlchemy, the HTTP client
    filesystem = LazyModule("icebench.engine.catalog.filesystem")
    glue = LazyModule("icebench.engine.catalog.glue")
    hive = LazyModule("icebench.engine.catalog.hive")
    hive_client = LazyModule("icebench.engine.catalog.hive_client")
    rest = LazyModule("icebench.engine.catalog.rest")
    rest_session = LazyModule("icebench.engine.catalog.rest_session")
    rest_views = LazyModule("icebench.engine.catalog.rest_views")
    sql_views = LazyModule("icebench.engine.catalog.sql_views")
    metrics_reporters = LazyModule("icebench.engine.opening.metrics_reporters")


_OF_ALL = (INIT_TABLES, TABLE_DEFAULT, TABLE_OVERRIDE, METRICS_REPORTER)


@overload
def load_catalog(address: str, **options: str | None) -> Catalog: ...


@overload
def load_catalog(
    address: str,
    *,
    warehouse: str | None = None,
    name: str | None = None,
    token: str | Callable[[], str] | None = None,
    credential: str | None = None,
    properties: Mapping[str, str] | None = None,
    cache: ManifestCache | None = None,
    verify: Verify = "warn",
    **options: str | None,
) -> Catalog: ...


def load_catalog(  # type: ignore[misc] # an option may not be called `properties`, which the first form cannot say
    address: str,
    *,
    warehouse: str | None = None,
    name: str | None = None,
    token: str | Callable[[], str] | None = None,
    credential: str | None = None,
    properties: Mapping[str, str] | None = None,
    cache: ManifestCache | None = None,
    verify: Verify = "warn",
    **options: str | None,
) -> Catalog:
    """Open a catalog as a `Catalog`, creating it if it does not exist, unless ``init_catalog_tables`` is false.

    Args:
        address: The URL of a SQL database (``sqlite:///wh/catalog.db``, ``postgresql+psycopg://...``), which may be
            shared with Iceberg's JDBC catalog and PyIceberg's SQL catalog; or a directory, laid out as by
            HadoopCatalog; or the address of a REST catalog (``https://host/api``, without ``/v1``) or of a Hive
            metastore (``thrift://host:9083``). Or the name of a catalog that is configured for PyIceberg, in
            ``.pyiceberg.yaml`` or variables ``PYICEBERG_CATALOG__NAME__KEY``, or whose ``uri`` or ``type`` is among
            `properties`; ``./name`` is the directory. Arguments override the configuration.
        warehouse: Where a SQL catalog puts new tables; relative paths are made absolute. For a REST catalog, the
            server's name for one of its warehouses.
        name: The catalog's name, which distinguishes catalogs that share a database. Defaults to the name of its
            configuration if there is one, else to "default".
        token: A bearer token for a REST catalog, or a function that returns one: it is called at first use, and when
            its token was refused.
        credential: OAuth2 client credentials for a REST catalog, ``"id:secret"``.
        properties: Storage options, such as ``s3.endpoint``; properties of new tables, prefixed ``table-default.`` or
            ``table-override.``; ``metrics-reporter-impl``, see
            `icebench.engine.opening.metrics_reporters.reporting_of`; for a REST catalog also those of
            `icebench.engine.catalog.rest_session.open_session`. A property that only tunes other engines causes an
            `IgnoredPropertyWarning`.
        cache: Keeps decoded manifests for all tables of the catalog, in memory and, given a directory, on disk; see
            `icebench.engine.plan.cache.ManifestCache`. None: each table handle keeps its own in memory.
        verify: As for `icebench.Table`, for all tables of the catalog.
        options: More `properties`, as PyIceberg's `load_catalog` takes them; those that are None are ignored:
            ``load_catalog("lake", type="rest", uri="https://host/api", **{"s3.region": "eu-west-1"})``.

    Raises:
        TypeError: A keyword that is neither a parameter nor a possible property of the catalog.
        Invalid: Not an address; a property is given twice, or is not a string.
        Unsupported: An unsupported kind of catalog or storage; an unknown property.
        StorageFailed: The database, directory or server cannot be used.
        NotFound: There is no database, or it is of no catalog, and ``init_catalog_tables`` is false.
    """
    configured = configured_catalogs().get(address.lower(), {}) if is_name(address) else {}
    own = configured | _joined(properties or {}, options)
    at = catalog_address(address, warehouse=warehouse, name=name, properties=own)
    read = {*_OF_ALL, *_properties_of(at.kind)}
    for option in options:
        if option.isidentifier() and not is_property(option, {"uri", "type", *read}):  # a misspelt parameter
            raise TypeError(f"load_catalog() got an unexpected keyword argument {option!r}")
    check_properties(at.properties, read, subject=f"a {at.kind} catalog")
    stores = Stores(at.properties)
    if at.kind == "rest":
        session = rest_session.open_session(
            at.uri, warehouse=at.warehouse, token=token, credential=credential, properties=at.properties
        )
        inner: rooms.Catalog = rest_views.RestViewCatalog(session, name=at.name)
    elif token is not None or credential is not None:
        raise Invalid("token= and credential= are for REST catalogs, whose address starts with http:// or https://")
    elif at.kind == "directory":
        root = normalise_location(at.uri)
        store = store_for(root, at.properties, is_catalog=True)
        inner = filesystem.FileSystemCatalog(root, store, name=at.name)
    else:
        inner = _with_pointers(at, stores)
    reporting = _reporting(at.properties, at.name)
    return Catalog(inner, cache=cache, verify=verify, address=at.uri, properties=at.properties, reporting=reporting)


def _joined(properties: Mapping[str, str], options: Mapping[str, str | None]) -> dict[str, str]:
    found = dict(properties)
    for name, value in options.items():
        if name in found:
            raise Invalid(f"property {name} is given twice")
        if value is not None:
            found[name] = value
    return as_texts(found)


def _reporting(properties: Mapping[str, str], catalog_name: str | None) -> Reporting | None:
    return metrics_reporters.reporting_of(properties, catalog_name) if METRICS_REPORTER in properties else None


def _properties_of(kind: Kind) -> Collection[str]:
    """The properties that a kind of catalog reads itself."""
    if kind == "rest":
        return rest.REST_PROPERTIES
    if kind == "hive":
        return hive.HIVE_PROPERTIES
    return glue.GLUE_PROPERTIES if kind == "glue" else ()


def _with_pointers(at: CatalogAddress, stores: Stores) -> rooms.Catalog:
    root = None if at.warehouse is None else normalise_location(at.warehouse)
    if at.kind == "sql":
        creates = flag(INIT_TABLES, at.properties.get(INIT_TABLES, "true"))
        return sql_views.SqlViewCatalog(at.uri, warehouse=root, name=at.name, creates=creates, store_at=stores)
    if at.kind == "glue":
        service = glue.open_glue(at.properties, endpoint=at.uri)
        return glue.GlueCatalog(service, warehouse=root, name=at.name, store_at=stores)
    metastore = hive_client.Metastore(at.uri, ugi=at.properties.get("ugi"))
    is_hive2 = flag(hive.HIVE2, at.properties.get(hive.HIVE2, "false"))
    return hive.HiveCatalog(metastore, is_hive2=is_hive2, warehouse=root, name=at.name, store_at=stores)


def load_table(
    location: str,
    *,
    relocate: Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
    cache: ManifestCache | None = None,
    verify: Verify = "warn",
) -> Table:
    """Open a table for reading by its location, without a catalog.

    Args:
        location: The table's directory, or one of its metadata files.
        relocate: Prefix in the metadata -> actual prefix of the files, for a table that was copied or moved in parts. A
            table that was moved as a whole is detected, with a `RelocationWarning`: its metadata file is in the
            ``metadata`` directory of a location with the table's files, while the location that the metadata states is
            in another storage or lacks them. An empty mapping reads files at the locations in the metadata. Relative
            locations in the metadata are relative to the table's directory.
        properties: Storage options, such as ``s3.endpoint``; ``metrics-reporter-impl`` as in `load_catalog`.
        cache: Keeps decoded manifests; see `load_catalog`.
        verify: As for `icebench.Table`.

    Returns:
        A read-only `Table` in the state of that metadata file; see `Table.refresh`.

    Raises:
        NotFound: No table there.
        Unsupported: An unknown property.
        Invalid: The directory does not identify the current metadata file.
        CorruptTable: The metadata contradicts the specification.
    """
    given = as_texts(properties or {})
    check_properties(given, {METRICS_REPORTER}, subject="a table without a catalog")
    stores = Stores(given)
    found = absolute_location(location)
    metadata_location = current_metadata_file(found, stores(found))
    metadata = decode_metadata(stores(metadata_location).read(metadata_location), location=metadata_location)
    home, stated = home_of(metadata_location), metadata.location
    prefixes = {old: absolute_location(new) for old, new in (relocate or {}).items()}
    if relocate is None and home is not None and was_moved(stated, home, _sample(metadata), stores):
        prefixes[stated] = home
        moved = f"the table was moved: its metadata name {stated}, and its files are read from {home}"
        warnings.warn(f"{moved}; relocate={{}} reads them where the metadata say", RelocationWarning, stacklevel=2)
    elif home is not None and is_relative(stated):
        prefixes.setdefault(stated, home)
    root = None if home is None else root_of_relative_locations(stated, home)
    store = RelocatedStore(stores, prefixes, root)
    state = TableState(metadata=metadata, metadata_location=metadata_location)
    name, reporting = stated.rstrip("/").rpartition("/")[2], _reporting(given, None)
    return Table((name,), state, store, None, cache, verify=verify, reporting=reporting)


def _sample(metadata: TableMetadata) -> str | None:
    """A file that must exist if the table does."""
    snapshot = metadata.current_snapshot
    return None if snapshot is None else snapshot.manifest_list or next(iter(snapshot.manifests), None)
