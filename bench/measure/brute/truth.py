"""What a table holds, found by reading every row of every file: the judge of plans and of delivered rows.

DuckDB reads the raw Parquet files, and evaluates filters. Which rows are deleted follows the specification's own words
("Scan planning"), one data file and one delete file at a time. No engine under test has a part in it: of DuckDB's
Iceberg extension nothing is used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

import numpy as np
import pyarrow as pa
import sqlglot
from pyroaring import BitMap64
from sqlglot import exp
from sqlglot.errors import SqlglotError

from bench.engines.checksum import empty_checksum
from bench.engines.engine import normalised
from bench.errors import ConfigError, DatasetFailed
from bench.measure.brute.manifests import DATA, EQUALITY_DELETES, POSITION_DELETES, FileEntry, live_files
from bench.measure.brute.metadata import Column, TableJson, load_table_json, read_bytes
from bench.measure.oracle import Answer, NoTruth, Sql, identifier, quoted

_TYPES = {
    "boolean": "BOOLEAN", "int": "INTEGER", "long": "BIGINT", "float": "FLOAT", "double": "DOUBLE", "date": "DATE",
    "time": "TIME", "timestamp": "TIMESTAMP", "timestamptz": "TIMESTAMPTZ", "timestamp_ns": "TIMESTAMP_NS",
    "string": "VARCHAR", "uuid": "UUID", "binary": "BLOB",
}  # fmt: skip
_VECTOR_BEFORE, _VECTOR_AFTER = 8, 4
"""Bytes around the bitmap of a deletion vector: its length and magic, its CRC."""


def truth_at(location: str) -> GroundTruth:
    """The truth about the table of a metadata file. Raises as `GroundTruth` does."""
    table = load_table_json(location)
    return GroundTruth(table, live_files(table))


class GroundTruth:
    """The live files of a table, and what is in them.

    Args:
        table: The table's metadata.
        files: Its live data files, and the delete files that bear on them.

    Raises:
        NoTruth: DuckDB is not installed, or a file is neither Parquet nor a deletion vector.
    """

    def __init__(self, table: TableJson, files: Sequence[FileEntry]) -> None:
        other = next((file for file in files if file.format not in ("parquet", "puffin")), None)
        if other is not None:
            raise NoTruth(f"the truth is read from Parquet files only, and {other.path} is {other.format}")
        self._sql = Sql()
        self._table = table
        self._deletes = [file for file in files if file.content != DATA]
        self.files: Mapping[str, FileEntry] = {normalised(f.path): f for f in files if f.content == DATA}

    def matching(self, filter: str) -> dict[str, int]:
        """Normalised path -> rows that the filter keeps, for the files that have any.

        Deleted rows count: a planner cannot be blamed for a file whose matching rows are all deleted, nor need it know.

        Raises:
            ConfigError: The filter cannot be parsed, or names a column that the table does not have.
            DatasetFailed: A file is missing or damaged.
            NoTruth: A column has a type that is not known here.
        """
        columns = filter_columns(filter, self._table)
        counts = {}
        for path, file in self.files.items():
            query = f"SELECT count(*) FROM ({self._named(self._stored(file, columns), columns)}) WHERE {filter}"  # noqa: S608
            counts[path] = self._sql.rows(query, source=file.path)[0][0]
        return {path: count for path, count in counts.items() if count}

    def answer(self, columns: Sequence[str], filter: str | None = None) -> Answer:
        """The live rows that the filter keeps, of these columns. Raises as `matching` does."""
        asked = [self._column(name) for name in columns]
        read = {c.field_id: c for c in (*asked, *(filter_columns(filter, self._table) if filter else ()))}
        found = {}
        for path, file in self.files.items():
            live = self._named(self._live(file, read.values()), read.values())
            shown = ", ".join(_shown(column) for column in asked)
            query = f"SELECT {shown} FROM ({live}) WHERE {filter or 'true'}"  # noqa: S608 - the user's filter on own files
            found[path] = self._sql.checksum(query, columns, source=file.path)
        return Answer(found or {"no file": empty_checksum(columns)})

    def _live(self, file: FileEntry, columns: Iterable[Column]) -> str:
        """As `_stored`, without deleted rows."""
        vector = next((d for d in self._deletes if d.format == "puffin" and d.referenced == file.path), None)
        deletes = [d for d in self._deletes if d.format == "parquet"]
        keys = [d for d in deletes if d.content == EQUALITY_DELETES and self._reaches(d, file)]
        compared = {i: self._by_id(i) for d in keys for i in d.equality_ids}
        kept = ["true"]
        if vector is not None:
            self._sql.register("vector", pa.table({"place": self._positions(vector)}))
            kept.append("file_row_number NOT IN (SELECT place FROM vector)")
        else:
            kept += [
                f"file_row_number NOT IN (SELECT pos FROM {self._parquet(d)} WHERE file_path = {quoted(file.path)})"  # noqa: S608
                for d in deletes
                if d.content == POSITION_DELETES and self._same_partition(d, file)
                if d.sequence_number >= file.sequence_number
            ]
        for delete in keys:
            own = [compared[i] for i in delete.equality_ids]
            equal = " AND ".join(f"d.c{c.field_id} IS NOT DISTINCT FROM r.c{c.field_id}" for c in own)
            kept.append(f"NOT EXISTS (SELECT 1 FROM ({self._stored(delete, own)}) d WHERE {equal})")  # noqa: S608
        stored = self._stored(file, ({c.field_id: c for c in columns} | compared).values())
        return f"SELECT * FROM ({stored}) r WHERE {' AND '.join(kept)}"  # noqa: S608

    def _reaches(self, delete: FileEntry, file: FileEntry) -> bool:
        """Whether an equality delete bears on a data file: it came later, and is of its partition or of none."""
        unpartitioned = not self._spec(delete.spec_id)
        return delete.sequence_number > file.sequence_number and (unpartitioned or self._same_partition(delete, file))

    @staticmethod
    def _same_partition(delete: FileEntry, file: FileEntry) -> bool:
        return delete.spec_id == file.spec_id and delete.partition == file.partition

    def _positions(self, vector: FileEntry) -> np.ndarray:
        assert vector.offset is not None
        assert vector.length is not None
        blob = read_bytes(vector.path)[vector.offset : vector.offset + vector.length]
        return np.array(BitMap64.deserialize(blob[_VECTOR_BEFORE:-_VECTOR_AFTER]), np.int64)

    def _stored(self, file: FileEntry, columns: Iterable[Column]) -> str:
        """A query for all rows of a file, with column `c<id>` for each of these and `file_row_number`."""
        names = self._names(file)
        constants = self._identity_values(file)
        parts = ["file_row_number"]
        for column in columns:
            kind = self._type(column)
            if column.field_id in names:
                own = identifier(names[column.field_id])
            else:
                own = _literal(constants.get(column.field_id, column.initial_default))
            parts.append(f"{own if kind is None else f'CAST({own} AS {kind})'} AS c{column.field_id}")
        return f"SELECT {', '.join(parts)} FROM {self._parquet(file)}"  # noqa: S608

    def _named(self, query: str, columns: Iterable[Column]) -> str:
        """The same rows under the table's names."""
        parts = ["file_row_number", *(f"c{c.field_id} AS {identifier(c.name)}" for c in columns)]
        return f"SELECT {', '.join(parts)} FROM ({query})"  # noqa: S608

    def _parquet(self, file: FileEntry) -> str:
        return f"read_parquet({quoted(self._local(file.path))}, file_row_number=true, hive_partitioning=false)"

    def _names(self, file: FileEntry) -> dict[int, str]:
        """Column id -> the name that the file has for it. Files without ids are matched by name."""
        path = quoted(self._local(file.path))
        ((rows,),) = self._sql.rows(f"SELECT num_rows FROM parquet_file_metadata({path})", source=file.path)  # noqa: S608
        if rows != file.records:
            raise DatasetFailed(f"data file {file.path} has {rows} rows, its manifest says {file.records}")
        query = f"SELECT name, field_id, coalesce(num_children, 0) FROM parquet_schema({path})"  # noqa: S608
        names: dict[str, int | None] = {}
        nested = 0
        for name, field_id, children in self._sql.rows(query, source=file.path)[1:]:
            if nested == 0:
                names[name] = field_id
            nested += children - (nested > 0)
        if any(field_id is not None for field_id in names.values()):
            return {field_id: name for name, field_id in names.items() if field_id is not None}
        return {c.field_id: c.name for c in self._table.columns if c.name in names}

    def _identity_values(self, file: FileEntry) -> dict[int, Any]:
        """Source column id -> value, for columns that the file's partition knows exactly."""
        return {
            field["source-id"]: file.partition[field["name"]]
            for field in self._spec(file.spec_id)
            if field["transform"] == "identity" and field["name"] in file.partition
        }

    def _spec(self, spec_id: int) -> Sequence[Mapping[str, Any]]:
        """The fields of a partition spec."""
        specs = self._table.values.get("partition-specs", ())
        return next((spec["fields"] for spec in specs if spec["spec-id"] == spec_id), ())

    def _column(self, name: str) -> Column:
        return next(column for column in self._table.columns if column.name == name)

    def _by_id(self, field_id: int) -> Column:
        """A column of any schema: equality deletes hold when what they compare was dropped."""
        schemas = [self._table, *(replace(self._table, values={"schema": s}) for s in self._schemas)]
        found = next((c for schema in schemas for c in schema.columns if c.field_id == field_id), None)
        if found is None:
            raise NoTruth(f"an equality delete compares column {field_id}, which is nested")
        return found

    @property
    def _schemas(self) -> Sequence[Mapping[str, Any]]:
        found: Sequence[Mapping[str, Any]] = self._table.values.get("schemas", ())
        return found

    def _type(self, column: Column) -> str | None:
        """The type in SQL; None for a nested column, which is taken as the file has it."""
        if column.type == "nested":
            fields = [field for schema in self._schemas for field in schema["fields"] if field["id"] == column.field_id]
            if any(field["type"] != fields[0]["type"] for field in fields):
                raise NoTruth(f"nested column {column.name} has changed its fields")
            return None
        kind = column.type.partition("(")[0].partition("[")[0]
        if kind == "decimal":
            return column.type.upper()
        if kind != "fixed" and kind not in _TYPES:
            raise NoTruth(f"column {column.name} is of type {column.type}")
        return _TYPES.get(kind, "BLOB")

    @cached_property
    def _copies(self) -> Path:
        folder = mkdtemp(prefix="truth-")
        finalize(self, rmtree, folder)
        return Path(folder)

    def _local(self, location: str) -> str:
        """A path that DuckDB can read: the file's own, or that of a copy."""
        if "://" not in location.removeprefix("file://"):
            return normalised(location)
        copy = self._copies / hashlib.sha256(location.encode()).hexdigest()
        if not copy.exists():
            copy.write_bytes(read_bytes(location))
        return str(copy)


def _literal(value: object) -> str:
    """A partition's value, or a default as JSON has it."""
    if value is None:
        return "NULL"
    return f"unhex('{value.hex()}')" if isinstance(value, bytes) else quoted(str(value))


def _shown(column: Column) -> str:
    """The column as a checksum takes it: of UUIDs, the bytes."""
    name = identifier(column.name)
    return f"unhex(replace(CAST({name} AS VARCHAR), '-', '')) AS {name}" if column.type == "uuid" else name


def filter_columns(filter: str, table: TableJson) -> tuple[Column, ...]:
    """The top-level columns that a filter names, in the table's order.

    Raises:
        ConfigError: The filter cannot be parsed, or names a column that the table does not have.
    """
    try:
        tree = sqlglot.parse_one(filter)
    except SqlglotError as error:
        raise ConfigError(f"filter {filter!r} cannot be parsed: {' '.join(str(error).split())}") from error
    # `a.b` is field b of the struct a: the first part is the column.
    named = {column.parts[0].name.lower() for column in tree.find_all(exp.Column)}
    known = {column.name.lower(): column for column in table.columns}
    if unknown := sorted(named - set(known)):
        raise ConfigError(f"filter {filter!r} names column {unknown[0]!r}, which the table does not have")
    return tuple(column for name, column in known.items() if name in named)
