"""A layout of a sample for real: built by the engine, planned, and read by every query."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

import icebench
from icebench.bench.advise.estimate import target_size
from icebench.bench.advise.planned import Reading, StoredColumns
from icebench.bench.advise.queries import Query
from icebench.bench.advise.sample import Sample
from icebench.bench.errors import Disagreement
from icebench.bench.layouts.layout import FORMAT_VERSION, ROW_GROUP_SIZE, TARGET_SIZE, Layout
from icebench.bench.tables.raw_files import RawFiles
from icebench.bench.tables.table_builder import build_table

_ELSEWHERE = ("write.data.path", "write.metadata.path", "write.object-storage", "write.distribution-mode")
"""Properties that would lead away from the trial's directory, or to Spark."""
_ROW_GROUP_SIZE = 128 << 20
"""Iceberg's default."""
_REWRITTEN_ROWS = 200_000
"""Rows by which this project's writer is compared with the one of the table, at most."""
_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What came of a layout of the sample.

    Args:
        layout: Which.
        files: Data files.
        data_bytes: Of data files.
        column_bytes: Of each top-level column.
        build_seconds: To write and to order it.
        readings: What each query reads, by a real plan.
        rows: How many rows each query found.
        storage_bytes: Bytes that each query really asked storage for, metadata among them; None where it was not read.
        requests: As many requests.
    """

    layout: Layout
    files: int
    data_bytes: float
    column_bytes: Mapping[str, float]
    build_seconds: float
    readings: tuple[Reading, ...]
    rows: tuple[int, ...] = ()
    storage_bytes: tuple[int, ...] = ()
    requests: tuple[int, ...] = ()


def try_layouts(
    layouts: Sequence[Layout], sample: Sample, queries: Sequence[Query], *, read: bool = True
) -> list[Trial]:
    """Build and measure layouts of the sample; their files have the share of rows that the sample has of the table.

    Args:
        layouts: Which.
        sample: The rows.
        queries: What is asked.
        read: Read the rows of each query, too.

    Raises:
        Disagreement: A query found other rows in one layout than in another.
        EngineError: The engine could not write.
    """
    trials = []
    with tempfile.TemporaryDirectory(prefix="icebench-advice-") as folder:
        raw = _raw(sample, Path(folder) / "rows.parquet")
        for number, layout in enumerate(layouts):
            home = Path(folder) / str(number)
            home.mkdir()
            built = build_table(_on_sample(layout, sample), raw, home, spark=_no_spark)
            table = icebench.load_table(built["metadata_location"])
            trials.append(_measured(layout, table, queries, built["seconds"], read=read))
    for trial in trials[1:]:
        if trial.rows != trials[0].rows:
            raise Disagreement(
                f"queries find other rows in layout {trial.layout.name!r} than in {trials[0].layout.name!r}"
            )
    return trials


def row_bytes_of_writers(layout: Layout, sample: Sample) -> dict[str, tuple[float, float]]:
    """Bytes per row of each top-level column of some files of the table, as this project writes the same rows in the
    same order, and as they are there: other writers encode and compress in other ways.

    Args:
        layout: The table's own, without an order.
        sample: Of the table.

    Raises:
        EngineError: The engine could not read or write.
    """
    stored, scan = sample.stored, sample.table.scan()
    files = max(1, min(len(stored.records), int(_REWRITTEN_ROWS / max(stored.records.mean(), 1))))
    paths = list(dict.fromkeys(scan.row_groups(files=files)["file_path"].to_pylist()))
    reader = scan.sample_files(files)
    taken, left = [], _REWRITTEN_ROWS
    for batch in reader:
        taken.append(batch.slice(0, left))
        left -= taken[-1].num_rows
        if not left:
            break
    rows = pa.Table.from_batches(taken, schema=reader.schema)
    if not rows.num_rows or not paths:
        return {}
    again = replace(sample, rows=rows, table_rows=rows.num_rows)
    with tempfile.TemporaryDirectory(prefix="icebench-advice-") as folder:
        raw, home = _raw(again, Path(folder) / "rows.parquet"), Path(folder) / "table"
        home.mkdir()
        built = build_table(_on_sample(layout, again), raw, home, spark=_no_spark)
        own = StoredColumns(icebench.load_table(built["metadata_location"])).by_column
    theirs = stored.bytes_per_row(paths)
    return {name: (size / rows.num_rows, theirs[name]) for name, size in own.items() if theirs[name]}


def _no_spark() -> NoReturn:
    raise AssertionError("trials are written without Spark")


def _raw(sample: Sample, path: Path) -> RawFiles:
    rows = sample.rows.cast(_without_ids(sample.rows.schema))
    pq.write_table(rows, path, compression="zstd", store_decimal_as_integer=True)
    return RawFiles(schema=rows.schema, paths=(path,), rows=rows.num_rows, size_bytes=path.stat().st_size)


def _without_ids(schema: pa.Schema) -> pa.Schema:
    """A new table numbers its columns itself."""

    def plain(field: pa.Field) -> pa.Field:
        own = {key: value for key, value in (field.metadata or {}).items() if key != _FIELD_ID}
        kind = field.type
        if pa.types.is_struct(kind):
            kind = pa.struct([plain(kind.field(i)) for i in range(kind.num_fields)])
        elif pa.types.is_map(kind):
            kind = pa.map_(plain(kind.key_field), plain(kind.item_field))
        elif pa.types.is_list(kind):
            kind = pa.list_(plain(kind.value_field))
        return pa.field(field.name, kind, nullable=field.nullable, metadata=own or None)

    return pa.schema([plain(field) for field in schema])


def _on_sample(layout: Layout, sample: Sample) -> Layout:
    """The layout with the table's properties, in files and row groups of the sample's share of their sizes."""
    table = sample.table
    own = {k: v for k, v in table.properties.items() if k.startswith("write.") and not k.startswith(_ELSEWHERE)}
    size = max(1, round(target_size(layout, table) * sample.share))
    row_group = int({**own, **layout.properties}.get(ROW_GROUP_SIZE) or _ROW_GROUP_SIZE)
    properties = {
        FORMAT_VERSION: str(table.metadata.format_version),
        **own,
        **layout.properties,
        TARGET_SIZE: str(size),
        ROW_GROUP_SIZE: str(max(1, round(row_group * sample.share))),
    }
    return replace(layout, properties=properties)


def _measured(layout: Layout, table: icebench.Table, queries: Sequence[Query], seconds: float, *, read: bool) -> Trial:
    stored = StoredColumns(table)
    found = Trial(
        layout=layout,
        files=len(stored.sizes),
        data_bytes=float(stored.sizes.sum()),
        column_bytes=stored.by_column,
        build_seconds=seconds,
        readings=tuple(stored.reading(query) for query in queries),
    )
    if not read:
        return found
    rows, sizes, requests = [], [], []
    for query in queries:
        counters = icebench.Counters()
        fresh = icebench.load_table(table.metadata_location)
        columns = list(query.columns) or None
        rows.append(sum(b.num_rows for b in fresh.scan(query.filter, columns, counters=counters).to_batches()))
        counted = counters.as_dict()
        sizes.append(counted["storage_bytes_read"])
        requests.append(counted.get("storage_requests_read", 0) + counted.get("storage_requests_range_read", 0))
    return replace(found, rows=tuple(rows), storage_bytes=tuple(sizes), requests=tuple(requests))
