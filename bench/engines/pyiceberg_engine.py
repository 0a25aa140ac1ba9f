"""PyIceberg: planning in Python, scans as Arrow record batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version

from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.expressions.parser import parse
from pyiceberg.expressions.visitors import bind
from pyiceberg.manifest import clear_manifest_cache
from pyiceberg.table import FileScanTask, StaticTable

from bench.engines.checksum import Checksum, checksum_of
from bench.engines.engine import Ability, Plan
from bench.engines.registry import EngineContext


class PyIceberg:
    """PyIceberg's `StaticTable`. Its cache of decoded manifest lists is the process's own, so `open` clears it."""

    name = "pyiceberg"
    abilities = frozenset({Ability.PLAN, Ability.SCAN})

    def __init__(self, context: EngineContext) -> None:
        self.version = version("pyiceberg")

    def open(self, metadata_location: str) -> StaticTable:
        clear_manifest_cache()
        return StaticTable.from_metadata(metadata_location)

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

    def scan(self, handle: StaticTable, columns: Sequence[str], filter: BooleanExpression) -> Mapping[str, int]:
        for _ in handle.scan(row_filter=filter, selected_fields=tuple(columns)).to_arrow_batch_reader():
            pass
        return {}

    def checksum(self, handle: StaticTable, columns: Sequence[str], filter: BooleanExpression) -> Checksum:
        reader = handle.scan(row_filter=filter, selected_fields=tuple(columns)).to_arrow_batch_reader()
        return checksum_of(reader, columns)
