"""A layout of a sample for real: rewritten by the engine, planned, and read by every query."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

import icebench
from icebench.bench.advise.estimate import target_size
from icebench.bench.advise.planned import Reading, StoredColumns
from icebench.bench.advise.queries import Query
from icebench.bench.advise.rates import TimedRead, TimedRewrite
from icebench.bench.advise.rewriting import rewrite
from icebench.bench.advise.sample import Sample
from icebench.bench.advise.timing import read_rows, time_reads
from icebench.bench.errors import Disagreement
from icebench.bench.layouts.layout import FORMAT_VERSION, ROW_GROUP_SIZE, TARGET_SIZE, Layout, Term
from icebench.bench.tables.table_builder import drop_leftover_manifests

_ELSEWHERE = ("write.data.path", "write.metadata.path", "write.object-storage", "write.distribution-mode")
"""Properties that would lead away from the trial's directory, or to Spark."""
_ROW_GROUP_SIZE = 128 << 20
"""Iceberg's default."""
_REWRITTEN_ROWS = 200_000
"""Rows by which this project's writer is compared with the one of the table, at most."""
_FIELD_ID = b"PARQUET:field_id"
_PART = 4
"""One row in so many is rewritten by itself, from which follows what a rewrite takes however many rows there are."""
_FILES, _FILE_ROWS = 32, 64_000
"""Of the table of many files by which files are timed, at most."""
_ROW_GROUPS = 16
_LEAST_ROWS = 1_000
"""With fewer, tables of many files or row groups are none that a query would meet."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What came of a layout of the sample.

    Args:
        layout: Which.
        files: Data files.
        data_bytes: Of data files.
        column_bytes: Of each top-level column.
        readings: What each query reads, by a real plan.
        reads: Those that were timed.
        build_seconds: To rewrite the sample from today's layout; 0 for today's.
        sample_rows: Rows of the sample.
        rows: How many rows each query found.
        storage_bytes: Bytes that each query really asked storage for, metadata among them; None where it was not read.
        requests: As many requests.
    """

    layout: Layout
    files: int
    data_bytes: float
    column_bytes: Mapping[str, float]
    readings: tuple[Reading, ...]
    reads: tuple[TimedRead, ...] = ()
    build_seconds: float = 0.0
    sample_rows: int = 0
    rows: tuple[int, ...] = ()
    storage_bytes: tuple[int, ...] = ()
    requests: tuple[int, ...] = ()

    @property
    def timed(self) -> TimedRewrite:
        """The rewrite."""
        return TimedRewrite(files=self.files, rows=self.sample_rows, seconds=self.build_seconds)


def try_layouts(
    layouts: Sequence[Layout],
    sample: Sample,
    queries: Sequence[Query],
    *,
    today: Layout,
    expected: Sequence[int] = (),
    read: bool = True,
) -> list[Trial]:
    """Rewrite the sample's rows from today's layout into others, and measure these; their files have the share of rows
    that the sample has of the table.

    Args:
        layouts: Which.
        sample: The rows.
        queries: What is asked.
        today: The table's own layout.
        expected: How many rows each query finds; where nothing is said, as many as in the first layout.
        read: Read the rows of each query, and time that.

    Raises:
        Disagreement: A query found other rows in one layout than in another.
        EngineError: The engine could not read or write.
    """
    trials: list[Trial] = []
    for layout in layouts:
        with _appended(today, sample) as table:
            seconds = _rewrite(table, layout, sample, today)
            drop_leftover_manifests(table)
            found = _measured(layout, table, queries, read=read)
        trials.append(replace(found, build_seconds=seconds, sample_rows=sample.rows.num_rows))
        known = expected or trials[0].rows
        if trials[-1].rows != tuple(known):
            raise Disagreement(f"queries find other rows in layout {layout.name!r} than in another")
    return trials


def try_today(today: Layout, sample: Sample, queries: Sequence[Query]) -> Trial:
    """The sample's rows as the table has them, written by this project.

    Raises:
        EngineError: The engine could not read or write.
    """
    with _appended(today, sample) as table:
        return _measured(today, table, queries, read=True)


def time_other_sizes(today: Layout, sample: Sample, queries: Sequence[Query]) -> list[TimedRead]:
    """Reads of many small files, and of many row groups in a file: what each of them takes.

    Raises:
        EngineError: The engine could not read or write.
    """
    found: list[TimedRead] = []
    count = min(sample.rows.num_rows, _FILE_ROWS)
    if count < _LEAST_ROWS:
        return found
    rows = replace(sample, rows=sample.rows.slice(0, count), table_rows=count)
    model = icebench.LayoutModel(rows.rows, sample.table.metadata)
    a_byte = model.rows_per_row_group({ROW_GROUP_SIZE: "1"})
    sizes = {TARGET_SIZE: sample.row_bytes * count / _FILES, ROW_GROUP_SIZE: count / a_byte / _ROW_GROUPS}
    for name, size in sizes.items():
        properties = {name: str(max(1, round(size)))}
        with _appended(replace(today, partition=(), properties=properties), rows) as table:
            found += time_reads(table, queries)
    return found


def time_rewrites(today: Layout, sample: Sample, column: str) -> list[TimedRewrite]:
    """Sorts of the sample and of one row in four by a column into a file each, twice, after one that does not count:
    what a rewrite takes for its rows.

    Raises:
        EngineError: The engine could not read or write.
    """
    found = []
    layout = Layout(name="sorted", sort=(Term(column=column),))
    part = replace(sample, rows=sample.rows.take(pa.array(np.arange(0, sample.rows.num_rows, _PART))))
    for rows in (part, part, sample, part, sample):
        with _appended(today, rows) as table:
            seconds = _rewrite(table, layout, rows, today)
            files = len(StoredColumns(table).sizes)
        found.append(TimedRewrite(files=files, rows=rows.rows.num_rows, seconds=seconds))
    return found[1:]


@dataclass(frozen=True, kw_only=True)
class WholeFiles:
    """Some files of the table, written again by this project in their order.

    Args:
        row_bytes: Bytes per row of each top-level column, as this project writes the rows, and as they are there.
        reads: Of what was written.
    """

    row_bytes: Mapping[str, tuple[float, float]]
    reads: Sequence[TimedRead]


def write_whole_files(today: Layout, sample: Sample, queries: Sequence[Query]) -> WholeFiles:
    """Write some files of the table again: other writers encode and compress in other ways, and files of the table are
    larger than those of a sample.

    Args:
        today: The table's own layout, without an order.
        sample: Of the table.
        queries: What is asked.

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
        return WholeFiles(row_bytes={}, reads=())
    with _appended(today, replace(sample, rows=rows, table_rows=rows.num_rows)) as table:
        own, reads = StoredColumns(table).by_column, time_reads(table, queries)
    theirs = stored.bytes_per_row(paths)
    row_bytes = {name: (size / rows.num_rows, theirs[name]) for name, size in own.items() if theirs[name]}
    return WholeFiles(row_bytes=row_bytes, reads=reads)


@contextmanager
def _appended(layout: Layout, sample: Sample) -> Iterator[icebench.Table]:
    """A table of the sample's rows in their order, in a directory that lasts as long as the context."""
    schema = _without_ids(sample.rows.schema)
    with tempfile.TemporaryDirectory(prefix="icebench-advice-") as folder:
        home = Path(folder) / "trial"
        home.mkdir()
        with closing(icebench.load_catalog(f"sqlite:///{home}/catalog.db", warehouse=str(home))) as catalog:
            table = catalog.create_table(
                "bench.rows",
                schema,
                partition_spec=[(term.column, term.transform) for term in layout.partition],
                properties=_on_sample(layout, sample).properties,
            )
            table.append(sample.rows.cast(schema))
            yield table


def _rewrite(
    table: icebench.Table, layout: Layout, sample: Sample, today: Layout, clock: Callable[[], float] = time.perf_counter
) -> float:
    """The seconds that it takes."""
    scaled = _on_sample(layout, sample).properties
    layout = replace(layout, properties={name: scaled[name] for name in layout.properties})
    start = clock()
    rewrite(table, layout, today)
    return clock() - start


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


def _measured(layout: Layout, table: icebench.Table, queries: Sequence[Query], *, read: bool) -> Trial:
    stored = StoredColumns(table)
    found = Trial(
        layout=layout,
        files=len(stored.sizes),
        data_bytes=float(stored.sizes.sum()),
        column_bytes=stored.by_column,
        readings=tuple(stored.reading(query) for query in queries),
    )
    if not read:
        return found
    rows, sizes, requests = [], [], []
    for query in queries:
        counters = icebench.Counters()
        rows.append(read_rows(table, query, counters))
        counted = counters.as_dict()
        sizes.append(counted["storage_bytes_read"])
        requests.append(counted.get("storage_requests_read", 0) + counted.get("storage_requests_range_read", 0))
    return replace(
        found,
        reads=tuple(time_reads(table, queries)),
        rows=tuple(rows),
        storage_bytes=tuple(sizes),
        requests=tuple(requests),
    )
