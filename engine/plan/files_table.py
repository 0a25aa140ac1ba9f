"""`plan.files`: an Arrow table of the data files of a plan, and the delete files that its rows refer to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from icebench.engine.codec.array_views import Int64Array, ManifestColumns, data_of, number_array
from icebench.engine.columnar.schemas import to_arrow_type
from icebench.engine.errors import CorruptTable, Unsupported
from icebench.engine.expressions.bound import BOUND_TRUE, BoundPredicate
from icebench.engine.plan.arrow_columns import any_values, partition_values, selected, texts
from icebench.engine.plan.delete_index import DeletesOfFiles
from icebench.engine.plan.delete_targets import find_delete_targets
from icebench.engine.plan.manifests import LiveEntries, concatenated
from icebench.engine.spec.partitioning import PlannedPartitions
from icebench.engine.spec.transforms import UnknownTransform, Void
from icebench.engine.spec.types import PrimitiveType, StructType

_MOST_REFERENCES = (1 << 31) - 1
_UPPER_A, _UPPER_Z, _TO_LOWER = np.frombuffer(b"AZ ", np.uint8)

DELETE_FILE = pa.struct(
    [
        pa.field("content", pa.int8(), nullable=False),
        pa.field("file_path", pa.string(), nullable=False),
        pa.field("file_format", pa.string(), nullable=False),
        pa.field("record_count", pa.int64(), nullable=False),
        pa.field("file_size_in_bytes", pa.int64(), nullable=False),
        pa.field("sequence_number", pa.int64(), nullable=False),
        pa.field("equality_ids", pa.list_(pa.int32())),
        pa.field("referenced_data_file", pa.string()),
        pa.field("content_offset", pa.int64()),
        pa.field("content_size_in_bytes", pa.int64()),
    ]
)
"""A delete file as `plan.files` refers to it; a deletion vector has format ``puffin``, an offset and a size."""


_TOGETHER = 1 << 14
"""At most this many entries of consecutive manifests are converted together."""
_OF_DATA = ("file_path", "file_format", "record_count", "file_size_in_bytes", "split_offsets", "sort_order_id")
_OF_DELETES = (
    "content",
    "file_path",
    "file_format",
    "record_count",
    "file_size_in_bytes",
    "equality_ids",
    "content_offset",
    "content_size_in_bytes",
)
"""Columns of manifests that are converted, besides partition values of data files and targets of delete files."""
_RESIDUAL = pa.field("residual", pa.dictionary(pa.int32(), pa.string()))
"""A dictionary, since many files have the same residual, and a filter may be long."""
_DELETES = pa.field("deletes", pa.list_(pa.dictionary(pa.int32(), DELETE_FILE)), nullable=False)
"""References to the delete files of the plan, each stored once, however many data files it applies to."""


def files_schema(partition: StructType) -> pa.Schema:
    """The columns of `plan.files`; `partition` holds the partition tuples of the table's specs."""
    return pa.schema(
        [
            pa.field("file_path", pa.string(), nullable=False),
            pa.field("file_format", pa.string(), nullable=False),
            pa.field("record_count", pa.int64(), nullable=False),
            pa.field("file_size_in_bytes", pa.int64(), nullable=False),
            pa.field("spec_id", pa.int32(), nullable=False),
            pa.field("partition", _partition_type(partition), nullable=False),
            pa.field("data_sequence_number", pa.int64(), nullable=False),
            pa.field("file_sequence_number", pa.int64(), nullable=False),
            pa.field("first_row_id", pa.int64()),
            pa.field("split_offsets", pa.list_(pa.int64())),
            pa.field("sort_order_id", pa.int32()),
            _RESIDUAL,
            _DELETES,
        ]
    )


def _partition_type(partition: StructType) -> pa.DataType:
    return pa.struct([pa.field(f.name, to_arrow_type(f.type)) for f in partition.fields])


def files_table(entries: Sequence[LiveEntries], partitions: PlannedPartitions) -> pa.Table:
    """All columns but `residual` and `deletes`, one row per data file, in the order of `entries`.

    Args:
        entries: The data files, manifest by manifest.
        partitions: How the partition tuples of all files are held.

    Raises:
        CorruptTable: Partition values of a manifest are not of their field's type.
    """
    schema = files_schema(partitions.type)
    known = pa.schema([field for field in schema if field.name not in (_RESIDUAL.name, _DELETES.name)])
    return pa.Table.from_batches(list(_batches(entries, partitions, known)), known)


def with_residuals(files: pa.Table, residuals: Sequence[BoundPredicate], codes: Int64Array) -> pa.Table:
    """Add the column `residual`: the text of ``residuals[code]`` for each file, null if nothing is left to filter."""
    left = np.array([each != BOUND_TRUE for each in residuals], np.bool_)[codes]
    dictionary = texts([str(each) for each in residuals])
    return files.append_column(
        _RESIDUAL, pa.DictionaryArray.from_arrays(number_array(codes.astype(np.int32), left), dictionary)
    )


def with_deletes(files: pa.Table, delete_files: pa.StructArray, found: DeletesOfFiles) -> pa.Table:
    """Add the column `deletes`: the deletes of each file among `delete_files`.

    Raises:
        Unsupported: More references than a list column holds.
    """
    if len(found.indices) > _MOST_REFERENCES:
        raise Unsupported(f"a plan of {len(found.indices)} references to delete files; rewrite the table's deletes")
    values = pa.DictionaryArray.from_arrays(number_array(found.indices), delete_files)
    buffers = [None, pa.py_buffer(found.offsets.astype(np.int32))]
    column = pa.Array.from_buffers(_DELETES.type, files.num_rows, buffers, children=[values])
    return files.append_column(_DELETES, column)


def delete_file_structs(entries: Sequence[LiveEntries]) -> pa.StructArray:
    """The delete files of these entries, in order."""
    parts = []
    for own in _runs(entries):
        targets = _joined([find_delete_targets(each.columns).paths for each in own])
        parts.append(_delete_files(own[0] if len(own) == 1 else concatenated(own, _OF_DELETES), targets))
    return _joined(parts) if parts else pa.nulls(0, DELETE_FILE)


def _joined(parts: Sequence[pa.Array]) -> pa.Array:
    """One array of them all; Arrow copies a single one, too."""
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def _batches(
    entries: Sequence[LiveEntries], partitions: PlannedPartitions, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Small manifests one after the other are taken together: what is done for each takes longer than its rows."""
    for own in _runs(entries):
        if len(own) > 1:
            try:
                names = [n for n in own[0].columns.batch.schema.names if n in _OF_DATA or n.startswith("partition/")]
                joined = _batch(concatenated(own, names), partitions, schema)
            except CorruptTable:
                pass  # its error names the manifest when each is taken alone
            else:
                yield joined
                continue
        yield from (_batch(each, partitions, schema) for each in own)


def _runs(entries: Sequence[LiveEntries]) -> Iterator[Sequence[LiveEntries]]:
    """Neighbours of one spec and one schema of columns, of up to `_TOGETHER` entries; a manifest of more is alone."""
    first = rows = 0
    for end, each in enumerate(entries):
        if end > first and (rows + each.columns.count > _TOGETHER or not _are_alike(entries[end - 1], each)):
            yield entries[first:end]
            first, rows = end, 0
        rows += each.columns.count
    if entries:
        yield entries[first:]


def _are_alike(one: LiveEntries, other: LiveEntries) -> bool:
    specs = one.manifest.partition_spec_id, other.manifest.partition_spec_id
    return specs[0] == specs[1] and bool(one.columns.batch.schema.equals(other.columns.batch.schema))


def _batch(entries: LiveEntries, partitions: PlannedPartitions, schema: pa.Schema) -> pa.RecordBatch:
    columns, rows = entries.columns, _selection(entries)
    found = {
        "file_path": selected(columns["file_path"], rows, pa.string()),
        "file_format": _formats(columns, rows),
        "record_count": selected(columns["record_count"], rows, pa.int64()),
        "file_size_in_bytes": selected(columns["file_size_in_bytes"], rows, pa.int64()),
        "spec_id": number_array(np.full(len(entries), entries.manifest.partition_spec_id, np.int32)),
        "partition": _partitions(entries, partitions),
        "data_sequence_number": number_array(entries.sequence_number),
        "file_sequence_number": number_array(entries.file_sequence_number),
        "first_row_id": entries.first_row_id,
        "split_offsets": selected(columns["split_offsets"], rows, pa.list_(pa.int64())),
        "sort_order_id": selected(columns["sort_order_id"], rows, pa.int32()),
    }
    return pa.RecordBatch.from_arrays([found[name] for name in schema.names], schema=schema)


def _delete_files(entries: LiveEntries, targets: pa.Array) -> pa.StructArray:
    columns, rows = entries.columns, _selection(entries)
    found = {
        "content": selected(columns["content"], rows, pa.int8()),
        "file_path": selected(columns["file_path"], rows, pa.string()),
        "file_format": _formats(columns, rows),
        "record_count": selected(columns["record_count"], rows, pa.int64()),
        "file_size_in_bytes": selected(columns["file_size_in_bytes"], rows, pa.int64()),
        "sequence_number": number_array(entries.sequence_number),
        "equality_ids": selected(columns["equality_ids"], rows, pa.list_(pa.int32())),
        "referenced_data_file": selected(targets, rows, pa.string()),
        "content_offset": selected(columns["content_offset"], rows, pa.int64()),
        "content_size_in_bytes": selected(columns["content_size_in_bytes"], rows, pa.int64()),
    }
    return pa.StructArray.from_arrays([found[field.name] for field in DELETE_FILE], fields=list(DELETE_FILE))


def _selection(entries: LiveEntries) -> Int64Array | None:
    """The selected rows; None for all entries of the manifest, so that nothing is copied."""
    return None if len(entries) == entries.columns.count else entries.rows


def _formats(columns: ManifestColumns, rows: Int64Array | None) -> pa.Array:
    """File formats in lower case, as writers spell them differently."""
    found = selected(columns["file_format"], rows, pa.string())
    letters = data_of(found)
    lowered = letters | ((letters >= _UPPER_A) & (letters <= _UPPER_Z)) * _TO_LOWER
    return pa.Array.from_buffers(found.type, len(found), [*found.buffers()[:2], pa.py_buffer(lowered)])


def _partitions(entries: LiveEntries, partitions: PlannedPartitions) -> pa.Array:
    own = partitions.places[entries.manifest.partition_spec_id]
    children = []
    for place, field in enumerate(partitions.type.fields):
        assert isinstance(field.type, PrimitiveType)
        source = own.get(place)
        # Nulls of a field that became void are stored in the type of its source, whatever its values were.
        is_null = source is None or isinstance(source.transform, Void)
        column = None if is_null else entries.columns.get("partition", field.field_id)
        if source is not None and isinstance(source.transform, UnknownTransform):
            children.append(any_values(column, entries.rows))
            continue
        try:
            children.append(partition_values(field.type, column, entries.rows))
        except ValueError as error:
            where = f"partition field {field.name}"
            raise CorruptTable(str(error), location=entries.manifest.manifest_path, path=where) from error
    return pa.Array.from_buffers(_partition_type(partitions.type), len(entries), [None], children=children)
