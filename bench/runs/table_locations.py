"""Where a table that exists has its metadata."""

from __future__ import annotations

from icebench.bench.engines.access import TableAccess
from icebench.bench.workloads.workload import TableWorkload


def location_of(workload: TableWorkload, access: TableAccess) -> str:
    """The metadata file or directory of a table; raises EngineError where its catalog does not have it."""
    if workload.catalog is None:
        return workload.path
    return access.open(
        workload.catalog, workload.table, workload.warehouse, workload.path, catalog_name=workload.catalog_name
    )
