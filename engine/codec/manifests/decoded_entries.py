"""Which fields of manifest entries to decode, by field id, and the validated columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from icebench.engine.codec.array_views import (
    ManifestColumns,
    first_not_utf8,
    fits_int32,
    list_array,
    number_array,
    offsets_of,
    valid_of,
    values_of,
)
from icebench.engine.codec.avro.file import AvroHeader
from icebench.engine.codec.avro.reading.block_columns import DecodedObjects
from icebench.engine.codec.avro.reading.program import ColumnLayout, Path, Selection
from icebench.engine.codec.manifests import schema as ids
from icebench.engine.codec.manifests.metric_pairs import pairs_by_key
from icebench.engine.errors import CorruptTable
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.manifest import EntryStatus

_D = ids.DATA_FILE
PARTITION = (_D, ids.PARTITION)
_NUMBERS: dict[str, Path] = {
    "status": (ids.STATUS,),
    "snapshot_id": (ids.SNAPSHOT_ID,),
    "sequence_number": (ids.SEQUENCE_NUMBER,),
    "file_sequence_number": (ids.FILE_SEQUENCE_NUMBER,),
    "content": (_D, ids.CONTENT),
    "record_count": (_D, ids.RECORD_COUNT),
    "file_size_in_bytes": (_D, ids.FILE_SIZE_IN_BYTES),
    "sort_order_id": (_D, ids.SORT_ORDER_ID),
    "first_row_id": (_D, ids.FIRST_ROW_ID),
    "content_offset": (_D, ids.CONTENT_OFFSET),
    "content_size_in_bytes": (_D, ids.CONTENT_SIZE_IN_BYTES),
}
_BYTES: dict[str, Path] = {
    "file_path": (_D, ids.FILE_PATH),
    "file_format": (_D, ids.FILE_FORMAT),
    "referenced_data_file": (_D, ids.REFERENCED_DATA_FILE),
    "key_metadata": (_D, ids.KEY_METADATA),
}
_LISTS: dict[str, Path] = {
    "split_offsets": (_D, ids.SPLIT_OFFSETS),
    "equality_ids": (_D, ids.EQUALITY_IDS),
}
LEAVES = {**_NUMBERS, **_BYTES, **_LISTS}
"""All fields but partition values and metrics."""
COUNT_MAPS: dict[str, Path] = {
    "column_sizes": (_D, ids.COLUMN_SIZES),
    "value_counts": (_D, ids.VALUE_COUNTS),
    "null_value_counts": (_D, ids.NULL_VALUE_COUNTS),
    "nan_value_counts": (_D, ids.NAN_VALUE_COUNTS),
}
BOUND_MAPS: dict[str, Path] = {
    "lower_bounds": (_D, ids.LOWER_BOUNDS),
    "upper_bounds": (_D, ids.UPPER_BOUNDS),
}
MAPS = {**COUNT_MAPS, **BOUND_MAPS}
"""Metrics: fields that are maps from column ids."""
FIELDS = (*LEAVES, "partition", *MAPS)
"""The fields that `ManifestColumns` has columns of."""
_REQUIRED = frozenset({"status", "file_path", "file_format", "record_count", "file_size_in_bytes"})

_ELEMENTS = frozenset((*path, "element") for path in _LISTS.values())
_LEAVES = frozenset(LEAVES.values()) | _ELEMENTS
_PAIRS = frozenset(child for path in MAPS.values() for child in (path, (*path, "key"), (*path, "value")))
WITHOUT_METRICS = Selection(_LEAVES, frozenset({PARTITION}))
WITH_SLOTS = Selection(
    _LEAVES | frozenset(MAPS.values()), frozenset({PARTITION, *MAPS.values()}), frozenset(MAPS.values())
)
WITH_PAIRS = Selection(_LEAVES | _PAIRS, frozenset({PARTITION}))


class ManifestReader:
    """Converts decoded columns to those of a manifest, and checks them against the specification."""

    def __init__(self, header: AvroHeader, found: DecodedObjects) -> None:
        self._header = header
        self._found = found

    @property
    def count(self) -> int:
        """The number of entries."""
        return self._found.count

    @property
    def layouts(self) -> Mapping[Path, ColumnLayout]:
        """What the writer's schema says of each decoded column."""
        return self._found.layouts

    def corrupt(self, reason: str, path: str | None = None) -> CorruptTable:
        """The error about this manifest."""
        return CorruptTable(reason, location=self._header.location, path=path)

    def _column(self, name: str, path: Path, is_kind: Callable[[pa.DataType], bool]) -> pa.Array | None:
        column = self._found.columns.get(path)
        if column is None:
            if name in _REQUIRED:
                raise self.corrupt(f"the schema of the entries has no field {name} ({path[-1]})", "header.avro.schema")
            return None
        if not is_kind(column.type):
            raise self.corrupt(f"the field {name} ({path[-1]}) has another type", "header.avro.schema")
        if name in _REQUIRED and column.null_count:
            raise self.corrupt(f"has no {name}", f"entry {column.to_pylist().index(None)}")
        return column

    def number(self, name: str) -> pa.Array:
        """A field that is an int or a long."""
        column = self._column(name, _NUMBERS[name], pa.types.is_int64)
        if column is None:
            return pa.nulls(self._found.count, pa.int64())
        if name == "sort_order_id":
            self._check_ints(name, column)
        return column

    def _check_ints(self, name: str, column: pa.Array) -> None:
        if not fits_int32(values_of(column)):
            raise self.corrupt(f"the field {name} has a value of more than 32 bits")

    def code(self, name: str, allowed: type[EntryStatus | FileContent]) -> pa.Array:
        """A field of codes; null, as in v1, is 0."""
        values = values_of(self.number(name))
        bad = (values < 0) | (values >= len(allowed))
        if bad.any():
            entry = int(np.argmax(bad))
            raise self.corrupt(f"{values[entry]} is not a {name}", f"entry {entry}")
        return number_array(values)

    def text(self, name: str) -> pa.Array:
        """A field that is a string or bytes; a string is checked to be UTF-8."""
        column = self._column(name, _BYTES[name], pa.types.is_large_binary)
        if column is None:
            return pa.nulls(self._found.count, pa.large_binary())
        if name != "key_metadata":
            bad = first_not_utf8(column)
            if bad is not None:
                raise self.corrupt(f"the {name} is not UTF-8", f"entry {bad}")
        return column

    def list(self, name: str) -> pa.Array:
        """A field that is a list of int or long."""
        path = _LISTS[name]
        column = self._column(name, path, pa.types.is_large_list)
        if column is None:
            return pa.nulls(self._found.count, pa.large_list(pa.int64()))
        elements = self._column(f"element of {name}", (*path, "element"), pa.types.is_int64)
        if elements is None or elements.null_count:
            raise self.corrupt(f"the elements of {name} are not numbers", "header.avro.schema")
        if name == "equality_ids":
            self._check_ints(name, elements)
        return list_array(offsets_of(column), elements, valid_of(column))

    def partition(self) -> dict[int, pa.Array]:
        """The partition columns by partition field id."""
        made: dict[int, pa.Array] = {}
        for path, column in self._found.columns.items():
            if path[:-1] == PARTITION:
                field_id = path[-1]
                if pa.types.is_large_list(column.type) or isinstance(field_id, str):
                    raise self.corrupt(f"the partition field {field_id} is nested", "header.avro.schema")
                made[field_id] = column
        return made

    def metric(self, name: str, keys: Sequence[int] | None) -> Mapping[int, pa.Array]:
        """The columns of a map by key: of all keys that occur, or of the wanted ones that occur."""
        path = MAPS[name]
        by_key: Mapping[int, pa.Array]
        if path in self._found.slots:
            by_key = self._found.slots[path]
        else:
            pairs = None if keys == [] else self.pairs(name, path)
            by_key = {} if pairs is None else pairs_by_key(*pairs, wanted=keys)
        is_kind = pa.types.is_int64 if name in COUNT_MAPS else pa.types.is_large_binary
        if not all(is_kind(column.type) for column in by_key.values()):
            raise self.corrupt(f"the values of {name} have another type", "header.avro.schema")
        return by_key

    def pairs(self, name: str, path: Path) -> tuple[pa.Array, pa.Array, pa.Array] | None:
        """A map as lists of keys and values; None when the writer's schema lacks it."""
        lists = self._column(name, path, pa.types.is_large_list)
        if lists is None:
            return None
        keys = self._found.columns.get((*path, "key"))
        values = self._found.columns.get((*path, "value"))
        if keys is None or values is None or keys.type != pa.int64() or pa.types.is_large_list(values.type):
            raise self.corrupt(f"{name} is not a map of numbers", "header.avro.schema")
        if keys.null_count:
            raise self.corrupt(f"a key of {name} is null", "header.avro.schema")
        self._check_ints(f"key of {name}", keys)
        return lists, keys, values

    def manifest_columns(self, keys: Sequence[int] | None) -> ManifestColumns:
        """All columns."""
        made = {
            **{name: self.number(name) for name in _NUMBERS},
            **{name: self.text(name) for name in _BYTES},
            **{name: self.list(name) for name in _LISTS},
            "status": self.code("status", EntryStatus),
            "content": self.code("content", FileContent),
            **{f"partition/{field_id}": column for field_id, column in self.partition().items()},
        }
        for name in MAPS:
            made.update((f"{name}/{key}", column) for key, column in self.metric(name, keys).items())
        return ManifestColumns(pa.RecordBatch.from_arrays(list(made.values()), list(made)))
