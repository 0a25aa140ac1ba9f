"""The kernels of Parquet footers for Numba, which importing this module imports; run as `machine_kernels` says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.extending import register_jitable

from icebench.engine.formats.parquet import chunk_kernels as chunks
from icebench.engine.formats.parquet import footer_kernels as footers
from icebench.engine.formats.parquet import thrift_kernels as thrift

list_chunks_at = chunks.list_chunks_at
slim_footer_at = footers.slim_footer_at

_HELPERS: tuple[Callable[..., Any], ...] = (
    thrift.read_varint,
    thrift.read_zigzag,
    thrift.read_field,
    thrift.skip_field,
    chunks.read_list,
    chunks.skip_any,
    chunks.read_meta,
    chunks.read_chunk,
    chunks.read_group,
    footers.is_wanted,
    footers.put_number,
    footers.put_list,
    footers.copy_span,
    footers.read_element,
    footers.copy_root,
    footers.drop_list,
    footers.slim_leaves,
    footers.slim_schema,
    footers.slim_row_groups,
)

for _helper in _HELPERS:
    register_jitable(_helper)
