"""PyIceberg: planning in Python, scans as Arrow record batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.expressions.parser import parse
from pyiceberg.expressions.visitors import bind
from pyiceberg.manifest import DataFile, clear_manifest_cache
from pyiceberg.table import FileScanTask, StaticTable, Table

import icebench
from icebench.bench.engines.arrow_scan import ArrowScans
from icebench.bench.engines.engine import COMPRESSION_LEVEL, Ability, CommittedFile, MergeMode, Plan, normalised
from icebench.bench.engines.registry import EngineContext
from icebench.bench.engines.script import IN_BATCHES, Script, call

_SETUP = "from pyiceberg.manifest import clear_manifest_cache\nfrom pyiceberg.table import StaticTable"
_OPEN, _FORGET = "StaticTable.from_metadata(TABLE)", "clear_manifest_cache()"
SCRIPTS = {
    "scan": Script(setup=_SETUP, open=_OPEN, forget=_FORGET, run=IN_BATCHES),
    "plan": Script(setup=_SETUP, open=_OPEN, forget=_FORGET, run="rows = len(list({query}))"),
}


class PyIceberg(ArrowScans[StaticTable, BooleanExpression]):
    """PyIceberg's `StaticTable`. Its cache of manifests is the process's own, so `forget` clears it."""

    name = "pyiceberg"
    abilities = frozenset({Ability.PLAN, Ability.SCAN, Ability.COMMIT, Ability.WRITE, Ability.CHANGE})
    writes_tables = True
    sorts_rows = False
    merge_modes: frozenset[MergeMode] = frozenset({"copy-on-write"})

    def __init__(self, context: EngineContext) -> None:
        self.version = version("pyiceberg")
        self._access = context.access

    def forget(self) -> None:
        clear_manifest_cache()

    def open(self, metadata_location: str) -> StaticTable:
        return StaticTable.from_metadata(metadata_location, self._access(metadata_location).in_pyiceberg_names)

    def compile(self, handle: StaticTable, filter: str | None) -> BooleanExpression:
        if filter is None:
            return AlwaysTrue()
        expression = parse(filter)
        # Binding is what finds a literal that does not fit its column; the scan binds again.
        bind(handle.schema(), expression, case_sensitive=True)
        return expression

    def plan(self, handle: StaticTable, filter: BooleanExpression) -> Plan:
        tasks: list[FileScanTask] = list(handle.scan(row_filter=filter).plan_files())

        def counters() -> dict[str, int]:
            deletes = {deleted.file_path for task in tasks for deleted in task.delete_files}
            return {"files_planned": len(tasks), "delete_files_planned": len(deletes)}

        return Plan(lambda: (task.file.file_path for task in tasks), counters)

    def query(self, handle: StaticTable, columns: Sequence[str] | None, filter: str | None) -> str:
        if columns is None:
            return f"{call('table.scan', row_filter=filter)}.plan_files()"
        return f"{call('table.scan', row_filter=filter, selected_fields=tuple(columns))}.to_arrow_batch_reader()"

    def batches(self, handle: StaticTable, columns: Sequence[str], filter: BooleanExpression) -> pa.RecordBatchReader:
        return handle.scan(row_filter=filter, selected_fields=tuple(columns)).to_arrow_batch_reader()

    def take_files(self, files: Sequence[icebench.DataFile], metadata_location: str) -> list[DataFile]:
        """PyIceberg's own objects, from the table's manifests."""
        return list(_data_files(metadata_location))

    def new_table(self, metadata_location: str, folder: Path) -> Table:
        return self.new_target(metadata_location, folder, None)

    def opened_again(self, table: Table) -> Table:
        return table.catalog.load_table(table.name())

    def commit_files(self, table: Table, files: list[DataFile]) -> None:
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
            for file in files:
                append.append_data_file(file)

    def location_of(self, table: Table) -> str:
        return table.metadata_location.removeprefix("file://")

    def take_rows(self, rows: pa.Table, kept: ExitStack) -> pa.Table:
        return rows

    def new_target(self, metadata_location: str, folder: Path, level: int | None) -> Table:
        source = StaticTable.from_metadata(metadata_location)
        catalog = InMemoryCatalog("bench", warehouse=str(folder))
        catalog.create_namespace("bench")
        return catalog.create_table(
            "bench.sales",
            source.schema(),
            partition_spec=source.spec(),
            properties={"format-version": "2", **({} if level is None else {COMPRESSION_LEVEL: str(level)})},
        )

    def append_rows(self, target: Table, rows: pa.Table) -> None:
        target.append(rows)

    written_to = location_of

    def open_target(self, warehouse: Path, name: str) -> Table:
        """In a catalog of its own, as PyIceberg has none that is a directory."""
        catalog = InMemoryCatalog("bench", warehouse=str(warehouse))
        catalog.create_namespace(name.partition(".")[0])
        return catalog.register_table(name, icebench.load_catalog(str(warehouse)).load_table(name).metadata_location)

    def upsert_rows(self, target: Table, rows: pa.Table, key: Sequence[str]) -> None:
        target.upsert(rows, list(key))

    def overwrite_partition(self, target: Table, rows: pa.Table, filter: str) -> None:
        """By the filter: PyIceberg's dynamic overwrite takes partitions of identity only."""
        target.overwrite(rows, filter)

    def committed(self, metadata_location: str) -> Iterator[CommittedFile]:
        """The files of a table, as PyIceberg reads them; a manifest at a time."""
        for file in _data_files(metadata_location):
            yield CommittedFile(
                path=normalised(file.file_path),
                record_count=file.record_count,
                size_bytes=file.file_size_in_bytes,
                partition=tuple(file.partition[n] for n in range(len(file.partition))),
                value_counts=file.value_counts or {},
                null_value_counts=file.null_value_counts or {},
                lower_bounds=file.lower_bounds or {},
                upper_bounds=file.upper_bounds or {},
            )


def _data_files(metadata_location: str) -> Iterator[DataFile]:
    clear_manifest_cache()
    table = StaticTable.from_metadata(metadata_location)
    snapshot = table.current_snapshot()
    for manifest in () if snapshot is None else snapshot.manifests(table.io):
        for entry in manifest.fetch_manifest_entry(table.io):
            yield entry.data_file
