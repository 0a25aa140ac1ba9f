"""Column metrics of a data file from its Parquet footer (spec: "Manifests", `data_file`; appendix D).

Counts and bounds come from the row groups' statistics; NaN is not counted there, so writers count it while they write.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pat

from icebench.engine.columnar.schemas import Leaf, child_fields, field_id_of, leaves
from icebench.engine.formats.metrics_modes import MetricsMode
from icebench.engine.spec.types import DecimalType, GeospatialType, PrimitiveType

_MAX_CODE_POINT = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)
_LITTLE_ENDIAN = {
    "int": "<i",
    "date": "<i",
    "long": "<q",
    "time": "<q",
    "timestamp": "<q",
    "timestamptz": "<q",
    "timestamp_ns": "<q",
    "timestamptz_ns": "<q",
    "float": "<f",
    "double": "<d",
}
_NANOS_PER = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


@dataclass(frozen=True, kw_only=True)
class FileMetrics:
    """Metrics of a Parquet file's columns for a manifest entry; maps are keyed by column id.

    Columns inside lists and maps only have sizes.
    """

    record_count: int
    column_sizes: Mapping[int, int] = field(default_factory=dict)
    value_counts: Mapping[int, int] = field(default_factory=dict)
    null_value_counts: Mapping[int, int] = field(default_factory=dict)
    nan_value_counts: Mapping[int, int] = field(default_factory=dict)
    lower_bounds: Mapping[int, bytes] = field(default_factory=dict)
    upper_bounds: Mapping[int, bytes] = field(default_factory=dict)
    split_offsets: tuple[int, ...] = ()


def parquet_metrics(
    footer: pq.FileMetaData,
    file_schema: pa.Schema,
    types: Mapping[int, PrimitiveType],
    modes: Mapping[int, MetricsMode],
    nan_counts: Mapping[int, int] | None = None,
) -> FileMetrics:
    """Metrics of a Parquet file.

    Args:
        footer: The metadata of a file that pyarrow has just written: that of a damaged file may end the process.
        file_schema: Its Arrow schema with field ids.
        types: Column id -> the table's type. Columns that are not in it are left out.
        modes: Column id -> how much to keep. Columns that are not in it are left out.
        nan_counts: Column id -> NaN values, as `NanCounter` counts them; None where nobody counted.
    """
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    maps: tuple[dict[int, Any], ...] = ({}, {}, {}, {}, {}, {})
    sizes, values, nulls, nans, lowers, uppers = maps
    for leaf in leaves(file_schema):
        column_id = field_id_of(leaf.field)
        if column_id is None or column_id not in types or column_id not in modes or modes[column_id].kind == "none":
            continue
        chunks = [group.column(leaf.index) for group in groups]
        sizes[column_id] = sum(chunk.total_compressed_size for chunk in chunks)
        if leaf.repeated:
            # The footer counts a null or empty list or map as a null value, which is wrong for manifests.
            continue
        values[column_id] = sum(chunk.num_values for chunk in chunks)
        known = [chunk.statistics for chunk in chunks if chunk.num_values]
        if all(s is not None and s.has_null_count for s in known):
            nulls[column_id] = sum(s.null_count for s in known)
        type_ = types[column_id]
        if nan_counts is not None and type_.name in ("float", "double"):
            nans[column_id] = nan_counts.get(column_id, 0)
        if modes[column_id].has_bounds and not isinstance(type_, GeospatialType):  # theirs would be corners of a box
            lower, upper = _bounds(leaf, type_, modes[column_id], known)
            if lower is not None:
                lowers[column_id] = lower
            if upper is not None:
                uppers[column_id] = upper
    return FileMetrics(
        record_count=footer.num_rows,
        column_sizes=sizes,
        value_counts=values,
        null_value_counts=nulls,
        nan_value_counts=nans,
        lower_bounds=lowers,
        upper_bounds=uppers,
        split_offsets=tuple(_offset(group.column(0)) for group in groups if group.num_columns),
    )


def _offset(chunk: pq.ColumnChunkMetaData) -> int:
    """The offset of a column chunk's first page."""
    return int(chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset)


def _bounds(
    leaf: Leaf, type_: PrimitiveType, mode: MetricsMode, statistics: list[pq.Statistics]
) -> tuple[bytes | None, bytes | None]:
    """The serialized bounds over all row groups; None if a row group has none."""
    bounds = []
    for s in statistics:
        if s is None:
            return None, None
        if s.has_min_max:
            bounds.append((physical_value(leaf, type_, s.min_raw), physical_value(leaf, type_, s.max_raw)))
        elif not (s.has_null_count and s.num_values == 0) and type_.name not in ("float", "double"):
            # Values without bounds (too long for the footer, say). Floats have none when all are NaN.
            return None, None
    if not bounds:
        return None, None
    low = min(pair[0] for pair in bounds)
    high = max(pair[1] for pair in bounds)
    return lower_bound(type_, low, mode), upper_bound(type_, high, mode)


def physical_value(leaf: Leaf, type_: PrimitiveType, raw: Any) -> Any:  # noqa: ANN401 - Parquet's physical types
    """A footer value in a form that orders as the column does: int, float, bool, or bytes; decimals are unscaled.

    Times and timestamps of another unit than the table's type become that of the type.
    """
    if isinstance(type_, DecimalType) and isinstance(raw, bytes):
        return int.from_bytes(raw, "big", signed=True)
    arrow = leaf.field.type
    if pat.is_timestamp(arrow) or pat.is_time(arrow):
        unit = "ns" if type_.name.endswith("_ns") else "us"
        return raw * _NANOS_PER[arrow.unit] // _NANOS_PER[unit]
    return raw.encode() if isinstance(raw, str) else raw


def lower_bound(type_: PrimitiveType, value: Any, mode: MetricsMode) -> bytes | None:  # noqa: ANN401
    """The serialized lower bound of a physical value, truncated as the mode says."""
    if mode.kind == "truncate" and type_.name == "string":
        return _text(value)[: mode.length].encode() if _is_text(value) else None
    if mode.kind == "truncate" and type_.name == "binary":
        return bytes(value[: mode.length])
    return _serialized(type_, value)


def upper_bound(type_: PrimitiveType, value: Any, mode: MetricsMode) -> bytes | None:  # noqa: ANN401
    """The serialized upper bound: a truncated one is rounded up, and is None where nothing greater is that short."""
    if mode.kind == "truncate" and type_.name == "string":
        if not _is_text(value):
            return None
        text = _text(value)
        return value if len(text) <= mode.length else _next_text(text[: mode.length])
    if mode.kind == "truncate" and type_.name == "binary":
        return bytes(value) if len(value) <= mode.length else _next_bytes(value[: mode.length])
    return _serialized(type_, value)


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _text(value: bytes) -> str:
    return value.decode()


def _next_text(prefix: str) -> bytes | None:
    """The least text of at most this length that is greater than everything that starts with `prefix`."""
    for i in range(len(prefix) - 1, -1, -1):
        following = ord(prefix[i]) + 1
        if _SURROGATES[0] <= following <= _SURROGATES[1]:
            following = _SURROGATES[1] + 1
        if following <= _MAX_CODE_POINT:
            return (prefix[:i] + chr(following)).encode()
    return None


def _next_bytes(prefix: bytes) -> bytes | None:
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _serialized(type_: PrimitiveType, value: Any) -> bytes:  # noqa: ANN401
    if type_.name in _LITTLE_ENDIAN:
        return struct.pack(_LITTLE_ENDIAN[type_.name], value)
    if type_.name == "boolean":
        return b"\x01" if value else b"\x00"
    if isinstance(type_, DecimalType):
        return int(value).to_bytes(((value if value >= 0 else ~value).bit_length() // 8) + 1, "big", signed=True)
    return bytes(value)


class NanCounter:
    """Counts NaN values of float columns, those inside structs too, batch by batch.

    Args:
        schema: The Arrow schema of the batches, with field ids.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.counts: dict[int, int] = {
            field_id: 0
            for leaf in leaves(schema)
            if not leaf.repeated
            and pat.is_floating(leaf.field.type)
            and (field_id := field_id_of(leaf.field)) is not None
        }
        self._places = [i for i, f in enumerate(schema) if _holds_floats(f)]

    def add(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Count the NaN values of one batch."""
        for place in self._places:
            column = batch.column(place)
            for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else (column,):
                self._visit(batch.schema.field(place), chunk)

    def _visit(self, field_: pa.Field, array: pa.Array) -> None:
        if pat.is_floating(field_.type):
            field_id = field_id_of(field_)
            if field_id is not None and len(array):
                self.counts[field_id] += int(pc.sum(pc.is_nan(array)).as_py() or 0)
        elif _holds_floats(field_):
            for child, values in zip(child_fields(field_.type), array.flatten(), strict=True):
                self._visit(child, values)


def _holds_floats(field_: pa.Field) -> bool:
    """Whether a field is, or has in structs, a float column that is counted."""
    if pat.is_struct(field_.type):
        return any(map(_holds_floats, child_fields(field_.type)))
    return pat.is_floating(field_.type)
