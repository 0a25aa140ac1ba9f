"""Which data files hold a row that a filter keeps, found by reading every row of every file.

Deleted rows count: a planner cannot be blamed for a file whose matching rows are all deleted, nor need it know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from bench.engines.engine import normalised
from bench.engines.row_oracle import RowOracle
from bench.errors import ConfigError, DatasetFailed
from bench.measure.brute.manifests import FileEntry
from bench.measure.brute.metadata import Column, TableJson, filesystem

_FIELD_ID = b"PARQUET:field_id"


class GroundTruth:
    """The data files of a table, and for any filter the rows in each that it keeps.

    Args:
        table: The table's metadata.
        files: Its live data files.
        oracle: Evaluates filters.

    Raises:
        DatasetFailed: A file is not Parquet, the one format that is read here.
    """

    def __init__(self, table: TableJson, files: Sequence[FileEntry], oracle: RowOracle) -> None:
        other = next((file for file in files if file.format != "parquet"), None)
        if other is not None:
            raise DatasetFailed(f"ground truth reads Parquet only, and {other.path} is {other.format}")
        self._table = table
        self._oracle = oracle
        self.files: Mapping[str, FileEntry] = {normalised(file.path): file for file in files}

    def matching(self, filter: str) -> dict[str, int]:
        """Normalised path -> rows that the filter keeps, for the files that have any.

        Raises:
            ConfigError: The filter cannot be parsed, or names a column that the table does not have.
            DatasetFailed: A file is missing or damaged.
        """
        columns = filter_columns(filter, self._table)
        counts = {path: self._oracle.count(self._read(file, columns), filter) for path, file in self.files.items()}
        return {path: count for path, count in counts.items() if count}

    def _read(self, file: FileEntry, columns: Sequence[Column]) -> pa.Table:
        system, inner = filesystem(file.path)
        try:
            with system.open_input_file(inner) as source, pq.ParquetFile(source) as parquet:
                names = _names_in(parquet.schema_arrow, columns)
                found = parquet.read(columns=list(names.values()))
                rows = parquet.metadata.num_rows
        except (OSError, pa.ArrowException) as error:
            raise DatasetFailed(f"data file {file.path} cannot be read: {error}") from error
        if rows != file.records:
            raise DatasetFailed(f"data file {file.path} has {rows} rows, its manifest says {file.records}")
        constants = self._identity_values(file)
        arrays = {
            column.name: found.column(names[column.field_id])
            if column.field_id in names
            else pa.array([constants.get(column.field_id, column.initial_default)] * rows)
            for column in columns
        }
        # A filter without columns still has rows to count.
        return pa.table(arrays or {"row": pa.nulls(rows)})

    def _identity_values(self, file: FileEntry) -> dict[int, Any]:
        """Source column id -> value, for columns that the file's partition knows exactly."""
        specs = self._table.values.get("partition-specs", ())
        fields = next((spec["fields"] for spec in specs if spec["spec-id"] == file.spec_id), ())
        return {
            field["source-id"]: file.partition[field["name"]]
            for field in fields
            if field["transform"] == "identity" and field["name"] in file.partition
        }


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


def _names_in(schema: pa.Schema, columns: Sequence[Column]) -> dict[int, str]:
    """Column id -> the name that the file has for it. Files without ids are matched by name."""
    ids = {int(f.metadata[_FIELD_ID]): f.name for f in schema if f.metadata and _FIELD_ID in f.metadata}
    own = ids or {column.field_id: column.name for column in columns if column.name in schema.names}
    return {column.field_id: own[column.field_id] for column in columns if column.field_id in own}
