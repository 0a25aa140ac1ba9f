"""The rows of partition statistics files, and their form in Parquet (spec: "Partition Statistics File")."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass, fields

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.columnar.scalars import from_arrow_array, to_arrow_array
from engine.columnar.schemas import field_id_of, storage_of, to_arrow_schema, to_arrow_type
from engine.errors import CorruptTable
from engine.spec.data_file import DataFile, FileContent
from engine.spec.partitioning import Partition, PartitionKey, partition_key
from engine.spec.schema import Schema
from engine.spec.snapshots import Snapshot
from engine.spec.types import INT, LONG, NestedField, PrimitiveType, StructType


@dataclass
class PartitionStats:
    """A row of the file, without its key; the names are those of the specification."""

    data_record_count: int = 0
    data_file_count: int = 0
    total_data_file_size_in_bytes: int = 0
    position_delete_record_count: int = 0
    position_delete_file_count: int = 0
    equality_delete_record_count: int = 0
    equality_delete_file_count: int = 0
    total_record_count: int | None = None
    last_updated_at: int | None = None
    last_updated_snapshot_id: int | None = None
    dv_count: int = 0

    def add(self, file: DataFile, sign: int) -> None:
        """Count a file, or count it no longer."""
        match file.content:
            case FileContent.DATA:
                self.data_record_count += sign * file.record_count
                self.data_file_count += sign
                self.total_data_file_size_in_bytes += sign * file.file_size_in_bytes
            case FileContent.POSITION_DELETES:
                self.position_delete_record_count += sign * file.record_count
                if file.file_format == "puffin":
                    self.dv_count += sign
                else:
                    self.position_delete_file_count += sign
            case FileContent.EQUALITY_DELETES:
                self.equality_delete_record_count += sign * file.record_count
                self.equality_delete_file_count += sign

    def touch(self, snapshot: Snapshot | None) -> None:
        """Note a snapshot that added or removed a file, unless it has expired."""
        if snapshot is not None and (self.last_updated_at is None or self.last_updated_at < snapshot.timestamp_ms):
            self.last_updated_at, self.last_updated_snapshot_id = snapshot.timestamp_ms, snapshot.snapshot_id


_COUNTS = tuple(f.name for f in fields(PartitionStats))
_IDS = dict(zip(_COUNTS, (3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13), strict=True))
INT_COUNTS = ("data_file_count", "position_delete_file_count", "equality_delete_file_count", "dv_count")
_REQUIRED = _COUNTS[:3]
_ALWAYS_OPTIONAL = ("total_record_count", "last_updated_at", "last_updated_snapshot_id")


@dataclass(frozen=True)
class PartitionRows:
    """Rows by partition, with partition tuples as values of the common partition type.

    Args:
        type: That type.
        rows: Of each partition its spec's id, its tuple and its counts.
    """

    type: StructType
    rows: dict[PartitionKey, tuple[int, Partition, PartitionStats]]

    def row(self, spec_id: int, partition: Partition) -> PartitionStats:
        """The counts of a partition, of zeros if it is new."""
        return self.rows.setdefault(partition_key(spec_id, partition), (spec_id, partition, PartitionStats()))[2]


def _file_schema(type_: StructType, version: int) -> Schema:
    names = _COUNTS if version >= 3 else _COUNTS[:-1]
    required = (*_REQUIRED, *(set(names) - set(_ALWAYS_OPTIONAL))) if version >= 3 else _REQUIRED
    counts = (
        NestedField(field_id=_IDS[name], name=name, type=INT if name in INT_COUNTS else LONG, required=name in required)
        for name in names
    )
    partition = NestedField(field_id=1, name="partition", type=type_, required=True)
    return Schema((partition, NestedField(field_id=2, name="spec_id", type=INT, required=True), *counts))


def encode_partition_rows(rows: PartitionRows, version: int) -> bytes:
    """A file of the rows for a table of a format version, as Parquet."""
    table = partition_rows_table(rows, version)
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd")
    return out.getvalue()


def partition_rows_table(rows: PartitionRows, version: int) -> pa.Table:
    """The rows in their order, with the fields of a format version."""
    schema = to_arrow_schema(_file_schema(rows.type, version))
    own = list(rows.rows.values())
    parts = [_column(f, (partition[i] for _, partition, _ in own)) for i, f in enumerate(rows.type.fields)]
    spec_ids = pa.array([spec_id for spec_id, _, _ in own], pa.int32())
    # False is before true, so nulls are first.
    columns = [each for part in map(storage_of, parts) for each in (part.is_valid(), part)]
    keys = pa.table([*columns, spec_ids], names=[str(i) for i in range(len(columns) + 1)])
    order = pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names])
    struct = pa.StructArray.from_arrays(parts, fields=list(schema.field("partition").type))
    counts = [pa.array([getattr(row, name) for _, _, row in own], schema.field(name).type) for name in schema.names[2:]]
    return pa.table([struct, spec_ids, *counts], schema=schema).take(order)


def _column(f: NestedField, values: Iterable[object]) -> pa.Array:
    assert isinstance(f.type, PrimitiveType)
    return to_arrow_array(f.type, list(values))  # type: ignore[arg-type]


def decode_partition_rows(data: bytes, type_: StructType, *, location: str) -> PartitionRows:
    """The rows of a file, with partition tuples as values of this type; raises CorruptTable."""
    try:
        table = pq.read_table(io.BytesIO(data))
        columns = {field_id_of(f): table.column(i).combine_chunks() for i, f in enumerate(table.schema)}
        partition = columns[1]
        parts = {field_id_of(f): partition.field(i) for i, f in enumerate(partition.type)}
        tuples = list(zip(*(_values(f, parts.get(f.field_id), len(table)) for f in type_.fields), strict=True))
        given = {name: columns[i].to_pylist() for name, i in _IDS.items() if i in columns}
        spec_ids = columns[2].to_pylist()
        rows = PartitionRows(type_, {})
        for place, (spec_id, own) in enumerate(zip(spec_ids, tuples, strict=True)):
            row = rows.row(spec_id, own)
            for name, values in given.items():
                setattr(row, name, values[place] if name in _ALWAYS_OPTIONAL else values[place] or 0)
        return rows
    except (pa.ArrowException, KeyError, TypeError, AttributeError) as error:
        raise CorruptTable(f"no partition statistics: {error}", location=location) from error


def _values(f: NestedField, array: pa.Array | None, count: int) -> list[object]:
    assert isinstance(f.type, PrimitiveType)
    if array is None:
        return [None] * count
    target = to_arrow_type(f.type)
    if array.type != target:
        array = storage_of(array).cast(storage_of(pa.nulls(0, target)).type)
    return from_arrow_array(f.type, array)
