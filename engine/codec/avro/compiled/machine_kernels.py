"""The kernels that decode and encode manifests, as machine code; see `icebench.engine.kernels`."""

from __future__ import annotations

from icebench.engine.kernels.machine_kernel import MachineKernel

_NS_PER_BYTE = 140
"""Cost of plain Python for each uncompressed byte of a manifest."""
_READING = "icebench.engine.codec.avro.compiled.read_compiled"
_READING_SOURCES = (
    "codec/avro/compiled/kernels.py",
    "codec/avro/compiled/chunk_kernels.py",
    "codec/avro/compiled/read_compiled.py",
    "kernels/intrinsics.py",
)
_WRITING_SOURCES = (
    "codec/avro/compiled/write_kernels.py",
    "codec/avro/compiled/write_compiled.py",
    "kernels/intrinsics.py",
)

DECODE_CHUNK = MachineKernel(
    "decode_chunk_at", "BqBqqqqqqBqB", module=_READING, sources=_READING_SOURCES, ns_per_byte=_NS_PER_BYTE
)
GATHER = MachineKernel("gather_at", "BqqB", module=_READING, sources=_READING_SOURCES, ns_per_byte=_NS_PER_BYTE)
WRITE_ROWS = MachineKernel(
    "write_rows_at",
    "qqBq",
    module="icebench.engine.codec.avro.compiled.write_compiled",
    sources=_WRITING_SOURCES,
    ns_per_byte=_NS_PER_BYTE,
)
