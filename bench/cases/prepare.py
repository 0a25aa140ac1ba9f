"""Compiles an engine's kernels, once: ``python -m bench.cases.prepare``."""

from __future__ import annotations

import engine

if __name__ == "__main__" and hasattr(engine, "prepare_kernels"):  # older engines compile at the first use
    engine.prepare_kernels()
