"""Logs of queries that other engines keep, as statements and scans.

Spark
    Event logs (``spark.eventLog.enabled``), rolled or not, plain or compressed by zstd, lz4 or gzip. Of each execution
    the description counts where it is SQL, as of the Thrift server and of spark-sql; otherwise the scans in its plan,
    as Iceberg's Java runtime describes them.
Trino
    Events of the HTTP event listener, and ``system.runtime.queries``, as a JSON object a line or as CSV. A query that
    is logged several times counts once.
DuckDB
    ``duckdb_logs`` or a log's file of entries as CSV, of which queries count; the file of ``log_query_path`` is SQL.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa

from icebench.bench.errors import ConfigError

_EXECUTION = "SparkListenerSQLExecutionStart"
_SCAN = re.compile(
    r"^\(\d+\) BatchScan (?P<table>\S+)[^\n]*\nOutput \[\d+\]: \[(?P<output>[^\n]*)\]\n"
    r"[^\n]*?\bfilters=(?P<filters>[^\n]*?)(?:, runtimeFilters=[^\n]*?)?, groupedBy=",
    re.MULTILINE,
)
_SHOWN_RESULT = re.compile(r"== Physical Plan ==\n(?:\* )?CommandResult")
_ATTRIBUTE = re.compile(r"(.+?)#\d+L?$")
_CUT = re.compile(r"\.\.\. \d+ more fields$")
_LZ4_BLOCK = b"LZ4Block"
_LZ4_HEADER = 21
_STORED = 0x10
_NOT_READ = {b"\x82SNAPPY\x00": "Snappy", b"ZV\x00": "LZF", b"ZV\x01": "LZF"}
_MAX_FIELD = 1 << 27


@dataclass(frozen=True, kw_only=True)
class LoggedScan:
    """A scan of a plan.

    Args:
        table: Its name, with the catalog's.
        filters: Conditions as Iceberg Java writes them, with commas between; dates and times are numbers.
        columns: The top-level columns that are read; None if the log does not have them all.
    """

    table: str
    filters: str
    columns: tuple[str, ...] | None


@dataclass(frozen=True, kw_only=True)
class LoggedQuery:
    """A query of a log.

    Args:
        sql: Its text; of a plan whatever the log calls it.
        scans: Of its plan, for where the text is no SQL.
        error: Why it could not be read at all.
    """

    sql: str
    scans: tuple[LoggedScan, ...] | None = None
    error: str | None = None


@dataclass(frozen=True)
class QueryLog:
    """A log, and the dialect of its SQL."""

    queries: Iterable[LoggedQuery]
    dialect: str


def read_log(path: Path) -> QueryLog | None:
    """The queries of a log; None for a file that is of no such log.

    Raises:
        ConfigError: A compression that is not known, or a file that is damaged or not UTF-8.
    """
    lines = _lines(path)
    first = next((line for line in lines if line.strip()), "")
    every = chain([first], lines)
    if first.startswith("{"):
        values = _object(first)
        if "Event" in values:
            return QueryLog(_of_spark(every), "spark")
        if "query" in values or "metadata" in values:
            return QueryLog(_of_trino(map(_object, filter(str.strip, every))), "trino")
        return None
    header = [name.strip().strip('"') for name in first.split(",")]
    if {"type", "log_level", "message"} <= set(header):
        rows = _rows(every)
        return QueryLog((LoggedQuery(sql=row["message"]) for row in rows if row["type"] == "QueryLog"), "duckdb")
    if {"query_id", "query"} <= set(header):
        return QueryLog(_of_trino(_rows(every)), "trino")
    return None


def text_of(path: Path) -> str:
    """The whole text of a file, or of the files of a directory; raises as `read_log`."""
    return "".join(_lines(path))


def _rows(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    csv.field_size_limit(_MAX_FIELD)
    return csv.DictReader(lines)


def _object(line: str) -> dict[str, Any]:
    """The object of a line; for anything else one with the line as ``error``."""
    try:
        values = json.loads(line)
    except ValueError:
        values = None
    return values if isinstance(values, dict) else {"error": line}


def _of_spark(lines: Iterable[str]) -> Iterator[LoggedQuery]:
    seen: set[tuple[object, ...]] = set()
    for line in lines:
        # Most events are of tasks, and large.
        if _EXECUTION not in line and line.rstrip().endswith("}"):
            continue
        event = _object(line)
        if "error" in event:
            yield LoggedQuery(sql=line.strip(), error="is no JSON")
        elif str(event.get("Event", "")).endswith(_EXECUTION):
            root, plan = (
                event.get("rootExecutionId", event.get("executionId")),
                str(event.get("physicalPlanDescription")),
            )
            if _SHOWN_RESULT.match(plan):  # of a command that was executed before
                continue
            # A command runs executions of its own, whose plans repeat parts of its plan.
            scans = [each for each in _scans(plan) if (root, each) not in seen]
            seen.update((root, each) for each in scans)
            if scans or root == event.get("executionId"):
                yield LoggedQuery(sql=str(event.get("description", "")), scans=tuple(scans))


def _scans(plan: str) -> Iterator[LoggedScan]:
    for match in _SCAN.finditer(plan):
        output = match["output"]
        names = [found[1] for part in output.split(", ") if (found := _ATTRIBUTE.match(part))]
        columns = None if _CUT.search(output) else tuple(names)
        yield LoggedScan(table=match["table"], filters=match["filters"], columns=columns)


def _of_trino(objects: Iterable[Mapping[str, Any]]) -> Iterator[LoggedQuery]:
    seen: set[str] = set()
    for values in objects:
        own = values.get("metadata", values)
        text = own.get("preparedQuery") or own.get("query") if isinstance(own, Mapping) else None
        if not isinstance(text, str):
            yield LoggedQuery(sql=str(values.get("error", values)).strip(), error="has no query")
            continue
        query_id = own.get("queryId") or own.get("query_id")
        if query_id is None or query_id not in seen:
            seen.add(str(query_id))
            yield LoggedQuery(sql=text)


def _lines(path: Path) -> Iterator[str]:
    paths = sorted(path.glob("events_*"), key=_number) if path.is_dir() else [path]
    if not paths:
        raise ConfigError("is a directory without files of events", path=str(path))
    for each in paths:
        try:
            with io.TextIOWrapper(_opened(each), encoding="utf-8", newline="") as text:
                yield from text
        except (OSError, EOFError, pa.ArrowException, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot be read: {error}", path=str(each)) from error


def _number(path: Path) -> int:
    """The place of a file among those that a log was rolled into: ``events_3_app-1``."""
    found = re.match(r"events_(\d+)", path.name)
    return int(found[1]) if found else 0


def _opened(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        start = file.read(16)
    for mark, unread in _NOT_READ.items():
        if start.startswith(mark):
            raise ConfigError(f"is compressed by {unread}, which is not read here", path=str(path))
    if start.startswith(_LZ4_BLOCK):
        return io.BytesIO(b"".join(_lz4_blocks(path.read_bytes())))
    codec = "zstd" if start.startswith(b"\x28\xb5\x2f\xfd") else "gzip" if start.startswith(b"\x1f\x8b") else None
    return cast("BinaryIO", pa.input_stream(str(path), compression=codec))


def _lz4_blocks(data: bytes) -> Iterator[bytes]:
    """The blocks of lz4-java's stream: magic, a byte of method and level, two lengths, a checksum, bytes."""
    at = 0
    while at < len(data):
        method = data[at + 8] & 0xF0 if data.startswith(_LZ4_BLOCK, at) and at + _LZ4_HEADER <= len(data) else None
        size, plain = (int.from_bytes(data[at + start : at + start + 4], "little") for start in (9, 13))
        stored = data[at + _LZ4_HEADER : at + _LZ4_HEADER + size]
        if method is None or len(stored) < size:
            raise EOFError(f"an LZ4 block is cut off at byte {at}")
        at += _LZ4_HEADER + size
        if size:
            yield stored if method == _STORED else pa.Codec("lz4_raw").decompress(stored, plain, asbytes=True)
