"""A sample of a table's rows, in the order in which a plan has their files."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import icebench
from icebench.bench.advise.planned import StoredColumns
from icebench.bench.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Some rows, or all.

    Args:
        table: Of which table.
        rows: The live rows that were drawn.
        table_rows: How many live rows the table has, estimated from the files that were read.
        files_read: Data files from which rows were drawn.
        stored: Sizes of the table's files and columns.
    """

    table: icebench.Table
    rows: pa.Table
    table_rows: float
    files_read: int
    stored: StoredColumns

    @property
    def share(self) -> float:
        """Of the table's rows."""
        return self.rows.num_rows / self.table_rows

    @property
    def is_whole(self) -> bool:
        """Whether it has all rows."""
        return self.rows.num_rows >= self.table_rows

    @property
    def data_bytes(self) -> float:
        """Of the table's data files."""
        return float(self.stored.sizes.sum())

    @property
    def row_bytes(self) -> float:
        """Of a row in data files, whether it is deleted or not."""
        return self.data_bytes / int(self.stored.records.sum())

    @property
    def live_share(self) -> float:
        """Live rows among those in data files: what a rewrite writes again."""
        return self.table_rows / int(self.stored.records.sum())

    @property
    def live_bytes(self) -> float:
        """Of data files without deleted rows, about."""
        return self.data_bytes * self.live_share


def take_sample(table: icebench.Table, *, rows: int, read_bytes: int, seed: int = 0) -> Sample:
    """Draw rows from files that are evenly spread over the table: of each run of rows one, so that the order stays.

    Args:
        table: The table.
        rows: About how many to draw, at most.
        read_bytes: About how many bytes of data files to read, at most; at least one file is read.
        seed: Of chance.

    Raises:
        ConfigError: The table has no rows.
    """
    stored = StoredColumns(table)
    total, count = int(stored.records.sum()), len(stored.sizes)
    if not total:
        raise ConfigError("the table has no rows", path=table.name)
    files = min(count, max(1, int(read_bytes / max(stored.sizes.mean(), 1))))
    scan = table.scan()
    plan = scan.plan()
    records = plan.sample(files).record_count
    step = max(1, -(-records // rows))
    rng = np.random.default_rng(seed)
    seen, next_row, taken = 0, int(rng.integers(step)), []
    reader = scan.sample_files(files, plan=plan)
    for batch in reader:
        chosen = []
        while next_row < seen + batch.num_rows:
            chosen.append(next_row - seen)
            next_row = (next_row // step + 1) * step + int(rng.integers(step))
        taken.append(batch if step == 1 else batch.take(pa.array(chosen, pa.int64())))
        seen += batch.num_rows
    if not seen:
        raise ConfigError("all rows of the files that were read are deleted", path=table.name)
    live = total * seen / records  # files differ in rows: only what deletes leave of those that were read is known
    drawn = pa.Table.from_batches(taken, schema=reader.schema)
    return Sample(table=table, rows=drawn, table_rows=live, files_read=files, stored=stored)
