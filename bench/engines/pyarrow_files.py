"""No engine: pyarrow streaming a table's data files, which knows neither deletes nor field ids.

It is the floor of scans as Arrow batches, measured in fresh processes only (`icebench.bench.processes.fresh_scan`).
"""

from __future__ import annotations

from importlib.metadata import version

from icebench.bench.engines.engine import Ability


class PyArrowFiles:
    """Stands among the engines of a run by its name and version alone."""

    name = "pyarrow"
    abilities: frozenset[Ability] = frozenset()
    version = version("pyarrow")
