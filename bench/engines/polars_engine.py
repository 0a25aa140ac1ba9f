"""Polars: scans by its own Parquet reader, planned by its Rust plugin `polars-iceberg`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import cast

import polars as pl
import polars_iceberg  # noqa: F401 - without it Polars plans with PyIceberg, and measures that
import pyarrow as pa
import sqlglot
from polars.io.iceberg._cache import reset_metadata_file_cache
from sqlglot import exp

from icebench.bench.engines.checksum import Checksum, checksum_of
from icebench.bench.engines.engine import Ability, ParquetTarget, Plan
from icebench.bench.engines.registry import EngineContext
from icebench.bench.engines.script import Script, literal

SCRIPTS = {
    "scan": Script(
        setup="""
import polars as pl
import polars_iceberg  # plans scans of Iceberg tables
from polars.io.iceberg._cache import reset_metadata_file_cache
""",
        open='pl.scan_iceberg(TABLE if "://" in TABLE else "file://" + TABLE.removeprefix("file:"))',
        forget="reset_metadata_file_cache()",
        run="rows = 0\nfor frame in {query}.collect_batches(maintain_order=False):\n    rows += frame.height",
    )
}


@dataclass(frozen=True)
class PolarsTable:
    """A lazy frame of the whole table."""

    rows: pl.LazyFrame


class Polars:
    """Polars in this process, with all its threads, streaming. It keeps the bytes of metadata files (64 MB, its
    default) for the life of the process, until `forget`; a lazy frame keeps what it planned.

    Polars shows no list of planned files. `plan` asks it to explain the query: it then plans the scan, and the
    explanation says how many files there are.
    """

    name = "polars"
    abilities = frozenset({Ability.SCAN, Ability.COUNT_PLAN, Ability.WRITE})
    writes_tables = sorts_rows = False

    def __init__(self, context: EngineContext) -> None:
        self._access = context.access
        self.version = f"{version('polars')} (polars-iceberg {version('polars-iceberg')})"

    def forget(self) -> None:
        reset_metadata_file_cache()

    def open(self, metadata_location: str) -> PolarsTable:
        is_uri = "://" in metadata_location
        location = metadata_location if is_uri else f"file://{metadata_location.removeprefix('file:')}"
        options = self._access(metadata_location).in_pyiceberg_names
        return PolarsTable(pl.scan_iceberg(location, storage_options=options or None))

    def compile(self, handle: PolarsTable, filter: str | None) -> pl.Expr:
        if filter is None:
            return pl.lit(value=True)
        return pl.sql_expr(_with_typed_dates(filter, handle.rows.collect_schema()))

    def plan(self, handle: PolarsTable, filter: pl.Expr) -> Plan:
        text = handle.rows.filter(filter).explain()
        return Plan(_not_shown, lambda: {"files_planned": planned_files(text)})

    def scan(self, handle: PolarsTable, columns: Sequence[str], filter: pl.Expr) -> None:
        for _ in self._selected(handle, columns, filter).collect_batches(maintain_order=False):
            pass

    def checksum(self, handle: PolarsTable, columns: Sequence[str], filter: pl.Expr) -> Checksum:
        frame = self._selected(handle, columns, filter).collect(engine="streaming")
        return checksum_of(frame.to_arrow().to_batches(), columns)

    def take_rows(self, rows: pa.Table, kept: ExitStack) -> pl.LazyFrame:
        return cast("pl.DataFrame", pl.from_arrow(rows)).lazy()

    def new_target(self, metadata_location: str, folder: Path, level: int | None) -> ParquetTarget:
        return ParquetTarget(path=folder / "rows.parquet", level=level)

    def append_rows(self, target: ParquetTarget, rows: pl.LazyFrame) -> None:
        rows.sink_parquet(target.path, compression="zstd", compression_level=target.level)

    def written_to(self, target: ParquetTarget) -> str:
        return str(target.path)

    def query(self, handle: PolarsTable, columns: Sequence[str] | None, filter: str | None) -> str:
        text = "" if filter is None else _with_typed_dates(filter, handle.rows.collect_schema())
        kept = "table" if filter is None else f"table.filter(pl.sql_expr({literal(text)}))"
        return f"{kept}.explain()" if columns is None else f"{kept}.select({literal(list(columns))})"

    @staticmethod
    def _selected(handle: PolarsTable, columns: Sequence[str], filter: pl.Expr) -> pl.LazyFrame:
        return handle.rows.filter(filter).select(columns)


def _not_shown() -> list[str]:
    raise AssertionError("which files were planned is not among the abilities")


def planned_files(explanation: str) -> int:
    """How many files a scan has, of which the explanation names the first."""
    first = re.search(r"^ *Parquet SCAN \[(.*)\]$", explanation, re.MULTILINE)
    if first is None or not first[1]:
        return 0
    others = re.search(r", \.\.\. (\d+) other sources?$", first[1])
    return 1 + int(others[1]) if others else first[1].count(", ") + 1


def _with_typed_dates(text: str, schema: pl.Schema) -> str:
    """The filter with ``DATE '...'`` or ``TIMESTAMP '...'`` where text is compared with such a column: Polars' SQL
    does not read one from text by itself, as every other engine here does."""
    tree = sqlglot.parse_one(text)
    for node in list(tree.find_all(exp.Predicate)):
        column = node.this
        kind = schema.get(column.name) if isinstance(column, exp.Column) else None
        name = {pl.Date: "DATE", pl.Datetime: "TIMESTAMP"}.get(kind.base_type()) if kind is not None else None
        if name is None:
            continue
        for text_of in [v for v in node.iter_expressions() if isinstance(v, exp.Literal) and v.is_string]:
            text_of.replace(exp.cast(text_of.copy(), name))
    return tree.sql()
