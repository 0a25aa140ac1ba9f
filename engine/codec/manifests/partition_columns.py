"""The partition values of a manifest by column, each distinct value converted once."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from icebench.engine.codec.array_views import Int64Array, valid_of, values_of
from icebench.engine.codec.avro.reading.program import ColumnLayout
from icebench.engine.codec.manifests.decoded_entries import PARTITION, ManifestReader
from icebench.engine.codec.taking import take
from icebench.engine.spec.partitioning import PartitionField, PartitionSpec
from icebench.engine.spec.values import Value, decimal_of


@dataclass(frozen=True, slots=True)
class DistinctColumn:
    """Partition values that repeat: value i is ``values[codes[i]]``, in the internal representation; all occur."""

    codes: Int64Array
    values: tuple[Value | None, ...]

    def take(self, rows: Int64Array) -> DistinctColumn:
        """The values of these rows."""
        used, codes = np.unique(self.codes[rows], return_inverse=True)
        return DistinctColumn(codes.reshape(-1), tuple(self.values[code] for code in used.tolist()))


def distinct_tuples(columns: Sequence[DistinctColumn], count: int) -> tuple[Int64Array, list[tuple[Value | None, ...]]]:
    """The tuples of that many rows: the index of each row's tuple, and the tuples in the order of their first use."""
    codes = np.zeros(count, np.int64)
    for column in columns:
        # Numbered anew at each step: the product of all sizes might not fit into 64 bits.
        codes = np.unique(codes * len(column.values) + column.codes, return_inverse=True)[1].reshape(-1)
    codes, first = _by_first_use(codes)
    values = [[column.values[code] for code in column.codes[first].tolist()] for column in columns]
    return codes, list(zip(*values, strict=True)) if columns else [()] * len(first)


def distinct_values(column: pa.Array) -> tuple[Int64Array, Int64Array]:
    """The numbers or byte strings of a column: the index of each row's value among the distinct ones, and the row where
    each of these occurs first. Null is a value; floats are distinct by their bits."""
    if pa.types.is_large_binary(column.type):
        found: dict[bytes | None, int] = {}
        codes = np.array([found.setdefault(value, len(found)) for value in column.to_pylist()], np.int64)
        return _by_first_use(codes)
    values, valid = values_of(column), valid_of(column)
    if values.dtype.kind == "f":
        values = values.view(f"i{values.itemsize}")
    codes = np.unique(values, return_inverse=True)[1].reshape(-1)
    return _by_first_use(codes if valid is None else np.where(valid, codes, -1))


def _by_first_use(codes: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Codes numbered anew in the order of their first use, and the rows where these are."""
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return np.argsort(order)[codes.reshape(-1)], first[order]


def partition_columns(reader: ManifestReader, spec: PartitionSpec) -> Iterator[DistinctColumn]:
    """A column for each field of a spec; raises as `partition_values`."""
    found = reader.partition()
    for f in spec.fields:
        column = found.get(f.field_id)
        if column is None:
            # The specification lets writers leave out fields of type unknown.
            yield DistinctColumn(np.zeros(reader.count, np.int64), (None,) if reader.count else ())
        else:
            codes, first = distinct_values(column)
            yield DistinctColumn(codes, tuple(partition_values(reader, f, take(column, first))))


def partition_values(reader: ManifestReader, f: PartitionField, column: pa.Array) -> list[Value | None]:
    """Decoded values of a partition field in the internal representation.

    Raises:
        CorruptTable: A value is not one of its type.
    """
    try:
        convert = _converter(reader.layouts[*PARTITION, f.field_id])
        values: list[Value | None] = column.to_pylist()
        return values if convert is None else [None if value is None else convert(value) for value in values]
    except ValueError as error:
        raise reader.corrupt(f"a value of the partition field {f.name}: {error}", "partition") from error


def _converter(layout: ColumnLayout) -> Callable[[Any], Value] | None:
    """The conversion of decoded partition values to the internal representation; None if none is needed."""
    avro: Mapping[str, Any] = layout.avro or {}
    logical, kind = avro.get("logicalType"), avro.get("type")
    if layout.kind == "boolean":
        return bool
    if layout.kind != "bytes":
        return None
    if logical == "decimal":
        scale = avro.get("scale", 0)
        if not isinstance(scale, int):
            raise ValueError(f"a decimal of scale {scale!r}")
        return lambda value: decimal_of(int.from_bytes(value, "big", signed=True), scale)
    if logical == "uuid":
        return (lambda value: uuid.UUID(value.decode("ascii"))) if kind == "string" else (lambda v: uuid.UUID(bytes=v))
    return (lambda value: value.decode("utf-8")) if kind == "string" else None
