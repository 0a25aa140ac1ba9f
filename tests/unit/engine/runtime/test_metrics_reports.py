"""What Prometheus scrapes and OpenTelemetry reads of scans and commits, by their own libraries."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import icebench
from icebench.engine.commit import reported_commit
from icebench.engine.commit.committer import Conflicted, Identifier, Outcome, TableState, Unknown
from icebench.engine.runtime.metrics_reports import CommitReport, MetricsReporter, Report, Reporting, ScanReport
from icebench.engine.runtime.opentelemetry_reporter import OpenTelemetryReporter
from icebench.engine.runtime.prometheus_reporter import PrometheusReporter
from icebench.engine.spec.requirements import TableRequirement
from icebench.engine.spec.updates import TableUpdate
from icebench.errors import CommitConflict, CommitStateUnknown, Invalid, StorageFailed, ValidationFailed

SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.string())])
TABLE = {"catalog": "lake", "table": "db.events"}


class Kept:
    """Keeps reports."""

    def __init__(self) -> None:
        self.reports: list[Report] = []

    def report(self, report: Report, /) -> None:
        self.reports.append(report)

    @property
    def commit(self) -> CommitReport:
        last = self.reports[-1]
        assert isinstance(last, CommitReport)
        return last

    @property
    def scan(self) -> ScanReport:
        last = self.reports[-1]
        assert isinstance(last, ScanReport)
        return last


def ticking() -> Callable[[], float]:
    """A clock on which a quarter of a second passes between two looks."""
    times = iter(range(1000))
    return lambda: next(times) / 4


def rows(*ids: int, kind: str = "a") -> pa.Table:
    return pa.table({"id": list(ids), "kind": [kind] * len(ids)}, SCHEMA)


def table_of(folder: Path, reporter: MetricsReporter) -> icebench.Table:
    """An empty table that reports."""
    catalog = icebench.load_catalog(str(folder))
    partitioned = catalog.create_table("db.events", SCHEMA, partition_spec=[("kind", "identity")])
    reporting = Reporting(reporter=reporter, catalog_name="lake", clock=ticking())
    inner = catalog._inner
    state = inner.load_state(("db", "events"))
    return icebench.Table(("db", "events"), state, partitioned.store, inner, reporting=reporting)


def work(table: icebench.Table) -> None:
    """Three files in two partitions, of two manifests; rows deleted; two scans of one file each; properties."""
    table.append(rows(1, 2, 3))
    table.append(pa.concat_tables([rows(11, 12), rows(13, kind="b")]))
    table.delete("id = 2", mode="merge-on-read")
    for _ in range(2):
        assert table.scan("id > 11 and kind = 'a'").to_arrow()["id"].to_pylist() == [12]
    table.set_properties({"owner": "ann"})


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def table(tmp_path: Path, kept: Kept) -> icebench.Table:
    return table_of(tmp_path, kept)


def test_a_scan_reports_what_its_plan_counts(table: icebench.Table, kept: Kept) -> None:
    work(table)
    plan = table.scan("id > 11 and kind = 'a'", columns=["id"]).plan()
    report = kept.scan
    counters = plan.counters
    assert report.metrics == {
        "result_data_files": 1,
        "result_delete_files": 0,
        "result_data_files_size": plan.size_in_bytes,
        "scanned_manifests": counters["manifests_decoded"],
        "skipped_manifests": counters["manifests_in_list"] - counters["manifests_decoded"],
        "skipped_files": 2,
    }
    assert report.projected_field_names == ("id",)
    assert report.planning_seconds == 0.25
    assert plan.snapshot is not None
    assert report.snapshot_id == plan.snapshot.snapshot_id
    table.scan("id < 3").plan()
    assert (kept.scan.metrics["result_data_files"], kept.scan.metrics["result_delete_files"]) == (1, 1)


def test_a_commit_reports_what_its_snapshot_says(table: icebench.Table, kept: Kept) -> None:
    table.append(rows(1, 2, 3))
    report, snapshot = kept.commit, table.current_snapshot
    assert snapshot is not None
    assert (report.outcome, report.operation, report.attempts) == ("committed", "append", 1)
    assert (report.snapshot_id, report.sequence_number) == (snapshot.snapshot_id, 1)
    assert report.total_seconds == 0.25
    assert (report.metrics["added_data_files"], report.metrics["added_records"]) == (1, 3)
    assert report.metrics["added_files_size"] == int(snapshot.summary["added-files-size"])
    table.delete("id = 2", mode="merge-on-read")
    deleted = kept.commit.metrics
    assert (deleted["added_delete_files"], deleted["added_positional_deletes"]) == (1, 1)
    table.delete("kind = 'a'")
    removed = kept.commit.metrics
    assert (removed["removed_data_files"], removed["removed_records"]) == (1, 3)
    assert (removed["added_data_files"], removed["removed_delete_files"]) == (0, 1)
    table.set_properties({"owner": "ann"})
    assert (kept.commit.operation, kept.commit.snapshot_id, set(kept.commit.metrics.values())) == (None, None, {0})


class Disturbed:
    """A catalog whose commits end otherwise."""

    def __init__(self, inner: object, outcome: Callable[[Callable[[], Outcome]], Outcome]) -> None:
        self.inner = inner
        self.outcome = outcome

    def load_state(self, identifier: Identifier) -> TableState:
        state: TableState = self.inner.load_state(identifier)  # type: ignore[attr-defined]
        return state

    def commit(
        self,
        identifier: Identifier,
        base: TableState,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> Outcome:
        return self.outcome(lambda: self.inner.commit(identifier, base, requirements, updates))  # type: ignore[attr-defined]


def disturb(table: icebench.Table, outcome: Callable[[Callable[[], Outcome]], Outcome]) -> None:
    table.set_properties({"commit.retry.num-retries": "2", "commit.retry.min-wait-ms": "1"})
    table._committer = Disturbed(table._committer, outcome)  # type: ignore[assignment]


def test_attempts_are_counted_where_others_come_first(table: icebench.Table, kept: Kept) -> None:
    answers: Iterator[Outcome] = iter([Conflicted("another"), Conflicted("another")])
    disturb(table, lambda commit: next(answers, None) or commit())
    table.append(rows(1))
    assert (kept.commit.outcome, kept.commit.attempts, kept.commit.metrics["added_records"]) == ("committed", 3, 1)


def lost() -> Outcome:
    return Unknown(cause=StorageFailed("the connection broke"))


def refused() -> Outcome:
    raise StorageFailed("the catalog is read-only")


@pytest.mark.parametrize(
    ("answer", "error", "outcome"),
    [
        (lambda: Conflicted("another"), CommitConflict, "conflict"),
        (refused, StorageFailed, "failed"),
    ],
)
def test_commits_that_fail_are_reported_by_how(
    table: icebench.Table, kept: Kept, answer: Callable[[], Outcome], error: type[Exception], outcome: str
) -> None:
    disturb(table, lambda _: answer())
    with pytest.raises(error):
        table.append(rows(1))
    assert (kept.commit.outcome, kept.commit.operation) == (outcome, "append")
    assert set(kept.commit.metrics.values()) == {0}


def test_an_unknown_outcome_is_reported_as_such(table: icebench.Table, kept: Kept) -> None:
    def hide() -> Outcome:
        def fail(_: Identifier) -> TableState:
            raise StorageFailed("the catalog does not answer")

        table._committer.load_state = fail  # type: ignore[union-attr, method-assign]
        return lost()

    disturb(table, lambda _: hide())
    with pytest.raises(CommitStateUnknown):
        table.append(rows(1))
    assert kept.commit.outcome == "unknown"


def test_a_change_that_another_makes_wrong_is_a_conflict(table: icebench.Table, kept: Kept) -> None:
    table.append(rows(1, 2))
    other = icebench.load_catalog(str(Path(table.location).parents[1])).load_table("db.events")
    deleted = other.transaction()
    deleted.delete("id = 1")
    mine = table.transaction()
    mine.delete("id = 2")
    deleted.commit()
    with pytest.raises(ValidationFailed):
        mine.commit()
    assert kept.commit.outcome == "conflict"


def test_an_error_of_a_reporter_does_not_reach_the_caller(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def report(self, report: Report, /) -> None:
            raise OSError("no space left")

    table = table_of(tmp_path, Broken())
    with caplog.at_level(logging.WARNING):
        table.append(rows(1))
        assert table.scan().count() == 1
    assert [each.name for each in caplog.records] == ["icebench", "icebench"]
    assert "no space left" in caplog.text


def test_a_report_that_cannot_be_made_leaves_the_commit(
    table: icebench.Table, kept: Kept, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Unmade:
        name = "unmade"

        @property
        def source(self) -> str:
            raise Invalid("no such count")

    monkeypatch.setattr(reported_commit, "COMMIT_METRICS", (Unmade(),))
    table.append(rows(1))
    assert table.scan().to_arrow()["id"].to_pylist() == [1]
    assert "no such count" in caplog.text
    assert [type(report) for report in kept.reports] == [ScanReport]


def test_prometheus_scrapes_what_was_done(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    work(table_of(tmp_path, PrometheusReporter(registry)))
    families = {family.name: family for family in text_string_to_metric_families(generate_latest(registry).decode())}
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families.values()
        for sample in family.samples
    }

    def value(name: str, **labels: str) -> float | None:
        return samples.get((f"icebench_{name}", *sorted({**TABLE, **labels}.items())))

    assert families["icebench_scan_planning_duration_seconds"].type == "histogram"
    assert value("scan_planning_duration_seconds_count") == 2
    assert value("scan_planning_duration_seconds_sum") == 0.5
    assert value("scan_planning_duration_seconds_bucket", le="0.1") == 0
    assert value("scan_planning_duration_seconds_bucket", le="0.25") == 2
    assert value("scan_result_data_files_total") == 2
    assert value("scan_skipped_files_total") == 4
    assert families["icebench_commit_attempts"].type == "counter"
    assert value("commit_duration_seconds_count", operation="append", outcome="committed") == 2
    assert value("commit_attempts_total", operation="append", outcome="committed") == 2
    assert value("commit_attempts_total", operation="", outcome="committed") == 1
    assert value("commit_added_data_files_total") == 3
    assert value("commit_added_records_total") == 6
    assert value("commit_added_positional_deletes_total") == 1
    size = value("commit_added_files_size_bytes_total")
    assert size is not None
    assert size > 1000


def test_opentelemetry_reads_what_was_done(tmp_path: Path) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    work(table_of(tmp_path, OpenTelemetryReporter(provider)))
    data = reader.get_metrics_data()
    assert data is not None
    [scope] = data.resource_metrics[0].scope_metrics
    assert scope.scope.name == "icebench"
    found = {metric.name: metric for metric in scope.metrics}
    [planning] = found["icebench.scan.planning.duration"].data.data_points
    assert isinstance(planning, HistogramDataPoint)
    assert (found["icebench.scan.planning.duration"].unit, planning.count, planning.sum) == ("s", 2, 0.5)
    assert 0.25 in planning.explicit_bounds
    assert planning.attributes == {"db.namespace": "lake", "db.collection.name": "db.events"}
    points = {
        (name, (point.attributes or {}).get("db.operation.name")): point.value
        for name, metric in found.items()
        for point in metric.data.data_points
        if isinstance(point, NumberDataPoint)
    }
    assert points["icebench.scan.result_data_files", None] == 2
    assert points["icebench.commit.attempts", "append"] == 2
    assert points["icebench.commit.attempts", None] == 1
    assert points["icebench.commit.added_records", None] == 6
    assert (found["icebench.commit.added_records"].unit, found["icebench.scan.result_data_files_size"].unit) == (
        "{record}",
        "By",
    )
    provider.shutdown()
