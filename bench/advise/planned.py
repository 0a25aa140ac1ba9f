"""What queries read of a table as it is: its plans, and the sizes of columns in its manifests."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import icebench
from icebench.bench.advise.queries import Query
from icebench.bench.advise.rates import Amounts, Rates
from icebench.bench.costs.object_store import (
    LOCAL,
    THREADS,
    Profile,
    Work,
    dollars_per_thousand_queries,
    icebench_work,
    seconds_on,
)

_ALIKE = 1_000
_INSPECTED = 100
"""Data files whose footers are read for a query, at most."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What one query reads, or is expected to.

    Args:
        files: Data files.
        row_groups: Of these files, those that their statistics do not exclude.
        bytes_read: Of the columns that it needs in them, and of delete files or, in Puffin files, of vectors.
        delete_files: To apply.
        manifests: Of the snapshot.
        values: Of these columns in the row groups.
    """

    files: float
    row_groups: float
    bytes_read: float
    delete_files: float = 0
    manifests: int = 1
    values: float = 0

    @property
    def amounts(self) -> Amounts:
        """What its seconds depend on."""
        return (1, self.manifests, self.files + self.delete_files, self.row_groups, self.bytes_read, self.values)

    def work(self, *, seconds: float = 0.0) -> Work:
        """The requests: the footer of each file, and the columns of each row group.

        Args:
            seconds: What the query takes where no request has a latency.
        """
        files, deletes = math.ceil(self.files), math.ceil(self.delete_files)
        counters = {
            "storage_requests_read": 1 + self.manifests,
            "storage_requests_range_read": files + math.ceil(self.row_groups) + deletes,
            "files_planned": files,
            "delete_files_loaded": deletes,
            "delete_files_planned": deletes,
            "storage_bytes_read": round(self.bytes_read),
        }
        return icebench_work(counters, seconds=seconds, threads=THREADS)

    def seconds(self, profile: Profile, rates: Rates) -> float:
        """How long the query takes on this machine, whose rates have its local files in them; elsewhere there are
        requests and transfer besides."""
        own = rates.seconds(self.amounts)
        return own if profile == LOCAL else seconds_on(self.work(seconds=own), profile)

    def dollars(self, profile: Profile) -> float:
        """What it costs in requests and transfer."""
        return dollars_per_thousand_queries(self.work(), profile) / _ALIKE


class StoredColumns:
    """The bytes of each column in each data file of the current snapshot.

    Files without sizes of their columns count by the share that columns have in the other files, or all alike.
    """

    def __init__(self, table: icebench.Table) -> None:
        self._table = table
        files = table.inspect.data_files().combine_chunks()
        self._places = {path: place for place, path in enumerate(files["file_path"].to_pylist())}
        self.sizes = files["file_size_in_bytes"].to_numpy().astype(np.float64)
        self.records = files["record_count"].to_numpy().astype(np.int64)
        self.manifests = table.inspect.manifests().num_rows
        schema = table.schema()
        tops = [field.name for field in schema.fields]
        top_of = {field_id: tops.index(schema.path_of(field_id)[0]) for field_id in schema.by_id}
        self._columns = {name: place for place, name in enumerate(tops)}
        self._bytes = np.zeros((len(self.sizes), len(tops)))
        for place, sizes in enumerate(files["column_sizes"].to_pylist()):
            for field_id, size in sizes or ():
                if field_id in top_of:
                    self._bytes[place, top_of[field_id]] += size
        unknown = self._bytes.sum(axis=1) == 0
        known = self._bytes[~unknown].sum(axis=0)
        shares = known / known.sum() if known.sum() else np.full(len(tops), 1 / max(len(tops), 1))
        self._bytes[unknown] = self.sizes[unknown, np.newaxis] * shares

    @property
    def by_column(self) -> Mapping[str, float]:
        """Bytes of each top-level column in all files."""
        return {name: float(self._bytes[:, place].sum()) for name, place in self._columns.items()}

    def bytes_per_row(self, paths: Sequence[str]) -> dict[str, float]:
        """Bytes of each top-level column for each row of some of the files."""
        places = [self._places[path] for path in paths]
        rows = max(int(self.records[places].sum()), 1)
        return {name: float(self._bytes[places, place].sum()) / rows for name, place in self._columns.items()}

    def reading(self, query: Query) -> Reading:
        """What a query reads, by a real plan, and the statistics of row groups."""
        scan = self._table.scan(filter=query.filter)
        plan = scan.plan()
        groups = scan.row_groups(plan, files=_INSPECTED)
        read = groups.filter(pc.invert(groups["is_skipped"]))
        rows = pc.sum(groups["record_count"]).as_py() or 1
        inspected = min(plan.files.num_rows, _INSPECTED)
        places = [self._places[path] for path in plan.files["file_path"].to_pylist()]
        share = (pc.sum(read["record_count"]).as_py() or 0) / rows
        # A deletion vector is a range of a Puffin file, which has those of other data files, too.
        deletes = {
            (d["file_path"], d["content_offset"]): d[
                "file_size_in_bytes" if d["content_offset"] is None else "content_size_in_bytes"
            ]
            for d in _distinct(plan.files["deletes"])
        }
        return Reading(
            files=len(places),
            row_groups=read.num_rows * len(places) / max(inspected, 1),
            bytes_read=self._of(places, query.columns) * share + sum(deletes.values()),
            delete_files=len({path for path, _ in deletes}),
            manifests=self.manifests,
            values=int(self.records[places].sum()) * share * len(query.columns),
        )

    def _of(self, places: list[int], columns: Sequence[str]) -> float:
        return float(self._bytes[places][:, [self._columns[name] for name in columns]].sum())


def _distinct(deletes: pa.ChunkedArray) -> Iterator[dict[str, Any]]:
    """The delete files of a plan, once for each batch of its files that they apply to."""
    for chunk in deletes.chunks:
        references = chunk.flatten()
        yield from references.dictionary.take(pc.unique(references.indices)).to_pylist()
