"""A table in a layout, built from a workload's raw files by this project's engine, through its public interface alone.

Rows are appended as they arrived, and brought into the layout's order by a rewrite, as users of Iceberg do it; both
are what building takes. What a rewrite has replaced is removed, from disk and from the snapshot's manifests, so that
the table is the layout's and no more.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shutil import rmtree
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import icebench
from icebench.bench.layouts.layout import CODEC, DISTRIBUTION, TARGET_SIZE, Layout, Term
from icebench.bench.tables.raw_files import RawFiles
from icebench.bench.truth.manifests import leftover_manifests, live_files, manifest_list
from icebench.bench.truth.metadata import load_table_json

TABLE = "bench.rows"
_END_OF_TIME_MS = 1 << 52
_ATTEMPTS = 4
_NEAR = 0.1
"""How far the number of files may be off, as a share of what is wanted, before the table is built again."""


@dataclass(frozen=True, kw_only=True)
class BuildCost:
    """What came of building a table, which no clock says; kept with the table.

    Args:
        bytes_written: Data files, those that a rewrite replaced among them.
        bytes_compacted: Of these, by the rewrite.
        bytes_on_disk: Everything in the table's directory when it was done.
        files: Live data files.
        manifests: Of the current snapshot.
    """

    bytes_written: int
    bytes_compacted: int
    bytes_on_disk: int
    files: int
    manifests: int


@dataclass(kw_only=True)
class TableBuild:
    """A table that is about to be built once: `write` is what building it takes.

    Args:
        layout: With the properties of its table in full.
        raw: The rows.
        catalog: An empty one.
        rows: The same rows, ready to be written.
        enlarged: How many times as large files are to be as their number would have them.
        clock: Monotonic seconds.
    """

    layout: Layout
    raw: RawFiles
    catalog: icebench.Catalog
    rows: pa.RecordBatchReader | DataFrame
    enlarged: float
    clock: Callable[[], float]
    compaction_seconds: float = field(init=False, default=0.0)
    _location: str = field(init=False, default="")
    _bytes: tuple[int, int] = field(init=False, default=(0, 0))

    @classmethod
    def prepare(
        cls,
        layout: Layout,
        raw: RawFiles,
        folder: Path,
        *,
        spark: Callable[[], SparkSession],
        enlarged: float = 1.0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> TableBuild:
        """In an empty directory; `spark` gives the session that reads the rows of a layout that distributes them."""
        rows = spark().read.parquet(*map(str, raw.paths)) if is_distributed(layout) else raw.reader()
        catalog = icebench.load_catalog(f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
        return cls(layout=layout, raw=raw, catalog=catalog, rows=rows, enlarged=enlarged, clock=clock)

    def write(self) -> None:
        """Append the rows, and bring them into the layout's order and size of files.

        Raises:
            EngineError: The engine could not write.
        """
        layout, raw = self.layout, self.raw
        table = self.catalog.create_table(
            TABLE,
            raw.schema,
            partition_spec=[(term.column, term.transform) for term in layout.partition],
            sort_order=_sort_order(layout.sort, raw.schema),
            properties=_properties(layout, raw, self.enlarged),
        )
        table.append(self.rows)
        appended, compacted, start = _added_bytes(table), 0, self.clock()
        if _rewrite(layout, table, self.enlarged, sort=bool(layout.sort) and not is_distributed(layout)):
            compacted = _added_bytes(table)
            drop_leftover_manifests(table)
            table.maintenance.expire_snapshots(older_than=_END_OF_TIME_MS, retain_last=1)
            self.compaction_seconds = self.clock() - start
        if layout.cluster_manifests:
            table.maintenance.rewrite_manifests(by_partition=True)
        for column in layout.file_index:
            table.maintenance.build_index(column)
        self._location, self._bytes = table.metadata_location, (appended + compacted, compacted)

    def finish(self) -> tuple[str, BuildCost]:
        """Close the catalog; the table's metadata file, and what came of building it."""
        self.catalog.close()
        found = load_table_json(self._location)
        written, compacted = self._bytes
        directory = Path(found.values["location"])
        return self._location, BuildCost(
            bytes_written=written,
            bytes_compacted=compacted,
            bytes_on_disk=sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()),
            files=len(live_files(found)),
            manifests=len(manifest_list(found)),
        )


def drop_leftover_manifests(table: icebench.Table) -> None:
    """Commit once more, if the current snapshot lists a manifest without a live file, so that it lists none.

    What a rewrite or delete removed stays listed in its own snapshot, as the specification has it, and the next commit
    leaves it out. A table that is measured right after the rewrite would cost planners a manifest that a table in use
    does not have: Iceberg Java takes 10 ms more, as it reads two manifests in threads.
    """
    if leftover_manifests(load_table_json(table.metadata_location)):
        table.maintenance.rewrite_manifests(by_partition=False)


def is_distributed(layout: Layout) -> bool:
    """Whether Spark distributes its rows over executors before they are written."""
    return layout.properties.get(DISTRIBUTION, "none") != "none"


def build_table(
    layout: Layout,
    raw: RawFiles,
    folder: Path,
    *,
    spark: Callable[[], SparkSession],
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Any]:
    """Build the table in a catalog in an empty directory: its metadata file, its cost, the `TableBuild.enlarged` that
    builds it again, and the seconds that the last attempt took, as JSON values.

    The size of files is known only when they are written: a table of too many or too few is built again.

    Args:
        layout: With the properties of its table in full.
        raw: The rows.
        folder: Where.
        spark: Gives the session; called where the layout distributes rows over executors before they are written.
        clock: Monotonic seconds.

    Raises:
        EngineError: The engine could not write.
    """
    enlarged, tried = 1.0, [(0.0, 0.0)]
    for attempt in range(_ATTEMPTS):
        home = folder / str(attempt)
        home.mkdir()
        build = TableBuild.prepare(layout, raw, home, spark=spark, enlarged=enlarged, clock=clock)
        start = clock()
        build.write()
        seconds = clock() - start
        location, cost = build.finish()
        if layout.files is None or layout.partition or abs(cost.files / layout.files - 1) <= _NEAR:
            break
        if attempt < _ATTEMPTS - 1:
            tried.append((math.log(enlarged), math.log(cost.files / layout.files)))
            enlarged = math.exp(_next_guess(*tried[-2:]))
            rmtree(home)
    return {"metadata_location": location, "cost": asdict(cost), "enlarged": build.enlarged, "seconds": seconds}


def _next_guess(before: tuple[float, float], last: tuple[float, float]) -> float:
    """The logarithm of how much larger files are to be, from those of two attempts and of how many times too many files
    each gave: on the line through both. A file has dictionaries and a footer however few its rows, so that files in
    proportion alone come out now too many, now too few."""
    (start, was), (at, off) = before, last
    slope = (off - was) / (at - start) if at != start else -1.0
    return at - off / (slope if slope < 0 else -1.0)


def _properties(layout: Layout, raw: RawFiles, enlarged: float) -> dict[str, str]:
    """Those of the table. For rows that stay as they arrived they set the size of that many files: as large as the raw
    files, as far as the codec goes."""
    if layout.files is None or layout.partition or layout.sort or layout.curve:
        return dict(layout.properties)
    sample = pa.Table.from_batches([next(iter(raw.reader()))])

    def size(codec: str) -> int:
        sink = pa.BufferOutputStream()
        known = "none" if codec.lower() == "uncompressed" else codec
        pq.write_table(sample, sink, compression=known, store_decimal_as_integer=True)
        return int(sink.tell())

    ratio = size(layout.properties.get(CODEC, "zstd")) / size("zstd")
    return {**layout.properties, TARGET_SIZE: str(math.ceil(raw.size_bytes * ratio * enlarged / layout.files))}


def _rewrite(layout: Layout, table: icebench.Table, enlarged: float, *, sort: bool) -> bool:
    """Bring rows into the layout's order, or into as many files as are wanted; whether there was need to."""
    if not (sort or layout.curve or (layout.partition and layout.files is not None)):
        return False
    sizes: Counter[str] = Counter()
    for file in live_files(load_table_json(table.metadata_location)):
        sizes[str(file.partition)] += file.size_bytes
    each = max(1, round((layout.files or 1) / len(sizes)))
    if layout.files is not None and each == 1 and len(sizes) > 1 and not (sort or layout.curve):
        return False
    target = int(layout.properties.get(TARGET_SIZE) or math.ceil(max(sizes.values()) / each * enlarged))
    how = layout.curve_arguments or {"strategy": "sort" if sort else "binpack"}
    table.maintenance.rewrite_data_files(**how, rewrite_all=True, target_file_size_bytes=target)
    return True


def _sort_order(terms: tuple[Term, ...], schema: pa.Schema) -> icebench.SortOrder:
    """Refers to columns by the ids that a table of an Arrow schema gives them."""
    fields = tuple(
        icebench.SortField(
            source_ids=(schema.get_field_index(term.column) + 1,),
            transform=icebench.parse_transform(term.transform),
            direction="desc" if term.descending else "asc",
            null_order="nulls-last" if term.nulls_last else "nulls-first",
        )
        for term in terms
    )
    return icebench.SortOrder(fields, order_id=1) if fields else icebench.UNSORTED


def _added_bytes(table: icebench.Table) -> int:
    """Bytes of the data files that the current snapshot added."""
    snapshot = load_table_json(table.metadata_location).snapshot
    return 0 if snapshot is None else int(snapshot["summary"].get("added-files-size", 0))
