"""Tables that need maintenance, each in its own directory catalog: rows in small files, a long history, many files.

They are what a stream of small appends, a year without expiry, and failed writers leave behind.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

import icebench
from icebench.bench.layouts.actions import Action
from icebench.bench.workloads.log import Log
from icebench.bench.workloads.metadata_files import MetadataFiles

NAME = "bench.kept"

_HISTORY_ROWS = 100
_MOST_IN_COMMIT, _COMMITS = 1_000, 10
_LONG_AGO = 1_600_000_000
"""Orphans are older than the three days for which a file may belong to a writer that has not committed yet."""


def kind_of(action: Action) -> str:
    """What tables are made alike for, as a name."""
    match action:
        case "rewrite_manifests" | "remove_orphan_files":
            return "listed"
        case "expire_snapshots":
            return "history"
        case _:
            return "rows"


@dataclass(frozen=True, kw_only=True)
class MaintenanceTables:
    """What there is to keep.

    Args:
        rows: Of the table whose data files are rewritten.
        files: In how many files, and commits, they arrived.
        target_bytes: Of the files that come of it.
        snapshots: That expire, each with a data file which a later rewrite replaced.
        listed_files: Data files of the table whose manifests are rewritten and whose directories are searched. They
            are empty, which nothing notices.
        orphans: Files that nothing refers to among them.
        seed: Draws everything.
    """

    rows: int
    files: int
    target_bytes: int
    snapshots: int
    listed_files: int
    orphans: int
    seed: int = 1

    def make(self, action: Action, warehouse: Path) -> None:
        """The table `NAME` that the action is for, in an empty directory."""
        catalog = icebench.load_catalog(str(warehouse))
        makers: Mapping[str, Callable[[icebench.Catalog], None]] = {
            "listed": self._make_listed,
            "history": self._make_history,
            "rows": self._make_rows,
        }
        makers[kind_of(action)](catalog)
        catalog.close()

    def _make_rows(self, catalog: icebench.Catalog) -> None:
        self._append(catalog, self.rows, self.files)

    def _make_history(self, catalog: icebench.Catalog) -> None:
        table = self._append(catalog, self.snapshots * _HISTORY_ROWS, self.snapshots)
        table.maintenance.rewrite_data_files(rewrite_all=True)

    def _append(self, catalog: icebench.Catalog, rows: int, commits: int) -> icebench.Table:
        log = Log(rows=rows, seed=self.seed)
        # Iceberg Java would fall back to gzip in a table that another engine made.
        properties = {"format-version": "2", "write.parquet.compression-codec": "zstd"}
        table = catalog.create_table(NAME, log.schema, properties=properties)
        for part in range(commits):
            start, stop = (bound * rows // commits for bound in (part, part + 1))
            table.append(pa.RecordBatchReader.from_batches(log.schema, log.batches(start, stop)))
        return table

    def _make_listed(self, catalog: icebench.Catalog) -> None:
        files = MetadataFiles(files=self.listed_files, clustered=False, seed=self.seed)
        table = catalog.create_table(
            NAME, files.schema(), partition_spec=files.partition_fields(), properties={"format-version": "2"}
        )
        size = min(_MOST_IN_COMMIT, -(-files.files // _COMMITS))
        for start in range(0, files.files, size):
            described = files.data_files(table.location, start, start + size)
            for path in (Path(file.file_path) for file in described):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            table.add_files(described, check_duplicate_files=False)
        folders = sorted(Path(table.location, "data").iterdir())
        for ordinal in range(self.orphans):
            orphan = folders[ordinal % len(folders)] / f"orphan-{ordinal:06d}.parquet"
            orphan.touch()
            os.utime(orphan, (_LONG_AGO, _LONG_AGO))
