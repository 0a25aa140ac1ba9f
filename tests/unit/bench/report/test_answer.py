"""The answer of a run in one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from icebench.bench.records.case import Measured
from icebench.bench.report.answer import answer_of
from icebench.bench.report.build import build_report
from icebench.bench.report.console import renderables
from icebench.bench.report.html import render
from icebench.bench.report.layout_costs import LayoutCost, claimed
from icebench.bench.report.layouts import heated
from icebench.bench.report.model import Finding, Tone
from icebench.bench.report.remarks import Remark, Severity
from icebench.bench.report.wrapping import Hanging
from icebench.bench.statistics.break_even import Difference
from icebench.bench.statistics.claims import Effect
from tests.unit.bench.report.sample_run import FAILED, record, sample_run
from tests.unit.bench.report.test_layout_costs import BUILDS, QUERIES, run_of


def cost(layout: str, ratio: float, s3: float, *, p_value: float = 1e-6, wide: float = 1.1) -> LayoutCost:
    """A layout of which a query takes so many times the baseline's second, and building a second more."""
    return LayoutCost(
        layout=layout,
        build={},
        query={"time": ratio, "s3": s3},
        engine="icebench",
        read="cold reads",
        effect=Effect(ratio=ratio, low=ratio / wide, high=ratio * wide, p_value=p_value, processes=1),
        saved=Difference(amount=1 - ratio, error=0.001, freedom=8),
        extra=Difference(amount=5.0, error=0.001, freedom=8),
    )


BASE = replace(cost("base", 1.0, 9.0), effect=None, saved=None, extra=None, is_baseline=True)
LEAST = 0.01


def said(*costs: LayoutCost) -> str:
    return answer_of({"": claimed([BASE, *costs], LEAST)}, (), (), measured=True)


def test_the_best_layout_is_named_with_its_ratio_its_break_even_and_that_of_an_object_store() -> None:
    assert said(cost("fast", 0.5, 3.0), cost("slow", 2.0, 2.0), cost("near", 0.8, 2.08)) == (
        "For these queries fast is best: base takes 2x its processor time by cold reads [1.82, 2.20], and it pays "
        "after 10 queries [10, 10]; on S3 (modelled) slow and near."
    )


@pytest.mark.parametrize(("ratio", "p_value"), [(0.55, 1e-6), (0.55, 0.5), (1.3, 0.5)])
def test_what_may_be_as_good_is_named_whether_it_is_a_claim_or_not(ratio: float, p_value: float) -> None:
    answer = said(cost("rival", ratio, 3.0, p_value=p_value, wide=3.0), cost("fast", 0.5, 2.0))
    assert answer.partition("; on S3")[0] == (
        "For these queries the best is among fast and rival (undecided): base takes 2x the processor time of fast by "
        "cold reads [1.82, 2.20], and fast pays after 10 queries [10, 10]"
    )


@pytest.mark.parametrize(
    ("costs", "answer"),
    [
        ([("slow", 2.0, 1e-6)], "For these queries base is best: slow takes longer"),
        ([("slow", 2.0, 1e-6), ("long", 3.0, 1e-6)], "For these queries base is best: slow and long take longer"),
        (
            [("slow", 2.0, 1e-6), ("a", 0.5, 0.5), ("b", 1.5, 0.5)],
            "For these queries no layout is best for certain: undecided between base, a and b",
        ),
    ],
)
def test_the_baseline_is_best_only_where_all_others_certainly_take_longer(
    costs: list[tuple[str, float, float]], answer: str
) -> None:
    found = said(*(cost(name, ratio, 3.0, p_value=p) for name, ratio, p in costs))
    assert found.partition("; on S3")[0] == answer


def test_the_break_even_and_the_baseline_are_those_of_the_tables() -> None:
    answers = {
        name: build_report(run_of(QUERIES, builds, definition={"baseline": name}), results_file="r").answer
        for name, builds in (("plain", BUILDS), ("slow", {"slow": 5.0}))
    }
    among = "For these queries the best is among cheap and fast (undecided)"
    assert answers["plain"].startswith(f"{among}: plain takes 1.43x the processor time of cheap")
    assert ", and cheap pays at once" in answers["plain"]
    assert f"{among}: slow takes" in answers["slow"]
    assert "pays" not in answers["slow"], "cheap was not built"
    once = [replace(m, samples=m.samples[:1]) if m.case.measurement == "build" else m for m in built(BUILDS)]
    assert ", and when cheap pays is undecided" in answer_to(once)
    never = [replace(m, samples=()) if m.case.measurement == "build" else m for m in built(BUILDS)]
    assert f"{among}: plain takes 1.43x the processor time of cheap by cold reads" in answer_to(never)
    assert "pays" not in answer_to(never)


def test_tables_that_were_there_are_compared_with_several_engines_too() -> None:
    """Nothing is known of building them, so nothing is said of paying."""
    run = run_of(QUERIES, {})
    other = tuple(replace(each, case=each.case.of("pyiceberg")) for each in run.measured)
    for each in (run, replace(run, measured=(*run.measured, *other))):
        report = build_report(each, results_file="r")
        assert "(undecided): plain takes 1.43x the processor time of cheap" in report.answer
        assert "pays" not in report.answer
        (costs,) = (section for section in report.sections if section.key == "costs")
        (table,) = costs.tables
        assert table.columns == ("Layout", "Time of a query")


def built(builds: Mapping[str, float]) -> tuple[Measured, ...]:
    return run_of(QUERIES, builds).measured


def answer_to(cases: Sequence[Measured]) -> str:
    return build_report(replace(run_of(QUERIES, BUILDS), measured=tuple(cases)), results_file="r").answer


@pytest.mark.parametrize(
    ("seconds", "said_of_s3"),
    [
        ((0.31, 0.342, 0.6), "on S3 (modelled) fast and near"),  # below half a second nothing is ranked
        ((0.8, 0.87, 0.89), "on S3 (modelled) fast and near"),
        ((0.31, 0.342, 0.49), "on S3 (modelled) undecided between all"),
    ],
)
def test_layouts_are_not_ranked_on_s3_within_the_error_of_the_model(
    seconds: tuple[float, float, float], said_of_s3: str
) -> None:
    fast, near, base = seconds
    costs = [replace(BASE, query={"time": 1.0, "s3": base}), cost("fast", 0.5, fast), cost("near", 0.9, near)]
    answer = answer_of({"": claimed(costs, LEAST)}, (), (), measured=True)
    assert answer.endswith(f"; {said_of_s3}.")
    marks = [each.tone is Tone.BEST for each in heated(seconds, "s", modelled=True)]
    assert marks == [True, True, False] if "all" not in said_of_s3 else not any(marks)


def test_errors_and_warnings_are_counted_as_doubts() -> None:
    remarks = [
        Remark(severity=s, text="", advice="")
        for s in (Severity.ERROR, Severity.WARNING, Severity.WARNING, Severity.NOTE)
    ]
    contests = [Finding(statement="Reading is fastest with a; b takes 2x as long.")]
    answer = answer_of({}, contests, remarks, measured=True)
    assert answer == "Reading is fastest with a; b takes 2x as long; doubts: 1 error and 2 warnings."


@pytest.mark.parametrize(
    ("records", "start"),
    [({}, "Nothing was measured"), ({"a": 1.0}, "No two layouts or engines were compared")],
)
def test_where_nothing_can_be_said_it_says_so(records: Mapping[str, float], start: str) -> None:
    """The page says that nothing was measured only where that is so."""
    made = [record("filtered", "f", "scan_time_cold", "s", [value], engine=name) for name, value in records.items()]
    report = build_report(sample_run(records=made, measured=()), results_file="r")
    assert report.answer.startswith(start)
    assert not report.findings
    found = render(report).partition('<h2 id="findings-title">Findings</h2>')[2]
    assert found.lstrip().startswith(f"<p>{'None' if records else start}")


def test_it_stands_above_everything_else_on_the_page_and_last_in_the_terminal() -> None:
    report = build_report(sample_run(failures=(FAILED,)), results_file="r")
    page = render(report)
    assert page.index('<p class="answer">') < min(map(page.index, ('<p class="subtitle">', "<nav", "<main>")))
    assert report.answer.endswith(".")
    assert "; doubts: 1 error" in report.answer
    *_, last = renderables(report)
    assert isinstance(last, Hanging)
    assert last.text == report.answer
