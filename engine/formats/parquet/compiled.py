"""The kernels of Parquet footers compiled by Numba, without the GIL. Importing this module imports Numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.extending import register_jitable

from engine.formats.parquet import chunk_kernels as chunks
from engine.formats.parquet import footer_kernels as footers
from engine.formats.parquet import thrift_kernels as thrift
from engine.kernels.compiling import jit
from engine.kernels.machine_code import MachineCode

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


def is_possible() -> bool:
    """Whether Numba compiles here: the kernels are no Python that could run without."""
    return not numba.config.DISABLE_JIT  # type: ignore[attr-defined]


def compiled(code: MachineCode, function: Callable[[int], int]) -> Callable[[int], int]:
    """The function as machine code; where that cannot be kept, by Numba's own cache."""
    # Without Numba's reference counts: the kernels allocate nothing, and the caller holds all memory.
    return code.compile(function) or jit(function, _nrt=False)
