"""DuckDB over tables of its own, which are filled with every row of a file: no filter reaches a file.

A filter over a Parquet file, or over a registered Arrow table, is answered from statistics where there are any, which
are what planners are checked for: they leave NaN out, and may lie.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icebench.bench.engines.checksum import Checksum, checksum_of
from icebench.bench.engines.sql_text import quoted
from icebench.bench.errors import DatasetFailed

_BATCH_ROWS = 1 << 16
_NOT_LITERAL = {
    "filter_pushdown",
    "statistics_propagation",
    "row_group_pruner",
    "join_filter_pushdown",
    "sampling_pushdown",
    "limit_pushdown",
    "late_materialization",
    "compressed_materialization",
    "expression_rewriter",
}
"""Optimizers of DuckDB that move work into a reader, answer from statistics, or compute something else than what is
written: `i + 1 = 0` becomes `i = -1`, which does not overflow."""
_ICEBERG_TYPES = {
    "BOOLEAN": "boolean",
    "TINYINT": "int",
    "SMALLINT": "int",
    "INTEGER": "int",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "DATE": "date",
    "TIME": "time",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_MS": "timestamp",
    "TIMESTAMP_NS": "timestamp_ns",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "VARCHAR": "string",
    "UUID": "uuid",
    "BLOB": "binary",
}


class NoTruth(Exception):
    """What is true cannot be found out here, for the reason that it says; nothing is wrong with the table."""


class Disputed(NoTruth):
    """Two independent evaluators differ on what a filter keeps: no engine is wrong by either."""


class Sql:
    """A DuckDB of one's own.

    Raises:
        NoTruth: DuckDB is not installed.
    """

    def __init__(self) -> None:
        try:
            self._duckdb: Any = import_module("duckdb")
        except ImportError as error:
            raise NoTruth("the truth is found out by DuckDB: pip install 'icebench[peers]'") from error
        # No file needs an extension, and none shall be downloaded.
        self._connection = self._duckdb.connect(config={"autoinstall_known_extensions": False})
        known = {name for (name,) in self._connection.execute("SELECT * FROM duckdb_optimizers()").fetchall()}
        self._connection.execute(f"SET disabled_optimizers = '{','.join(sorted(known & _NOT_LITERAL))}'")
        self._connection.execute("SET TimeZone = 'UTC'")
        self._zoned: dict[str, set[str]] = {}

    def register(self, name: str, rows: pa.Table) -> None:
        """Copy rows into a table."""
        self._connection.register("registered", rows)
        self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM registered")  # noqa: S608
        self._connection.unregister("registered")

    def load(self, name: str, path: str, columns: Mapping[str, str | int], *, source: str) -> int:
        """Copy all rows of a Parquet file into a table.

        Args:
            name: Of the table, which is replaced.
            path: Of the file.
            columns: Names in the table -> ordinals of top-level columns in the file, or SQL in which column 3 is `p3`.
                Besides, the table has `place`: how many rows come before in the file. Nanoseconds with a zone, which
                DuckDB does not have, are without.
            source: The file, for errors.

        Returns:
            How many rows there are.

        Raises:
            DatasetFailed: The file is missing or damaged.
        """
        texts = {own: f"p{sql}" if isinstance(sql, int) else sql for own, sql in columns.items()}
        used = {int(ordinal) for text in texts.values() for ordinal in re.findall(r"\bp(\d+)\b", text)}
        shown = ", ".join(["place", *(f"{text} AS {own}" for own, text in texts.items())])
        try:
            schema = pq.read_schema(path)
            zoned = {f"p{ordinal}" for ordinal in used if _is_beyond_duckdb(schema.field(ordinal).type)}
            if zoned:
                self._connection.register("registered", _read(path, sorted(used)))
                rows = "registered"
            else:
                every = ", ".join([*(f"p{ordinal}" for ordinal in range(len(schema))), "place"])
                file = f"read_parquet({quoted(path)}, file_row_number=true, hive_partitioning=false)"
                rows = f"{file} AS stored({every})"
            query = f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {shown} FROM {rows}"  # noqa: S608
            ((count,),) = self._connection.execute(query).fetchall()
        except (self._duckdb.Error, pa.ArrowException, OSError) as error:
            raise _unreadable(source, error) from error
        self._zoned[name] = {own for own, text in texts.items() if text in zoned}
        return int(count)

    def types(self, name: str) -> dict[str, str]:
        """Column -> Iceberg type of a table that `load` filled, or of a query; "nested" for structs, lists and maps.

        Raises:
            NoTruth: DuckDB does not take the query.
        """
        described = self.arrow(f"SELECT column_name, column_type FROM (DESCRIBE {name})").read_all()  # noqa: S608
        found = dict(zip(*described.to_pydict().values(), strict=True))
        zoned = self._zoned.get(name, ())
        return {own: "timestamptz_ns" if own in zoned else _iceberg_type(kind) for own, kind in found.items()}

    def rows(self, query: str, *, source: str) -> list[tuple[Any, ...]]:
        """All rows of a result; `source` is the file that is read, for errors.

        Raises:
            DatasetFailed: The file is missing or damaged, or the query is wrong.
        """
        try:
            found: list[tuple[Any, ...]] = self._connection.execute(query).fetchall()
        except self._duckdb.Error as error:
            raise _unreadable(source, error) from error
        return found

    def arrow(self, query: str) -> pa.RecordBatchReader:
        """A result, in batches.

        Raises:
            NoTruth: DuckDB cannot evaluate the query.
        """
        try:
            return self._connection.execute(query).to_arrow_reader(_BATCH_ROWS)
        except self._duckdb.Error as error:
            raise NoTruth(f"DuckDB, which evaluates filters, says: {_line(error)}") from error

    def checksum(self, query: str, columns: Sequence[str]) -> Checksum:
        """The checksum of a result, whose columns get these names. Raises as `arrow` does."""
        try:
            return checksum_of((batch.rename_columns(list(columns)) for batch in self.arrow(query)), columns)
        except (self._duckdb.Error, pa.ArrowException) as error:
            raise NoTruth(f"DuckDB, which evaluates filters, says: {_line(error)}") from error


def top_level(path: str, *, source: str) -> list[tuple[str, int | None]]:
    """The name and field id of each top-level column of a Parquet file.

    Raises:
        DatasetFailed: The file is missing or damaged.
    """
    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(source, error) from error
    ids = [(field.metadata or {}).get(b"PARQUET:field_id") for field in schema]
    return [(field.name, None if own is None else int(own)) for field, own in zip(schema, ids, strict=True)]


def _iceberg_type(kind: str) -> str:
    if kind.startswith("DECIMAL") and not kind.endswith("]"):
        return kind.lower().replace(",", ", ")
    return _ICEBERG_TYPES.get(kind, "nested")


def _is_beyond_duckdb(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.unit == "ns" and kind.tz is not None


def _read(path: str, ordinals: Sequence[int]) -> pa.Table:
    rows = pq.ParquetFile(path).read()
    arrays = [rows.column(ordinal) for ordinal in ordinals]
    plain = [own.cast(pa.timestamp("ns")) if _is_beyond_duckdb(own.type) else own for own in arrays]
    names = ["place", *(f"p{ordinal}" for ordinal in ordinals)]
    return pa.table([pa.array(range(rows.num_rows), pa.int64()), *plain], names=names)


def _unreadable(source: str, error: Exception) -> DatasetFailed:
    return DatasetFailed(f"file {source} cannot be read: {_line(error)}")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
