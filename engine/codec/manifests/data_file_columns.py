"""Data files to be added, by column: what a manifest says of them, with no Python object per file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from engine.codec.avro.file import encode_long
from engine.codec.avro.row_program import RowProgram
from engine.codec.columns import Int64Array, Integers, has_values, values_of
from engine.codec.manifests import schema as ids
from engine.codec.manifests.rows import value_array
from engine.codec.taking import take
from engine.spec.data_file import FileContent
from engine.spec.manifest import EntryStatus
from engine.spec.partitioning import PartitionKey, partition_key
from engine.spec.types import NestedField, PrimitiveType, StructType
from engine.spec.values import Value

_NULL, _PRESENT = b"\x00", b"\x02"
"""The branches of an Avro union of null and another type."""


@dataclass(frozen=True, slots=True)
class DistinctColumn:
    """Partition values that repeat: value i is ``values[codes[i]]``, in the internal representation; all occur."""

    codes: Int64Array
    values: tuple[Value | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFileColumns:
    """Files of one partition spec and one kind of content.

    Args:
        count: How many.
        spec_id: Their partition spec.
        content: What they hold.
        columns: By field id (see `engine.codec.manifests.schema`), without content and partition; optional ones may be
            missing. Integers of 32 or 64 bits, text, byte strings, lists and maps; they may be slices. No map is null.
        partition: A column for each field of the spec.
    """

    count: int
    spec_id: int
    content: FileContent
    columns: Mapping[int, pa.Array]
    partition: tuple[DistinctColumn, ...]

    def has_values(self, field_id: int) -> bool:
        """Whether any file has a value of that field."""
        column = self.columns.get(field_id)
        return column is not None and has_values(column)

    @property
    def row_count(self) -> int:
        """The rows of all files."""
        return self._total(ids.RECORD_COUNT)

    @property
    def size_bytes(self) -> int:
        """The bytes of all files."""
        return self._total(ids.FILE_SIZE_IN_BYTES)

    def by_partition(self) -> list[tuple[tuple[Value | None, ...], int, int, int]]:
        """Of each partition that occurs its values, and how many files, rows and bytes it has."""
        codes = np.column_stack([np.zeros(self.count, np.int64), *(column.codes for column in self.partition)])
        distinct, group = np.unique(codes, axis=0, return_inverse=True)
        sums = [
            np.bincount(group.reshape(-1), weights, len(distinct)).astype(np.int64).tolist()
            for weights in (None, self._numbers(ids.RECORD_COUNT), self._numbers(ids.FILE_SIZE_IN_BYTES))
        ]
        rows = distinct[:, 1:].tolist()
        tuples = (tuple(c.values[i] for c, i in zip(self.partition, row, strict=True)) for row in rows)
        return list(zip(tuples, *sums, strict=True))

    def partitions(self) -> set[PartitionKey]:
        """The partitions that occur."""
        if len(self.partition) == 1:
            (column,) = self.partition
            return {partition_key(self.spec_id, (value,)) for value in column.values}
        codes = set(zip(*(column.codes.tolist() for column in self.partition), strict=True)) or {()}
        tuples = (tuple(c.values[code] for c, code in zip(self.partition, each, strict=True)) for each in codes)
        return {partition_key(self.spec_id, each) for each in tuples}

    def _total(self, field_id: int) -> int:
        return int(self._numbers(field_id).sum())

    def _numbers(self, field_id: int) -> Integers:
        return values_of(self.columns[field_id])


def encode_file_rows(
    files: DataFileColumns, entry_type: StructType, *, snapshot_id: int, sequence_number: int | None
) -> tuple[memoryview, Int64Array]:
    """The Avro objects of ADDED entries of these files, at least one, and where each one ends.

    Args:
        files: Described by column.
        entry_type: The `manifest_entry` struct of a format version.
        snapshot_id: Of every entry.
        sequence_number: The data sequence number of every entry; None leaves it to be inherited.

    Raises:
        ValueError, TypeError, OverflowError: A value is missing or does not fit its type.
    """
    program = RowProgram(files.count)
    constants = {
        ids.STATUS: int(EntryStatus.ADDED),
        ids.SNAPSHOT_ID: snapshot_id,
        ids.SEQUENCE_NUMBER: sequence_number,
        ids.FILE_SEQUENCE_NUMBER: None,
        ids.CONTENT: int(files.content),
        ids.BLOCK_SIZE_IN_BYTES: ids.V1_BLOCK_SIZE,
    }
    _add_struct(program, files, entry_type, constants)
    return program.encode()


def _add_struct(
    program: RowProgram, files: DataFileColumns, type_: StructType, constants: Mapping[int, int | None]
) -> None:
    for f in type_.fields:
        if f.field_id == ids.DATA_FILE:
            assert isinstance(f.type, StructType)
            _add_struct(program, files, f.type, constants)
        elif f.field_id == ids.PARTITION:
            assert isinstance(f.type, StructType)
            for part, column in zip(f.type.fields, files.partition, strict=True):
                _add_partition_values(program, part, column)
        elif f.field_id in constants:
            _add_constant(program, constants[f.field_id], required=f.required)
        else:
            _add_column(program, f, files.columns.get(f.field_id))


def _add_constant(program: RowProgram, value: int | None, *, required: bool) -> None:
    if value is not None:
        program.add_literal((b"" if required else _PRESENT) + encode_long(value))
    elif required:
        raise ValueError("a required value is missing")
    else:
        program.add_literal(_NULL)


def _add_column(program: RowProgram, f: NestedField, column: pa.Array | None) -> None:
    if column is not None:
        program.add(column, required=f.required)
    elif f.required:
        raise ValueError(f"files have no {f.name}")
    else:
        program.add_literal(_NULL)


def _add_partition_values(program: RowProgram, f: NestedField, column: DistinctColumn) -> None:
    assert isinstance(f.type, PrimitiveType)
    if f.type.name == "unknown":
        if any(value is not None for value in column.values):
            raise ValueError("a partition field whose source column was dropped has only nulls")
        return
    if f.required and None in column.values:
        raise ValueError("a required value is missing")
    values = take(value_array(f.type, list(column.values)), column.codes)
    program.add(values, required=f.required, is_fixed=f.type.name not in ("string", "binary"))
