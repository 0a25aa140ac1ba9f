"""The rows of partition statistics files, and their files (spec: "Partition Statistics File")."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass, fields

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icebench.engine.columnar.batch_columns import combined
from icebench.engine.columnar.projection import Projector
from icebench.engine.columnar.scalars import from_arrow_array, to_arrow_array
from icebench.engine.columnar.schemas import storage_of, to_arrow_schema, to_arrow_type
from icebench.engine.errors import CorruptTable
from icebench.engine.formats.opening import open_source
from icebench.engine.formats.source import locating_errors
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.partitioning import Partition, PartitionKey, partition_key
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.spec.types import INT, LONG, NestedField, PrimitiveType, StructType
from icebench.engine.storage.store import Store


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
        """Count a file, or count it no longer; how many rows are left after deletes is not known then."""
        self.total_record_count = None
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

    def touch(self, snapshot: Snapshot | None) -> bool:
        """Note a snapshot that added or removed a file, unless it has expired; whether it is the latest so far."""
        if snapshot is None or (self.last_updated_at is not None and self.last_updated_at >= snapshot.timestamp_ms):
            return False
        self.last_updated_at, self.last_updated_snapshot_id = snapshot.timestamp_ms, snapshot.snapshot_id
        return True


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


def partition_rows_schema(type_: StructType, version: int) -> Schema:
    """The columns of a file for a table of a format version, with partition tuples of this type."""
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
    schema = to_arrow_schema(partition_rows_schema(rows.type, version))
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


def read_partition_rows(store: Store, location: str, type_: StructType) -> PartitionRows:
    """The rows of a file, with partition tuples as values of this type.

    Raises:
        FileNotFound, CorruptTable: The file is gone, damaged, or no partition statistics.
        Unsupported: The name does not end in the name of a format that is read.
    """
    schema = partition_rows_schema(type_, 3)
    rows = PartitionRows(type_, {})
    with (
        locating_errors(location),
        open_source(store, location, file_format=location.rpartition(".")[2]) as source,
    ):
        for group in source.row_groups:
            table = _PROJECTOR.table(source.read(group.index, schema), schema)
            columns = combined(table.column("partition")).flatten()
            parts = [from_arrow_array(f.type, each) for f, each in zip(type_.fields, columns, strict=True)]  # type: ignore[arg-type]
            counts = {name: table.column(name).to_pylist() for name in _COUNTS}
            spec_ids = table.column("spec_id").to_pylist()
            for place, (spec_id, partition) in enumerate(zip(spec_ids, zip(*parts, strict=True), strict=True)):
                if spec_id is None:
                    raise CorruptTable("no partition statistics: a partition without a spec")
                row = rows.row(spec_id, partition)
                for name, values in counts.items():
                    setattr(row, name, values[place] if name in _ALWAYS_OPTIONAL else values[place] or 0)
    return rows


def _missing(f: NestedField, name: str, length: int) -> pa.Array:
    if f.field_id in _NEEDED:
        raise CorruptTable(f"no partition statistics: column {name!r} is missing")
    return pa.nulls(length, to_arrow_type(f.type))


_NEEDED = (1, 2, 3)
_PROJECTOR = Projector(missing=_missing)
