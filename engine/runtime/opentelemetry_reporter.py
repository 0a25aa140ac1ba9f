"""Metrics of scans and commits through OpenTelemetry's API, to whatever the process exports to:
``metrics-reporter-impl=opentelemetry``.

Names follow OpenTelemetry's conventions: dots, the unit beside the name, attributes of its semantic conventions for
databases where there are such.
"""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry import metrics

from icebench.engine.runtime.metrics_reports import COMMIT_METRICS, SCAN_METRICS, Metric, Report, ScanReport

_METER = "icebench"
CATALOG, TABLE, OPERATION, OUTCOME = "db.namespace", "db.collection.name", "db.operation.name", f"{_METER}.outcome"
_BOUNDARIES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class OpenTelemetryReporter:
    """Records reports with instruments of a meter named ``icebench``.

    Args:
        provider: Of the meter; by default the process's.
    """

    def __init__(self, provider: metrics.MeterProvider | None = None) -> None:
        meter = metrics.get_meter(_METER, meter_provider=provider)

        def counters(kind: str, listed: Sequence[Metric]) -> dict[str, metrics.Counter]:
            return {
                metric.name: meter.create_counter(
                    f"{_METER}.{kind}.{metric.name}",
                    unit="By" if metric.unit == "byte" else f"{{{metric.unit}}}",
                    description=metric.description,
                )
                for metric in listed
            }

        self._planning = meter.create_histogram(
            f"{_METER}.scan.planning.duration",
            unit="s",
            description="How long planning a scan took.",
            explicit_bucket_boundaries_advisory=_BOUNDARIES,
        )
        self._scan = counters("scan", SCAN_METRICS)
        self._commits = meter.create_histogram(
            f"{_METER}.commit.duration",
            unit="s",
            description="How long a commit took, with all its attempts.",
            explicit_bucket_boundaries_advisory=_BOUNDARIES,
        )
        self._attempts = meter.create_counter(
            f"{_METER}.commit.attempts", unit="{attempt}", description="How many times commits were tried."
        )
        self._commit = counters("commit", COMMIT_METRICS)

    def report(self, report: Report, /) -> None:
        """Add a report to the metrics."""
        table = {TABLE: report.table_name}
        if report.catalog_name is not None:
            table[CATALOG] = report.catalog_name
        if isinstance(report, ScanReport):
            self._planning.record(report.planning_seconds, table)
            counters = self._scan
        else:
            commit = {**table, OUTCOME: report.outcome}
            if report.operation is not None:
                commit[OPERATION] = report.operation
            self._commits.record(report.total_seconds, commit)
            self._attempts.add(report.attempts, commit)
            counters = self._commit
        for name, counter in counters.items():
            counter.add(report.metrics[name], table)
