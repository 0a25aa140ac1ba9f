"""Ranges of key columns, by which equality deletes are excluded for a data file.

A row is deleted if it equals a key in every key column, null equal to null. So a pair is excluded if the values of one
key column cannot be equal: their ranges do not overlap, and not both have nulls, nor both NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icebench.engine.codec.array_views import BoolArray, Int64Array, ManifestColumns, offsets_of, values_of
from icebench.engine.errors import CorruptTable
from icebench.engine.expressions.bounds import ColumnBounds, Flags
from icebench.engine.expressions.vectors import BytesCuts, BytesVector, Cuts, NumberCuts, NumberVector, Vector, pack
from icebench.engine.plan.delete_matching import NAN, NULL, VALUE, KeyRanges, no_ranges
from icebench.engine.plan.manifests import LiveEntries
from icebench.engine.plan.trusted_metrics import metric_bounds
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import PrimitiveType


def key_ranges(data: Sequence[LiveEntries], deletes: Sequence[LiveEntries], metadata: TableMetadata) -> KeyRanges:
    """The ranges of all key columns; files are numbered across all entries of `data`, and of `deletes`.

    A column whose metrics were not decoded or not written excludes nothing.
    """
    files, delete_files = sum(len(each) for each in data), sum(len(each) for each in deletes)
    keys = [(field_id, _schema_of(field_id, metadata)) for field_id in sorted(key_columns(deletes))]
    known = [(i, s) for i, s in keys if s is not None and isinstance(s.by_id[i].type, PrimitiveType)]
    if not known:
        return no_ranges(files, delete_files)
    pairs = [_ranges_of(field_id, schema, data, deletes) for field_id, schema in known]
    used = [np.concatenate([uses_key(e.columns, field_id)[e.rows] for e in deletes]) for field_id, _ in known]
    return KeyRanges(
        low=np.stack([own[0] for own, _ in pairs]),
        high=np.stack([own[1] for own, _ in pairs]),
        kinds=np.stack([own[2] for own, _ in pairs]),
        delete_low=np.stack([other[0] for _, other in pairs]),
        delete_high=np.stack([other[1] for _, other in pairs]),
        delete_kinds=np.stack([other[2] for _, other in pairs]),
        used=np.stack(used),
    )


def key_columns(deletes: Sequence[LiveEntries]) -> frozenset[int]:
    """Ids of the columns that any equality delete compares.

    Raises:
        CorruptTable: An equality delete without columns.
    """
    found: set[int] = set()
    for each in deletes:
        lists = each.columns["equality_ids"]
        is_equality = each.columns.numbers("content")[each.rows] == FileContent.EQUALITY_DELETES
        if np.any(np.diff(offsets_of(lists))[each.rows][is_equality] == 0):
            raise CorruptTable("an equality delete without equality_ids", location=each.manifest.manifest_path)
        found.update(np.unique(values_of(lists.values)).tolist())
    return frozenset(found)


def _schema_of(field_id: int, metadata: TableMetadata) -> Schema | None:
    """The current schema, or the newest that has the column: a key may be dropped later."""
    return next((s for s in (metadata.schema, *reversed(metadata.schemas)) if field_id in s.by_id), None)


def uses_key(columns: ManifestColumns, field_id: int) -> BoolArray:
    """Whether each entry of a delete manifest is an equality delete that compares this column."""
    lists = columns["equality_ids"]
    owner = np.repeat(np.arange(len(lists)), np.diff(offsets_of(lists)))
    found: BoolArray = np.isin(np.arange(len(lists)), owner[values_of(lists.values) == field_id])
    return found & (columns.numbers("content") == FileContent.EQUALITY_DELETES)


_Ranges = tuple[Int64Array, Int64Array, NDArray[np.uint8]]


def _ranges_of(
    field_id: int, schema: Schema, data: Sequence[LiveEntries], deletes: Sequence[LiveEntries]
) -> tuple[_Ranges, _Ranges]:
    """The ranges of one column in data files and in delete files, as positions among the bounds of the delete files."""
    type_ = schema.primitive(field_id)
    of_deletes = [metric_bounds(each.columns, field_id, schema) for each in deletes]
    of_data = [metric_bounds(each.columns, field_id, schema) for each in data]
    cuts = _cuts([v for bounds in of_deletes for v in (bounds.lower, bounds.upper) if v is not None])
    floating = type_.name in ("float", "double")
    return _ranges(of_data, data, cuts, floating=floating), _ranges(of_deletes, deletes, cuts, floating=floating)


def _cuts(vectors: Sequence[Vector]) -> Cuts | None:
    """The distinct bounds of the delete files; None if there are none."""
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
    """Lowest position, highest position and kinds of each entry's values."""
    top = 2 * _length(cuts)
    low, high, kinds = [], [], []
    for own, each in zip(bounds, entries, strict=True):
        low.append(_places(own.lower, cuts, 0, own.count)[each.rows])
        high.append(_places(own.upper, cuts, top, own.count)[each.rows])
        nan = own.presence.nan if floating else False
        found = _bits(own.presence.value, VALUE) | _bits(own.presence.null, NULL) | _bits(nan, NAN)
        kinds.append(np.broadcast_to(found, (own.count,))[each.rows])
    return np.concatenate(low), np.concatenate(high), np.concatenate(kinds)


def _bits(flags: Flags, bit: int) -> NDArray[np.uint8]:
    return np.asarray(flags, np.uint8) * np.uint8(bit)


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
    places = vector.intervals(cuts)
    return places if vector.valid is None else np.where(vector.valid, places, otherwise)
