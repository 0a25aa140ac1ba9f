"""DuckDB's Iceberg extension: scans as Arrow record batches. It has no way to ask for a plan's files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import duckdb
import pyarrow as pa

from icebench.bench.engines.access import LOCAL, Access
from icebench.bench.engines.arrow_scan import ArrowScans
from icebench.bench.engines.duckdb_queries import DuckDbQueries, configure
from icebench.bench.engines.engine import Ability, EngineMissing, ParquetTarget, Plan
from icebench.bench.engines.registry import EngineContext
from icebench.bench.engines.script import IN_BATCHES, TABLE, Script, select
from icebench.bench.engines.sql_text import identifier, quoted
from icebench.bench.s3_jars import S3_SCHEMES

_BATCH_ROWS = 1 << 17
_SECRET = {
    "s3.access-key-id": "KEY_ID",
    "s3.secret-access-key": "SECRET",
    "s3.session-token": "SESSION_TOKEN",
    "s3.region": "REGION",
}
_ENDPOINT, _VIRTUAL = "s3.endpoint", "s3.force-virtual-addressing"
_TUNING = ("s3.connect-timeout", "s3.request-timeout", "s3.retry.num-retries", "s3.anonymous")
"""Anonymous is who gives no keys."""


def source_of(location: str) -> str:
    """What a query selects from: the table of a metadata file."""
    return f"iceberg_scan({quoted(location)})"


SCRIPTS = {
    "scan": Script(
        setup="""
import importlib
import pathlib

import duckdb

connection = duckdb.connect()
for package in ("duckdb_extension_avro", "duckdb_extension_iceberg"):  # in place of INSTALL, which downloads
    folder = pathlib.Path(importlib.import_module(package).__file__).parent
    connection.execute(f"LOAD '{next(folder.rglob('*.duckdb_extension'))}'")
SQL = {sql}
""",
        forget="\n".join(f'connection.execute("set enable_external_file_cache = {v}")' for v in ("false", "true")),
        run=IN_BATCHES.replace("{query}", f"connection.execute(SQL).to_arrow_reader({_BATCH_ROWS})"),
        source=source_of,
    )
}


@dataclass(frozen=True)
class DuckDbTable:
    """A metadata file, and a database that opens the table's files."""

    connection: duckdb.DuckDBPyConnection
    location: str


class DuckDb(DuckDbQueries, ArrowScans[DuckDbTable, str | None]):
    """DuckDB in this process, with all its threads. The filter stays text: DuckDB parses it with the query. Each query
    reads the metadata tree; the database keeps what was read of data files, until `forget`."""

    name = "duckdb"
    abilities = frozenset({Ability.SCAN, Ability.WRITE, Ability.QUERY, Ability.CONCURRENT_QUERIES})
    writes_tables = sorts_rows = False

    def __init__(self, context: EngineContext) -> None:
        self.version = duckdb.__version__
        self._access = context.access
        self._opened = [(LOCAL, connected())]

    def forget(self) -> None:
        for _, connection in self._opened:
            for value in ("false", "true"):  # switched off, the cache is emptied
                connection.execute(f"SET enable_external_file_cache={value}")

    def open(self, metadata_location: str) -> DuckDbTable:
        # iceberg_scan reads metadata.json in every query; there is no handle to keep it in.
        access = self._access(metadata_location)
        found = next((connection for own, connection in self._opened if own == access), None)
        if found is None:
            found = connected(access)
            self._opened.append((access, found))
        return DuckDbTable(found, metadata_location)

    def compile(self, handle: DuckDbTable, filter: str | None) -> str | None:
        return filter

    def plan(self, handle: DuckDbTable, filter: str | None) -> Plan:
        raise AssertionError("planning is not among the abilities")

    def query(self, handle: DuckDbTable, columns: Sequence[str] | None, filter: str | None) -> str:
        assert columns is not None
        return select(columns, TABLE, filter)

    def batches(self, handle: DuckDbTable, columns: Sequence[str], filter: str | None) -> pa.RecordBatchReader:
        return reader(handle.connection, handle.location, columns, filter)

    def open_tables(self, locations: Mapping[str, str]) -> duckdb.DuckDBPyConnection:
        """Views of ``iceberg_scan``, which reads a table's metadata in every query."""
        accesses = {location: self._access(location) for location in locations.values()}
        first = next(iter(accesses.values()), LOCAL)
        if any(each != first for each in accesses.values()):
            raise EngineMissing("duckdb is given tables of one store, by one set of keys")
        connection = connected(first)
        for name, location in locations.items():
            connection.execute(f"CREATE VIEW {identifier(name)} AS FROM iceberg_scan({quoted(location)})")
        return connection

    def take_rows(self, rows: pa.Table, kept: ExitStack) -> pa.Table:
        return rows

    def new_target(self, metadata_location: str, folder: Path, level: int | None) -> ParquetTarget:
        return ParquetTarget(path=folder / "rows.parquet", level=level)

    def append_rows(self, target: ParquetTarget, rows: pa.Table) -> None:
        given = self._opened[0][1].from_arrow(rows)
        level = "" if target.level is None else f", COMPRESSION_LEVEL {target.level}"
        given.query("given", f"COPY given TO {quoted(str(target.path))} (FORMAT parquet, COMPRESSION zstd{level})")

    def written_to(self, target: ParquetTarget) -> str:
        return str(target.path)


def connected(access: Access = LOCAL) -> duckdb.DuckDBPyConnection:
    """A database that reads Iceberg tables, in the store that `access` opens.

    Raises:
        EngineMissing: It cannot read there.
    """
    connection = duckdb.connect()
    configure(connection)
    for package in ("duckdb_extension_avro", "duckdb_extension_iceberg"):
        connection.execute(f"LOAD '{_extension(package)}'")
    if access.scheme:
        if access.scheme not in S3_SCHEMES:
            raise EngineMissing(f"duckdb is not given what opens {access.scheme}:// locations")
        try:
            connection.execute(f"LOAD '{_extension('duckdb_extension_httpfs')}'")
        except ModuleNotFoundError as error:
            message = "duckdb reads S3 with its extension httpfs: pip install 'icebench[peers]'"
            raise EngineMissing(message) from error
        if access.options:
            connection.execute(f"CREATE SECRET ({', '.join(secret_of(access))})")
    return connection


def secret_of(access: Access) -> list[str]:
    """The parts of DuckDB's description of access to S3.

    Raises:
        EngineMissing: It has no word for an option.
    """
    options = access.in_pyiceberg_names
    beyond = options.keys() - {*_SECRET, _ENDPOINT, _VIRTUAL, *_TUNING}
    if beyond := {name for name in beyond if name.startswith(("s3.", "client."))}:
        raise EngineMissing(f"duckdb has no setting for {', '.join(sorted(beyond))}")
    parts = ["TYPE s3", *(f"{_SECRET[name]} {quoted(value)}" for name, value in options.items() if name in _SECRET)]
    if endpoint := options.get(_ENDPOINT):
        scheme, _, host = endpoint.rpartition("://")
        style = "vhost" if options.get(_VIRTUAL, "false").lower() == "true" else "path"
        parts += [f"ENDPOINT {quoted(host.rstrip('/'))}", f"URL_STYLE '{style}'"]
        parts.append(f"USE_SSL {str(scheme != 'http').lower()}")
    return parts


def reader(
    connection: duckdb.DuckDBPyConnection, location: str, columns: Sequence[str] | None, filter: str | None = None
) -> pa.RecordBatchReader:
    """The rows of a table that the filter keeps; None keeps all columns, or all rows."""
    return connection.execute(select(columns, source_of(location), filter)).to_arrow_reader(_BATCH_ROWS)


def _extension(package: str) -> Path:
    """The extension that an installed package brings; no download, unlike DuckDB's own INSTALL."""
    module = import_module(package).__file__
    assert module is not None
    return next(Path(module).parent.rglob("*.duckdb_extension"))
