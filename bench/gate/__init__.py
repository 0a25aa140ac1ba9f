"""The gate of tier 0: exact work counters of fixed cases against a committed baseline.

Pure: values in, a verdict out. Reading the baseline, running the cases and printing belong to
    `icebench.bench.cli.gate`.
"""
