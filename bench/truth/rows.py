"""What a table holds, found by reading every row of every file: the reference for plans and delivered rows.

DuckDB reads all rows of the Parquet files into tables of its own, and evaluates filters there: see
`icebench.bench.truth.sql`. Which rows are deleted follows the specification's own words ("Scan planning"), one
data file and one delete file at a time. No engine under test has a part in it: of DuckDB's Iceberg extension nothing is
used. Where `icebench.bench.truth.second_opinion` keeps other rows by a filter than DuckDB does, there is no
truth.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from icebench.bench.engines.checksum import empty_checksum
from icebench.bench.engines.engine import normalised
from icebench.bench.engines.sql_text import identifier, quoted
from icebench.bench.errors import BenchError, DatasetFailed
from icebench.bench.truth.filters import filter_columns, to_duckdb
from icebench.bench.truth.manifests import DATA, EQUALITY_DELETES, POSITION_DELETES, FileEntry, live_files
from icebench.bench.truth.metadata import Column, Read, TableJson, load_table_json
from icebench.bench.truth.oracle import Answer
from icebench.bench.truth.second_opinion import SecondOpinion
from icebench.bench.truth.sql import NoTruth, Sql, top_level

_TYPES = {
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMPTZ",
    "timestamp_ns": "TIMESTAMP_NS",
    "timestamptz_ns": "TIMESTAMP_NS",
    "string": "VARCHAR",
    "uuid": "UUID",
    "binary": "BLOB",
    "fixed": "BLOB",
}
_VECTOR_BEFORE, _VECTOR_AFTER = 8, 4
"""Bytes around the bitmap of a deletion vector: its length and magic, its CRC."""


def truth_at(location: str, read: Read | None = None) -> GroundTruth:
    """The truth about the table of a metadata file, see `load_table_json`. Raises as `GroundTruth` does."""
    table = load_table_json(location, read)
    return GroundTruth(table, live_files(table))


class MatchingRows:
    """What filters keep of each data file of a table; found out once for each filter, and nothing else is kept.

    Args:
        table: Its metadata.
        files: Its live data and delete files.

    Raises:
        NoTruth: Its rows cannot be known; see `GroundTruth`.
    """

    def __init__(self, table: TableJson, files: Sequence[FileEntry]) -> None:
        self._table = table
        self._entries = files
        self.files: Mapping[str, FileEntry] = GroundTruth(table, files).files
        self._found: dict[str, dict[str, int] | NoTruth | BenchError] = {}

    def matching(self, filter: str) -> Mapping[str, int]:
        """As `GroundTruth.matching`."""
        if filter not in self._found:
            try:
                self._found[filter] = GroundTruth(self._table, self._entries).matching(filter)
            except (NoTruth, BenchError) as error:
                self._found[filter] = error  # which may have taken as long
        found = self._found[filter]
        if isinstance(found, Exception):
            raise found
        return found


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
        self._position_deletes = [d for d in self._deletes if d.format == "parquet" and d.content == POSITION_DELETES]
        self._has_positions = False
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
        condition = self._condition(filter, columns)
        second = self._second(filter, columns)
        counts = {}
        for path, file in self.files.items():
            self._load(file, columns)
            second.check(self._sql, "stored", condition, source=file.path)
            counts[path] = self._count(f"stored WHERE {condition}")
        return {path: count for path, count in counts.items() if count}

    def answer(self, columns: Sequence[str], filter: str | None = None) -> Answer:
        """The live rows that the filter keeps, of these columns. Raises as `matching` does."""
        asked = [self._column(name) for name in columns]
        named = filter_columns(filter, self._table) if filter else ()
        condition = self._condition(filter, named) if filter else "true"
        second = self._second(filter, named) if filter else None
        shown = ", ".join(f"c{column.field_id}" for column in asked)
        found = {}
        for path, file in self.files.items():
            self._load_live(file, (*asked, *named))
            if second is not None:
                second.check(self._sql, "live", condition, source=file.path)
            query = f"SELECT {shown} FROM live WHERE {condition}"  # noqa: S608 - the user's filter on own files
            found[path] = self._sql.checksum(query, columns)
        return Answer(found or {"no file": empty_checksum(columns)})

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The live rows, of these columns; at least one batch. Raises as `matching` does."""
        asked = [self._column(name) for name in columns]
        names = {column.name: f"c{column.field_id}" for column in asked}
        shown = ", ".join(f"{own} AS {identifier(name)}" for name, own in names.items())
        for number, file in enumerate(self.files.values()):
            self._load_live(file, asked)
            reader = self._sql.arrow(f"SELECT {shown} FROM live")  # noqa: S608 - own names
            if not number:
                yield pa.RecordBatch.from_pylist([], schema=reader.schema)
            yield from reader
        if not self.files:
            if any(self._type(column) is None for column in asked):
                raise NoTruth("a nested column without files has no type here")
            typed = ", ".join(f"CAST(NULL AS {self._type(column)}) AS {identifier(column.name)}" for column in asked)
            yield pa.RecordBatch.from_pylist([], schema=self._sql.arrow(f"SELECT {typed} LIMIT 0").schema)

    @staticmethod
    def _condition(filter: str, columns: Iterable[Column]) -> str:
        return to_duckdb(filter, {c.name: (f"c{c.field_id}", c.type) for c in columns})

    def _second(self, filter: str, columns: Iterable[Column]) -> SecondOpinion:
        share = len(self.files)
        return SecondOpinion.of(filter, {c.name: (f"c{c.field_id}", c.type) for c in columns}, files=share)

    def _count(self, source: str) -> int:
        ((count,),) = (self._sql.arrow(f"SELECT count(*) AS n FROM {source}").read_all().to_pydict()["n"],)  # noqa: S608
        return int(count)

    def _load_live(self, file: FileEntry, columns: Iterable[Column]) -> None:
        """Fill the table `live` as `_load` does `stored`, without deleted rows."""
        vector = next((d for d in self._deletes if d.format == "puffin" and d.referenced == file.path), None)
        deletes = [d for d in self._deletes if d.format == "parquet"]
        keys = [d for d in deletes if d.content == EQUALITY_DELETES and self._reaches(d, file)]
        compared = {i: self._by_id(i) for d in keys for i in d.equality_ids}
        self._load(file, ({c.field_id: c for c in columns} | compared).values())
        kept = ["true"]
        if vector is not None:
            self._sql.register("vector", pa.table({"place": self._positions(vector)}))
            kept.append("place NOT IN (SELECT place FROM vector)")
        else:
            applied = [
                str(number)
                for number, d in enumerate(self._position_deletes)
                if self._same_partition(d, file) and d.sequence_number >= file.sequence_number
            ]
            if applied:
                self._gather_positions()
                of_file = f"file_path = {quoted(file.path)} AND file IN ({', '.join(applied)})"
                kept.append(f"place NOT IN (SELECT pos FROM positions WHERE {of_file})")  # noqa: S608
        for number, delete in enumerate(keys):
            own_columns = [compared[i] for i in delete.equality_ids]
            self._load(delete, own_columns, into=f"keys{number}")
            equal = " AND ".join(f"d.c{c.field_id} IS NOT DISTINCT FROM r.c{c.field_id}" for c in own_columns)
            kept.append(f"NOT EXISTS (SELECT 1 FROM keys{number} d WHERE {equal})")  # noqa: S608
        query = f"CREATE OR REPLACE TEMP TABLE live AS SELECT * FROM stored r WHERE {' AND '.join(kept)}"  # noqa: S608
        self._sql.rows(query, source=file.path)

    def _reaches(self, delete: FileEntry, file: FileEntry) -> bool:
        """Whether an equality delete bears on a data file: it came later, and is of its partition or of none."""
        unpartitioned = not self._spec(delete.spec_id)
        return delete.sequence_number > file.sequence_number and (unpartitioned or self._same_partition(delete, file))

    @staticmethod
    def _same_partition(delete: FileEntry, file: FileEntry) -> bool:
        own, its = (_comparable(entry.partition) for entry in (delete, file))
        return delete.spec_id == file.spec_id and own == its

    def _positions(self, vector: FileEntry) -> np.ndarray:
        assert vector.offset is not None
        assert vector.length is not None
        blob = self._table.read(vector.path)[vector.offset : vector.offset + vector.length]
        return np.array(BitMap64.deserialize(blob[_VECTOR_BEFORE:-_VECTOR_AFTER]), np.int64)

    def _load(self, file: FileEntry, columns: Iterable[Column], *, into: str = "stored") -> None:
        """Fill a table with all rows of a file: column `c<id>` for each of these, and `place`."""
        ordinals = self._ordinals(file)
        constants = self._identity_values(file)
        shown = {}
        for column in columns:
            if column.field_id in ordinals:
                own = f"p{ordinals[column.field_id]}"
            else:
                own = _literal(constants.get(column.field_id, column.initial_default), column.type)
            kind = self._type(column)
            shown[f"c{column.field_id}"] = own if kind is None else f"CAST({own} AS {kind})"
        rows = self._sql.load(into, self._local(file.path), shown, source=file.path)
        if rows != file.records:
            raise DatasetFailed(f"data file {file.path} has {rows} rows, its manifest says {file.records}")

    def _gather_positions(self) -> None:
        """Fill the table `positions` with the rows of all position-delete files, once: each may be of any data file."""
        if self._has_positions:
            return
        for number, delete in enumerate(self._position_deletes):
            names = [name for name, _ in top_level(self._local(delete.path), source=delete.path)]
            columns = {name: names.index(name) for name in ("file_path", "pos")}
            self._sql.load("more", self._local(delete.path), columns, source=delete.path)
            rows = f"SELECT {number} AS file, file_path, pos FROM more"  # noqa: S608
            into = "INSERT INTO positions" if number else "CREATE OR REPLACE TEMP TABLE positions AS"
            self._sql.rows(f"{into} {rows}", source=delete.path)
        self._has_positions = True

    def _ordinals(self, file: FileEntry) -> dict[int, int]:
        """Column id -> place among the columns of the file. Files without ids are matched by name."""
        stored = top_level(self._local(file.path), source=file.path)
        if any(field_id is not None for _, field_id in stored):
            return {field_id: place for place, (_, field_id) in enumerate(stored) if field_id is not None}
        names = [name for name, _ in stored]
        return {c.field_id: names.index(c.name) for c in self._table.columns if c.name in names}

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
        if kind not in _TYPES:
            raise NoTruth(f"column {column.name} is of type {column.type}")
        return _TYPES[kind]

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
            copy.write_bytes(self._table.read(location))
        return str(copy)


def _comparable(partition: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a partition, of which NaN is one, and -0.0 and 0.0 are two, as for Java's `Double.compare`."""
    return {name: repr(value) if isinstance(value, float) else value for name, value in partition.items()}


def _literal(value: object, kind: str) -> str:
    """A partition's value, or a default as JSON has it."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"unhex('{value.hex()}')"
    if isinstance(value, str) and (kind == "binary" or kind.startswith("fixed")):
        return f"unhex({quoted(value)})"
    if kind == "timestamptz_ns" and isinstance(value, str):
        return quoted(value.removesuffix("+00:00"))
    if kind.endswith("_ns") and isinstance(value, int):
        return f"make_timestamp_ns({value})"
    if isinstance(value, float) and math.isnan(value):
        return "'nan'"
    return quoted(str(value))
