"""Compiles an engine's kernels, once: ``python -m icebench.bench.gate.cases.compile_kernels``."""

from __future__ import annotations

import icebench

if __name__ == "__main__":
    icebench.prepare_kernels()
