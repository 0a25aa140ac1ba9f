"""Layouts of a run, and two runs, side by side."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from rich.console import Console

from icebench.bench.costs.costing import Costing
from icebench.bench.costs.object_store import CROSS_REGION
from icebench.bench.errors import ConfigError
from icebench.bench.execution.run_file import Run
from icebench.bench.records.case import Case, Measured
from icebench.bench.report.build import build_report
from icebench.bench.report.compare import Records
from icebench.bench.report.console import compared
from icebench.bench.report.exports import comparison_of, exported, markdown_table
from icebench.bench.report.layout_comparison import compare_layouts
from icebench.bench.report.model import Cell, Comparison, Finding, Table, Tone, plain
from icebench.bench.report.remarks import interrupted
from icebench.bench.report.run_comparison import compare_runs, differences
from icebench.bench.report.runs_page import runs_report
from icebench.bench.report.sections import sections_of
from tests.unit.bench.report.sample_run import DRIFT, FAILED, measured, sample_run
from tests.unit.bench.report.test_layout_costs import BUILDS, QUERIES, run_of

SECONDS = {("a", "one"): 1.0, ("a", "two"): 4.0, ("b", "one"): 2.0, ("b", "two"): 2.0}
BYTES = {("a", "one"): 1 << 20, ("a", "two"): 8 << 20, ("b", "one"): 4 << 20, ("b", "two"): 4 << 20}


def filtered(scale: float = 1.0, cache: str = "cold") -> Run:
    """Filter one is asked of layout a in a half of b's time, filter two the other way round."""
    cases = []
    for (layout, name), seconds in SECONDS.items():
        case = Case(workload="w", layout=layout, filter=name, engine="icebench", measurement="filtered", cache=cache)
        counters = {
            "storage_bytes_read": BYTES[layout, name],
            "storage_requests_read": 3,
            "files_planned": 2,
            "storage_requests_range_read": 6,
        }
        walls = [scale * seconds * drift for drift in DRIFT]
        cases.append(measured(case, walls, counters=counters, checksum="rows"))
    return sample_run(measured=tuple(cases))


def column(table: Table, name: str) -> list[str]:
    return [row[table.columns.index(name)].text for row in table.rows]


def test_layouts_are_summed_up_and_who_wins_where_is_said() -> None:
    made = compare_layouts(filtered(), (), Costing())
    assert [finding.statement for finding in made.findings] == [
        "one reads least on a (4x on b); is fastest on a; 2x as long on b.",
        "two reads least on b (2x on a); is fastest on b; 2x as long on a.",
    ]
    summary = made.tables[0]
    assert summary.columns == ("Layout", "Bytes read", "Time", "From S3", "$ per 1,000")
    assert column(summary, "Bytes read") == ["4.5 MB", "4 MB"]
    assert column(summary, "Time") == ["2.52 s", "2.02 s"]
    assert [row[2].tone for row in summary.rows] == [Tone.PLAIN, Tone.BEST]
    assert "each asked as often as the others" in made.title


def of_two_workloads() -> Run:
    """Of one workload, and of another in which the two layouts are the other way round."""
    swapped = [
        replace(each, case=replace(each.case, workload="v", layout={"a": "b", "b": "a"}[each.case.layout]))
        for each in filtered().measured
    ]
    return sample_run(measured=(*filtered().measured, *swapped))


def test_each_workload_is_summed_up_by_itself() -> None:
    made = compare_layouts(of_two_workloads(), (), Costing())
    assert [finding.statement for finding in made.findings] == [
        "w: one reads least on a (4x on b); is fastest on a; 2x as long on b.",
        "w: two reads least on b (2x on a); is fastest on b; 2x as long on a.",
        "v: one reads least on b (4x on a); is fastest on b; 2x as long on a.",
        "v: two reads least on a (2x on b); is fastest on a; 2x as long on b.",
    ]
    assert made.summaries == 2
    assert [table.title.partition(":")[0] for table in made.tables] == ["w", "v", *["w"] * 4, *["v"] * 4]
    assert [column(table, "Bytes read") for table in made.tables[:2]] == [["4.5 MB", "4 MB"], ["4 MB", "4.5 MB"]]
    read = {(row["workload"], row["layout"]): row["value"] for row in made.rows if row["quantity"] == "bytes"}
    assert read["w", "a"] == read["v", "b"] != read["v", "a"]
    assert "2 filters" in made.title


def test_runs_of_several_workloads_are_compared_case_by_case() -> None:
    def more(one: Measured) -> Measured:
        counters = {**one.evidence.counters, "files_planned": 9}
        return replace(one, evidence=replace(one.evidence, counters=counters))

    run = of_two_workloads()
    assert statements(compare_runs(run, run))[0] == "All 32 exact counters are equal."
    made = compare_runs(run, of(run, more))
    assert "2 to 9 in one on w, a, filtered, cold; " in statements(made)[0]
    assert statements(made)[0].endswith(", and 5 more cases.")
    assert set(column(made.tables[-1], "Layout")) == {"w, a", "w, b", "v, a", "v, b"}


def test_workloads_have_effects_of_their_own() -> None:
    def slow(one: Measured) -> Measured:
        if one.case.workload != "v":
            return one
        costs = [replace(sample.cost, wall=4 * sample.cost.wall) for sample in one.samples]
        return replace(one, samples=tuple(map(lambda s, cost: replace(s, cost=cost), one.samples, costs)))

    run = of_two_workloads()
    made = compare_runs(run, of(run, slow))
    summary = made.tables[0]
    ratios = zip(column(summary, "Workload"), column(summary, "Metric"), column(summary, "Ratio"), strict=True)
    assert [ratio for *name, ratio in ratios if name == ["v", "scan_time_cold"]] == ["4x"]
    assert set(column(summary, "Cases")) == {"4"}
    assert any(said.startswith("v, icebench, filtered: scan_time_cold is longer, 4x") for said in statements(made))
    assert not any(said.startswith("w, icebench") for said in statements(made))
    assert "Workload" not in compare_runs(filtered(), filtered(3.0)).tables[0].columns


def test_what_stands_first_is_cold_and_a_run_of_one_kind_of_scan_is_shown_as_it_was() -> None:
    warm, cold = filtered(0.5, "warm"), filtered()
    both = sample_run(measured=(*warm.measured, *cold.measured))
    for run, words, seconds in ((cold, "cold", "2.52 s"), (both, "cold", "2.52 s"), (warm, "warm", "1.26 s")):
        made = compare_layouts(run, (), Costing())
        assert made.title.endswith(f", by {words} reads")
        assert f"Time of the filtered read, {words} (icebench, median)" in [table.title for table in made.tables]
        assert column(made.tables[0], "Time")[0] == seconds
        report = build_report(run, results_file="r")
        assert any(t.title == f"Time of the filtered read, {words}" for s in report.sections for t in s.all_tables)
        assert {row["cache"] for row in comparison_of(report, run.records).rows} == {m.case.cache for m in run.measured}
    assert compare_runs(warm, cold).title.endswith("0 series that both have, 16 that one has")


def test_the_cost_of_a_layout_is_what_is_asked_of_it() -> None:
    made = compare_layouts(filtered(), ("b", "a"), Costing(weights={"one": 9, "two": 1}))
    assert column(made.tables[0], "Bytes read") == ["1.7 MB", "4 MB"]
    only = compare_layouts(filtered(), (), Costing(weights={"one": 1}))
    assert column(only.tables[0], "Bytes read") == ["1 MB", "4 MB"]


def test_the_profile_decides_what_an_object_store_takes_and_charges() -> None:
    near, far = (compare_layouts(filtered(), (), costing) for costing in (Costing(), Costing(profile=CROSS_REGION)))
    for quantity in ("s3", "dollars"):
        less, more = (next(r["value"] for r in made.rows if r["quantity"] == quantity) for made in (near, far))
        assert isinstance(less, float)
        assert isinstance(more, float)
        assert less < more
    assert "cross-region" in far.tables[3].title


def test_what_building_takes_stands_beside_what_a_query_does() -> None:
    run = run_of(QUERIES, BUILDS)
    made = compare_layouts(run, ("fast", "plain", "cheap"), Costing(weights={"one": 1}))
    assert made.summaries == 2
    built = made.tables[1]
    assert built.title == "What building a layout takes, and when it pays over plain"
    found = {name: column(built, name) for name in built.columns}
    assert found["Layout"] == ["plain", "fast", "cheap"]
    assert found["Build"] == ["10 s", "30.5 s", "8 s"]
    assert found["Compaction"] == ["8 s", "28.5 s", "6 s"]
    assert found["Written"] == ["-", "-", "-"]
    assert found["Files"] == ["6", "6", "6"]
    assert found["A query"] == ["1.01 s", "505 ms", "404 ms"]
    assert found["Pays"] == ["baseline", "after 40 queries", "at once"]
    assert built.columns[1] == "Pays"
    assert [row[built.columns.index("Build")].tone for row in built.rows] == [Tone.PLAIN, Tone.PLAIN, Tone.BEST]
    assert "fast pays over plain after 40 queries." in [finding.statement for finding in made.findings]
    values = {(row["layout"], row["quantity"]): row["value"] for row in made.rows if row["filter"] == ""}
    assert values["fast", "build_seconds"] == 30.5
    assert values["fast", "build_files"] == 6
    assert values["fast", "pays_after_median"] == pytest.approx(20.5 / 0.505, rel=0.02)
    assert ("plain", "pays_after_median") not in values


def test_tables_that_were_there_have_no_cost_of_building() -> None:
    made = compare_layouts(run_of(QUERIES, {}), ("fast", "plain"), Costing())
    assert (made.summaries, len(made.tables)) == (1, 2)
    assert not any(str(row["quantity"]).startswith(("build", "pays")) for row in made.rows)


def test_a_comparison_says_what_went_wrong_with_its_run() -> None:
    run = replace(filtered(), complete=False, failures=(FAILED,))
    made = compare_layouts(run, (), Costing())
    said = made.notes[:2]
    assert said[0] == interrupted(run.run_id).text
    assert made.errors == 2
    assert FAILED.message in said[1]
    for form in ("json", "markdown"):
        assert all(text in exported(made, form) for text in said)
    for lines in (None, 12):
        shown = io.StringIO()
        out = Console(file=shown, width=120)
        for part in compared(made, out, lines=lines):
            out.print(part)
        assert all(f"error: {text}" in shown.getvalue() for text in said)
    assert compare_layouts(filtered(), (), Costing()).errors == 0


def test_without_filtered_reads_planning_is_compared() -> None:
    made = compare_layouts(sample_run(), ("monthly", "sorted"), Costing())
    assert made.tables[0].columns == ("Layout", "Planned", "Time")
    assert re.search(r"61x on sorted.* monthly and sorted \(1.00x, 0.90 to 1.11\)", made.findings[0].statement)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("a", "c"), "unknown layout 'c'; known: a, b"),
        (("a",), "has no two layouts with figures of the same filters"),
    ],
)
def test_layouts_that_cannot_be_compared(names: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        compare_layouts(filtered(), names, Costing())


def with_environment(**changes: Any) -> Run:
    return sample_run(environment={**sample_run().environment, **changes})


def of(run: Run, change: Callable[[Measured], Measured]) -> Run:
    return replace(run, measured=tuple(map(change, run.measured)))


def changed_rows(one: Measured) -> Measured:
    return replace(one, evidence=replace(one.evidence, checksum="other"))


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (sample_run(), []),
        (with_environment(engines={"icebench": "0.2.0"}, git={"revision": "b"}, started="later"), []),
        (with_environment(definition={"filters": {"one": "a < 2"}}), ["definition (filters.one: absent -> a < 2)"]),
        (with_environment(definition={"name": "other", "description": "d"}), []),
        (
            with_environment(definition={"workload": [{"kind": "tpcds", "scale": 2}]}),
            ["dataset (workload.0.kind: absent -> tpcds)", "dataset (workload.0.scale: absent -> 2)"],
        ),
        (
            with_environment(hardware={**sample_run().environment["hardware"], "cores": 4}),
            ["environment (cores: 2 -> 4)"],
        ),
        (with_environment(software={**sample_run().environment["software"], "spark": None}), []),
        (
            with_environment(software={**sample_run().environment["software"], "spark": {"master": "local[8]"}}),
            ["environment (spark.master: local[2] -> local[8])"],
        ),
        (sample_run(failures=(FAILED,)), ["outcome (20260101T000000-sample failed)"]),
        (sample_run(complete=False), ["outcome (20260101T000000-sample was interrupted)"]),
    ],
)
def test_what_keeps_runs_from_being_compared(head: Run, expected: list[str]) -> None:
    found = differences(sample_run(), head)
    assert [str(each) for each in found] == expected


def test_other_content_of_what_definitions_name_keeps_runs_from_being_compared() -> None:
    def run(asked: str, files: int, **more: dict[str, int]) -> Run:
        layouts = {"sorted": {"files": files}, **more}
        return with_environment(inputs={"layouts": layouts, "measurements": {"queries": {"top": asked}}})

    first = run("select 1", 1, monthly={"files": 2})
    assert differences(first, run("select 1", 1)) == (), "which layouts there are is said by definitions"
    assert differences(first, sample_run()) == differences(sample_run(), first) == (), "not recorded: unknown"
    found = [str(each) for each in differences(first, run("select 2", 7))]
    assert found == [
        "dataset (layouts.sorted.files: other content)",
        "definition (measurements.queries.top: other content)",
    ]


def test_other_rows_are_another_dataset_and_other_names_of_files_are_not() -> None:
    (found,) = differences(filtered(), of(filtered(), changed_rows))
    assert str(found) == "dataset (other rows in 4 cases, such as a/filtered/one/icebench)"
    run = sample_run(measured=tuple(m for m in sample_run().measured if m.case.measurement in {"planning", "pruning"}))
    assert differences(run, of(run, changed_rows)) == ()


def statements(made: Comparison) -> list[str]:
    return [finding.statement for finding in made.findings]


def test_a_run_of_thrice_the_time_is_slower_and_one_of_a_tenth_more_is_not() -> None:
    slower, alike = (compare_runs(filtered(), filtered(scale)) for scale in (3.0, 1.1))
    counted = "All 16 exact counters are equal."
    assert statements(alike)[:-1] == [counted]
    assert re.search("inconclusive.* 0.83 to 1.45", statements(alike)[-1])
    said = statements(slower)
    assert said[0] == counted
    assert said[1].startswith("icebench, filtered: scan_time_cold is longer, 3x (95% interval 2.")
    assert column(slower.tables[0], "Claim") == ["longer", "longer"]
    assert column(slower.tables[-1], "Ratio of medians") == ["3x"] * 8
    assert [row["ratio"] for row in slower.rows] == pytest.approx([3] * 8)


def test_counters_that_changed_are_named_with_where() -> None:
    def more(one: Measured) -> Measured:
        counters = {**one.evidence.counters, "files_planned": 9 if one.case.layout == "b" else 2}
        return replace(one, evidence=replace(one.evidence, counters=counters))

    assert statements(compare_runs(filtered(), of(filtered(), more)))[0] == (
        "icebench: files_planned went from 2 to 9 in one on b, filtered, cold; 2 to 9 in two on b, filtered, cold."
    )


def test_counters_of_cold_and_warm_scans_are_compared_each_with_its_own() -> None:
    def more(factor: int, one: Measured) -> Measured:
        counters = {**one.evidence.counters, "files_planned": 2 * factor}
        return replace(one, evidence=replace(one.evidence, counters=counters))

    base = sample_run(measured=(*filtered().measured, *filtered(cache="warm").measured))
    cold = of(filtered(cache="cold"), partial(more, 5)).measured
    warm = of(filtered(cache="warm"), partial(more, 3)).measured
    assert statements(compare_runs(base, base))[0] == "All 32 exact counters are equal."
    made = compare_runs(base, sample_run(measured=(*cold, *warm)))
    assert "2 to 10 in one on a, filtered, cold; " in statements(made)[0]
    assert statements(made)[0].endswith(", and 5 more cases.")
    assert {row["cache"] for row in made.rows} == {"cold", "warm"}


def test_caches_are_apart_where_the_metric_does_not_say_which() -> None:
    """As of a measurement of another package that declares no series."""

    def run(cold: float, warm: float) -> Run:
        case = Case(workload="w", layout="l", engine="icebench", measurement="theirs")
        times = {"cold": cold, "warm": warm}
        cases = [measured(replace(case, cache=c), [s * drift for drift in DRIFT]) for c, s in times.items()]
        return sample_run(measured=tuple(cases))

    made = compare_runs(run(10.0, 1.0), run(10.0, 2.0)).tables[-1]
    wall = [place for place, name in enumerate(column(made, "Metric")) if name == "time"]
    shown = [[column(made, name)[place] for place in wall] for name in ("Case", "Ratio of medians")]
    assert shown == [["all, cold", "all, warm"], ["1.00x", "2x"]]
    (section,) = sections_of(Records(run(10.0, 1.0).records))
    table = next(table for table in section.tables if table.title == "Time")
    assert (column(table, "Case"), column(table, "icebench")) == (["all, cold", "all, warm"], ["10.1 s", "1.01 s"])


def test_measurements_with_the_same_case_and_metric_are_told_apart() -> None:
    def run(*measurements: str) -> Run:
        cases = [
            Case(workload="w", layout="l", engine="icebench", measurement=name, cache="cold", filter="all")
            for name in measurements
        ]
        return sample_run(measured=tuple(measured(case, DRIFT) for case in cases))

    def captions(of_run: Run) -> list[str]:
        page = runs_report(of_run, of_run, compare_runs(of_run, of_run), ("a", "b"))
        return [chart.caption for section in page.sections for chart in section.charts]

    both, one = run("filtered", "decimals"), run("decimals")
    each = compare_runs(both, both).tables[-1]
    shown = set(zip(*(column(each, name) for name in ("Case", "Measurement", "Metric")), strict=True))
    assert shown >= {("all", "filtered", "scan_time_cold"), ("all", "decimals", "scan_time_cold")}
    assert {"filtered: scan_time_cold", "decimals: scan_time_cold"} <= set(captions(both))
    assert len(captions(both)) == len(set(captions(both)))
    assert "Measurement" not in compare_runs(one, one).tables[-1].columns
    assert "scan_time_cold" in captions(one)


@pytest.mark.parametrize("name", ["files_planned", "delete_files_loaded"])
def test_a_counter_that_appears_or_vanishes_is_a_change_from_or_to_nothing(name: str) -> None:
    def with_counter(number: int | None, one: Measured) -> Measured:
        others = {other: value for other, value in one.evidence.counters.items() if other != name}
        counters = others if number is None else {**others, name: number}
        return replace(one, evidence=replace(one.evidence, counters=counters))

    absent, none, some = (of(filtered(), partial(with_counter, number)) for number in (None, 0, 7))
    for base, head, said in ((absent, some, "0 to 7"), (some, absent, "7 to 0"), (none, some, "0 to 7")):
        first, *_ = statements(compare_runs(base, head))
        assert first.startswith(f"icebench: {name} went from {said} in one on a, filtered, cold; ")
    assert statements(compare_runs(absent, none))[0].endswith(" exact counters are equal.")


def test_cases_of_one_run_alone_are_counted_and_not_compared() -> None:
    run = filtered()
    made = compare_runs(run, replace(run, measured=run.measured[:1]))
    assert made.title.endswith("2 series that both have, 6 that one has")


def test_exports_hold_the_same_figures() -> None:
    made = compare_layouts(filtered(), (), Costing())
    read = list(csv.DictReader(io.StringIO(exported(made, "csv"))))
    parsed = json.loads(exported(made, "json"))
    assert len(read) == len(parsed["rows"]) == len(made.rows)
    assert [float(row["value"]) for row in read] == [row["value"] for row in parsed["rows"]]
    assert parsed["findings"][0]["statement"] == made.findings[0].statement
    text = exported(made, "markdown")
    assert "| a | 4.5 MB | 2.52 s |" in text
    assert "| b | **4 MB** | **2.02 s** |" in text
    with pytest.raises(ValueError, match="no form 'xml'"):
        exported(made, "xml")


def test_names_of_a_run_are_no_markup() -> None:
    table = Table(title="t", columns=("a|b",), rows=((plain("<script>x|y*"),),), note="# [n](x)")
    folded = replace(table, title="not shown", folded=True)
    made = Comparison(title="<b>", findings=(Finding(statement="a\nb"),), tables=(table, folded), notes=("n",), rows=())
    cells = "| a\\|b |\n|---|\n| &lt;script>x\\|y\\* |"
    assert exported(made, "markdown") == f"# &lt;b>\n\n- a b\n\n## t\n\n{cells}\n\n\\# [n\\](x)\n\nn\n"


def test_a_table_in_markdown_has_its_cells_and_then_its_note() -> None:
    rows = (
        (plain("a"), Cell(text="4 s", detail="[3, 5]"), Cell(text="7", tone=Tone.BEST)),
        (plain("b|c\nd"), Cell(text="", tone=Tone.DOUBTFUL), Cell(text="9", detail="files", tone=Tone.BEST)),
    )
    table = Table(title="not shown", columns=("Name", "Time", "Files <"), rows=rows, note="A | note.", folded=True)
    assert list(markdown_table(table)) == [
        "| Name | Time | Files &lt; |",
        "|---|---:|---:|",
        "| a | 4 s [3, 5] | **7** |",
        "| b\\|c d |  | **9 files** |",
        "",
        "A \\| note.",
    ]


def test_a_table_in_markdown_without_rows_or_note_is_its_head() -> None:
    assert list(markdown_table(Table(title="t", columns=("a", "b"), rows=()))) == ["| a | b |", "|---|---|"]
