"""This project's engine: planning, and scans as Arrow record batches, through its public interface alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pyarrow as pa
import pyarrow.compute as pc

import icebench
from icebench.bench.engines.arrow_scan import ArrowScans
from icebench.bench.engines.engine import (
    COMPRESSION_LEVEL,
    Ability,
    CommittedFile,
    EngineMissing,
    MergeMode,
    Plan,
    normalised,
)
from icebench.bench.engines.registry import EngineContext
from icebench.bench.engines.script import IN_BATCHES, Script, call
from icebench.bench.layouts.actions import KEYS, Action

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COUNTS = pa.map_(pa.int32(), pa.int64())
_BOUNDS = pa.map_(pa.int32(), pa.binary())
_FILES_AT_ONCE = 1_000
_COMPARED_MAPS = ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")
_COMPARED = ["file_path", "record_count", "file_size_in_bytes", "partition", *_COMPARED_MAPS]


_SETUP = "import icebench\n\nicebench.prepare_kernels()  # compiled code, as other engines come with"
_OPEN = "icebench.load_table(TABLE)"
SCRIPTS = {
    "scan": Script(setup=_SETUP, open=_OPEN, run=IN_BATCHES),
    "plan": Script(setup=_SETUP, open=_OPEN, run="rows = {query}.files.num_rows"),
}


class Icebench(ArrowScans[icebench.Table, str | None]):
    """`icebench.load_table` and its scans. A table handle keeps decoded manifests, so a fresh one plans cold."""

    name = "icebench"
    abilities = frozenset(
        {
            Ability.PLAN,
            Ability.SCAN,
            Ability.COMMIT,
            Ability.MAINTAIN,
            Ability.WRITE,
            Ability.CHANGE,
            Ability.QUERY,
            Ability.CONCURRENT_QUERIES,
        }
    )
    writes_tables = sorts_rows = True
    merge_modes: frozenset[MergeMode] = frozenset(get_args(MergeMode))
    dialect = "duckdb"
    maintains = frozenset(get_args(Action))

    def __init__(self, context: EngineContext) -> None:
        self.version = version("icebench")
        self._access = context.access
        # As other engines come compiled; a process would begin without, and change in the midst of a measurement.
        icebench.prepare_kernels()

    def open(self, metadata_location: str) -> icebench.Table:
        return icebench.load_table(metadata_location, properties=self._access(metadata_location).options)

    def open_with_cache(self, metadata_location: str, directory: Path) -> icebench.Table:
        cache = icebench.ManifestCache(directory=str(directory))
        return icebench.load_table(metadata_location, properties=self._access(metadata_location).options, cache=cache)

    def compile(self, handle: icebench.Table, filter: str | None) -> str | None:
        # Making the scan parses and binds the filter, as planning does: what is wrong with it shows here.
        handle.scan(filter=filter)
        return filter

    def plan(self, handle: icebench.Table, filter: str | None) -> Plan:
        plan = handle.scan(filter=filter).plan()

        def counters() -> dict[str, int]:
            pairs = pc.sum(pc.list_value_length(plan.files.column("deletes"))).as_py()
            return {**plan.counters, "delete_pairs": pairs or 0}

        return Plan(lambda: plan.files.column("file_path").to_pylist(), counters)

    def query(self, handle: icebench.Table, columns: Sequence[str] | None, filter: str | None) -> str:
        if columns is None:
            return f"{call('table.scan', filter=filter)}.plan()"
        return f"{call('table.scan', filter=filter, columns=list(columns))}.to_batches()"

    def batches(self, handle: icebench.Table, columns: Sequence[str], filter: str | None) -> Iterable[pa.RecordBatch]:
        return handle.scan(filter=filter, columns=columns).to_batches()

    def count_scan(self, handle: icebench.Table, columns: Sequence[str], filter: str | None) -> Mapping[str, int]:
        counters = icebench.Counters()
        for _ in handle.scan(filter=filter, columns=columns, counters=counters).to_batches():
            pass
        return counters.as_dict()

    def open_tables(self, locations: Mapping[str, str]) -> Any:  # noqa: ANN401 - with DuckDB's connection
        """Views of `Scan.to_duckdb`, which are planned in every query; with the small tables by their names in lower
        case."""
        try:
            connection = import_module("duckdb").connect()
        except ImportError as error:
            raise EngineMissing("its scans are queried by DuckDB: pip install 'icebench[peers]'") from error
        # local import: as below
        from icebench.bench.engines.duckdb_queries import configure
        from icebench.bench.engines.duckdb_views import allow_joins, create_view

        configure(connection)
        allow_joins(connection)
        small = [name for name, location in locations.items() if create_view(connection, name, self.open(location))]
        return connection, {name.lower(): name for name in small}

    def new_session(self, tables: Any) -> Any:  # noqa: ANN401 - of `open_tables`
        """A cursor: the views, and what their tables keep of manifests, are those of all."""
        # local import: as below
        from icebench.bench.engines.duckdb_queries import DuckDbQueries

        connection, small = tables
        return DuckDbQueries().new_session(connection), small

    def answer(
        self,
        tables: Any,  # noqa: ANN401 - of `open_tables`
        query: str,
        names: Sequence[str],
        seconds: float | None = None,
    ) -> list[tuple[Any, ...]]:
        # local import: a package that planning and scans need not have
        from icebench.bench.engines.duckdb_rows import fetched_rows
        from icebench.bench.engines.duckdb_views import answer_over_copies

        connection, small = tables
        return answer_over_copies(connection, query, [small[n] for n in names if n in small], fetched_rows, seconds)

    def take_files(self, files: Sequence[icebench.DataFile], metadata_location: str) -> pa.Table:
        """Files by column, as `Table.add_files` takes them."""
        spec = icebench.load_table(metadata_location).spec
        return described_files(files, [f.name for f in spec.fields])

    def new_table(self, metadata_location: str, folder: Path) -> icebench.Table:
        source = icebench.load_table(metadata_location)
        catalog = icebench.load_catalog(str(folder))
        return catalog.create_table(
            "bench.sales", source.schema(), partition_spec=source.spec, properties={"format-version": "2"}
        )

    def opened_again(self, table: icebench.Table) -> icebench.Table:
        return icebench.load_catalog(str(Path(table.location).parents[1])).load_table("bench.sales")

    def commit_files(self, table: icebench.Table, files: pa.Table) -> None:
        # Appends of the other engines do not look for files that the table has already.
        table.add_files(files, check_duplicate_files=False)

    def location_of(self, table: icebench.Table) -> str:
        return table.metadata_location

    def take_rows(self, rows: pa.Table, kept: ExitStack) -> pa.Table:
        return rows

    def new_target(self, metadata_location: str, folder: Path, level: int | None) -> icebench.Table:
        source = icebench.load_table(metadata_location)
        return icebench.load_catalog(str(folder)).create_table(
            "bench.sales",
            source.schema(),
            partition_spec=source.spec,
            sort_order=source.sort_order,
            properties={"format-version": "2", **({} if level is None else {COMPRESSION_LEVEL: str(level)})},
        )

    def append_rows(self, target: icebench.Table, rows: pa.Table) -> None:
        target.append(rows)

    written_to = location_of

    def open_target(self, warehouse: Path, name: str) -> icebench.Table:
        return icebench.load_catalog(str(warehouse)).load_table(name)

    def upsert_rows(self, target: icebench.Table, rows: pa.Table, key: Sequence[str]) -> None:
        target.upsert(rows, key)

    def overwrite_partition(self, target: icebench.Table, rows: pa.Table, filter: str) -> None:
        target.overwrite_partitions(rows)

    def maintain(self, warehouse: Path, name: str, action: Action, target_bytes: int) -> None:
        maintain(warehouse, name, action, target_bytes)

    def committed(self, metadata_location: str) -> Iterator[CommittedFile]:
        """The files, from metadata table ``data_files``."""
        for batch in icebench.load_table(metadata_location).inspect.data_files().select(_COMPARED).to_batches(1_000):
            for row in batch.to_pylist(maps_as_pydicts="strict"):
                yield CommittedFile(
                    path=normalised(row["file_path"]),
                    record_count=row["record_count"],
                    size_bytes=row["file_size_in_bytes"],
                    partition=tuple(row["partition"].values()),
                    **{name: dict(row[name] or {}) for name in _COMPARED_MAPS},
                )


def maintain(warehouse: Path, name: str, action: Action, target_bytes: int, spark: SparkSession | None = None) -> None:
    """See `icebench.bench.engines.engine.Maintaining`; with a session, executors rewrite data files."""
    catalog = icebench.load_catalog(str(warehouse))
    table = catalog.load_table(name).maintenance
    match action:
        case "rewrite_manifests":
            table.rewrite_manifests()
        case "expire_snapshots":
            table.expire_snapshots(older_than="2999-01-01T00:00:00Z", retain_last=1)
        case "remove_orphan_files":
            table.remove_orphan_files(dry_run=False)
        case _:
            table.rewrite_data_files(
                action,
                sort_order=KEYS[action] if action == "sort" else None,
                zorder_by=KEYS[action] if action == "zorder" else (),
                rewrite_all=True,
                target_file_size_bytes=target_bytes,
                spark=spark,
            )
    catalog.close()


def described_files(files: Sequence[icebench.DataFile], partition_fields: Sequence[str]) -> pa.Table:
    """Data files as the table that `icebench.Table.add_files` takes; partition values are whole numbers."""
    key = pa.struct([(name, pa.int32()) for name in partition_fields])
    chunks = []
    for start in range(0, len(files), _FILES_AT_ONCE):
        some = files[start : start + _FILES_AT_ONCE]
        columns: dict[str, pa.Array] = {
            "file_path": pa.array([f.file_path for f in some]),
            "file_format": pa.array([f.file_format for f in some]),
            "partition": pa.array([dict(zip(partition_fields, f.partition, strict=True)) for f in some], key),
            "split_offsets": pa.array([f.split_offsets for f in some], pa.list_(pa.int64())),
            "sort_order_id": pa.array([f.sort_order_id for f in some], pa.int32()),
        }
        for name in ("record_count", "file_size_in_bytes"):
            columns[name] = pa.array([getattr(f, name) for f in some], pa.int64())
        for name in ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts"):
            columns[name] = pa.array([list(getattr(f, name).items()) for f in some], _COUNTS)
        for name in ("lower_bounds", "upper_bounds"):
            columns[name] = pa.array([list(getattr(f, name).items()) for f in some], _BOUNDS)
        chunks.append(pa.table(columns))
    return pa.concat_tables(chunks)
