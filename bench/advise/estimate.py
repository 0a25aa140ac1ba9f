"""What queries would read of a layout that does not exist: its files, modelled from a sample.

The files of a sample have fewer rows than those of the table, and so narrower bounds: fewer seem to match. With m rows
in a file, bounds of a column that the layout does not order lack about 2/m of their range, and so do the ends of the
ranges of one that it does: what a query reads approaches its value as a - b/m. Both halves of the sample are laid out
in as many files, of m/2 rows: the rise from their mean to the estimate of the whole *is* b/m, what is still missing.
The halves are also independent samples, so their difference measures the sampling error of the estimate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import icebench
from icebench.bench.advise.planned import Reading
from icebench.bench.advise.queries import Query
from icebench.bench.advise.sample import Sample
from icebench.bench.layouts.layout import TARGET_SIZE, Layout, Term

Floats = npt.NDArray[np.float64]
_LEAST_ROWS = 16
_TARGET_SIZE = 512 << 20
"""Iceberg's default."""
_FILES_PER_MANIFEST = 20_000
"""About, of the usual 8 MiB."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What each query would read of a layout.

    Args:
        layout: Which.
        files: Data files of each query.
        row_groups: Row groups in them, of each query, that statistics do not exclude.
        shares: Share of the rows that those row groups have, of each query.
        spread: How far each share may be off, for the sample's sake; 0 where it has all rows.
        all_files: Of the layout.
        ratios: Bytes of each column as a multiple of what they are today, by the order of rows and by the writer; 1
            where nothing is known.
    """

    layout: Layout
    files: Floats
    row_groups: Floats
    shares: Floats
    spread: Floats
    all_files: float
    ratios: Mapping[str, float] = field(default_factory=dict)


class Estimator:
    """Estimates for one sample and its queries.

    Args:
        sample: The rows.
        queries: What is asked.
    """

    def __init__(self, sample: Sample, queries: Sequence[Query]) -> None:
        self.sample = sample
        self.queries = queries
        metadata = sample.table.metadata
        self.model = icebench.LayoutModel(sample.rows, metadata)
        rows = np.arange(sample.rows.num_rows)
        halves = () if sample.is_whole or len(rows) < _LEAST_ROWS else (rows[::2], rows[1::2])
        self._halves = [icebench.LayoutModel(sample.rows.take(pa.array(half)), metadata) for half in halves]

    def rows_per_file(self, layout: Layout) -> float:
        """Rows of a file of the layout's target size in the table."""
        return target_size(layout, self.sample.table) / self.sample.row_bytes

    def estimate(self, layout: Layout, *, corrected: bool = False) -> Estimate:
        """What queries would read of a layout.

        Args:
            layout: Partition fields, an order, and the target size among its properties.
            corrected: Take off the bias of the sample, for twice the work.
        """
        files, groups, shares, count = self._counted(self.model, layout, self.sample.share)
        spread = np.zeros_like(shares)
        if corrected and self._halves:
            share = self.sample.share
            (files_a, groups_a, shares_a, _), (files_b, groups_b, shares_b, _) = (
                self._counted(half, layout, share / 2) for half in self._halves
            )
            missing = np.clip(shares - (shares_a + shares_b) / 2, 0, None) * (1 - share)
            spread = missing + np.abs(shares_a - shares_b) / 2 * (1 - share)
            shares = np.clip(shares + missing, 0, 1)
            files = np.clip(files + np.clip(files - (files_a + files_b) / 2, 0, None) * (1 - share), 0, count)
            groups = groups + np.clip(groups - (groups_a + groups_b) / 2, 0, None) * (1 - share)
        return Estimate(layout=layout, files=files, row_groups=groups, shares=shares, spread=spread, all_files=count)

    def _counted(
        self, model: icebench.LayoutModel, layout: Layout, share: float
    ) -> tuple[Floats, Floats, Floats, float]:
        laid = model.lay_out(
            self.rows_per_file(layout) * share,
            spec=spec_of(layout.partition, self.sample.table.schema()),
            sort=[term.column for term in layout.sort],
            zorder=layout.zorder,
            hilbert=layout.hilbert,
            properties=layout.properties,
        )
        parts = laid.row_groups(model.rows_per_row_group(layout.properties) * share)
        file_of = np.searchsorted(laid.starts, parts.starts[:-1], side="right") - 1
        planned = [laid.planned(query.filter) for query in self.queries]
        read = [parts.planned(query.filter) & mask[file_of] for query, mask in zip(self.queries, planned, strict=True)]
        files = np.array([mask.sum() for mask in planned], np.float64)
        groups = np.array([mask.sum() for mask in read], np.float64)
        rows = np.array([parts.record_counts[mask].sum() for mask in read], np.float64)
        return files, groups, rows / max(parts.record_counts.sum(), 1), float(len(laid.record_counts))

    def readings(self, estimate: Estimate) -> list[Reading]:
        """What each query reads, in files and bytes."""
        return self._readings(estimate, estimate.shares)

    def data_bytes(self, estimate: Estimate) -> float:
        """Bytes of the data files: their columns, and what files have besides."""
        sample = self.sample
        besides = sample.data_bytes - sum(sample.stored.by_column.values())
        return max(besides, 0.0) * sample.live_share + sum(self._sizes(estimate).values())

    def worst(self, estimate: Estimate) -> list[Reading]:
        """The same at the upper end of what the sample leaves open."""
        return self._readings(estimate, np.clip(estimate.shares + estimate.spread, 0, 1))

    def _sizes(self, estimate: Estimate) -> dict[str, float]:
        """Bytes of each top-level column, of live rows."""
        live, ratios = self.sample.live_share, estimate.ratios
        return {name: size * live * ratios.get(name, 1.0) for name, size in self.sample.stored.by_column.items()}

    def _readings(self, estimate: Estimate, shares: Floats) -> list[Reading]:
        sizes = self._sizes(estimate)
        manifests = 1 + int(estimate.all_files) // _FILES_PER_MANIFEST
        return [
            Reading(
                files=files,
                row_groups=groups,
                bytes_read=share * sum(sizes[name] for name in query.columns),
                manifests=manifests,
                values=share * self.sample.table_rows * len(query.columns),
            )
            for query, files, groups, share in zip(
                self.queries, estimate.files.tolist(), estimate.row_groups.tolist(), shares.tolist(), strict=True
            )
        ]


def target_size(layout: Layout, table: icebench.Table) -> int:
    """Bytes of a data file."""
    return int(layout.properties.get(TARGET_SIZE) or table.properties.get(TARGET_SIZE) or _TARGET_SIZE)


def spec_of(terms: Sequence[Term], schema: icebench.Schema) -> icebench.PartitionSpec:
    """The partition spec of terms."""
    return icebench.partition_spec(schema, [(term.column, icebench.parse_transform(term.transform)) for term in terms])
