"""The structs of manifests and manifest lists, by format version (spec: "Manifests", "Manifest Lists").

Field ids are the contract between writers; names and order may differ from file to file.
"""

from __future__ import annotations

from icebench.engine.spec.types import (
    BINARY,
    BOOLEAN,
    INT,
    LONG,
    STRING,
    NestedField,
    StructType,
    Type,
    list_type,
    map_type,
)

# manifest_entry
STATUS = 0
SNAPSHOT_ID = 1
DATA_FILE = 2
SEQUENCE_NUMBER = 3
FILE_SEQUENCE_NUMBER = 4

# data_file
FILE_PATH = 100
FILE_FORMAT = 101
PARTITION = 102
RECORD_COUNT = 103
FILE_SIZE_IN_BYTES = 104
BLOCK_SIZE_IN_BYTES = 105
COLUMN_SIZES = 108
VALUE_COUNTS = 109
NULL_VALUE_COUNTS = 110
LOWER_BOUNDS = 125
UPPER_BOUNDS = 128
KEY_METADATA = 131
SPLIT_OFFSETS = 132
CONTENT = 134
EQUALITY_IDS = 135
NAN_VALUE_COUNTS = 137
SORT_ORDER_ID = 140
FIRST_ROW_ID = 142
REFERENCED_DATA_FILE = 143
CONTENT_OFFSET = 144
CONTENT_SIZE_IN_BYTES = 145

V1_BLOCK_SIZE = 64 * 1024 * 1024
"""The value of the deprecated `block_size_in_bytes`, which v1 requires and nobody reads."""


def _required(field_id: int, name: str, type_: Type) -> NestedField:
    return NestedField(field_id=field_id, name=name, type=type_, required=True)


def _optional(field_id: int, name: str, type_: Type) -> NestedField:
    return NestedField(field_id=field_id, name=name, type=type_, required=False)


def _metric(field_id: int, name: str, key_id: int, value_id: int, value: Type) -> NestedField:
    return _optional(field_id, name, map_type(key_id, INT, value_id, value, value_required=True))


_METRICS = (
    _metric(COLUMN_SIZES, "column_sizes", 117, 118, LONG),
    _metric(VALUE_COUNTS, "value_counts", 119, 120, LONG),
    _metric(NULL_VALUE_COUNTS, "null_value_counts", 121, 122, LONG),
    _metric(NAN_VALUE_COUNTS, "nan_value_counts", 138, 139, LONG),
    _metric(LOWER_BOUNDS, "lower_bounds", 126, 127, BINARY),
    _metric(UPPER_BOUNDS, "upper_bounds", 129, 130, BINARY),
)


def _data_file(partition: StructType, format_version: int) -> StructType:
    fields = [
        _required(FILE_PATH, "file_path", STRING),
        _required(FILE_FORMAT, "file_format", STRING),
        _required(PARTITION, "partition", partition),
        _required(RECORD_COUNT, "record_count", LONG),
        _required(FILE_SIZE_IN_BYTES, "file_size_in_bytes", LONG),
    ]
    if format_version == 1:
        fields.append(_required(BLOCK_SIZE_IN_BYTES, "block_size_in_bytes", LONG))
    else:
        fields.insert(0, _required(CONTENT, "content", INT))
    fields += [
        *_METRICS,
        _optional(KEY_METADATA, "key_metadata", BINARY),
        _optional(SPLIT_OFFSETS, "split_offsets", list_type(133, LONG, required=True)),
    ]
    if format_version >= 2:
        fields.append(_optional(EQUALITY_IDS, "equality_ids", list_type(136, INT, required=True)))
    fields.append(_optional(SORT_ORDER_ID, "sort_order_id", INT))
    if format_version >= 3:
        fields.append(_optional(FIRST_ROW_ID, "first_row_id", LONG))
    if format_version >= 2:
        fields.append(_optional(REFERENCED_DATA_FILE, "referenced_data_file", STRING))
    if format_version >= 3:
        fields.append(_optional(CONTENT_OFFSET, "content_offset", LONG))
        fields.append(_optional(CONTENT_SIZE_IN_BYTES, "content_size_in_bytes", LONG))
    return StructType(tuple(fields))


def entry_type(partition: StructType, format_version: int) -> StructType:
    """The `manifest_entry` struct of a format version, in the order in which Iceberg Java writes it."""
    data_file = _required(DATA_FILE, "data_file", _data_file(partition, format_version))
    if format_version == 1:
        return StructType((_required(STATUS, "status", INT), _required(SNAPSHOT_ID, "snapshot_id", LONG), data_file))
    return StructType(
        (
            _required(STATUS, "status", INT),
            _optional(SNAPSHOT_ID, "snapshot_id", LONG),
            _optional(SEQUENCE_NUMBER, "sequence_number", LONG),
            _optional(FILE_SEQUENCE_NUMBER, "file_sequence_number", LONG),
            data_file,
        )
    )


# manifest_file
MANIFEST_PATH = 500
MANIFEST_LENGTH = 501
PARTITION_SPEC_ID = 502
ADDED_SNAPSHOT_ID = 503
ADDED_FILES_COUNT = 504
EXISTING_FILES_COUNT = 505
DELETED_FILES_COUNT = 506
PARTITIONS = 507
CONTAINS_NULL = 509
SUMMARY_LOWER_BOUND = 510
SUMMARY_UPPER_BOUND = 511
ADDED_ROWS_COUNT = 512
EXISTING_ROWS_COUNT = 513
DELETED_ROWS_COUNT = 514
MANIFEST_SEQUENCE_NUMBER = 515
MIN_SEQUENCE_NUMBER = 516
MANIFEST_CONTENT = 517
CONTAINS_NAN = 518
MANIFEST_KEY_METADATA = 519
MANIFEST_FIRST_ROW_ID = 520

_SUMMARY = StructType(
    (
        _required(CONTAINS_NULL, "contains_null", BOOLEAN),
        _optional(CONTAINS_NAN, "contains_nan", BOOLEAN),
        _optional(SUMMARY_LOWER_BOUND, "lower_bound", BINARY),
        _optional(SUMMARY_UPPER_BOUND, "upper_bound", BINARY),
    )
)
_FILE_COUNTS = (
    (ADDED_FILES_COUNT, "added_files_count"),
    (EXISTING_FILES_COUNT, "existing_files_count"),
    (DELETED_FILES_COUNT, "deleted_files_count"),
)
_ROW_COUNTS = (
    (ADDED_ROWS_COUNT, "added_rows_count"),
    (EXISTING_ROWS_COUNT, "existing_rows_count"),
    (DELETED_ROWS_COUNT, "deleted_rows_count"),
)


def manifest_file_type(format_version: int) -> StructType:
    """The `manifest_file` struct of a format version, in the order in which Iceberg Java writes it."""
    head = (
        _required(MANIFEST_PATH, "manifest_path", STRING),
        _required(MANIFEST_LENGTH, "manifest_length", LONG),
        _required(PARTITION_SPEC_ID, "partition_spec_id", INT),
    )
    added = _required(ADDED_SNAPSHOT_ID, "added_snapshot_id", LONG)
    partitions = _optional(PARTITIONS, "partitions", list_type(508, _SUMMARY, required=True))
    key_metadata = _optional(MANIFEST_KEY_METADATA, "key_metadata", BINARY)
    if format_version == 1:
        files = (_optional(field_id, name, INT) for field_id, name in _FILE_COUNTS)
        rows = (_optional(field_id, name, LONG) for field_id, name in _ROW_COUNTS)
        return StructType((*head, added, *files, partitions, *rows, key_metadata))
    fields = (
        *head,
        _required(MANIFEST_CONTENT, "content", INT),
        _required(MANIFEST_SEQUENCE_NUMBER, "sequence_number", LONG),
        _required(MIN_SEQUENCE_NUMBER, "min_sequence_number", LONG),
        added,
        *(_required(field_id, name, INT) for field_id, name in _FILE_COUNTS),
        *(_required(field_id, name, LONG) for field_id, name in _ROW_COUNTS),
        partitions,
        key_metadata,
    )
    if format_version >= 3:
        fields = (*fields, _optional(MANIFEST_FIRST_ROW_ID, "first_row_id", LONG))
    return StructType(fields)
