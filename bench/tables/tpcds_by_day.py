"""The tables of TPC-DS with their facts by day: sorted, or with a partition for each day.

dsdgen gives facts in no order of days, so that every data file has all of them. The rows stay the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import icebench
from icebench.bench.progress import Progress
from icebench.bench.tables.cache import DatasetCache, source_digest
from icebench.bench.tables.tpcds_tables import MADE_BY, NAMESPACE, PHASE, TpcdsDatabase, key_of, write_table
from icebench.bench.workloads.definitions import DayOrder, TpcdsTablesWorkload
from icebench.bench.workloads.dsdgen import FACTS, sort_parquet

_MADE_BY = (*MADE_BY, Path(__file__))


def find_or_arrange(
    workload: TpcdsTablesWorkload,
    made: TpcdsDatabase,
    cache: DatasetCache,
    progress: Progress,
    order: DayOrder,
) -> Mapping[str, str]:
    """The metadata files of all tables, by name, with their facts by day; from the cache or made now. Tables without
    facts are those of `made`.

    Args:
        workload: Which tables.
        made: The tables before.
        cache: Where tables are kept.
        progress: Called at each table.
        order: ``sorted`` into as many data files as before, or ``partitioned``, a data file for each day.

    Raises:
        DatasetFailed: The disk refused.
        EngineError: The engine could not write.
    """
    key = {**key_of(workload.scale, workload.files), "by day": order, "made by": source_digest(_MADE_BY)}

    def build(folder: Path) -> dict[str, Any]:
        catalog = icebench.load_catalog(str(folder / "tables"))
        catalog.create_namespace(NAMESPACE)
        found = {}
        for done, (name, day) in enumerate(FACTS.items()):
            progress(PHASE, f"{name}, {order} by day", done, len(FACTS))
            rows = folder / f"{name}.parquet"
            sort_parquet(made.raw[name], day, rows)
            partitioned_by = day if order == "partitioned" else None
            found[name] = write_table(catalog, name, rows, workload.files, partitioned_by=partitioned_by)
            rows.unlink()
        catalog.close()
        return {"locations": found}

    return {**made.locations, **cache.find_or_build("tpcds-by-day", key, build)["locations"]}
