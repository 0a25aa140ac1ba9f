"""Tables of data files as columns that manifests are written from, with no Python object per file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebench.engine.codec.array_views import offsets_of, values_of
from icebench.engine.codec.manifests import schema as ids
from icebench.engine.codec.manifests.data_file_columns import DataFileColumns
from icebench.engine.codec.manifests.manifest_writer import BATCH_ENTRIES, BATCH_METRICS
from icebench.engine.codec.manifests.partition_columns import DistinctColumn
from icebench.engine.columnar.scalars import from_arrow_array
from icebench.engine.columnar.schemas import storage_of, to_arrow_type
from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import PrimitiveType

_COUNTS = pa.map_(pa.int32(), pa.int64())
_BOUNDS = pa.map_(pa.int32(), pa.binary())
_FORMATS = ("AVRO", "ORC", "PARQUET")


@dataclass(frozen=True)
class _Field:
    field_id: int
    type: pa.DataType
    required: bool = False


_FIELDS: Mapping[str, _Field] = {
    "file_path": _Field(ids.FILE_PATH, pa.string(), required=True),
    "file_format": _Field(ids.FILE_FORMAT, pa.string(), required=True),
    "record_count": _Field(ids.RECORD_COUNT, pa.int64(), required=True),
    "file_size_in_bytes": _Field(ids.FILE_SIZE_IN_BYTES, pa.int64(), required=True),
    "column_sizes": _Field(ids.COLUMN_SIZES, _COUNTS),
    "value_counts": _Field(ids.VALUE_COUNTS, _COUNTS),
    "null_value_counts": _Field(ids.NULL_VALUE_COUNTS, _COUNTS),
    "nan_value_counts": _Field(ids.NAN_VALUE_COUNTS, _COUNTS),
    "lower_bounds": _Field(ids.LOWER_BOUNDS, _BOUNDS),
    "upper_bounds": _Field(ids.UPPER_BOUNDS, _BOUNDS),
    "key_metadata": _Field(ids.KEY_METADATA, pa.binary()),
    "split_offsets": _Field(ids.SPLIT_OFFSETS, pa.list_(pa.int64())),
    "sort_order_id": _Field(ids.SORT_ORDER_ID, pa.int32()),
    "first_row_id": _Field(ids.FIRST_ROW_ID, pa.int64()),
}
_READ_OTHERWISE = ("content", "spec_id", "partition")
_NOT_FOR_DATA = ("equality_ids", "referenced_data_file", "content_offset", "content_size_in_bytes")
_NOT_WRITTEN = ("readable_metrics",)
"""Columns of metadata table ``files`` that say nothing of a data file that its other columns do not."""


def check_file_table(schema: pa.Schema) -> None:
    """Raise Invalid where a table with these columns does not describe data files."""
    known = {*_FIELDS, *_READ_OTHERWISE, *_NOT_FOR_DATA, *_NOT_WRITTEN}
    if strange := [name for name in schema.names if name not in known]:
        raise Invalid(f"a table of files has no column {strange[0]!r}; there are: {', '.join(sorted(known))}")
    for name, f in _FIELDS.items():
        if f.required and name not in schema.names:
            raise Invalid(f"a table of files needs the column {name!r}")


def file_batches(files: pa.Table | pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """The files in batches small enough to bound memory however many columns have metrics."""
    for batch in files.to_batches() if isinstance(files, pa.Table) else files:
        metrics = 0
        for name in ("value_counts", "lower_bounds"):
            if name in batch.schema.names and pa.types.is_map(batch.schema.field(name).type):
                ends = offsets_of(batch.column(name))
                metrics += int(ends[-1] - ends[0])
        rows = max(1, min(BATCH_ENTRIES, BATCH_METRICS * batch.num_rows // max(1, metrics)))
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def data_file_columns(files: pa.RecordBatch, metadata: TableMetadata) -> list[DataFileColumns]:
    """Data files by column, one part for each partition spec, the order kept within each.

    Args:
        files: One row a file, with the columns of metadata table ``files``; file_path, file_format, record_count and
            file_size_in_bytes are required. Without ``spec_id`` files have the table's default spec. ``partition`` is a
            struct whose fields are named as those of the spec.
        metadata: The table.

    Raises:
        Invalid: A column that is missing, of another type, or has a null that it may not have; an unknown spec.
        Unsupported: Delete files.
    """
    if "content" in files.schema.names:
        contents = pc.unique(files.column("content")).to_pylist()
        if contents not in ([], [int(FileContent.DATA)]):
            raise Unsupported("delete files described by column; describe them as DataFile objects")
    if "spec_id" not in files.schema.names:
        return [_columns(files, metadata.spec, metadata.schema)]
    spec_ids = files.column("spec_id")
    distinct = pc.unique(spec_ids).to_pylist()
    made = []
    for spec_id in distinct:
        spec = metadata.spec_by_id.get(spec_id)
        if spec is None:
            raise Invalid(f"files were written with partition spec {spec_id}, which the table does not have")
        own = files if len(distinct) == 1 else files.filter(pc.equal(spec_ids, spec_id))
        made.append(_columns(own, spec, metadata.schema))
    return made


def _columns(files: pa.RecordBatch, spec: PartitionSpec, schema: Schema) -> DataFileColumns:
    columns: dict[int, pa.Array] = {}
    names = set(files.schema.names)
    for name, f in _FIELDS.items():
        if name not in names:
            continue
        array = _cast(files.column(name), f.type, name)
        if f.required and array.null_count:
            raise Invalid(f"{name}: {array.null_count} files have none")
        if name == "file_format":
            array = _formats(array)
        columns[f.field_id] = _pairs(array, name) if isinstance(array, pa.MapArray) else array
    return DataFileColumns(
        count=files.num_rows,
        spec_id=spec.spec_id,
        content=FileContent.DATA,
        columns=columns,
        partition=_partition(files, spec, schema),
    )


def _cast(array: pa.Array, type_: pa.DataType, name: str) -> pa.Array:
    if array.type == type_:
        return array
    try:
        return array.cast(type_)
    except pa.ArrowException as error:
        raise Invalid(f"{name} is {array.type}, which is no {type_}: {error}") from error


def _formats(array: pa.StringArray) -> pa.StringArray:
    upper = pc.utf8_upper(array)
    for name in pc.unique(upper).to_pylist():
        if name not in _FORMATS:
            raise Invalid(f"file_format: {name!r} is none of {', '.join(_FORMATS)}")
    return upper


def _pairs(array: pa.MapArray, name: str) -> pa.MapArray:
    """Maps without nulls, neither of maps nor of values."""
    if array.null_count:
        # A null map may have pairs in the buffers; one that was taken has none.
        array = array.take(pa.array(np.arange(len(array))))
    ends = offsets_of(array)
    if nulls := array.items[int(ends[0]) : int(ends[-1])].null_count:
        raise Invalid(f"{name}: {nulls} values are null; leave out columns without one")
    return array


def _partition(files: pa.RecordBatch, spec: PartitionSpec, schema: Schema) -> tuple[DistinctColumn, ...]:
    types = [f.type for f in spec.partition_type(schema).fields]
    if not types:
        return ()
    if "partition" not in files.schema.names:
        raise Invalid(f"a table of files of partition spec {spec.spec_id} needs the column 'partition'")
    struct = files.column("partition")
    names = [field.name for field in struct.type] if pa.types.is_struct(struct.type) else []
    made = []
    for f, type_ in zip(spec.fields, types, strict=True):
        if f.name not in names:
            raise Invalid(f"partition has no field {f.name!r}, which partition spec {spec.spec_id} has")
        assert isinstance(type_, PrimitiveType)
        target = to_arrow_type(type_)
        made.append(_distinct(_cast(pc.struct_field(struct, f.name), target, f"partition.{f.name}"), type_))
    return tuple(made)


def _distinct(array: pa.Array, type_: PrimitiveType) -> DistinctColumn:
    if pa.types.is_null(array.type):
        return DistinctColumn(np.zeros(len(array), np.int64), (None,))
    storage = storage_of(array)
    if pa.types.is_floating(storage.type):
        # By their bits: 0.0 and -0.0 are two values.
        storage = storage.view(pa.int32() if storage.type.bit_width == 32 else pa.int64())
    encoded = storage.dictionary_encode(null_encoding="encode")
    distinct = encoded.dictionary
    if pa.types.is_floating(array.type):
        distinct = distinct.view(array.type)
    if isinstance(array, pa.ExtensionArray):
        distinct = pa.ExtensionArray.from_storage(array.type, distinct)
    return DistinctColumn(values_of(encoded.indices).astype(np.int64), tuple(from_arrow_array(type_, distinct)))
