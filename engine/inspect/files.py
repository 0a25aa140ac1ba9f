"""Metadata tables ``files``, ``data_files``, ``delete_files`` and their ``all_`` forms."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa

from icebench.engine.columnar.scalars import to_arrow_array
from icebench.engine.columnar.schemas import to_arrow_type
from icebench.engine.inspect.contents import Contents, live
from icebench.engine.inspect.readable_metrics import readable_metrics
from icebench.engine.spec.data_file import NO_METRICS, DataFile, FileContent
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import common_partition_type, untyped_fields
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.spec.types import UNKNOWN, PrimitiveType
from icebench.engine.spec.values import Value

DATA_FILES = frozenset({FileContent.DATA})
DELETE_FILES = frozenset({FileContent.POSITION_DELETES, FileContent.EQUALITY_DELETES})
ANY_FILES = DATA_FILES | DELETE_FILES

_COUNTS = pa.map_(pa.int32(), pa.int64())
_BOUNDS = pa.map_(pa.int32(), pa.binary())


def files(contents: Contents, snapshot: Snapshot | None, wanted: Collection[FileContent] = ANY_FILES) -> pa.Table:
    """One row per live file of the snapshot: content (0 data, 1 position deletes, 2 equality deletes), file_path,
    file_format, spec_id, partition, record_count, file_size_in_bytes, column_sizes, value_counts, null_value_counts,
    nan_value_counts, lower_bounds, upper_bounds, key_metadata, split_offsets, equality_ids, sort_order_id,
    first_row_id, referenced_data_file, content_offset, content_size_in_bytes (spec: "Data File Fields"),
    readable_metrics (counts and bounds by the names of columns)."""
    entries = live(contents.snapshot_entries(snapshot))
    return _with_metrics(contents.metadata, [e.data_file for e in entries if e.data_file.content in wanted])


def all_files(contents: Contents, wanted: Collection[FileContent] = ANY_FILES) -> pa.Table:
    """As `files`, for every snapshot of the table: one row per file and manifest that lists it as live."""
    entries = live(contents.all_entries())
    return _with_metrics(contents.metadata, [e.data_file for e in entries if e.data_file.content in wanted])


def _with_metrics(metadata: TableMetadata, rows: list[DataFile]) -> pa.Table:
    return pa.table(file_columns(metadata, rows) | {"readable_metrics": readable_metrics(metadata.schema, rows)})


def file_columns(metadata: TableMetadata, rows: list[DataFile]) -> dict[str, pa.Array]:
    """The fields of ``data_file`` (spec: "Data File Fields"); formats in upper case, as in manifests."""
    return {
        "content": pa.array([int(f.content) for f in rows], pa.int32()),
        "file_path": pa.array([f.file_path for f in rows], pa.string()),
        "file_format": pa.array([f.file_format.upper() for f in rows], pa.string()),
        "spec_id": pa.array([f.spec_id for f in rows], pa.int32()),
        "partition": partitions_of(metadata, rows),
        "record_count": pa.array([f.record_count for f in rows], pa.int64()),
        "file_size_in_bytes": pa.array([f.file_size_in_bytes for f in rows], pa.int64()),
        "column_sizes": _maps((f.column_sizes for f in rows), _COUNTS),
        "value_counts": _maps((f.value_counts for f in rows), _COUNTS),
        "null_value_counts": _maps((f.null_value_counts for f in rows), _COUNTS),
        "nan_value_counts": _maps((f.nan_value_counts for f in rows), _COUNTS),
        "lower_bounds": _maps((f.lower_bounds for f in rows), _BOUNDS),
        "upper_bounds": _maps((f.upper_bounds for f in rows), _BOUNDS),
        "key_metadata": pa.array([f.key_metadata for f in rows], pa.binary()),
        "split_offsets": pa.array([f.split_offsets for f in rows], pa.list_(pa.int64())),
        "equality_ids": pa.array([f.equality_ids for f in rows], pa.list_(pa.int32())),
        "sort_order_id": pa.array([f.sort_order_id for f in rows], pa.int32()),
        "first_row_id": pa.array([f.first_row_id for f in rows], pa.int64()),
        "referenced_data_file": pa.array([f.referenced_data_file for f in rows], pa.string()),
        "content_offset": pa.array([f.content_offset for f in rows], pa.int64()),
        "content_size_in_bytes": pa.array([f.content_size_in_bytes for f in rows], pa.int64()),
    }


def partitions_of(metadata: TableMetadata, rows: list[DataFile]) -> pa.Array:
    """Partition tuples of any spec as one struct (`common_partition_type`).

    Fields of other specs are null, and values of unknown transforms are texts.
    """
    fields = common_partition_type(metadata.partition_specs, metadata.schema, metadata.schemas).fields
    places = {spec.spec_id: {f.field_id: i for i, f in enumerate(spec.fields)} for spec in metadata.partition_specs}
    untyped = untyped_fields(metadata.partition_specs)
    arrays = []
    for field in fields:
        assert isinstance(field.type, PrimitiveType)
        at = [(f, places[f.spec_id].get(field.field_id)) for f in rows]
        # A field whose source column is in no schema has no type, and so no values.
        values = [None if i is None or field.type == UNKNOWN else f.partition[i] for f, i in at]
        if field.field_id in untyped:
            values = [None if value is None else _text(value) for value in values]
        arrays.append(to_arrow_array(field.type, values))
    if not fields:
        return pa.array([{} for _ in rows], pa.struct([]))
    types = [pa.field(f.name, to_arrow_type(f.type)) for f in fields]
    return pa.StructArray.from_arrays(arrays, fields=types)


def _text(value: Value) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _maps(rows: Iterable[Mapping[int, object]], type_: pa.MapType) -> pa.Array:
    return pa.array([None if row is NO_METRICS else list(row.items()) for row in rows], type_)
