"""The tables of TPC-DS after data maintenance: days of facts were deleted and loaded anew, again and again.

A refresh of TPC-DS deletes the facts of three ranges of two days (specification 3.2.0, 5.3, DF_*) and inserts others.
Here it inserts the same ones, as a load that is corrected does. So the rows are those of dsdgen before and after, and
so are the right answers: what queries take longer is due to delete files and small files alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import icebench
from icebench.bench.progress import Progress
from icebench.bench.tables.cache import DatasetCache, source_digest
from icebench.bench.tables.tpcds_tables import MADE_BY, NAMESPACE, PHASE, TpcdsDatabase, key_of, write_table
from icebench.bench.workloads.definitions import TpcdsTablesWorkload
from icebench.bench.workloads.dsdgen import FACTS
from icebench.bench.workloads.sales_calendar import date_key, delete_ranges

_SEED = 1
_ROOT = Path(__file__).resolve().parents[2]
_REFRESHED_BY = (
    *MADE_BY,
    _ROOT / "bench/tables/tpcds_refreshes.py",
    _ROOT / "bench/workloads/sales_calendar.py",
    _ROOT / "bench/workloads/draws.py",
)


def find_or_refresh(
    workload: TpcdsTablesWorkload, made: TpcdsDatabase, cache: DatasetCache, progress: Progress, *, compacted: bool
) -> Mapping[str, str]:
    """The metadata files of all tables, by name, after the refreshes of the workload; from the cache or made now.
    Tables without facts are those of `made`.

    Args:
        workload: How many refreshes, of which tables.
        made: The tables before.
        cache: Where tables are kept.
        progress: Called at each table.
        compacted: Whether data files were rewritten afterwards, to about as many files as there were before.

    Raises:
        DatasetFailed: The disk refused.
        EngineError: The engine could not write.
    """
    key = {
        **key_of(workload.scale, workload.files),
        "refreshes": workload.refreshes,
        "compacted": compacted,
        "made by": source_digest(_REFRESHED_BY),
    }

    def build(folder: Path) -> dict[str, Any]:
        catalog = icebench.load_catalog(str(folder / "tables"))
        catalog.create_namespace(NAMESPACE)
        found = {}
        for done, name in enumerate(FACTS):
            progress(PHASE, f"{name}, refreshed", done, len(FACTS))
            write_table(catalog, name, made.raw[name], workload.files)
            table = catalog.load_table(f"{NAMESPACE}.{name}")
            for number in range(1, workload.refreshes + 1):
                refresh(table, FACTS[name], made.raw[name], number)
            if compacted:
                _compact(table, icebench.load_table(made.locations[name]))
            found[name] = table.metadata_location
        catalog.close()
        return {"locations": found}

    return {**made.locations, **cache.find_or_build("tpcds-refreshed", key, build)["locations"]}


def _compact(table: icebench.Table, like: icebench.Table) -> None:
    sizes = like.inspect.data_files().column("file_size_in_bytes").to_pylist()
    # Small files are a little larger than their rows in a large one: that must not make another file.
    table.maintenance.rewrite_data_files(
        rewrite_all=True, target_file_size_bytes=-(-sum(sizes) * 11 // (10 * len(sizes)))
    )


def refresh(table: icebench.Table, day: str, rows: Path, number: int) -> None:
    """Delete the facts of some days, merge-on-read, and append those of a Parquet file that are of these days.

    Args:
        table: Has all rows of the file, and no others.
        day: The column with the keys of days.
        rows: The file.
        number: Of the refresh, from 1; days are drawn for each, and those of two may meet. A table without rows of
            these days stays as it is.
    """
    days = [(date_key(first), date_key(last)) for first, last in delete_ranges(_SEED, number)]
    anew: pa.Table = pq.read_table(rows, filters=[[(day, ">=", first), (day, "<=", last)] for first, last in days])
    if anew.num_rows:
        table.delete(" or ".join(f"({day} >= {first} and {day} <= {last})" for first, last in days), "merge-on-read")
        table.append(anew)
