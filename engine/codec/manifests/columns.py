"""Which fields of manifest entries to decode, by field id, and the validated columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from engine.codec.avro.columns import Column, DecodedObjects
from engine.codec.avro.file import AvroHeader
from engine.codec.avro.program import ColumnLayout, Path, Selection
from engine.codec.columns import (
    BytesColumn,
    FixedColumn,
    ListColumn,
    ManifestColumns,
    PartitionColumn,
    first_not_utf8,
    fits_int32,
)
from engine.codec.manifests import schema as ids
from engine.codec.manifests.metric_pairs import pairs_by_key
from engine.errors import CorruptTable
from engine.spec.data_file import FileContent
from engine.spec.manifest import EntryStatus

C = TypeVar("C", FixedColumn, BytesColumn)

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
_COUNT_MAPS: dict[str, Path] = {
    "column_sizes": (_D, ids.COLUMN_SIZES),
    "value_counts": (_D, ids.VALUE_COUNTS),
    "null_value_counts": (_D, ids.NULL_VALUE_COUNTS),
    "nan_value_counts": (_D, ids.NAN_VALUE_COUNTS),
}
_BOUND_MAPS: dict[str, Path] = {
    "lower_bounds": (_D, ids.LOWER_BOUNDS),
    "upper_bounds": (_D, ids.UPPER_BOUNDS),
}
MAPS = {**_COUNT_MAPS, **_BOUND_MAPS}
_REQUIRED = frozenset({"status", "file_path", "file_format", "record_count", "file_size_in_bytes"})

_ELEMENTS = frozenset((*path, "element") for path in _LISTS.values())
_LEAVES = frozenset({*_NUMBERS.values(), *_BYTES.values(), *_LISTS.values()}) | _ELEMENTS
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
        self._nothing = np.zeros(found.count, np.bool_)

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

    def _column(self, name: str, path: Path, kind: type[Column]) -> Any:  # noqa: ANN401 - a `kind` or None
        column = self._found.columns.get(path)
        if column is None:
            if name in _REQUIRED:
                raise self.corrupt(f"the schema of the entries has no field {name} ({path[-1]})", "header.avro.schema")
            return None
        if not isinstance(column, kind) or self._found.layouts[path].kind in ("float", "double", "boolean"):
            raise self.corrupt(f"the field {name} ({path[-1]}) has another type", "header.avro.schema")
        if name in _REQUIRED and column.valid is not None:
            raise self.corrupt(f"has no {name}", f"entry {int(np.argmin(column.valid))}")
        return column

    def number(self, name: str) -> FixedColumn:
        """A field that is an int or a long."""
        column = self._column(name, _NUMBERS[name], FixedColumn)
        if column is not None and name == "sort_order_id":
            self._check_ints(name, column)
        return column or FixedColumn(np.zeros(self._found.count, np.int64), self._nothing)

    def _check_ints(self, name: str, column: FixedColumn) -> None:
        if not fits_int32(column.values):
            raise self.corrupt(f"the field {name} has a value of more than 32 bits")

    def code(self, name: str, allowed: type[EntryStatus | FileContent]) -> FixedColumn:
        """A field of codes; null, as in v1, is 0."""
        values = self.number(name).values
        bad = (values < 0) | (values >= len(allowed))
        if bad.any():
            entry = int(np.argmax(bad))
            raise self.corrupt(f"{values[entry]} is not a {name}", f"entry {entry}")
        return FixedColumn(values)

    def text(self, name: str) -> BytesColumn:
        """A field that is a string or bytes; a string is checked to be UTF-8."""
        column: BytesColumn | None = self._column(name, _BYTES[name], BytesColumn)
        if column is None:
            return BytesColumn(np.zeros(self._found.count + 1, np.int64), np.zeros(0, np.uint8), self._nothing)
        if name != "key_metadata":
            bad = first_not_utf8(column)
            if bad is not None:
                raise self.corrupt(f"the {name} is not UTF-8", f"entry {bad}")
        return column

    def list(self, name: str) -> ListColumn:
        """A field that is a list of int or long."""
        path = _LISTS[name]
        column: ListColumn | None = self._column(name, path, ListColumn)
        if column is None:
            return ListColumn(np.zeros(self._found.count + 1, np.int64), np.zeros(0, np.int64), self._nothing)
        elements: FixedColumn | None = self._column(f"element of {name}", (*path, "element"), FixedColumn)
        if elements is None or elements.valid is not None:
            raise self.corrupt(f"the elements of {name} are not numbers", "header.avro.schema")
        if name == "equality_ids":
            self._check_ints(name, elements)
        return ListColumn(column.offsets, elements.values, column.valid)

    def partition(self) -> dict[int, PartitionColumn]:
        """The partition columns by partition field id."""
        made: dict[int, PartitionColumn] = {}
        for path, column in self._found.columns.items():
            if path[:-1] == PARTITION:
                field_id = path[-1]
                if isinstance(column, ListColumn) or isinstance(field_id, str):
                    raise self.corrupt(f"the partition field {field_id} is nested", "header.avro.schema")
                made[field_id] = column
        return made

    def metric(self, name: str, keys: Sequence[int] | None, kind: type[C]) -> dict[int, C]:
        """The columns of a map by key: of all keys that occur, or of the wanted ones that occur."""
        path = MAPS[name]
        by_key: Mapping[int, Column]
        if path in self._found.slots:
            by_key = self._found.slots[path]
        else:
            by_key = {} if keys == [] else self._from_pairs(name, path, keys)
        for column in by_key.values():
            if not isinstance(column, kind):
                raise self.corrupt(f"the values of {name} have another type", "header.avro.schema")
        return cast("dict[int, C]", by_key)

    def _from_pairs(self, name: str, path: Path, keys: Sequence[int] | None) -> Mapping[int, Column]:
        pairs = self.pairs(name, path)
        return {} if pairs is None else pairs_by_key(*pairs, wanted=keys)

    def pairs(self, name: str, path: Path) -> tuple[ListColumn, FixedColumn, FixedColumn | BytesColumn] | None:
        """A map as lists of keys and values; None when the writer's schema lacks it."""
        lists: ListColumn | None = self._column(name, path, ListColumn)
        if lists is None:
            return None
        keys = self._found.columns.get((*path, "key"))
        values = self._found.columns.get((*path, "value"))
        if not isinstance(keys, FixedColumn) or keys.valid is not None or isinstance(values, ListColumn | None):
            raise self.corrupt(f"{name} is not a map of numbers", "header.avro.schema")
        self._check_ints(f"key of {name}", keys)
        return lists, keys, values

    def manifest_columns(self, keys: Sequence[int] | None) -> ManifestColumns:
        """All columns."""
        return ManifestColumns(
            count=self._found.count,
            status=self.code("status", EntryStatus),
            snapshot_id=self.number("snapshot_id"),
            sequence_number=self.number("sequence_number"),
            file_sequence_number=self.number("file_sequence_number"),
            content=self.code("content", FileContent),
            file_path=self.text("file_path"),
            file_format=self.text("file_format"),
            record_count=self.number("record_count"),
            file_size_in_bytes=self.number("file_size_in_bytes"),
            split_offsets=self.list("split_offsets"),
            equality_ids=self.list("equality_ids"),
            sort_order_id=self.number("sort_order_id"),
            first_row_id=self.number("first_row_id"),
            referenced_data_file=self.text("referenced_data_file"),
            content_offset=self.number("content_offset"),
            content_size_in_bytes=self.number("content_size_in_bytes"),
            key_metadata=self.text("key_metadata"),
            partition=self.partition(),
            column_sizes=self.metric("column_sizes", keys, FixedColumn),
            value_counts=self.metric("value_counts", keys, FixedColumn),
            null_value_counts=self.metric("null_value_counts", keys, FixedColumn),
            nan_value_counts=self.metric("nan_value_counts", keys, FixedColumn),
            lower_bounds=self.metric("lower_bounds", keys, BytesColumn),
            upper_bounds=self.metric("upper_bounds", keys, BytesColumn),
        )
