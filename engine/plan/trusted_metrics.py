"""The column metrics of a data file that can be trusted (spec: "Field-level Metrics and Statistics").

Pruning, residuals, whole-file deletes and the matching of equality deletes all use `metric_bounds`, so one wrong count
loses rows, or deletes the wrong ones. Released writers have written wrong metrics. Entries are checked for signs of
such a writer, and metrics that a sign puts in doubt count as unknown:

Zero nulls are not believed
  - where fewer values are counted than rows, or, of a field of a struct, none at all. Iceberg Java does not count the
    rows whose struct is null for float and double in Parquet (apache/iceberg 17561, 18069), nor for any type in ORC
    (apache/iceberg 8611);
  - of imported files: Parquet without `split_offsets`. Iceberg Java adds -1 for each row group whose footer has no null
    count (apache/iceberg 17558).

Counts of nulls and NaN are not believed
  - where they exceed the rows. ClickHouse gave every file the counts of its manifest (ClickHouse 112414);
  - to say that there are no other values, where there is a bound (the same, with counts that happen to fit), or by
    comparison with value counts instead of rows. StarRocks left nulls out of value counts (StarRocks 50699).

Neither bound is believed
  - where the lower one is above the upper one (ClickHouse 116499, and writers that compare in another order);
  - where either is NaN, or no value of the type. ORC files that begin with NaN; decimals as Parquet encodes them
    (StarRocks 69207);
  - of text and binary in files of several row groups with PyIceberg's names. It passes over row groups that have no
    bounds because their values are longer than 4 KiB;
  - of uuids, but for what `icebench.engine.expressions.uuid_bounds` says (apache/iceberg 14216).

Of timestamps
  - an upper bound of whole milliseconds holds up to the end of the last one. Delta UniForm cuts them off (delta 7444);
  - the bound on the side away from 1970-01-01 is not believed within 116 days of it. Iceberg Java takes Parquet's
    milliseconds for microseconds when it imports files (apache/iceberg 18173).

Missing metrics are unknown, as is a missing NaN count. Some bugs leave no sign, and the metrics they
spoil are believed: text bounds of imported files with texts longer than 4 KiB (trinodb/trino 19052, and PyIceberg's
`add_files`); upper bounds over several row groups by iceberg-rust up to 0.5 (1519); bounds of other columns by Doris in
ORC (doris 65253); zeros for what Paimon did not know (paimon 8732).
"""

from __future__ import annotations

from threading import Lock
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from icebench.engine.codec.array_views import (
    BoolArray,
    Int64Array,
    ManifestColumns,
    data_of,
    offsets_of,
    valid_of,
    values_of,
)
from icebench.engine.expressions.bounds import ColumnBounds, Presence
from icebench.engine.expressions.uuid_bounds import believed_bounds
from icebench.engine.expressions.vectors import NumberVector, Vector, from_serialized, restricted
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import DecimalType, PrimitiveType

MICROSECONDS = frozenset({"timestamp", "timestamptz"})
_MILLISECOND = 1_000
_LAST = np.iinfo(np.int64).max
_FARTHEST_MILLISECONDS = 10_000_000_000_000
"""Year 2286 in milliseconds, which as microseconds is day 116."""
_NAME_END = len("-01234567-89ab-cdef-0123-456789abcdef.parquet")
_DASHES = np.array([0, 9, 14, 19, 24])
_DASH = ord("-")
_PARQUET = np.frombuffer(b"parquet", np.uint8)
_TO_LOWER = np.uint8(0x20)

_LOCK = Lock()
_KEPT: WeakKeyDictionary[ManifestColumns, dict[tuple[int, PrimitiveType, bool], ColumnBounds]] = WeakKeyDictionary()


def metric_bounds(columns: ManifestColumns, field_id: int, schema: Schema) -> ColumnBounds:
    """The trusted bounds of a primitive column with one value per row, for each entry's file.

    The result is kept as long as the decoded columns: with a cache, from one plan to the next.

    Raises:
        Invalid: The schema has no such column.
    """
    key = (field_id, schema.primitive(field_id), field_id in schema.parent_of)
    with _LOCK:
        kept = _KEPT.setdefault(columns, {})
        found = kept.get(key)
    if found is None:
        found = _metric_bounds(columns, field_id, schema)
        with _LOCK:
            kept[key] = found
    return found


def _metric_bounds(columns: ManifestColumns, field_id: int, schema: Schema) -> ColumnBounds:
    type_ = schema.primitive(field_id)
    floating = type_.name in ("float", "double")
    lower, upper, unreadable = _bounds(columns, field_id, type_)
    bounded = _is_there(columns.get("lower_bounds", field_id), columns.count)
    bounded = bounded | _is_there(columns.get("upper_bounds", field_id), columns.count)
    presence = _presence(columns, field_id, bounded, floating=floating, nested=field_id in schema.parent_of)
    if floating:
        presence = Presence(null=presence.null, nan=presence.nan | unreadable, value=presence.value)
    return ColumnBounds(count=columns.count, lower=lower, upper=upper, presence=presence)


def _bounds(
    columns: ManifestColumns, field_id: int, type_: PrimitiveType
) -> tuple[Vector | None, Vector | None, BoolArray]:
    """Both bounds, and where one is given that cannot be read."""
    stored = [columns.get(bounds, field_id) for bounds in ("lower_bounds", "upper_bounds")]
    read = [None if b is None else from_serialized(type_, offsets_of(b), data_of(b), valid_of(b)) for b in stored]
    unreadable = np.zeros(columns.count, np.bool_)
    for bound, vector in zip(stored, read, strict=True):
        if bound is not None and isinstance(vector, NumberVector):
            unreadable |= _is_there(bound, columns.count) & ~_usable(vector, type_)
    lower, upper = (restricted(vector, ~unreadable) if unreadable.any() else vector for vector in read)
    if type_.name in ("string", "binary"):
        doubtful = _may_pass_over_row_groups(columns)
        lower, upper = (restricted(vector, ~doubtful) if doubtful.any() else vector for vector in (lower, upper))
    if type_.name in MICROSECONDS:
        lower, upper = trusted_microseconds(lower, upper)
    # Iceberg Java compares values by their bytes, and row groups in another order.
    one_order: BoolArray | Literal[True] = True
    if type_.name == "uuid":
        one_order = (np.diff(offsets_of(columns["split_offsets"])) <= 1) & ~_is_imported(columns)
    return *believed_bounds(type_, lower, upper, columns.count, one_order=one_order), unreadable


def _usable(vector: NumberVector, type_: PrimitiveType) -> BoolArray:
    fits = np.ones(len(vector.values), np.bool_) if vector.valid is None else vector.valid
    return fits & (np.abs(vector.values) < 10**type_.precision) if isinstance(type_, DecimalType) else fits


def trusted_microseconds(lower: Vector | None, upper: Vector | None) -> tuple[Vector | None, Vector | None]:
    """Bounds that hold even if milliseconds were taken for microseconds, or values were truncated to milliseconds."""
    if isinstance(lower, NumberVector):
        early = (lower.values < 0) & (lower.values > -_FARTHEST_MILLISECONDS)
        lower = restricted(lower, ~early) if early.any() else lower
    if isinstance(upper, NumberVector):
        values = upper.values
        known = ~((values > 0) & (values < _FARTHEST_MILLISECONDS))
        known = known if upper.valid is None else known & upper.valid
        rest = np.where(values % _MILLISECOND == 0, _MILLISECOND - 1, 0)
        upper = NumberVector(np.where(values > _LAST - rest, _LAST, values + rest), known)
    return lower, upper


def _presence(columns: ManifestColumns, field_id: int, bounded: BoolArray, *, floating: bool, nested: bool) -> Presence:
    values, values_known = _counts(columns.get("value_counts", field_id), columns.count)
    rows = columns.numbers("record_count")
    rows_known = rows > 0  # some v1 writers stored -1 for "not counted"; a scan without filters opens a file of 0 rows
    complete = np.where(values_known & rows_known, values >= rows, not nested) & ~_is_imported(columns)
    rows, rows_known = np.where(rows_known, rows, values), rows_known | values_known
    nulls, null_known = _counts(columns.get("null_value_counts", field_id), columns.count)
    nans, nan_known = _counts(columns.get("nan_value_counts", field_id), columns.count)
    excess = rows_known & (nulls + nans > rows)
    null_known, nan_known = null_known & ~excess, nan_known & ~excess
    empty = rows_known & null_known & ~bounded
    only_nulls = empty & (nulls >= rows)
    only_empty = empty & (nulls + nans >= rows) & (nan_known if floating else True)
    return Presence(
        null=~(null_known & (nulls == 0) & complete),
        nan=~(nan_known & (nans == 0)) & ~only_nulls,
        value=~(only_nulls | only_empty),
    )


def _counts(column: pa.Array | None, count: int) -> tuple[Int64Array, BoolArray]:
    """Counts and whether they are known; a negative count is not."""
    if column is None:
        return np.zeros(count, np.int64), np.zeros(count, np.bool_)
    values, valid = values_of(column), valid_of(column)
    known = values >= 0 if valid is None else (values >= 0) & valid
    return np.where(known, values, 0), known


def _is_there(column: pa.Array | None, count: int) -> BoolArray:
    if column is None:
        return np.zeros(count, np.bool_)
    valid = valid_of(column)
    return np.ones(count, np.bool_) if valid is None else valid


def _may_pass_over_row_groups(columns: ManifestColumns) -> BoolArray:
    """Files of several row groups with PyIceberg's names, which end in the write's uuid; those of Iceberg Java, and of
    this engine, have a number behind it."""
    found: BoolArray = np.diff(offsets_of(columns["split_offsets"])) > 1
    if found.any():
        paths = columns["file_path"]
        ends = offsets_of(paths)
        found &= np.diff(ends) > _NAME_END
        starts = ends[1:][found] - _NAME_END
        found[found] = (data_of(paths)[starts[:, np.newaxis] + _DASHES] == _DASH).all(axis=1)
    return found


def _is_imported(columns: ManifestColumns) -> BoolArray:
    """Parquet files whose row groups the writer of the entry does not name, as those that it has not written itself."""
    unsplit: BoolArray = np.diff(offsets_of(columns["split_offsets"])) == 0
    if not unsplit.any():
        return unsplit
    ends = offsets_of(columns["file_format"])
    found = unsplit & (np.diff(ends) == len(_PARQUET))
    starts = ends[:-1][found]
    letters = data_of(columns["file_format"])[starts[:, np.newaxis] + np.arange(len(_PARQUET))] | _TO_LOWER
    found[found] = (letters == _PARQUET).all(axis=1)
    return found
