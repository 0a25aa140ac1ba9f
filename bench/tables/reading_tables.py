"""The tables of reading experiments, made by pyarrow and this project's engine and kept from run to run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import icebench
from icebench.bench.errors import DatasetFailed
from icebench.bench.tables.cache import DatasetCache, base_key, engine_writers, source_digest
from icebench.bench.workloads.equality_deletes import write_equality_deletes
from icebench.bench.workloads.reading_files import (
    KEYS,
    Cell,
    DeleteRows,
    cell_table,
    delete_table,
    deleted_keys,
    deleted_rows,
    integers_and_decimals,
    places_of,
    with_ids,
    write_cell,
)
from icebench.bench.workloads.wide import Wide

TABLE = "bench.reading"

_ROOT = Path(__file__).resolve().parents[2]
_MADE_BY = (_ROOT / "bench/workloads/reading_files.py", _ROOT / "bench/tables/reading_tables.py")
_COMMITTED_BY = (*_MADE_BY, *engine_writers())
_WIDE_MADE_BY = (*_COMMITTED_BY, _ROOT / "bench/workloads/wide.py", _ROOT / "bench/workloads/draws.py")
_DELETED_BY = (*_COMMITTED_BY, _ROOT / "bench/workloads/equality_deletes.py")

Written = tuple[Path, int]
"""A data file and its rows."""


class ReadingTables:
    """The tables, by what they are made of; each method gives the location of a metadata file.

    Raises, from every method:
        DatasetFailed: The disk refused.
        EngineError: The engine could not write.
    """

    def __init__(self, cache: DatasetCache) -> None:
        self._cache = cache

    def cell(self, cell: Cell, rows: int, seed: int) -> str:
        """A table of the decimal matrix, in one file."""

        def write(folder: Path) -> tuple[pa.Schema, list[Written]]:
            table = cell_table(cell, rows, seed)
            write_cell(cell, table, folder / "cell.parquet")
            return table.schema, [(folder / "cell.parquet", rows)]

        return self._table("decimal-cell", {"cell": asdict(cell), "rows": rows, "seed": seed}, write)

    def integers(self, rows: int, seed: int, *, decimals: bool) -> str:
        """Twelve columns of int64, or the same numbers as decimal(7,2)."""

        def write(folder: Path) -> tuple[pa.Schema, list[Written]]:
            table = integers_and_decimals(rows, seed)[decimals]
            return table.schema, [_write(table, folder / "prices.parquet")]

        return self._table("prices", {"rows": rows, "seed": seed, "decimals": decimals}, write)

    def wide(self, rows: int, columns: int, seed: int, *, chosen: Sequence[str] | None = None) -> str:
        """A table of many columns, or one of the chosen ones of them alone."""
        made = Wide(rows=rows, columns=columns, seed=seed, only=None if chosen is None else tuple(chosen))

        def build(folder: Path) -> dict[str, Any]:
            table = icebench.load_catalog(str(folder)).create_table(TABLE, made.schema)
            table.append(pa.RecordBatchReader.from_batches(made.schema, made.batches(0, rows)))
            return {"metadata_location": table.metadata_location}

        return self._found("wide", {**made.key(), "made by": source_digest(_WIDE_MADE_BY)}, build)

    def by_iceberg_java(self, rows: int, seed: int) -> str:
        """Twelve columns of decimal(7,2) in the row groups that Iceberg Java makes by default."""

        def build(folder: Path) -> dict[str, Any]:
            command = [sys.executable, "-m", "icebench.bench.tables.java_files", str(rows), str(seed), str(folder)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise DatasetFailed(f"Spark did not write the table: {done.stderr.strip()[-300:]}")
            return {"metadata_location": str(folder / "db/prices/metadata/v1.metadata.json")}

        made_by = source_digest((*_MADE_BY, _ROOT / "bench/tables/java_files.py"))
        return self._found("by-iceberg-java", {"rows": rows, "seed": seed, "made by": made_by}, build)

    def without_deletes(self, rows: DeleteRows, version: int) -> str:
        """The table of the delete matrix as it was before."""

        def write(folder: Path) -> tuple[pa.Schema, list[Written]]:
            files = []
            for number in range(rows.files):
                table = delete_table(rows, number)
                size = -(-rows.rows_in_file // rows.row_groups)
                files.append(_write(table, folder / f"{number}.parquet", row_group_rows=size))
            return table.schema, files

        return self._table("deletes", asdict(rows), write, version=version)

    def deleted(
        self, rows: DeleteRows, kind: str, pattern: str, fraction: float, *, files: int = 1, columns: int = 1
    ) -> str:
        """The same table with deletes.

        Args:
            rows: The table.
            kind: Out of `icebench.bench.workloads.reading_files.DELETE_KINDS`.
            pattern: Which rows.
            fraction: How many of them.
            files: How many delete files equality deletes are spread over; the others have one for each data file.
            columns: How many columns equality deletes compare.
        """
        base = self.without_deletes(rows, 3 if kind == "vectors" else 2)
        key = {**base_key(base), "kind": kind, "pattern": pattern, "fraction": fraction, "files": files}
        if columns > 1:
            key["columns"] = columns

        def build(folder: Path) -> dict[str, Any]:
            catalog = icebench.load_catalog(f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
            table = catalog.register_table(TABLE, base)
            if kind == "equality":
                keys = deleted_keys(rows, pattern, fraction)
                values = [keys, places_of(rows, keys)][:columns]
                own = zip(*(np.array_split(each, files) for each in values), strict=True)
                parts = (pa.table(dict(zip(KEYS, part, strict=False))) for part in own)
                table.add_files(
                    [write_equality_deletes(table, part, f"{folder}/{i}.parquet") for i, part in enumerate(parts)]
                )
            else:
                table.delete(deleted_rows(rows, pattern, fraction), mode="merge-on-read")
            location = table.metadata_location
            catalog.close()
            return {"metadata_location": location}

        return self._found(f"deletes-{kind}", {**key, "made by": source_digest(_DELETED_BY)}, build)

    def _table(
        self,
        name: str,
        key: dict[str, Any],
        write: Callable[[Path], tuple[pa.Schema, list[Written]]],
        *,
        version: int = 2,
    ) -> str:
        """A table whose files `write` puts into a directory."""

        def build(folder: Path) -> dict[str, Any]:
            files = folder / "files"
            files.mkdir()
            schema, written = write(files)
            catalog = icebench.load_catalog(str(folder))
            table = catalog.create_table(TABLE, schema, properties={"format-version": str(version)})
            table.add_files([_described(path, rows) for path, rows in written])
            return {"metadata_location": table.metadata_location}

        return self._found(name, {**key, "version": version, "made by": source_digest(_COMMITTED_BY)}, build)

    def _found(self, name: str, key: dict[str, Any], build: Callable[[Path], dict[str, Any]]) -> str:
        location: str = self._cache.find_or_build(f"reading-{name}", key, build)["metadata_location"]
        return location


def _write(table: pa.Table, path: Path, *, row_group_rows: int = 250_000) -> Written:
    """A Parquet file as this project's engine, or Spark, writes it: zstd, decimals as integers."""
    pq.write_table(
        with_ids(table),
        path,
        compression="zstd",
        store_decimal_as_integer=True,
        store_schema=False,
        row_group_size=row_group_rows,
    )
    return path, table.num_rows


def _described(path: Path, rows: int) -> icebench.DataFile:
    return icebench.DataFile(
        file_path=str(path), file_format="parquet", record_count=rows, file_size_in_bytes=path.stat().st_size
    )
