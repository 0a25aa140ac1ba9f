"""Where a table that exists has its metadata."""

from __future__ import annotations

from icebench.bench.engines.access import TableAccess, absolute
from icebench.bench.workloads.workload import TableWorkload


def location_of(workload: TableWorkload, access: TableAccess) -> str:
    """The metadata file or directory of a table; raises EngineError where its catalog does not have it.

    A path is absolute: engines take it as part of a URI, and programs of cases run in other directories.
    """
    if workload.catalog is None:
        return absolute(workload.path)
    return access.open(
        workload.catalog, workload.table, workload.warehouse, workload.path, catalog_name=workload.catalog_name
    )
