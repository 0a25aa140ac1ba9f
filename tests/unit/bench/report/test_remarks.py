from __future__ import annotations

from dataclasses import replace

from icebench.bench.records.case import Case
from icebench.bench.records.record import Skipped
from icebench.bench.report.build import build_report
from icebench.bench.report.compare import spread
from icebench.bench.report.remarks import UNCOMMITTED, WRONG, Severity, interrupted, remarks_of
from tests.unit.bench.report.sample_run import ENVIRONMENT, FAILED, measured, record, sample_run

CLEAN = {**ENVIRONMENT, "git": {"revision": "b" * 40, "dirty": False}}


def test_a_good_run_leaves_nothing_to_say() -> None:
    assert remarks_of(sample_run(skipped=(), environment=CLEAN)) == ()


def test_remarks_come_worst_first_each_with_advice() -> None:
    noisy = record("planning", "all", "latency_cold", "s", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    few = record("decimals", "scan", "scan_time_cold", "s", [1.0, 1.0])
    skipped = Skipped(engine="duckdb", measurement="planning", reason="offers no planning", layout="sorted")
    run = sample_run(records=(noisy, few), skipped=(skipped,), failures=(FAILED,), complete=False)
    remarks = remarks_of(run)
    error, warning, note = Severity.ERROR, Severity.WARNING, Severity.NOTE
    assert [r.severity for r in remarks] == [error, error, warning, warning, note, note]
    assert (remarks[0], remarks[-1]) == (interrupted(run.run_id), UNCOMMITTED)
    assert remarks[0].advice == f"Go on where it stopped: icebench run --resume {run.run_id}"
    assert all(r.text and r.advice for r in remarks)
    texts = [r.text for r in remarks]
    assert texts[1] == "Disagreement: sorted/decimals/scan/pyiceberg: 57,608 rows against 57,607"
    assert "icebench planning all on monthly (71%)" in texts[2]
    assert texts[3] == "Decimals: fewer than 6 samples in 1 of 1 case, at least 2."
    assert texts[4] == "duckdb was not measured for planning: offers no planning"


def test_a_failure_in_a_run_of_several_workloads_is_said_with_its_workload() -> None:
    """Both have a layout of that name."""
    failed = [replace(FAILED, workload=workload, layout="monthly") for workload in ("v", "w")]
    for failures, tables in ((failed[1:], ["monthly"]), (failed, ["v, monthly", "w, monthly"])):
        remarks = remarks_of(sample_run(measured=(), skipped=(), failures=tuple(failures), environment=CLEAN))
        assert [r.text.partition("/")[0] for r in remarks] == [f"Disagreement: {table}" for table in tables]
        wrong = sample_run(measured=(), failures=tuple(replace(each, kind=WRONG) for each in failures))
        (finding,) = build_report(wrong, results_file="r").findings
        assert finding.statement.endswith("; ".join(f"decimals of scan on {table}" for table in tables) + ".")


def test_what_has_no_clock_is_never_noisy_nor_repeated_too_little() -> None:
    counted = record("pruning", "one_item", "recall", "ratio", [1.0])
    assert remarks_of(sample_run(records=(counted,), skipped=(), environment=CLEAN)) == ()


def test_what_deletes_add_is_no_noise_however_little_it_is() -> None:
    added = record("deletes", "1%", "delete_cost_cold", "s", [-0.1, 0.2, 0.01, -0.2, 0.1, 0.02])
    assert remarks_of(sample_run(records=(added,), skipped=(), environment=CLEAN)) == ()


def test_a_filter_that_no_row_meets_is_named_once() -> None:
    found = record("pruning", "tickets", "recall", "ratio", [1.0])
    read = record("filtered", "tickets", "scan_time_cold", "s", [1.0] * 6)
    other = replace(record("pruning", "one_item", "recall", "ratio", [1.0]), counters={"rows_matching": 3})
    planned = replace(record("planning", "all", "latency_cold", "s", [1.0] * 6), counters={"rows_returned": 0})
    records = (
        replace(found, counters={"rows_matching": 0}),
        replace(read, counters={"rows_returned": 0}),
        other,
        planned,
    )
    (remark,) = remarks_of(sample_run(records=records, skipped=(), environment=CLEAN))
    assert remark.text == "No row meets tickets: a plan without files is the best of all layouts."


def test_cases_of_few_samples_are_counted() -> None:
    case = Case(workload="w", layout="l", engine="icebench", measurement="reading", cache="cold")
    numbers = {"all": 6, "one": 3, "two": 2}
    cases = [measured(replace(case, filter=name), [1.0] * number) for name, number in numbers.items()]
    once = measured(replace(case, filter="kept", cache="none"), figures={"maintenance_cpu": 1.0})
    (remark,) = remarks_of(sample_run(measured=(*cases, once), skipped=(), environment=CLEAN))
    assert remark.text == "Reading: fewer than 6 samples in 2 of 3 cases, at least 2."


def test_many_noisy_cases_are_reported_in_one_remark() -> None:
    cases = [record("planning", f"f{i}", "latency_cold", "s", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) for i in range(8)]
    (remark,) = remarks_of(sample_run(records=tuple(cases), skipped=(), environment=CLEAN))
    assert remark.severity is Severity.WARNING
    assert "In 8 cases" in remark.text
    assert remark.text.endswith(", and 3 more.")


def test_a_case_is_named_once_by_its_noisiest_metric() -> None:
    wall = record("planning", "all", "latency_cold", "s", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    cpu = record("planning", "all", "cpu_cold", "s", [1.0, 1.0, 2.0, 2.0, 4.0, 4.0])
    (remark,) = remarks_of(sample_run(records=(wall, cpu), skipped=(), environment=CLEAN))
    assert "In 1 case " in remark.text
    assert remark.text.count(" all on ") == 1
    assert f"({max(spread(wall), spread(cpu)):.0%})" in remark.text


def test_one_reason_of_an_engine_is_one_remark() -> None:
    skipped = [
        Skipped(engine=engine, measurement=measurement, reason="offers no planning", layout=layout)
        for engine in ("duckdb", "polars")
        for measurement in ("planning", "pruning")
        for layout in ("monthly", "sorted")
    ]
    missing = Skipped(engine="iceberg-java", measurement="*", reason="no jar")
    remarks = remarks_of(sample_run(records=(), skipped=(*skipped, missing), environment=CLEAN))
    assert [r.text for r in remarks] == [
        "duckdb was not measured for planning and pruning: offers no planning",
        "polars was not measured for planning and pruning: offers no planning",
        "iceberg-java was not measured at all: no jar",
    ]
