"""The Parquet kernels compiled by Numba, without the GIL; importing this module imports Numba, so that is done late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.extending import register_jitable

from engine.codec import parquet_chunk_kernels as chunks
from engine.codec import parquet_footer_kernels as footers
from engine.codec import parquet_header_kernels as headers
from engine.codec import parquet_kernels as kernels
from engine.codec import parquet_stream_kernels as streams
from engine.codec import parquet_value_kernels as values
from engine.compiling import jit
from engine.machine_code import MachineCode

list_chunks_at = chunks.list_chunks_at
slim_footer_at = footers.slim_footer_at
scan_pages_at = headers.scan_pages_at
decode_page_at = kernels.decode_page_at

_HELPERS: tuple[Callable[..., Any], ...] = (
    headers.read_varint,
    headers.read_zigzag,
    headers.read_field,
    headers.skip_field,
    headers.read_data_header,
    headers.check_header,
    headers.read_header,
    chunks.read_list,
    chunks.skip_any,
    chunks.read_encodings,
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
    streams.ones,
    streams.put_bits,
    streams.put_ones,
    streams.bits_from,
    streams.load_part,
    streams.read_levels,
    streams.begin_run,
    streams.unpack,
    streams.next_indices,
    streams.skip_indices,
    streams.check_indices,
    streams.expand_indices,
    streams.kept_bits,
    values.look_up,
    values.read_big_endian,
    values.put_number,
    values.convert_big_endian,
    values.convert,
    values.join_streams,
    values.read_signed,
    values.read_deltas,
    values.add_deltas,
    kernels.spread4,
    kernels.spread8,
    kernels.spread16,
    kernels.spread_rows,
    kernels.prepare_values,
    kernels.decode_all,
    kernels.decode_some,
    kernels.put_validity,
    kernels.make_values,
    kernels.keep_block,
    kernels.kept_rows,
    kernels.spread_block,
)

for _helper in _HELPERS:
    register_jitable(_helper)


def is_possible() -> bool:
    """Whether Numba compiles here: the kernels are no Python that could run without."""
    return not numba.config.DISABLE_JIT  # type: ignore[attr-defined]


def compiled(code: MachineCode, function: Callable[[int], int]) -> Callable[[int], int]:
    """The function as machine code; where that cannot be kept, by Numba's own cache."""
    # Without Numba's reference counts: the kernels allocate nothing, and the caller holds all memory.
    return code.compile(function) or jit(function, _nrt=False)
