"""Datasets: the workload's rows as Iceberg tables, one for every layout, written by this project's own engine.

All tables have the same rows and columns. The variants of the deletes measurement share the data files of their table,
so that a difference in time between the two is the cost of the deletes and of nothing else; where deletes are
copy-on-write, it is what the rewritten files cost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import SparkSession

import icebench
from icebench.bench.layouts.layout import DELETE_MODE, FORMAT_VERSION, Layout
from icebench.bench.progress import Progress
from icebench.bench.tables.cache import DatasetCache, base_key, engine_writers, source_digest
from icebench.bench.tables.delete_variants import DeleteDefinition, DeleteVariant, delete_variants
from icebench.bench.tables.raw_files import RawFiles, find_or_write
from icebench.bench.tables.table_builder import TABLE, BuildCost, build_table, drop_leftover_manifests
from icebench.bench.tables.table_shape import check_manifests, check_shape
from icebench.bench.workloads.equality_deletes import write_equality_deletes
from icebench.bench.workloads.rows import Rows

PHASE = "datasets"

_ROOT = Path(__file__).resolve().parents[2]
_DELETED_BY = (*engine_writers(), Path(__file__), _ROOT / "bench/workloads/equality_deletes.py")
_MADE_BY = (
    *engine_writers(),
    *(_ROOT / "bench" / part for part in ("layouts/layout.py", "tables/table_builder.py", "tables/table_shape.py")),
)
"""Programs that decide what is in the files: when they change, cached tables are not used any more."""


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A table on disk, what came of building it, and its variants with deletes: metadata files, filters of the rows
    that are deleted, and of which kind the deletes are (``equality``, ``positions``, ``vectors`` or ``copy-on-write``).

    `enlarged` builds it again (see `TableBuild`); `build_seconds` is what that took in this process, None for a table
    that was found: what another process measured, on whatever machine, is not taken for this one's.
    """

    layout: Layout
    metadata_location: str
    raw: RawFiles
    cost: BuildCost
    enlarged: float = 1.0
    build_seconds: float | None = None
    with_deletes: Mapping[str, str] = field(default_factory=dict)
    deleted: Mapping[str, Sequence[str]] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class DatasetRequest:
    """What is wanted. `deletes` is None where no variant with deletes is needed; `delete_layouts` names the layouts
    that have them, None all."""

    rows: Rows
    layouts: Sequence[Layout]
    deletes: DeleteDefinition | None
    delete_layouts: Collection[str] | None = None

    def variants_of(self, layout: Layout) -> list[DeleteVariant]:
        """The variants with deletes of a layout.

        Raises:
            ConfigError: The workload has no refresh deletes.
        """
        wanted = self.delete_layouts is None or layout.name in self.delete_layouts
        return [] if self.deletes is None or not wanted else list(delete_variants(self.deletes, self.rows))


def find_or_build(
    request: DatasetRequest, cache: DatasetCache, *, spark: Callable[[], SparkSession], progress: Progress
) -> list[Dataset]:
    """The datasets of a request, in the order of its layouts; from the cache as far as it has them.

    Args:
        request: What is wanted.
        cache: Where tables are kept.
        spark: Gives the session; called only when something has to be built.
        progress: Called for every table.

    Raises:
        DatasetFailed: The disk refused, or a table is not what its layout claims.
        EngineError: The engine could not write.
    """
    total, done = sum(1 + len(request.variants_of(layout)) for layout in request.layouts), 0
    datasets: list[Dataset] = []
    progress(PHASE, f"{request.rows.name}: raw files", 0, total)
    raw = find_or_write(request.rows, cache, spark)
    for layout in request.layouts:
        variants = request.variants_of(layout)
        progress(PHASE, f"{layout.name}: the table", done, total)
        base, seconds = _table(layout, raw, cache, spark)
        location = base["metadata_location"]
        with_deletes = {}
        for variant in variants:
            done += 1
            progress(PHASE, f"{layout.name}: {variant.name} deleted", done, total)
            with_deletes[variant.name] = _with_deletes(layout, location, variant, raw.schema, cache)
        done += 1
        datasets.append(
            Dataset(
                layout=layout,
                metadata_location=location,
                raw=raw,
                cost=BuildCost(**base["cost"]),
                enlarged=base["enlarged"],
                build_seconds=seconds,
                with_deletes=with_deletes,
                deleted={variant.name: variant.filters for variant in variants},
                kinds={variant.name: _kind(layout, variant) for variant in variants},
            )
        )
    progress(PHASE, "ready", total, total)
    return datasets


def _kind(layout: Layout, variant: DeleteVariant) -> Literal["equality", "copy-on-write", "vectors", "positions"]:
    if variant.keys:
        return "equality"
    if layout.properties.get(DELETE_MODE) == "copy-on-write":
        return "copy-on-write"
    return "vectors" if layout.properties[FORMAT_VERSION] == "3" else "positions"


def _table(
    layout: Layout, raw: RawFiles, cache: DatasetCache, spark: Callable[[], SparkSession]
) -> tuple[dict[str, Any], float | None]:
    """What is kept with the table, and the seconds of building it if it was built now."""
    key = {
        "raw": [str(path) for path in raw.paths],
        "layout": {**asdict(layout), "description": None},
        "made by": source_digest(_MADE_BY),
    }

    taken: list[float] = []

    def build(folder: Path) -> dict[str, Any]:
        built = build_table(layout, raw, folder, spark=spark)
        taken.append(built.pop("seconds"))
        check_shape(layout, built["metadata_location"], raw.rows)
        check_manifests(layout.name, built["metadata_location"])
        return built

    found = cache.find_or_build(layout.name, key, build)
    return found, taken[0] if taken else None


def _with_deletes(layout: Layout, base: str, variant: DeleteVariant, schema: pa.Schema, cache: DatasetCache) -> str:
    kind = _kind(layout, variant)
    mode: Literal["copy-on-write", "merge-on-read"] = kind if kind == "copy-on-write" else "merge-on-read"
    key = {**base_key(base), "variant": asdict(variant), "mode": mode, "deleted by": source_digest(_DELETED_BY)}

    def build(folder: Path) -> dict[str, Any]:
        catalog = icebench.load_catalog(f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
        table = catalog.register_table(TABLE, base)
        if variant.keys:
            if layout.partition:  # deletes of no partition hold for all
                names = [field.name for field in table.spec.fields]
                table.update_spec(lambda spec: [spec.drop_field(name) for name in names])
            for number, keys in enumerate(variant.keys):
                values = pa.array(range(keys.start, keys.stop), schema.field(keys.column).type)
                rows, location = pa.table({keys.column: values}), f"{folder}/equality-{number}.parquet"
                file = write_equality_deletes(table, rows, location, spec_id=table.spec.spec_id)
                table.add_files([file])
        else:
            for filter in variant.filters:
                table.delete(filter, mode=mode)
        drop_leftover_manifests(table)
        check_manifests(f"{layout.name} with {variant.name} deleted", table.metadata_location)
        catalog.close()
        return {"metadata_location": table.metadata_location}

    location: str = cache.find_or_build(f"{layout.name}-deletes", key, build)["metadata_location"]
    return location
