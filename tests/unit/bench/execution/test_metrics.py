"""From samples to series: names, pairs of rounds, shares of a base."""

from dataclasses import replace

import pytest

from icebench.bench.execution.metrics import records_of
from icebench.bench.records.case import Case, Cost, Evidence, Measured, Sample
from icebench.bench.records.record import Failure

CASE = Case(workload="w", layout="l", engine="e", measurement="deletes", configuration="1%", cache="cold")
BASE = replace(CASE, configuration="none")


def measured(case: Case, walls: dict[tuple[int, int], float], **evidence: object) -> Measured:
    samples = tuple(
        Sample(process=process, round=ordinal, cost=Cost(wall=wall, cpu=wall / 2, memory=7))
        for (process, ordinal), wall in walls.items()
    )
    return Measured(case=case, engine_version="1", evidence=Evidence(**evidence), samples=samples)  # type: ignore[arg-type]


def test_a_case_has_its_wall_time_processor_time_and_memory() -> None:
    found = records_of([measured(replace(CASE, measurement="planning", cache="cold", configuration=""), {(0, 0): 2.0})])
    assert [(r.metric, r.unit, r.samples, r.case) for r in found] == [
        ("latency_cold", "s", (2.0,), "all"),
        ("cpu_cold", "s", (1.0,), "all"),
        ("memory_cold", "bytes", (7.0,), "all"),
    ]


def test_costs_are_differences_within_a_round_of_one_process() -> None:
    base = measured(BASE, {(0, 0): 3.0, (0, 1): 1.0, (1, 0): 2.0, (1, 1): 8.0})
    own = measured(CASE, {(1, 0): 2.5, (0, 0): 4.0, (0, 1): 3.0, (0, 7): 99.0}, base=BASE)
    found = {r.metric: r for r in records_of([own, base]) if r.case == "1%"}
    assert found["delete_cost_cold"].places == ((1, 0), (0, 0), (0, 1))
    assert found["delete_cost_cold"].samples == (0.5, 1.0, 2.0)
    assert found["delete_cost_ratio_cold"].samples == pytest.approx((0.25, 1 / 3, 2.0))
    assert found["scan_time_cold"].samples == (2.5, 4.0, 3.0, 99.0)


def test_a_case_without_its_base_has_no_cost() -> None:
    own = measured(CASE, {(0, 0): 4.0}, base=BASE)
    assert {r.metric for r in records_of([own])} == {"scan_time_cold", "scan_cpu_cold", "scan_memory_cold"}
    assert {r.metric for r in records_of([own, measured(BASE, {})])} == {
        "scan_time_cold",
        "scan_cpu_cold",
        "scan_memory_cold",
    }


def test_figures_need_no_samples() -> None:
    (found,) = records_of([measured(replace(CASE, measurement="pruning"), {}, figures={"recall": 1.0})])
    assert (found.metric, found.unit, found.samples) == ("recall", "ratio", (1.0,))


def test_the_summary_comes_from_the_samples() -> None:
    (record, *_) = records_of([measured(CASE, {(0, 0): 0.3, (0, 1): 0.1, (0, 2): 0.2})])
    assert record.summary["median"] == 0.2
    assert record.summary["count"] == 3
    assert record.key == ("w", "l", "e", "deletes", "1%", "cold", "scan_time_cold")


def test_a_failure_says_where() -> None:
    everywhere = Failure(kind="X", message="no disk")
    assert str(everywhere) == "no disk"
    assert str(replace(everywhere, layout="monthly", engine="duckdb")) == "monthly/duckdb: no disk"
