"""Which equality deletes cannot concern a data file, by bounds and counts of the key columns in both.

A row is deleted if it equals a key in every key column, null to null. So a pair is dropped if for one key column the
values cannot be equal: their ranges do not meet, and not both may have nulls, nor both NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.codec.columns import BoolArray, Int64Array, ManifestColumns
from engine.errors import CorruptTable
from engine.expressions.bounds import ColumnBounds, Flags
from engine.expressions.vectors import BytesCuts, BytesVector, Cuts, NumberCuts, NumberVector, Vector, pack
from engine.plan.manifests import LiveEntries
from engine.plan.pruning import metric_bounds
from engine.spec.data_file import FileContent
from engine.spec.metadata import TableMetadata
from engine.spec.types import PrimitiveType


@dataclass(frozen=True)
class _Ranges:
    """Of one column, for each file: where its values lie among the cuts, and which kinds there may be."""

    low: Int64Array
    high: Int64Array
    value: BoolArray
    null: BoolArray
    nan: BoolArray


@dataclass(frozen=True)
class _Key:
    """One key column: its ranges in data files and in delete files, and the delete files that use it."""

    data: _Ranges
    deletes: _Ranges
    used: BoolArray

    def may_meet(self, files: Int64Array, deletes: Int64Array) -> BoolArray:
        own, other = self.data, self.deletes
        overlap = (own.low[files] <= other.high[deletes]) & (own.high[files] >= other.low[deletes])
        found: BoolArray = (
            ~self.used[deletes]
            | (overlap & own.value[files] & other.value[deletes])
            | (own.null[files] & other.null[deletes])
            | (own.nan[files] & other.nan[deletes])
        )
        return found


class KeyRanges:
    """The key columns of all equality deletes; files are numbered through all entries of `data`, and of `deletes`.

    A column whose metrics were not decoded, or not written, is not known and drops nothing.
    """

    def __init__(self, data: Sequence[LiveEntries], deletes: Sequence[LiveEntries], metadata: TableMetadata) -> None:
        self._keys = []
        for field_id in sorted(key_columns(deletes)):
            type_ = _type_of(field_id, metadata)
            if type_ is not None:
                used = np.concatenate([uses_key(each.columns, field_id)[each.rows] for each in deletes])
                self._keys.append(_key(field_id, type_, data, deletes, used))

    def narrow(self, files: Int64Array, deletes: Int64Array) -> tuple[Int64Array, Int64Array]:
        """The pairs of data and delete files that may share a key."""
        for key in self._keys:
            kept = key.may_meet(files, deletes)
            if not kept.all():
                files, deletes = files[kept], deletes[kept]
        return files, deletes


def key_columns(deletes: Sequence[LiveEntries]) -> frozenset[int]:
    """Ids of the columns that any equality delete compares.

    Raises:
        CorruptTable: An equality delete without columns.
    """
    found: set[int] = set()
    for each in deletes:
        lists = each.columns.equality_ids
        is_equality = each.columns.content.values[each.rows] == FileContent.EQUALITY_DELETES
        if np.any(np.diff(lists.offsets)[each.rows][is_equality] == 0):
            raise CorruptTable("an equality delete without equality_ids", location=each.manifest.manifest_path)
        found.update(np.unique(lists.values).tolist())
    return frozenset(found)


def _type_of(field_id: int, metadata: TableMetadata) -> PrimitiveType | None:
    """The column's type in the current schema, or in the newest that has it: a key may be dropped later."""
    for schema in (metadata.schema, *reversed(metadata.schemas)):
        field = schema.by_id.get(field_id)
        if field is not None:
            return field.type if isinstance(field.type, PrimitiveType) else None
    return None


def uses_key(columns: ManifestColumns, field_id: int) -> BoolArray:
    """Whether each entry of a delete manifest is an equality delete that compares this column."""
    lists = columns.equality_ids
    owner = np.repeat(np.arange(len(lists)), np.diff(lists.offsets))
    values = lists.values[lists.offsets[0] : lists.offsets[-1]]
    found: BoolArray = np.isin(np.arange(len(lists)), owner[values == field_id])
    return found & (columns.content.values == FileContent.EQUALITY_DELETES)


def _key(
    field_id: int,
    type_: PrimitiveType,
    data: Sequence[LiveEntries],
    deletes: Sequence[LiveEntries],
    used: BoolArray,
) -> _Key:
    of_deletes = [metric_bounds(each.columns, field_id, type_) for each in deletes]
    cuts = _cuts([v for bounds in of_deletes for v in (bounds.lower, bounds.upper) if v is not None])
    of_data = [metric_bounds(each.columns, field_id, type_) for each in data]
    floating = type_.name in ("float", "double")
    return _Key(
        _ranges(of_data, data, cuts, floating=floating), _ranges(of_deletes, deletes, cuts, floating=floating), used
    )


def _cuts(vectors: Sequence[Vector]) -> Cuts | None:
    """Every bound of the delete files, once; None for no bound."""
    numbers = [v for v in vectors if isinstance(v, NumberVector)]
    if numbers:
        present: list[NDArray[Any]] = [v.values if v.valid is None else v.values[v.valid] for v in numbers]
        return NumberCuts(np.unique(np.concatenate(present)))
    strings: set[bytes] = set()
    for vector in vectors:
        assert isinstance(vector, BytesVector)
        data, ends = vector.data.tobytes(), vector.offsets.tolist()
        rows = range(len(ends) - 1) if vector.valid is None else np.flatnonzero(vector.valid).tolist()
        strings.update(data[ends[i] : ends[i + 1]] for i in rows)
    return BytesCuts(*pack(sorted(strings))) if strings else None


def _ranges(
    bounds: Sequence[ColumnBounds], entries: Sequence[LiveEntries], cuts: Cuts | None, *, floating: bool
) -> _Ranges:
    top = 2 * _length(cuts)
    pairs = list(zip(bounds, entries, strict=True))
    return _Ranges(
        low=np.concatenate([_places(b.lower, cuts, 0, b.count)[e.rows] for b, e in pairs]),
        high=np.concatenate([_places(b.upper, cuts, top, b.count)[e.rows] for b, e in pairs]),
        value=np.concatenate([_flags(b.presence.value, b.count)[e.rows] for b, e in pairs]),
        null=np.concatenate([_flags(b.presence.null, b.count)[e.rows] for b, e in pairs]),
        nan=np.concatenate([_flags(b.presence.nan if floating else False, b.count)[e.rows] for b, e in pairs]),
    )


def _length(cuts: Cuts | None) -> int:
    match cuts:
        case NumberCuts(values):
            return len(values)
        case BytesCuts(offsets, _):
            return len(offsets) - 1
    return 0


def _places(vector: Vector | None, cuts: Cuts | None, otherwise: int, count: int) -> Int64Array:
    if vector is None or cuts is None:
        return np.full(count, otherwise, np.int64)
    places = vector.segments(cuts)
    return places if vector.valid is None else np.where(vector.valid, places, otherwise)


def _flags(flags: Flags, count: int) -> BoolArray:
    return np.broadcast_to(np.asarray(flags, np.bool_), (count,))
