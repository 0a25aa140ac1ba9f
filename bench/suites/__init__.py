"""The gate's cases as asv benchmarks: `make asv`, or `asv run` by hand.

asv imports this directory as a package of its own, `suites`, and takes every class that a module can see for its own:
so a class with benchmarks is imported nowhere.
"""
