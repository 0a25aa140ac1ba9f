"""Data and delete files as manifests describe them (spec: "Manifests", struct `data_file`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal

from icebench.engine.spec.values import Value

FileFormat = Literal["parquet", "avro", "orc", "puffin"]


class FileContent(IntEnum):
    """What a file holds."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


class _NoMetrics(dict[int, Any]):
    def __reduce__(self) -> str:
        return "NO_METRICS"


NO_METRICS: Mapping[int, Any] = _NoMetrics()
"""A metric map that a manifest does not have: empty, but null in metadata tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """One data file, position-delete file, equality-delete file, or deletion vector.

    `partition` holds one internal value per field of spec `spec_id`, in the spec's order. Metric maps are keyed by
    column id; bounds are binary single values. A deletion vector has `file_format` "puffin",
    `referenced_data_file`, `content_offset` and `content_size_in_bytes`.
    """

    content: FileContent = FileContent.DATA
    file_path: str
    file_format: FileFormat
    spec_id: int = 0
    partition: tuple[Value | None, ...] = ()
    record_count: int
    file_size_in_bytes: int
    column_sizes: Mapping[int, int] = field(default_factory=dict)
    value_counts: Mapping[int, int] = field(default_factory=dict)
    null_value_counts: Mapping[int, int] = field(default_factory=dict)
    nan_value_counts: Mapping[int, int] = field(default_factory=dict)
    lower_bounds: Mapping[int, bytes] = field(default_factory=dict)
    upper_bounds: Mapping[int, bytes] = field(default_factory=dict)
    key_metadata: bytes | None = None
    split_offsets: tuple[int, ...] | None = None
    equality_ids: tuple[int, ...] | None = None
    sort_order_id: int | None = None
    first_row_id: int | None = None
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None
