"""Loads all machine code of kernels before it is needed."""

from __future__ import annotations

from icebench.engine.codec.avro.compiled.machine_kernels import DECODE_CHUNK, GATHER, WRITE_ROWS
from icebench.engine.formats.parquet.machine_kernels import LIST_CHUNKS, SLIM_FOOTER


def prepare_kernels() -> None:
    """Load the kernels that decode and encode manifests and read Parquet footers, compiling those that are not cached.

    The first call on a machine compiles for up to a minute and caches the code for later processes, where the call
    takes a tenth of a second. Without it a process starts with slower code, and loads or compiles kernels when they are
    due; results are the same. Does nothing where Numba cannot compile.
    """
    for kernel in (DECODE_CHUNK, GATHER, WRITE_ROWS, LIST_CHUNKS, SLIM_FOOTER):
        kernel.load()
