"""Compiles an engine's kernels, once: ``python -m icebench.bench.cases.prepare``."""

from __future__ import annotations

import icebench

if __name__ == "__main__":
    icebench.prepare_kernels()
