"""All tables of TPC-DS as Iceberg tables, made once from the rows of dsdgen and kept from run to run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import icebench
from icebench.bench.errors import DatasetFailed
from icebench.bench.progress import Progress
from icebench.bench.tables.cache import DatasetCache, engine_writers, source_digest
from icebench.bench.workloads.dsdgen import DSDGEN_TABLES

NAMESPACE = "tpcds"
PHASE = "tables"
BATCH_ROWS = 1 << 16
FEWEST_ROWS = 100_000
"""Of a file, unless its table has fewer."""

_ROOT = Path(__file__).resolve().parents[2]
MADE_BY = (
    _ROOT / "bench/workloads/dsdgen.py",
    _ROOT / "bench/tables/tpcds_files.py",
    _ROOT / "bench/tables/tpcds_tables.py",
    *engine_writers(),
)


@dataclass(frozen=True, kw_only=True)
class TpcdsDatabase:
    """Where the tables are.

    Args:
        locations: Name -> metadata file of the Iceberg table.
        raw: Name -> the Parquet file with dsdgen's rows.
    """

    locations: Mapping[str, str]
    raw: Mapping[str, Path]


def find_or_build(scale: float, files: int, cache: DatasetCache, progress: Progress) -> TpcdsDatabase:
    """The tables, from the cache or made now: dsdgen's rows in a process of its own, then table by table, of which a
    few batches are in memory.

    Args:
        scale: Scale factor.
        files: In how many data files a table is, if it has rows enough.
        cache: Where tables are kept.
        progress: Called at each table.

    Raises:
        DatasetFailed: The disk refused, or dsdgen failed.
        EngineError: The engine could not write.
    """

    def build(folder: Path) -> dict[str, Any]:
        raw = folder / "raw"
        raw.mkdir()
        progress(PHASE, f"dsdgen at scale {scale:g}", 0, len(DSDGEN_TABLES) + 1)
        _generate(scale, raw)
        catalog = icebench.load_catalog(str(folder / "tables"))
        catalog.create_namespace(NAMESPACE)
        locations = {}
        for done, name in enumerate(DSDGEN_TABLES, 1):
            progress(PHASE, name, done, len(DSDGEN_TABLES) + 1)
            locations[name] = write_table(catalog, name, _raw(raw, name), files)
        catalog.close()
        return {"locations": locations, "raw": str(raw)}

    found = cache.find_or_build("tpcds-tables", key_of(scale, files), build)
    raw = Path(found["raw"])
    return TpcdsDatabase(locations=found["locations"], raw={name: _raw(raw, name) for name in DSDGEN_TABLES})


def key_of(scale: float, files: int) -> dict[str, Any]:
    """What decides which rows there are, and in which files."""
    return {"scale": scale, "files": files, "duckdb": version("duckdb"), "made by": source_digest(MADE_BY)}


def write_table(
    catalog: icebench.Catalog, name: str, rows: Path, files: int, *, partitioned_by: str | None = None
) -> str:
    """Append the rows of a Parquet file to a new table, each data file by a commit; gives its metadata file.

    Args:
        catalog: Where the table is created.
        name: Its name.
        rows: The file.
        files: Into how many data files, if there are rows enough.
        partitioned_by: A column by whose values the rows are partitioned, by one commit; they are in its order. Each
            partition is a file.
    """
    with pq.ParquetFile(rows) as source:
        total, schema = source.metadata.num_rows, source.schema_arrow
        partitions = [] if partitioned_by is None else [(partitioned_by, "identity")]
        table = catalog.create_table(f"{NAMESPACE}.{name}", schema, partition_spec=partitions)
        batches = source.iter_batches(BATCH_ROWS)
        parts = [batches] if partitions else _parts(batches, max(FEWEST_ROWS, -(-total // files)))
        for part in parts:
            table.append(pa.RecordBatchReader.from_batches(schema, part))
    return table.metadata_location


def _parts(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[Iterator[pa.RecordBatch]]:
    """The batches in parts of about that many rows; each part is to be used up before the next."""
    count = max(1, round(rows / BATCH_ROWS))
    while (first := next(batches, None)) is not None:
        yield chain([first], islice(batches, count - 1))


def _raw(folder: Path, name: str) -> Path:
    return folder / f"{name}.parquet"


def _generate(scale: float, folder: Path) -> None:
    command = [sys.executable, "-m", "icebench.bench.tables.tpcds_files", str(scale), str(folder)]
    # In a group of its own it does not see Ctrl-C: a run stops at its next step.
    done = subprocess.run(command, capture_output=True, text=True, check=False, process_group=0)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise DatasetFailed(f"dsdgen failed: {said[-1][:300]}")
