"""`metrics-reporter-impl` names a reporter, as in Iceberg Java; what it cannot be is said."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.engine.opening import metrics_reporters
from icebench.engine.opening.metrics_reporters import opentelemetry, prometheus, reporting_of
from icebench.engine.runtime.metrics_reports import Report
from icebench.errors import IgnoredPropertyWarning, Invalid

ROWS = pa.table({"id": [1, 2, 3]})


class Kept:
    """Keeps reports."""

    def __init__(self) -> None:
        self.reports: list[Report] = []

    def report(self, report: Report, /) -> None:
        self.reports.append(report)


KEPT = Kept()


def made() -> Kept:
    return KEPT


@pytest.fixture(autouse=True)
def reports() -> list[Report]:
    KEPT.reports.clear()
    return KEPT.reports


def named(name: str) -> dict[str, str]:
    return {"metrics-reporter-impl": f"{__name__}.{name}"}


@pytest.mark.parametrize("name", ["KEPT", "made"])
def test_tables_of_a_catalog_report_to_it(tmp_path: Path, reports: list[Report], name: str) -> None:
    catalog = icebench.load_catalog(str(tmp_path), name="lake", properties=named(name))
    table = catalog.create_table("db.events", ROWS.schema)
    table.append(ROWS)
    catalog.load_table("db.events").scan("id < 3").narrowed(columns=["id"]).to_arrow()
    commit, scan = reports
    assert isinstance(commit, icebench.CommitReport)
    assert (commit.catalog_name, commit.table_name, commit.operation) == ("lake", "db.events", "append")
    assert isinstance(scan, icebench.ScanReport)
    assert (scan.catalog_name, scan.table_name, scan.filter) == ("lake", "db.events", "id < 3")


def test_a_class_is_made_without_arguments() -> None:
    reporting = reporting_of(named("Kept"), "lake")
    assert reporting is not None
    assert isinstance(reporting.reporter, Kept)
    assert reporting.reporter is not KEPT
    assert reporting.catalog_name == "lake"


@pytest.mark.parametrize("name", ["prometheus", "opentelemetry"])
def test_threads_share_the_reporter_of_the_process(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Kept] = []

    @cache
    def slow() -> Kept:
        time.sleep(0.05)
        made.append(Kept())
        return made[-1]

    monkeypatch.setitem(metrics_reporters._OWN, name, slow)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(reporting_of, [{"metrics-reporter-impl": name}] * 4))
    assert {id(each.reporter) for each in found if each is not None} == {id(made[0])}
    assert len(made) == 1


def test_a_table_without_a_catalog_reports(tmp_path: Path, reports: list[Report]) -> None:
    location = icebench.load_catalog(str(tmp_path)).create_table("db.events", ROWS.schema).location
    icebench.load_table(location, properties=named("KEPT")).scan().plan()
    [scan] = reports
    assert isinstance(scan, icebench.ScanReport)
    assert (scan.catalog_name, scan.table_name, scan.snapshot_id) == (None, "events", None)


def test_transactions_report_their_one_commit(tmp_path: Path, reports: list[Report]) -> None:
    catalog = icebench.load_catalog(str(tmp_path), properties=named("KEPT"))
    with catalog.create_table_transaction("db.new", ROWS.schema) as new:
        new.append(ROWS)
    with catalog.load_table("db.new").transaction() as more:
        more.append(ROWS)
        more.append(ROWS)
    with catalog.replace_table_transaction("db.new", ROWS.schema) as again:
        again.append(ROWS)
    commits = [each for each in reports if isinstance(each, icebench.CommitReport)]
    added = [(each.attempts, each.metrics["added_data_files"], each.metrics["added_records"]) for each in commits]
    assert added == [(1, 1, 3), (1, 2, 6), (1, 1, 3)]


def test_a_process_has_one_reporter_of_each_kind() -> None:
    for name, made_once in (("prometheus", prometheus), ("opentelemetry", opentelemetry)):
        reporting = reporting_of({"metrics-reporter-impl": name})
        assert reporting is not None
        assert reporting.reporter is made_once()


def test_a_reporter_of_java_is_ignored_with_a_warning(tmp_path: Path) -> None:
    properties = {"metrics-reporter-impl": "org.apache.iceberg.metrics.LoggingMetricsReporter"}
    with pytest.warns(IgnoredPropertyWarning, match="LoggingMetricsReporter is of Iceberg Java"):
        icebench.load_catalog(str(tmp_path), properties=properties)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("promethius", "no promethius; it is prometheus, opentelemetry, or package.module.Reporter"),
        ("no_such_package.Reporter", "no no_such_package.Reporter"),
        ("collections.Reporter", "no collections.Reporter"),
        ("", "no ;"),
        ("collections.OrderedDict", "collections.OrderedDict has no method report"),
    ],
)
def test_what_is_no_reporter_is_refused(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        icebench.load_catalog(str(tmp_path), properties={"metrics-reporter-impl": name})


@pytest.mark.parametrize(("name", "package"), [("prometheus", "prometheus_client"), ("opentelemetry", "opentelemetry")])
def test_a_missing_package_is_named_with_its_extra(tmp_path: Path, name: str, package: str) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None; import icebench\n"
        f"try: icebench.load_catalog({str(tmp_path)!r}, **{{'metrics-reporter-impl': {name!r}}})\n"
        "except icebench.errors.NotInstalled as error: print(error)\n"
        f"icebench.load_catalog({str(tmp_path)!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{package} is not installed: pip install 'icebench[metrics]'\n"


def test_nothing_is_loaded_unless_it_is_asked_for(tmp_path: Path) -> None:
    code = (
        "import sys, icebench\n"
        f"icebench.load_catalog({str(tmp_path)!r})\n"
        "print(sorted({'prometheus_client', 'opentelemetry', 'logging.handlers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
