"""Machine code of all kernels, had before it is needed."""

from __future__ import annotations

from engine.codec.avro.kernel_choice import DECODE_CHUNK, GATHER, WRITE_ROWS
from engine.formats.parquet.kernel_choice import KERNELS


def prepare_kernels() -> None:
    """Have the kernels that decode and encode manifests, and read Parquet footers, as machine code from now on.

    The first call on a machine compiles them, which takes up to a minute, and keeps the code for later processes; there
    it takes a tenth of a second. Without it a process begins with slower ways, and compiles once it has read so much
    that it pays; results are the same. Where nothing can be compiled nothing happens.
    """
    for kernel in (DECODE_CHUNK, GATHER, WRITE_ROWS):
        kernel.load()
    KERNELS.load()
