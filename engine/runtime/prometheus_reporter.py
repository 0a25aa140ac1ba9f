"""Metrics of scans and commits in Prometheus' client library, to be scraped: ``metrics-reporter-impl=prometheus``.

Names follow Prometheus' conventions: the prefix ``icebench_``, base units, ``_total`` for what only grows. Labels are
``catalog`` and ``table``; of commits also ``operation`` and ``outcome``.
"""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram

from icebench.engine.runtime.metrics_reports import COMMIT_METRICS, SCAN_METRICS, Metric, Report, ScanReport

_TABLE = ("catalog", "table")
_COMMIT = (*_TABLE, "operation", "outcome")
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Seconds: a plan from cached manifests takes milliseconds, a commit that waits for others a minute."""


class PrometheusReporter:
    """Keeps metrics in a registry of Prometheus' client library.

    Args:
        registry: Of the metrics; two reporters cannot share one.

    Raises:
        ValueError: The registry has metrics of these names.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        def counters(kind: str, metrics: Sequence[Metric], labels: Sequence[str]) -> dict[str, Counter]:
            return {
                metric.name: Counter(
                    f"icebench_{kind}_{metric.name}{'_bytes' if metric.unit == 'byte' else ''}",
                    metric.description,
                    labels,
                    registry=registry,
                )
                for metric in metrics
            }

        self._planning = Histogram(
            "icebench_scan_planning_duration_seconds",
            "How long planning a scan took.",
            _TABLE,
            buckets=_BUCKETS,
            registry=registry,
        )
        self._scan = counters("scan", SCAN_METRICS, _TABLE)
        self._commits = Histogram(
            "icebench_commit_duration_seconds",
            "How long a commit took, with all its attempts.",
            _COMMIT,
            buckets=_BUCKETS,
            registry=registry,
        )
        self._attempts = Counter(
            "icebench_commit_attempts", "How many times commits were tried.", _COMMIT, registry=registry
        )
        self._commit = counters("commit", COMMIT_METRICS, _TABLE)

    def report(self, report: Report, /) -> None:
        """Add a report to the metrics."""
        table = (report.catalog_name or "", report.table_name)
        if isinstance(report, ScanReport):
            self._planning.labels(*table).observe(report.planning_seconds)
            counters = self._scan
        else:
            commit = (*table, report.operation or "", report.outcome)
            self._commits.labels(*commit).observe(report.total_seconds)
            self._attempts.labels(*commit).inc(report.attempts)
            counters = self._commit
        for name, counter in counters.items():
            counter.labels(*table).inc(report.metrics[name])
