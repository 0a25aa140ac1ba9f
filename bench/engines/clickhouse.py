"""ClickHouse: scans by its own Iceberg and Parquet readers, through chDB."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from typing import Any

from icebench.bench.engines.checksum import Checksum, checksum_of
from icebench.bench.engines.engine import Ability, EngineMissing, Plan, normalised
from icebench.bench.engines.own_process import OwnProcess
from icebench.bench.engines.registry import EngineContext
from icebench.bench.engines.script import TABLE, Script, select

_CACHES = ("iceberg metadata", "parquet metadata")


def clickhouse(context: EngineContext) -> OwnProcess:
    """ClickHouse in a process of its own, as it reads files below its working directory only."""
    return OwnProcess("icebench.bench.engines.clickhouse:ClickHouse", context)


def source_of(location: str) -> str:
    """What a query selects from: the table of a metadata file."""
    metadata = PurePath(normalised(location))
    folder = metadata.parent.parent
    known = f"settings iceberg_metadata_file_path = {_quoted(str(metadata.relative_to(folder)))}"
    return f"icebergLocal({_quoted(str(folder))}, {known})"


SCRIPTS = {
    "scan": Script(
        setup="""
import os

from chdb.session import Session

os.chdir("/")  # ClickHouse reads files below its working directory only
session = Session()
SQL = {sql}
""",
        forget="\n".join(f'session.query("system drop {cache} cache", "Null")' for cache in _CACHES),
        run='session.query(SQL, "Null")',
        rows='session.query(SQL, "ArrowTable").num_rows',
        source=source_of,
    )
}


@dataclass(frozen=True)
class ClickHouseTable:
    """The table function of one metadata file; what ClickHouse keeps of it is in caches of its session."""

    function: str


class ClickHouse:
    """ClickHouse in this process, with all its threads and its default caches of metadata. The working directory of the
    process becomes ``/``. Timed scans are written to ClickHouse's format `Null`, which drops what was computed.
    """

    name = "clickhouse"
    abilities = frozenset({Ability.SCAN})

    def __init__(self, context: EngineContext) -> None:
        self._access = context.access
        os.chdir("/")
        self._session: Any = import_module("chdb.session").Session()  # a package without types
        self.version = str(self._session.query("select version()", "TSV")).strip()

    def forget(self) -> None:
        for cache in _CACHES:
            self._answer(f"system drop {cache} cache", "Null")

    def open(self, metadata_location: str) -> ClickHouseTable:
        scheme = self._access(metadata_location).scheme
        if scheme:
            raise EngineMissing(f"clickhouse is not given what opens {scheme}:// locations")
        return ClickHouseTable(source_of(metadata_location))

    def compile(self, handle: ClickHouseTable, filter: str | None) -> str | None:
        return filter

    def plan(self, handle: ClickHouseTable, filter: str | None) -> Plan:
        raise AssertionError("planning is not among the abilities")

    def scan(self, handle: ClickHouseTable, columns: Sequence[str], filter: str | None) -> None:
        self._answer(_query(handle, columns, filter), "Null")

    def checksum(self, handle: ClickHouseTable, columns: Sequence[str], filter: str | None) -> Checksum:
        query = f"{_query(handle, columns, filter)} settings output_format_arrow_string_as_string = 1"
        return checksum_of(self._answer(query, "ArrowTable").to_batches(), columns)

    def query(self, handle: ClickHouseTable, columns: Sequence[str] | None, filter: str | None) -> str:
        assert columns is not None
        return select(columns, TABLE, filter)

    def _answer(self, query: str, form: str) -> Any:  # noqa: ANN401 - by form
        try:
            return self._session.query(query, form)
        except Exception:
            # chDB 4.4 answers the query after one that failed with nothing, and no error.
            with suppress(Exception):
                self._session.query("select 1", "TSV")
            raise


def _query(handle: ClickHouseTable, columns: Sequence[str], filter: str | None) -> str:
    return select(columns, handle.function, filter)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
