"""Descriptions of files to be added, by column: what a manifest says of them, without a Python object a file.

Offsets need not begin at 0, and numbers have 32 or 64 bits, so that columns can be those of an Arrow table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from engine.codec.avro.file import encode_long
from engine.codec.avro.row_program import Integers, RowProgram
from engine.codec.columns import BoolArray, ByteArray, FixedColumn, Int64Array
from engine.codec.manifests import schema as ids
from engine.codec.manifests.rows import value_column
from engine.spec.data_file import FileContent
from engine.spec.manifest import EntryStatus
from engine.spec.partitioning import PartitionKey, partition_key
from engine.spec.types import NestedField, PrimitiveType, StructType
from engine.spec.values import Value

_NULL, _PRESENT = b"\x00", b"\x02"
"""The branches of an Avro union of null and another type."""


@dataclass(frozen=True, slots=True)
class Strings:
    """Byte strings where they are: value i is ``data[offsets[i]:offsets[i + 1]]``."""

    offsets: Integers
    data: ByteArray
    valid: BoolArray | None = None


@dataclass(frozen=True, slots=True)
class Lists:
    """Lists of numbers where they are: list i is ``elements[offsets[i]:offsets[i + 1]]``."""

    offsets: Integers
    elements: Integers
    valid: BoolArray | None = None


@dataclass(frozen=True, slots=True)
class PairsColumn:
    """Metric maps where they are: map i has the pairs ``offsets[i]`` to ``offsets[i + 1]``; keys are int32."""

    offsets: Integers
    keys: Integers
    values: Integers | Strings


@dataclass(frozen=True, slots=True)
class DistinctColumn:
    """Partition values that repeat: value i is ``values[codes[i]]``, in the internal representation; all occur."""

    codes: Int64Array
    values: tuple[Value | None, ...]


FileColumn: TypeAlias = FixedColumn | Strings | Lists | PairsColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedFiles:
    """Files of one partition spec and one kind of content.

    Args:
        count: How many.
        spec_id: Their partition spec.
        content: What they hold.
        columns: By field id (see `engine.codec.manifests.schema`), without content and partition; optional ones may be
            missing.
        partition: A column for each field of the spec.
    """

    count: int
    spec_id: int
    content: FileContent
    columns: Mapping[int, FileColumn]
    partition: tuple[DistinctColumn, ...]

    def has_values(self, field_id: int) -> bool:
        """Whether any file has a value of that field."""
        column = self.columns.get(field_id)
        if column is None or isinstance(column, PairsColumn):
            return False
        return column.valid is None or bool(column.valid.any())

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
        column = self.columns[field_id]
        assert isinstance(column, FixedColumn)
        return column.values


def encode_file_rows(
    files: DescribedFiles, entry_type: StructType, *, snapshot_id: int, sequence_number: int | None
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
    program: RowProgram, files: DescribedFiles, type_: StructType, constants: Mapping[int, int | None]
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


def _add_column(program: RowProgram, f: NestedField, column: FileColumn | None) -> None:
    match column:
        case None:
            if f.required:
                raise ValueError(f"files have no {f.name}")
            program.add_literal(_NULL)
        case PairsColumn(offsets=offsets, keys=keys, values=Strings(offsets=ends, data=data)):
            program.add_maps(offsets, offsets, keys, (ends, data))
        case PairsColumn(offsets=offsets, keys=keys, values=numbers):
            assert not isinstance(numbers, Strings)
            program.add_maps(offsets, offsets, keys, numbers)
        case FixedColumn(values=numbers, valid=valid):
            program.add_numbers(numbers, valid, required=f.required)
        case Strings(offsets=offsets, data=data, valid=valid):
            program.add_bytes(offsets, data, valid, required=f.required)
        case Lists(offsets=offsets, elements=elements, valid=valid):
            program.add_lists(offsets, elements, valid, required=f.required)


def _add_partition_values(program: RowProgram, f: NestedField, column: DistinctColumn) -> None:
    assert isinstance(f.type, PrimitiveType)
    if f.type.name == "unknown":
        if any(value is not None for value in column.values):
            raise ValueError("a partition field whose source column was dropped has only nulls")
        return
    if f.required and None in column.values:
        raise ValueError("a required value is missing")
    distinct = value_column(f.type, list(column.values))
    valid = None if distinct.valid is None else distinct.valid[column.codes]
    if isinstance(distinct, FixedColumn):
        program.add_numbers(distinct.values[column.codes], valid, required=f.required)
        return
    sizes = np.diff(distinct.offsets)[column.codes]
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    places = np.repeat(distinct.offsets[:-1][column.codes] - offsets[:-1], sizes) + np.arange(offsets[-1])
    is_fixed = f.type.name not in ("string", "binary")
    program.add_bytes(offsets, distinct.data[places], valid, required=f.required, is_fixed=is_fixed)
