"""DuckDB's Iceberg extension: scans as Arrow record batches. It has no way to ask for a plan's files."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import duckdb
import pyarrow as pa

from icebench.bench.engines.arrow_scan import ArrowScans
from icebench.bench.engines.engine import Ability, Plan
from icebench.bench.engines.registry import EngineContext

_BATCH_ROWS = 1 << 17


class DuckDb(ArrowScans[str, str | None]):
    """DuckDB in this process, with all its threads. The filter stays text: DuckDB parses it with the query."""

    name = "duckdb"
    abilities = frozenset({Ability.SCAN})

    def __init__(self, context: EngineContext) -> None:
        self.version = duckdb.__version__
        self._connection = connected()

    def open(self, metadata_location: str) -> str:
        # iceberg_scan reads metadata.json in every query; there is no handle to keep it in.
        return metadata_location

    def compile(self, handle: str, filter: str | None) -> str | None:
        return filter

    def plan(self, handle: str, filter: str | None) -> Plan:
        raise AssertionError("planning is not among the abilities")

    def batches(self, handle: str, columns: Sequence[str], filter: str | None) -> pa.RecordBatchReader:
        return reader(self._connection, handle, columns, filter)


def connected() -> duckdb.DuckDBPyConnection:
    """A database that reads Iceberg tables."""
    connection = duckdb.connect()
    for package in ("duckdb_extension_avro", "duckdb_extension_iceberg"):
        connection.execute(f"LOAD '{_extension(package)}'")
    return connection


def reader(
    connection: duckdb.DuckDBPyConnection, location: str, columns: Sequence[str] | None, filter: str | None = None
) -> pa.RecordBatchReader:
    """The rows of a table that the filter keeps; None keeps all columns, or all rows."""
    names = "*" if columns is None else ", ".join(f'"{column}"' for column in columns)
    where = f" WHERE {filter}" if filter else ""
    quoted = location.replace("'", "''")
    query = f"SELECT {names} FROM iceberg_scan('{quoted}'){where}"  # noqa: S608 - the user's own filter on own files
    return connection.execute(query).to_arrow_reader(_BATCH_ROWS)


def _extension(package: str) -> Path:
    """The extension that an installed package brings; no download, unlike DuckDB's own INSTALL."""
    module = import_module(package).__file__
    assert module is not None
    return next(Path(module).parent.rglob("*.duckdb_extension"))
