"""What layouts cost, when one pays over another, and which knob matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from icebench.bench.costs.costing import Costing
from icebench.bench.definition import Definition
from icebench.bench.execution.run_file import Run
from icebench.bench.layouts.axes import Axes
from icebench.bench.records.case import Case, Measured
from icebench.bench.report.build import build_report
from icebench.bench.report.charts import DotChart, ScatterChart
from icebench.bench.report.compare import Records, median
from icebench.bench.report.console import renderables, verdict
from icebench.bench.report.exports import comparison_of, exported
from icebench.bench.report.findings import least_sure
from icebench.bench.report.html import render
from icebench.bench.report.layout_comparison import compare_layouts
from icebench.bench.report.layout_costs import (
    LayoutCost,
    claimed,
    costs_p_values,
    costs_section,
    layout_costs,
    payments,
)
from icebench.bench.report.model import Report, Section, Table
from icebench.bench.report.quantities import listed, quantity
from icebench.bench.statistics.claims import FALSE_CLAIMS
from tests.unit.bench.report.sample_run import DRIFT, ENVIRONMENT, measured, sample_run

QUERIES = {"plain": 1.0, "fast": 0.5, "slow": 2.0, "cheap": 0.4, "alike": 0.85}
BUILDS = {"plain": 10.0, "fast": 30.5, "slow": 5.0, "cheap": 8.0, "alike": 40.0}
CODEC = "write.parquet.compression-codec"


def run_of(
    queries: Mapping[str, float],
    builds: Mapping[str, float],
    *,
    definition: Mapping[str, Any] | None = None,
    drift: Sequence[float] = DRIFT,
    stalls: Mapping[str, float] | None = None,
) -> Run:
    """Filter one takes as long as is said, filter two a fixed second; what is stored is 1 GB a second of building.
    `stalls` are what the second of three builds takes by the clock, by layout, while its processor time stays."""
    cases = []
    for layout, seconds in queries.items():
        wobble = (1.0, 1.001, 0.999) * 3 if layout == "alike" else (1.0,) * 9
        for name, takes in (("one", seconds), ("two", 1.0)):
            case = Case(
                workload="w", layout=layout, filter=name, engine="icebench", measurement="filtered", cache="cold"
            )
            cases.append(measured(case, [takes * w * more for w, more in zip(drift, wobble, strict=False)]))
        if layout in builds:
            case = Case(workload="w", layout=layout, engine="icebench", measurement="build")
            figures = {"build_bytes_on_disk": builds[layout] * 1e9, "build_files": 6.0}
            made = measured(case, [builds[layout]] * 3, figures=figures)
            walls = [builds[layout], (stalls or {}).get(layout, builds[layout]), builds[layout]]
            more = {"build_compaction_seconds": builds[layout] - 2}
            samples = tuple(
                replace(sample, cost=replace(sample.cost, wall=wall, more=more))
                for sample, wall in zip(made.samples, walls, strict=True)
            )
            cases.append(replace(made, samples=samples))
    return sample_run(measured=tuple(cases), environment={**ENVIRONMENT, "definition": definition or {}})


def corrected(costs: Sequence[LayoutCost]) -> list[LayoutCost]:
    return claimed(costs, least_sure(costs_p_values(costs)))


def section(report: Report, key: str) -> Section:
    (found,) = (section for section in report.sections if section.key == key)
    return found


def column(table: Table, name: str) -> list[str]:
    return [row[table.columns.index(name)].text for row in table.rows]


def test_a_layout_pays_after_as_many_queries_as_make_up_for_building_it() -> None:
    costing = Costing(weights={"one": 1})
    costs = corrected(layout_costs(Records(run_of(QUERIES, BUILDS).records), costing))
    queries, table = costs_section(costs, costing).tables
    # fast: 20.5 s more to build and 0.5 s less to ask, in the median round of a machine that is 1 % slow. What alike
    # takes less is beyond its interval, which is not enough for a claim.
    assert dict(zip(column(table, "Layout"), column(table, "Pays"), strict=True)) == {
        "plain": "baseline",
        "fast": "after 40 queries",
        "slow": "never",
        "cheap": "at once",
        "alike": "undecided",
    }
    assert column(queries, "$ per month")[0] == "0.214 $"
    assert "The time of a query is that of icebench" in queries.note
    assert "It pays after 29 to 56 queries (95% interval)." in payments(costs)[1].evidence
    assert [f.statement for f in payments(costs)] == [
        "cheap pays over plain at once.",
        "fast pays over plain after 40 queries.",
    ]


def paid(run: Run, layout: str) -> tuple[float, float, float]:
    costs = layout_costs(Records(run.records), Costing(weights={"one": 1}))
    found = next(cost for cost in costs if cost.layout == layout).pays_after()
    assert found is not None
    return found


def test_a_stalled_build_moves_the_break_even_by_no_more_than_its_interval() -> None:
    low, about, high = paid(run_of(QUERIES, BUILDS), "fast")
    for stalls in ({"fast": 200.0}, {"plain": 200.0}):
        assert low <= paid(run_of(QUERIES, BUILDS, stalls=stalls), "fast")[1] <= high
    # One build in three that took more processor time, too, is in the interval.
    run = run_of(QUERIES, BUILDS)
    busy = []
    for each in run.measured:
        first, *others = each.samples
        slowed = replace(first, cost=replace(first.cost, cpu=1.5 * first.cost.cpu))
        is_meant = (each.case.measurement, each.case.layout) == ("build", "fast")
        busy.append(replace(each, samples=(slowed, *others)) if is_meant else each)
    found = paid(sample_run(measured=tuple(busy), environment=run.environment), "fast")
    assert found[0] <= about <= found[2]
    assert found[2] - found[0] > high - low


def test_a_layout_that_was_built_once_has_no_break_even() -> None:
    """As in runs that are older: of one build nobody knows how far it is off."""
    run = run_of(QUERIES, BUILDS)
    once = [
        replace(each, samples=each.samples[:1]) if each.case.measurement == "build" else each for each in run.measured
    ]
    costs = layout_costs(Records(sample_run(measured=tuple(once)).records), Costing())
    assert {cost.pays_after() for cost in costs} == {None}
    assert costs_section(costs, Costing()).charts == ()


def test_where_building_was_not_timed_paying_is_not_measured() -> None:
    """With no repetitions of builds there are sizes and counts alone."""
    run = run_of(QUERIES, BUILDS)

    def built(untimed: AbstractSet[str]) -> Table:
        cases = [
            replace(m, samples=()) if m.case.measurement == "build" and m.case.layout in untimed else m
            for m in run.measured
        ]
        costs = corrected(layout_costs(Records(sample_run(measured=tuple(cases)).records), Costing(weights={"one": 1})))
        return costs_section(costs, Costing()).tables[1]

    def pays(untimed: AbstractSet[str]) -> list[str]:
        return column(built(untimed), "Pays")

    assert pays(BUILDS.keys()) == ["baseline", "not measured", "never", "not measured", "not measured"]
    assert pays({"plain"}) == ["baseline", "not measured", "never", "not measured", "not measured"]
    assert pays({"fast"}) == ["baseline", "not measured", "never", "at once", "undecided"]
    for of_time in ("Build is", "It pays by", "seconds by the clock"):
        assert of_time in built({"fast"}).note
        assert of_time not in built(BUILDS.keys()).note
    assert "its bytes are part of the build's" in built(BUILDS.keys()).note


def test_what_takes_no_processor_time_pays_by_the_clock() -> None:
    """Java's comes in hundredths of a second: a query may take none."""
    run = run_of(QUERIES, BUILDS, stalls=dict.fromkeys(BUILDS, 20.0))
    without = [
        replace(each, samples=tuple(replace(s, cost=replace(s.cost, cpu=0.0)) for s in each.samples))
        if each.case.measurement == "filtered"
        else each
        for each in run.measured
    ]
    costs = layout_costs(Records(sample_run(measured=tuple(without)).records), Costing(weights={"one": 1}))
    assert {cost.clock for cost in costs} == {"time by the clock"}
    assert "It pays by time by the clock" in costs_section(costs, Costing()).tables[1].note
    assert next(cost for cost in costs if cost.layout == "fast").pays_after() is not None


def test_what_is_asked_more_often_counts_more() -> None:
    records = Records(run_of(QUERIES, BUILDS).records)
    often, seldom = (layout_costs(records, Costing(weights={"one": one, "two": 1})) for one in (9, 1))
    after = [next(c for c in costs if c.layout == "fast").pays_after() for costs in (often, seldom)]
    assert after[0] is not None
    assert after[1] is not None
    assert after[0][1] == pytest.approx(after[1][1] * 0.5 / 0.9, rel=0.01)


def test_another_baseline_is_held_against() -> None:
    report = build_report(run_of(QUERIES, BUILDS, definition={"baseline": "slow"}), results_file="r")
    table = section(report, "costs").tables[1]
    assert table.title.endswith("when it pays over slow")
    assert column(table, "Pays")[2] == "baseline"


def test_every_form_of_a_report_says_whose_time_a_query_takes() -> None:
    report = build_report(run_of(QUERIES, BUILDS), results_file="r")
    said, text = "What each layout costs with icebench, by cold reads", StringIO()
    out = Console(file=text, width=120)
    for part in (*renderables(report), *verdict(report, out, lines=25)):
        out.print(part)
    assert said in render(report)
    assert said in exported(comparison_of(report, ()), "markdown")
    assert text.getvalue().count(said) == 2


def test_what_was_compared_in_tables_alone_is_not_said_to_be_nothing() -> None:
    report = replace(build_report(run_of(QUERIES, BUILDS), results_file="r"), findings=())
    text = StringIO()
    out = Console(file=text, width=120)
    for part in (*renderables(report), *verdict(report, out, lines=25)):
        out.print(part)
    assert "Nothing was measured" not in text.getvalue()
    nothing = replace(report, sections=(), answer="")
    for part in (*renderables(nothing), *verdict(nothing, out, lines=25)):
        out.print(part)
    assert text.getvalue().count("Nothing was measured") == 2


def test_every_figure_says_whose_it_is_where_the_engine_that_leads_does_not_count() -> None:
    counting = with_failures(set(), {})
    leading = tuple(
        replace(m, case=m.case.of("iceberg-java"), evidence=replace(m.evidence, counters={}))
        for m in counting.measured
        if m.case.measurement != "build"
    )
    run = replace(counting, measured=(*leading, *counting.measured))
    report = build_report(run, results_file="r")
    costs, builds = section(report, "costs").tables
    assert costs.title == "What each layout costs, by cold reads"
    assert costs.columns[1:4] == (
        "Time of a query, iceberg-java",
        "From S3, same-region, icebench",
        "$ per 1,000 queries, icebench",
    )
    assert "that of iceberg-java, by cold reads" in costs.note
    assert "requests and bytes of icebench" in costs.note
    assert "cold reads of iceberg-java" in builds.note
    assert [table.title for table in section(report, "layouts").switch] == [
        "Bytes read under a filter, cold (icebench, counted)",
        "Time of the filtered read, cold (iceberg-java, median)",
        "Time of the filtered read from S3, same-region, cold (icebench, modelled)",
        "A thousand such reads at S3's prices, same-region, cold (icebench, modelled)",
    ]
    assert "on S3 (modelled for icebench)" in report.answer
    made = compare_layouts(run, (), Costing())
    assert made.tables[0].columns[1:4] == ("Bytes read, icebench", "Time, iceberg-java", "From S3, icebench")


def test_the_picture_joins_what_none_beats_in_both() -> None:
    (chart,) = section(build_report(run_of(QUERIES, BUILDS), results_file="r"), "costs").charts
    assert isinstance(chart, ScatterChart)
    assert {point.label for point in chart.points if point.joined} == {"slow", "cheap"}


def test_without_builds_there_is_nothing_to_pay_for() -> None:
    none = corrected(layout_costs(Records(run_of(QUERIES, {}).records), Costing()))
    assert [cost.layout for cost in none] == list(QUERIES)
    assert payments(none) == []
    shown = costs_section(none, Costing())
    assert [table.columns for table in shown.tables] == [("Layout", "Time of a query")]
    assert "pays" not in shown.explanation
    one = layout_costs(Records(run_of(QUERIES, {"plain": 1.0}).records), Costing())
    assert {cost.pays_after() for cost in one} == {None}


THREE = {"plain": 1.0, "fast": 0.5, "slow": 2.0}
ASKED = ("one", "two", "three")


def with_failures(failed: AbstractSet[tuple[str, str]], weights: Mapping[str, float]) -> Run:
    """A run of three layouts and filters, a filter of which takes some of the layouts twice as long; without the pairs
    of layout and filter that failed."""
    run = run_of(THREE, BUILDS, definition={"weights": weights} if weights else {})
    counters = {"storage_bytes_read": 9, "storage_requests_read": 3, "files_planned": 2}
    more = [
        replace(each, case=replace(each.case, filter="three")) for each in run.measured if each.case.filter == "two"
    ]
    counted = [replace(m, evidence=replace(m.evidence, counters=counters)) for m in (*run.measured, *more)]
    kept = [m for m in counted if m.case.measurement == "build" or (m.case.layout, m.case.filter) not in failed]
    return replace(run, measured=tuple(kept))


@given(
    st.sets(st.tuples(st.sampled_from(list(THREE)), st.sampled_from(ASKED))),
    st.dictionaries(st.sampled_from(ASKED), st.sampled_from([1.0, 100.0])),
)
@example({("slow", "one")}, {"one": 100.0, "two": 1.0})
@example({("slow", "one")}, {"one": 1.0})
@example({("plain", "one"), ("fast", "two"), ("slow", "three")}, {})
@example({("plain", "one"), ("fast", "one"), ("slow", "one")}, {"one": 1.0})
def test_a_query_is_the_mean_of_what_all_layouts_have_and_what_is_left_out_is_said(
    failed: AbstractSet[tuple[str, str]], weights: Mapping[str, float]
) -> None:
    run = with_failures(failed, weights)
    costs = [each for each in build_report(run, results_file="r").sections if each.key == "costs"]
    left = [layout for layout in THREE if any((layout, name) not in failed for name in ASKED)]
    if not costs:
        assert all(sum((layout, name) not in failed for layout in left) < 2 for name in ASKED)
        return
    table, builds = costs[0].tables
    has = {name: [layout for layout in left if (layout, name) not in failed] for name in ASKED}
    asked = [name for name in ASKED if weights.get(name, not weights) and (has[name] or name in weights)]
    for name in asked:
        lacking = [layout for layout in left if layout not in has[name]]
        where = f" on {listed(lacking)}" if has[name] else ""
        for note in (table.note, builds.note):
            assert (f"{name}, not measured{where}" in note) == bool(lacking)
    seconds = {(r.layout, r.case): median(r) for r in run.records if r.metric == "scan_time_cold"}
    shared = {name: weights.get(name, 1) for name in asked if len(has[name]) == len(left)}
    means = [
        quantity(sum(w * seconds[layout, n] for n, w in shared.items()) / sum(shared.values()), "s") if shared else "-"
        for layout in left
    ]
    assert column(table, "Time of a query") == column(builds, "A query") == means


def test_the_answer_says_which_filters_it_is_without() -> None:
    report = build_report(with_failures({("slow", "one")}, {"one": 100.0, "two": 1.0}), results_file="r")
    assert "For these queries (left out: one, not measured on slow) no layout is best for certain" in report.answer
    costing = Costing(weights={"one": 100.0, "two": 1.0})
    made = compare_layouts(with_failures({("slow", "one")}, {}), (), costing)
    assert made.tables[0].note == "Left out of the mean: one, not measured on slow."
    every = with_failures({("slow", name) for name in ASKED}, {})
    assert compare_layouts(every, (), Costing()).tables[0].note == ""


def test_all_claims_of_a_report_are_corrected_together() -> None:
    """A break-even whose saving is claimed by itself is none beside fifty contests."""
    drift = (1.0, 1.02, 0.98, 1.05, 1.01, 0.99, 1.03)
    run = run_of({"plain": 1.0, "edge": 0.75}, {"plain": 10.0, "edge": 12.0}, drift=drift)
    kept = tuple(m for m in run.measured if m.case.filter != "two")
    alone = layout_costs(Records(kept_run(kept).records), Costing())
    (p_value,) = costs_p_values(alone)
    assert p_value < FALSE_CLAIMS
    others = tuple(
        measured(
            Case(workload="w", layout="plain", filter="f", engine=f"e{n}", measurement="planning", cache="cold"), drift
        )
        for n in range(9)
    )
    assert p_value > FALSE_CLAIMS / 36
    for more, says in (((), "after"), (others, "undecided")):
        table = section(build_report(kept_run((*kept, *more)), results_file="r"), "costs").tables[1]
        assert column(table, "Pays")[1].startswith(says)


def kept_run(cases: tuple[Measured, ...]) -> Run:
    return sample_run(measured=cases, environment={**ENVIRONMENT, "definition": {}})


AXES = {"axes": {CODEC: ["zstd", "snappy"], "files": [61, 7], "design": "full", "layouts": ["sorted"]}}
TRIED = {
    "sorted": 1.0,
    "sorted (files=7)": 2.0,
    "sorted (compression-codec=snappy)": 1.01,
    "sorted (compression-codec=snappy, files=7)": 2.02,
}


def knobs(queries: Mapping[str, float], axes: Mapping[str, Any]) -> Report:
    builds = {name: 10 * seconds for name, seconds in queries.items()}
    # Both filters alike, so that effects are those that were put in.
    run = run_of(queries, builds, definition=axes)
    kept = tuple(m for m in run.measured if m.case.filter != "two")
    return build_report(sample_run(measured=kept, environment=run.environment), results_file="r")


def test_the_knob_that_matters_is_named() -> None:
    report = knobs(TRIED, AXES)
    table = section(report, "knobs").tables[0]
    assert column(table, "Knob") == [
        "compression-codec=snappy",
        "files=7",
        "compression-codec=snappy x files=7",
    ]
    assert column(table, "Cold filtered read") == ["1.01x", "2x", "1.00x"]
    assert column(table, "Build") == ["1.01x", "2.00x", "1.00x"]
    said = [finding.statement for finding in report.findings]
    assert "Cold filtered read on sorted: 2x with files=7 as with files=61." in said
    assert not any("with compression-codec" in statement for statement in said)
    # Counted, so without doubt, where it is more than equals may differ; before what is said of engines.
    assert said[0] == "Size on sorted: 2.00x with files=7 as with files=61."
    (chart,) = section(report, "knobs").charts
    assert isinstance(chart, DotChart)
    assert [row.label for row in chart.panels[0].rows] == column(table, "Knob")


def test_the_knobs_of_layouts_whose_own_names_have_parentheses_are_shown() -> None:
    axes = {name: value for name, value in AXES["axes"].items() if name != "layouts"}
    second = {name.replace("sorted", "sorted (v2)", 1): takes for name, takes in TRIED.items()}
    report = knobs({**TRIED, **second, "other (x)": 1.0}, {"axes": axes})
    assert [table.title for table in section(report, "knobs").tables] == [
        "Effects on sorted",
        "Effects on sorted (v2)",
    ]


def test_an_interaction_that_may_be_the_cause_is_said_with_its_own_ratio() -> None:
    """Two knobs that together take three times as long look as if the third took less."""
    values = {"axes": {CODEC: ["zstd", "snappy"], "files": [61, 7], "format_version": [2, 3], "layouts": ["sorted"]}}
    values["axes"]["design"] = "fractional"
    axes = Axes.parse(Definition(values).table("axes"))
    tried = {axes.name_of("sorted", each): list(each.values()) for each in axes.combinations()}
    report = knobs({name: 3.0 if own[:2] == ["snappy", "7"] else 1.0 for name, own in tried.items()}, values)
    said = [finding.statement for finding in report.findings]
    label = "compression-codec=snappy x files=7"
    assert (
        f"Cold filtered read on sorted: 0.58x with format_version=3 (or 3x with {label}) as with format_version=2."
        in said
    )
    assert f"format_version=3 (or {label}, to the power of -2)" in column(section(report, "knobs").tables[0], "Knob")


def test_where_no_knob_matters_that_is_said() -> None:
    said = [f.statement for f in knobs(dict.fromkeys(TRIED, 1.0), AXES).findings]
    assert any("varied knobs on time is inconclusive" in each and "0.85 to 1.18" in each for each in said)


def test_a_combination_that_failed_leaves_no_section() -> None:
    report = knobs({name: takes for name, takes in TRIED.items() if name != "sorted"}, AXES)
    assert "knobs" not in [section.key for section in report.sections]


def test_the_page_opens_with_the_answer_and_the_reader_chooses_the_quantity() -> None:
    page = render(knobs(TRIED, AXES))
    order = [page.index(f'<section id="{key}"') for key in ("layouts", "costs", "knobs", "findings", "filtered")]
    assert order == sorted(order)
    page = render(build_report(sample_run(), results_file="r"))
    assert page.count('type="radio" name="layouts-switch"') == 2
    assert page.count(" checked>") == 1
    assert '<label for="layouts-2">Time</label>' in page
