"""The four measurements as asv benchmarks, on the quick experiment: `make asv`, or `asv run` by hand.

asv imports this directory as a package of its own, `suites`, so its modules know each other by relative imports; and it
takes every class that a module can see for its own, so a class with benchmarks is imported nowhere.
"""
