"""Reports of scans and commits, for operators: what Iceberg Java's `MetricsReporter` receives.

Nothing is measured without a reporter. Names of metrics are those of Iceberg's `ScanMetrics` and `CommitMetrics`; the
counts of a scan add up data and delete files, or manifests of both, unless the name says which.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

Outcome = Literal["committed", "conflict", "unknown", "failed"]
"""How a commit ended: ``conflict`` if others came first or invalidated it, ``unknown`` if the answer was lost."""


@dataclass(frozen=True, kw_only=True)
class ScanReport:
    """A scan that was planned.

    Args:
        catalog_name: The catalog; None for a table that was opened without one.
        table_name: The table, with dots.
        snapshot_id: The snapshot that is read; None for an empty table.
        filter: The filter as text.
        projected_field_names: The columns to return.
        planning_seconds: How long planning took.
        metrics: Counts by the names of `SCAN_METRICS`.
    """

    catalog_name: str | None
    table_name: str
    snapshot_id: int | None
    filter: str
    projected_field_names: tuple[str, ...]
    planning_seconds: float
    metrics: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class CommitReport:
    """A commit, or an attempt at one.

    Args:
        catalog_name: The catalog.
        table_name: The table, with dots.
        outcome: How it ended.
        operation: Of the snapshot that it adds, the last one if it adds several; None if it adds none, for a change of
            metadata or a commit that failed before.
        snapshot_id: Of that snapshot.
        sequence_number: Of that snapshot.
        total_seconds: How long all attempts took, including waits; files of rows were written before.
        attempts: How many times the catalog was asked to commit, or the changes could not be staged.
        metrics: Counts by the names of `COMMIT_METRICS`, of all snapshots that it adds; zeros unless it was committed.
    """

    catalog_name: str | None
    table_name: str
    outcome: Outcome
    operation: str | None
    snapshot_id: int | None
    sequence_number: int | None
    total_seconds: float
    attempts: int
    metrics: Mapping[str, int]


Report = ScanReport | CommitReport


class MetricsReporter(Protocol):
    """Receives reports, from any thread. Its exceptions are logged and not propagated."""

    def report(self, report: Report, /) -> None:
        """Take a report of a scan or of a commit."""
        ...


@dataclass(frozen=True)
class Metric:
    """A count of reports.

    Args:
        name: In `ScanReport.metrics` or `CommitReport.metrics`.
        unit: What is counted: ``file``, ``manifest``, ``record`` or ``byte``.
        description: A sentence.
        source: Where the count comes from: the counters of a plan with this prefix, or this key of a snapshot summary.
    """

    name: str
    unit: str
    description: str
    source: str


SCAN_METRICS = (
    Metric("result_data_files", "file", "Data files to read.", "files_planned"),
    Metric("result_delete_files", "file", "Delete files to apply.", "delete_files_planned"),
    Metric("result_data_files_size", "byte", "Size of the data files to read.", ""),
    Metric("scanned_manifests", "manifest", "Manifests that planning looked into.", "manifests_decoded"),
    Metric("skipped_manifests", "manifest", "Manifests that the filter excludes as a whole.", "manifests_skipped_"),
    Metric("skipped_files", "file", "Data and delete files that the filter excludes.", "entries_skipped_"),
)
COMMIT_METRICS = (
    Metric("added_data_files", "file", "Data files that commits added.", "added-data-files"),
    Metric("removed_data_files", "file", "Data files that commits removed.", "deleted-data-files"),
    Metric("added_delete_files", "file", "Delete files that commits added.", "added-delete-files"),
    Metric("removed_delete_files", "file", "Delete files that commits removed.", "removed-delete-files"),
    Metric(
        "added_positional_deletes", "record", "Rows that added delete files name by position.", "added-position-deletes"
    ),
    Metric("added_equality_deletes", "record", "Rows of added equality delete files.", "added-equality-deletes"),
    Metric("added_records", "record", "Rows of the added data files.", "added-records"),
    Metric("removed_records", "record", "Rows of the removed data files.", "deleted-records"),
    Metric("added_files_size", "byte", "Size of the added files.", "added-files-size"),
    Metric("removed_files_size", "byte", "Size of the removed files.", "removed-files-size"),
)


@dataclass(frozen=True, kw_only=True)
class Reporting:
    """Where the reports of a catalog's tables go.

    Args:
        reporter: Receives them.
        catalog_name: The catalog; None for a table without one.
        clock: Seconds, from an arbitrary origin.
    """

    reporter: MetricsReporter
    catalog_name: str | None = None
    clock: Callable[[], float] = time.perf_counter

    def send(self, make: Callable[[], Report]) -> None:
        """Make a report and send it; an error in that is only logged: what it reports has happened all the same."""
        try:
            self.reporter.report(make())
        except Exception:  # a failed report must not make a commit seem failed: its files would be deleted
            import logging  # local import: seldom needed

            logging.getLogger("icebench").warning("a metrics report failed", exc_info=True)


def scan_metrics(counters: Mapping[str, int], size_in_bytes: int) -> dict[str, int]:
    """The metrics of a plan, from its counters and the size of its files."""
    found = {
        metric.name: sum(n for counter, n in counters.items() if counter.startswith(metric.source))
        for metric in SCAN_METRICS
        if metric.source
    }
    return {**found, "result_data_files_size": size_in_bytes}
