"""Columns of manifests, made without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from icebench.engine.codec.array_views import ManifestColumns, list_array, number_array
from icebench.engine.codec.manifests.decoded_entries import FIELDS, MAPS

BYTES = ("file_path", "file_format", "referenced_data_file", "key_metadata")
LISTS = ("split_offsets", "equality_ids")


def manifest_columns(count: int, columns: Mapping[str, pa.Array]) -> ManifestColumns:
    """These columns, and every other field without a value."""
    made = {
        name: pa.nulls(count, pa.large_binary() if name in BYTES else lists if name in LISTS else pa.int64())
        for lists in [pa.large_list(pa.int64())]
        for name in FIELDS
        if name not in MAPS and name != "partition"
    }
    made.update(columns)
    return ManifestColumns(pa.RecordBatch.from_arrays(list(made.values()), list(made)))


def with_column(columns: ManifestColumns, name: str, column: pa.Array) -> ManifestColumns:
    """The same with another column of that name."""
    batch = columns.batch
    return ManifestColumns(batch.set_column(batch.schema.get_field_index(name), name, column))


def number_lists(values: Sequence[Sequence[int]]) -> pa.Array:
    """Lists of numbers."""
    ends = np.cumsum([0, *map(len, values)], dtype=np.int64)
    return list_array(ends, number_array(np.array([v for each in values for v in each], np.int64)))


def metrics_of(columns: ManifestColumns, name: str) -> dict[int, list[Any]]:
    """A metric of all columns that have it."""
    found = {}
    for key in columns.keys_of(name):
        column = columns.get(name, key)
        assert column is not None
        found[key] = column.to_pylist()
    return found
