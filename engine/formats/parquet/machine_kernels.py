"""The kernels that read Parquet footers, as machine code; see `icebench.engine.kernels`.

Without them footers are read whole by pyarrow, and their column chunks listed in plain Python. Results are the same.
"""

from __future__ import annotations

from icebench.engine.kernels.machine_kernel import MachineKernel
from icebench.engine.kernels.policy import COMPILE_LARGE_AFTER_NS

_MODULE = "icebench.engine.formats.parquet.compiled"
_SOURCES = (
    "formats/parquet/layout.py",
    "kernels/intrinsics.py",
    "formats/parquet/thrift_kernels.py",
    "formats/parquet/chunk_kernels.py",
    "formats/parquet/footer_kernels.py",
)

SLIM_FOOTER = MachineKernel(
    "slim_footer_at",
    "BqBqBq",
    module=_MODULE,
    sources=_SOURCES,
    ns_per_byte=3.5,
    compile_after_ns=COMPILE_LARGE_AFTER_NS,
)
"""See `icebench.engine.formats.parquet.footer_kernels`; pyarrow takes 3.5 ns for each byte of a footer."""
LIST_CHUNKS = MachineKernel(
    "list_chunks_at",
    "Bqqq",
    module=_MODULE,
    sources=_SOURCES,
    ns_per_byte=200,
    compile_after_ns=COMPILE_LARGE_AFTER_NS,
)
"""See `icebench.engine.formats.parquet.chunk_kernels`; plain Python takes 200 ns for each byte of a footer."""
