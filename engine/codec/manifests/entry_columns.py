"""All that a manifest says of its entries, by column: for writing them again with no Python object per file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icebench.engine.codec.array_views import (
    Int64Array,
    ManifestColumns,
    bytes_array_of,
    data_of,
    offsets_of,
    valid_of,
    values_of,
)
from icebench.engine.codec.avro.file import encode_long
from icebench.engine.codec.avro.reading.program import Path
from icebench.engine.codec.avro.writing.row_program import RowProgram
from icebench.engine.codec.manifests import schema as ids
from icebench.engine.codec.manifests.decoded_entries import LEAVES, MAPS, ManifestReader
from icebench.engine.codec.manifests.entries import file_format
from icebench.engine.codec.manifests.partition_columns import DistinctColumn, distinct_values, partition_columns
from icebench.engine.codec.manifests.rows import value_array
from icebench.engine.codec.taking import stretches, take
from icebench.engine.spec.partitioning import PartitionSpec
from icebench.engine.spec.types import NestedField, PrimitiveType, StructType

_NULL, _PRESENT = b"\x00", b"\x02"
"""The branches of an Avro union of null and another type."""


@dataclass(frozen=True, slots=True)
class MetricPairs:
    """Maps from column ids: map i has the pairs ``offsets[i]`` to ``offsets[i + 1]``, and no value is null."""

    offsets: Int64Array
    keys: Int64Array
    values: pa.Array

    def take(self, rows: Int64Array) -> MetricPairs:
        """The maps of these rows."""
        starts, offsets = stretches(self.offsets, rows)
        pairs = np.repeat(starts - offsets[:-1], np.diff(offsets)) + np.arange(offsets[-1])
        return MetricPairs(offsets, self.keys[pairs], take(self.values, pairs))


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryColumns:
    """Entries of one partition spec.

    Args:
        count: How many.
        columns: By field id (see `icebench.engine.codec.manifests.schema`), without partition; optional ones may be
            missing. Integers of 32 or 64 bits, text, byte strings, lists and maps; they may be slices. No map is null.
        partition: A column for each field of the spec.
    """

    count: int
    columns: Mapping[int, pa.Array | MetricPairs]
    partition: tuple[DistinctColumn, ...]

    def take(self, rows: Int64Array) -> EntryColumns:
        """The entries at these indexes, which ascend."""
        if len(rows) == self.count:
            return self
        columns = {
            field_id: column.take(rows) if isinstance(column, MetricPairs) else take(column, rows)
            for field_id, column in self.columns.items()
        }
        partition = tuple(column.take(rows) for column in self.partition)
        return EntryColumns(count=len(rows), columns=columns, partition=partition)

    def with_columns(self, columns: Mapping[int, pa.Array]) -> EntryColumns:
        """The entries with these columns in place of their own."""
        return EntryColumns(count=self.count, columns={**self.columns, **columns}, partition=self.partition)


def entry_columns(reader: ManifestReader, spec: PartitionSpec) -> tuple[ManifestColumns, EntryColumns]:
    """The entries of a manifest that was decoded with all pairs of its metric maps: without metrics for planning, and
    whole for writing them again. File formats are in capitals.

    Raises:
        CorruptTable: A partition value is not one of its type.
        Unsupported: A file format that Iceberg does not use.
    """
    plain = reader.manifest_columns([])
    columns: dict[int, pa.Array | MetricPairs] = {_field_id(path): plain[name] for name, path in LEAVES.items()}
    codes, first = distinct_values(plain["file_format"])
    names = [(name or b"").decode("utf-8") for name in take(plain["file_format"], first).to_pylist()]
    columns[ids.FILE_FORMAT] = take(bytes_array_of([file_format(name).upper().encode() for name in names]), codes)
    for name, path in MAPS.items():
        if (pairs := _metric_pairs(reader, name)) is not None:
            columns[_field_id(path)] = pairs
    partition = tuple(partition_columns(reader, spec))
    return plain, EntryColumns(count=plain.count, columns=columns, partition=partition)


def _field_id(path: Path) -> int:
    assert isinstance(path[-1], int)
    return path[-1]


def _metric_pairs(reader: ManifestReader, name: str) -> MetricPairs | None:
    pairs = reader.pairs(name, MAPS[name])
    if pairs is None:
        return None
    lists, keys, values = pairs
    offsets, column_ids, valid = offsets_of(lists), values_of(keys), valid_of(values)
    if valid is None:
        return MetricPairs(offsets, column_ids, values)
    kept = np.flatnonzero(valid)
    return MetricPairs(np.searchsorted(kept, offsets), column_ids[kept], take(values, kept))


def encode_columns(
    entries: EntryColumns, entry_type: StructType, constants: Mapping[int, int | None]
) -> tuple[memoryview, Int64Array]:
    """Encode entries as Avro objects; returns their bytes and where each object ends.

    Args:
        entries: At least one.
        entry_type: The `manifest_entry` struct of a format version.
        constants: By field id, values that all entries have in place of their own.

    Raises:
        ValueError, TypeError, OverflowError: A value is missing or does not fit its type.
    """
    program = RowProgram(entries.count)
    _add_struct(program, entries, entry_type, {ids.BLOCK_SIZE_IN_BYTES: ids.V1_BLOCK_SIZE, **constants})
    return program.encode()


def _add_struct(
    program: RowProgram, entries: EntryColumns, type_: StructType, constants: Mapping[int, int | None]
) -> None:
    for f in type_.fields:
        if f.field_id == ids.DATA_FILE:
            assert isinstance(f.type, StructType)
            _add_struct(program, entries, f.type, constants)
        elif f.field_id == ids.PARTITION:
            assert isinstance(f.type, StructType)
            for part, column in zip(f.type.fields, entries.partition, strict=True):
                _add_partition_values(program, part, column)
        elif f.field_id in constants:
            _add_constant(program, constants[f.field_id], required=f.required)
        else:
            _add_column(program, f, entries.columns.get(f.field_id))


def _add_constant(program: RowProgram, value: int | None, *, required: bool) -> None:
    if value is not None:
        program.add_literal((b"" if required else _PRESENT) + encode_long(value))
    elif required:
        raise ValueError("a required value is missing")
    else:
        program.add_literal(_NULL)


def _add_column(program: RowProgram, f: NestedField, column: pa.Array | MetricPairs | None) -> None:
    if isinstance(column, MetricPairs):
        values = column.values
        items = values_of(values) if pa.types.is_int64(values.type) else (offsets_of(values), data_of(values))
        program.add_maps(column.offsets, column.offsets, column.keys, items)
    elif f.required and (column is None or column.null_count):
        raise ValueError(f"files have no {f.name}")
    elif column is not None:
        program.add(column, required=f.required)
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
