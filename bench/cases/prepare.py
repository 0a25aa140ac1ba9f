"""Compiles an engine's kernels, once: ``python -m icebench.bench.cases.prepare``."""

from __future__ import annotations

import icebench

if __name__ == "__main__" and hasattr(icebench, "prepare_kernels"):  # older engines compile at the first use
    icebench.prepare_kernels()
