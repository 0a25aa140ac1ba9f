"""Datasets: the workload's rows as Iceberg tables, one for every layout, written by this project's own engine.

All tables have the same rows and columns. The variants of the deletes measurement share the data files of their table
and add position deletes, so that a difference in time between the two is the cost of the deletes and of nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import engine
from bench.errors import ConfigError, DatasetFailed
from bench.experiment import DeleteDefinition, TableDefinition
from bench.layouts.layout import Layout
from bench.measure.brute.manifests import live_files
from bench.measure.brute.metadata import load_table_json
from bench.measure.brute.truth import truth_at
from bench.measure.cache import DatasetCache, source_digest
from bench.measure.oracle import NoTruth
from bench.measure.progress import Progress
from bench.measure.raw_files import RawFiles, find_or_write
from bench.workloads.rows import Rows

PHASE = "datasets"
TABLE = "bench.rows"
REFRESH = "refresh"
"""The delete variant with the workload's own refresh deletes."""

_ROOT = Path(__file__).resolve().parents[2]
_MADE_BY = tuple(
    _ROOT / part
    for part in ("bench/layouts", "bench/workloads", "engine/columnar", "engine/spark/writer.py", "engine/write")
)
_DELETED_BY = tuple(_ROOT / part for part in ("engine/columnar", "engine/deletes", "engine/operations", "engine/write"))
"""Programs that decide what is in the files: when they change, cached tables are not used any more."""


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A table on disk and its variants with deletes: their metadata files, its rows, the raw files that they come from,
    and how many rows each variant lacks."""

    layout: str
    metadata_location: str
    rows: int
    raw: Sequence[Path]
    with_deletes: Mapping[str, str] = field(default_factory=dict)
    deleted_rows: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class DatasetRequest:
    """What is wanted. `deletes` is None where no variant with deletes is needed."""

    rows: Rows
    table: TableDefinition
    layouts: Sequence[Layout]
    deletes: DeleteDefinition | None


def find_or_build(
    request: DatasetRequest, cache: DatasetCache, *, spark: Callable[[], SparkSession], progress: Progress
) -> list[Dataset]:
    """The datasets of a request, in the order of its layouts; from the cache as far as it has them.

    Args:
        request: What is wanted.
        cache: Where tables are kept.
        spark: Gives the session; called only when something has to be built.
        progress: Told every table.

    Raises:
        DatasetFailed: The disk refused, or a table does not hold what it must.
        EngineError: The engine could not write.
    """
    filters = {} if request.deletes is None else delete_filters(request.deletes, request.rows)
    total = len(request.layouts) * (1 + len(filters))
    datasets: list[Dataset] = []
    progress(PHASE, f"{request.rows.name}: raw files", 0, total)
    raw = find_or_write(request.rows, cache, spark)
    for ordinal, layout in enumerate(request.layouts):
        done = ordinal * (1 + len(filters))
        progress(PHASE, f"{layout.name}: the table", done, total)
        base = _table(request, layout, raw, cache, spark)
        variants = {}
        for name, text in filters.items():
            done += 1
            progress(PHASE, f"{layout.name}: {name} deleted", done, total)
            variants[name] = _variant(layout, base, text, cache)
        datasets.append(
            Dataset(
                layout=layout.name,
                metadata_location=base,
                rows=raw.rows,
                raw=raw.paths,
                with_deletes={name: made["metadata_location"] for name, made in variants.items()},
                deleted_rows={n: m["deleted_rows"] for n, m in variants.items() if m["deleted_rows"] is not None},
            )
        )
    progress(PHASE, "ready", total, total)
    return datasets


def delete_filters(deletes: DeleteDefinition, rows: Rows) -> dict[str, str]:
    """Variant -> the filter whose rows it has deleted.

    Raises:
        ConfigError: The workload has no refresh deletes.
    """
    filters = {f"{share * 100:.6g}%": rows.delete_keys(share, "random").filter for share in deletes.fractions}
    if deletes.refresh:
        refresh = rows.refresh_deletes()
        if refresh is None:
            raise ConfigError(f"{rows.name} has no refresh deletes", path="deletes.refresh")
        filters[REFRESH] = refresh
    return filters


def _table(
    request: DatasetRequest, layout: Layout, raw: RawFiles, cache: DatasetCache, spark: Callable[[], SparkSession]
) -> str:
    key = {
        "raw": [str(path) for path in raw.paths],
        "table": asdict(request.table),
        "layout": [layout.name, layout.revision, layout.partition_fields, layout.sort_columns],
        "made by": source_digest(_MADE_BY),
    }

    def build(folder: Path) -> dict[str, Any]:
        catalog = engine.load_catalog(f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
        order = [
            engine.SortField(
                source_ids=(raw.schema.get_field_index(column) + 1,), transform=engine.parse_transform("identity")
            )
            for column in layout.sort_columns
        ]
        table = catalog.create_table(
            TABLE,
            raw.schema,
            partition_spec=layout.partition_fields,
            sort_order=engine.SortOrder(tuple(order), order_id=1) if order else engine.UNSORTED,
            # The layout has spread the rows: the engine shall write them where they are.
            properties={"format-version": str(request.table.format_version), "write.distribution-mode": "none"},
        )
        table.append(layout.arrange(raw.frame(spark(), request.table.files), files=request.table.files))
        catalog.close()
        written = sum(file.records for file in live_files(load_table_json(table.metadata_location)))
        if written != raw.rows:
            raise DatasetFailed(f"{layout.name}: {written} rows were written, not {raw.rows}")
        return {"metadata_location": table.metadata_location}

    location: str = cache.find_or_build(layout.name, key, build)["metadata_location"]
    return location


def _variant(layout: Layout, base: str, filter: str, cache: DatasetCache) -> dict[str, Any]:
    key = {"base": base, "filter": filter, "deleted by": source_digest(_DELETED_BY)}

    def build(folder: Path) -> dict[str, Any]:
        catalog = engine.load_catalog(f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
        table = catalog.register_table(TABLE, base)
        table.delete(filter, mode="merge-on-read")
        catalog.close()
        return {"metadata_location": table.metadata_location, "deleted_rows": _matching(base, filter)}

    return cache.find_or_build(f"{layout.name}-deletes", key, build)


def _matching(location: str, filter: str) -> int | None:
    """How many rows of a table a filter keeps; None where nothing here can tell."""
    try:
        return sum(truth_at(location).matching(filter).values())
    except NoTruth:
        return None
