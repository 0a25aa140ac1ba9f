from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO

import pytest
from rich.console import Console

from icebench.bench.execution.run_file import Run
from icebench.bench.records.case import Case, Measured
from icebench.bench.records.record import Record
from icebench.bench.report.build import build_report
from icebench.bench.report.charts import BarChart, DotChart
from icebench.bench.report.compare import ratio
from icebench.bench.report.console import renderables, verdict
from icebench.bench.report.html import render
from icebench.bench.report.layouts import heated
from icebench.bench.report.model import Cell, Report, Table, Tone
from tests.unit.bench.report.sample_run import ENGINES, FAILED, FILTERS, LAYOUTS, record, sample_run
from tests.unit.bench.report.test_layout_costs import AXES, TRIED, run_of

SCRIPTS = ['<script type="application/json" id="evidence">', "<script>"]
VOID = {"meta", "input", "link", "br", "path", "use", "rect", "circle", "line", "polygon"}


class Page(HTMLParser):
    """What a browser would find: balanced elements, ids, links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.unbalanced: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if found := values.get("id"):
            self.ids.append(found)
        self.links += [value for name in ("href", "src", "xlink:href") if (value := values.get(name))]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.unbalanced.append(tag)


@pytest.fixture(scope="module")
def report() -> Report:
    return build_report(sample_run(failures=(FAILED,)), results_file="results/runs/x.jsonl")


@pytest.fixture(scope="module")
def page(report: Report) -> str:
    return render(report)


def test_every_measurement_has_a_section_with_a_chart_and_a_table(report: Report) -> None:
    assert tuple(section.key for section in report.sections) == (
        "layouts",
        "costs",
        "planning",
        "pruning",
        "decimals",
        "deletes",
    )
    assert all(section.charts and section.tables for section in report.sections[2:])


def test_the_page_names_every_layout_engine_and_filter(page: str) -> None:
    for name in (*LAYOUTS, *ENGINES, *FILTERS):
        assert name in page


def test_the_page_is_self_contained(page: str) -> None:
    links = Page(page).links
    assert [link for link in links if not link.startswith("#")] == ["data:,"]
    assert re.findall("<script[^>]*>", page) == SCRIPTS
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|import|sendBeacon)\b\W", page.partition("<script>")[2])
    assert "@import" not in page
    # The only addresses are names of XML, which nobody fetches; the drawings carry none.
    assert re.findall(r"https?://[^\s\"'<]+", page) == []


def test_the_page_is_well_formed_with_unique_ids_and_links_that_lead_somewhere(page: str) -> None:
    found = Page(page)
    assert found.unbalanced == []
    assert found.open == []
    assert len(found.ids) == len(set(found.ids))
    assert {link.removeprefix("#") for link in found.links if link.startswith("#")} <= set(found.ids)


def test_drawings_take_their_colours_from_the_theme(page: str) -> None:
    assert "#0a0b" not in page
    used = set(re.findall(r"var\((--[a-z0-9-]+)\)", page))
    assert used <= set(re.findall(r"(--[a-z0-9-]+):", page))


def test_the_same_run_gives_the_same_page(report: Report, page: str) -> None:
    assert render(report) == page


def test_text_from_a_run_is_escaped() -> None:
    evil = record("planning", "<script>alert(1)</script>", "latency_cold", "s", [1.0, 2.0, 3.0], layout="<b>&")
    page = render(build_report(sample_run(records=(evil,)), results_file="x"))
    assert re.findall("<script[^>]*>", page) == SCRIPTS
    assert "<b>" not in page
    assert "&lt;script&gt;" in page


def test_the_command_to_reproduce_and_the_environment_are_there(page: str) -> None:
    for text in ("icebench run quick --scale 0.02", f"git checkout {'a' * 40}", "Example CPU @ 2.0GHz", "8 GB"):
        assert text in page


def test_the_command_that_ran_is_the_one_that_is_shown() -> None:
    environment = {**sample_run().environment, "command": ["run", "--table", "my table"]}
    report = build_report(sample_run(environment=environment), results_file="r")
    assert report.reproduce[1] == "icebench run --table 'my table'"


@pytest.mark.parametrize("complete", [True, False])
def test_a_run_without_records_is_a_report_too(complete: bool) -> None:
    page = render(build_report(sample_run(records=(), complete=complete), results_file="x"))
    assert "Nothing was measured." in page
    assert ("This run did not finish." in page) is not complete


def test_the_subtitle_counts_what_is_asked_and_not_what_builds() -> None:
    run = run_of({"a": 1.0, "b": 2.0}, {"a": 5.0, "b": 6.0})
    other = tuple(
        replace(each, case=each.case.of("pyiceberg")) for each in run.measured if each.case.measurement == "filtered"
    )
    built = tuple(each for each in run.measured if each.case.measurement == "build")
    for measured, said in (
        (run.measured, "2 layouts, 1 engine, 1 measurement"),
        ((*built, *other), "2 layouts, 1 engine, 1 measurement"),
        (built, "2 layouts"),
    ):
        subtitle = build_report(replace(run, measured=measured), results_file="r").subtitle
        assert subtitle.startswith(f"w at scale 0.02: {said}. Run ")


def test_every_single_record_alone_makes_a_report() -> None:
    seen: dict[tuple[str, str], Record] = {}
    for one in sample_run().records:
        seen.setdefault((one.measurement, one.metric), one)
    for one in seen.values():
        report = build_report(sample_run(records=(one,)), results_file="x")
        assert [section.key for section in report.sections] == [one.measurement]
        assert one.layout in render(report)


def test_an_engine_that_lacks_a_case_has_an_empty_cell() -> None:
    records = tuple(r for r in sample_run().records if (r.engine, r.layout) != ("pyiceberg", "sorted"))
    report = build_report(sample_run(records=records), results_file="x")
    cold = report.sections[2].tables[0]
    column = cold.columns.index("pyiceberg")
    assert [row[column].text for row in cold.rows if row[1].text == "sorted"] == ["-", "-", "-"]


def test_the_best_of_a_row_is_marked_and_the_others_have_their_ratio(report: Report) -> None:
    cold = report.sections[2].tables[0]
    row = cold.rows[0]
    assert [cell.tone for cell in row[2:]] == [Tone.BEST, Tone.PLAIN, Tone.PLAIN, Tone.PLAIN]
    assert row[2].text == "2.12 ms"
    assert row[4].detail.endswith(" 18x")


def test_pruning_is_drawn_as_parts_of_the_whole_table(report: Report) -> None:
    (chart,) = report.sections[3].charts
    assert isinstance(chart, BarChart)
    sorted_by_item = chart.panels[1].bars[2]
    assert [round(share.value, 2) for share in sorted_by_item.shares] == [1.64, 1.64, 96.72]
    assert all(round(sum(s.value for s in bar.shares)) == 100 for panel in chart.panels for bar in panel.bars)


def test_each_stage_says_what_it_leaves_and_how_much_of_it_for_nothing(report: Report) -> None:
    funnel, candidates = report.sections[3].tables[1:3]
    stages = ("Bytes decoded", "Skipped by index")
    assert [funnel.rows[0][funnel.columns.index(name)].text for name in stages] == ["12,345", "0"]
    assert len(set(funnel.columns)) == len(funnel.columns)
    (row,) = (r for r in candidates.rows if (r[0].text, r[1].text) == ("one_item", "sorted"))
    assert [(cell.text, cell.detail) for cell in row[2:]] == [
        ("icebench and icebench-spark", ""),
        ("61", "100%"),
        ("61", "100%"),
        ("61", "100%"),
        ("61", "100%"),
        ("2", "1.67%"),
        ("2", "1.67%"),
        ("1", ""),
    ]


def test_stages_are_left_out_where_delete_files_are_counted_among_them() -> None:
    counters = {
        "files_total": 9,
        "files_matching": 1,
        "files_planned": 2,
        "entries_decoded": 9,
        "manifests_in_list": 2,
        "delete_files_planned": 0,
        "delete_files_unused": 3,
    }
    only = record("pruning", "one_item", "recall", "ratio", [1.0], counters=counters)
    report = build_report(sample_run(records=(only,)), results_file="x")
    assert "Files that each stage leaves" not in " ".join(table.title for table in report.sections[0].switch)


def test_engines_that_plan_alike_share_a_row_and_others_do_not() -> None:
    records = list(sample_run().records)
    report = build_report(sample_run(records=tuple(records)), results_file="x")
    assert {row[2].text for row in report.sections[3].tables[0].rows} == {"all 4 engines"}
    worse = record(
        "pruning",
        "one_item",
        "recall",
        "ratio",
        [0.5],
        engine="pyiceberg",
        layout="sorted",
        counters={"files_total": 61},
    )
    kept = [r for r in records if r.key != worse.key]
    table = build_report(sample_run(records=(*kept, worse)), results_file="x").sections[3].tables[0]
    rows = {row[2].text: row[-1] for row in table.rows if (row[0].text, row[1].text) == ("one_item", "sorted")}
    assert rows["pyiceberg"].tone is Tone.WRONG
    assert rows["icebench, icebench-spark and iceberg-java"].tone is Tone.PLAIN


def test_slow_and_fast_are_drawn_on_a_logarithmic_axis_costs_are_not(report: Report) -> None:
    _, _, planning, _, _, deletes = report.sections
    assert [chart.log for chart in planning.charts if isinstance(chart, DotChart)] == [True, True]
    assert [chart.log for chart in deletes.charts if isinstance(chart, DotChart)] == [False]


def test_plans_are_held_against_this_projects_engine(report: Report) -> None:
    titles = {section.key: " ".join(table.title for table in section.tables) for section in report.sections}
    assert [key for key, title in titles.items() if "how many times that of icebench" in title] == ["planning"]


def test_the_terminal_shows_the_same_tables_and_ends_with_the_findings(report: Report) -> None:
    out = StringIO()
    console = Console(file=out, width=150)
    for part in renderables(report):
        console.print(part)
    text = out.getvalue()
    for section in report.sections:
        assert section.title in text
        for table in section.all_tables:
            assert (table.title in text) is not table.folded or table.title == "Time of the scan, cold"
    assert text.index("Findings") > text.index("Delete-apply cost")
    assert report.findings[-1].statement in " ".join(text.split())
    assert all(remark.text in " ".join(text.split()) for remark in report.remarks)


def test_a_row_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="a row of 1 cells in table 't' of 2 columns"):
        Table(title="t", columns=("a", "b"), rows=((Cell(text="x"),),))


def test_the_report_opens_with_layouts_by_filter(report: Report, page: str) -> None:
    shares, times = report.sections[0].switch
    assert [str(row[0].text) for row in shares.rows] == [str(row[0].text) for row in times.rows] == list(LAYOUTS)
    place = shares.columns.index("one_month")
    assert [(row[place].text, row[place].tone, row[place].heat) for row in shares.rows] == [
        ("100%", Tone.PLAIN, 1.0),
        ("1.64%", Tone.BEST, 0.0),
        ("100%", Tone.PLAIN, 1.0),
    ]
    assert times.title == "Time of a cold plan (icebench, median)"
    assert page.index("Layouts by filter") < page.index("Planning latency")
    assert 'style="--heat:36%"' in page


def test_bytes_that_an_engine_counted_come_before_planned_ones() -> None:
    records = [
        record("filtered", "f", "scan_time_cold", "s", [1.0, 2.0], layout=layout, engine=engine, counters=counters)
        for layout, read in (("a", 100), ("b", 1000), ("c", 10_000))
        for engine, counters in (("other", {}), ("icebench", {"storage_bytes_read": read}))
    ]
    shares, *_ = build_report(sample_run(records=records), results_file="x").sections[0].switch
    assert shares.title == "Bytes read under a filter, cold (icebench, counted)"
    assert [row[1].heat for row in shares.rows] == [0.0, pytest.approx(0.5), 1.0]


def test_a_small_difference_is_faint() -> None:
    cells = list(heated([10.0, 10.1, None, 15.0], "s"))
    assert [cell.heat for cell in cells] == [
        0.0,
        pytest.approx(0.014, abs=0.001),
        None,
        pytest.approx(0.585, abs=0.001),
    ]
    assert [cell.heat for cell in heated([0.0, 5.0, 10.0], "s")] == [0.0, 0.5, 1.0]
    assert [cell.heat for cell in heated([3.0, 3.0], "s")] == [0.0, 0.0]


def test_layouts_are_distinguished_by_what_an_object_store_would_take_and_charge() -> None:
    def counters(files: int) -> dict[str, int]:
        return {
            "storage_requests_read": 3,
            "storage_requests_range_read": 3 * files,
            "files_planned": files,
            "storage_bytes_read": 90_000_000 * files,
            "manifest_bytes_decoded": 0,
        }

    records = [
        record("filtered", "f", "scan_time_cold", "s", [0.5], layout=layout, counters=counters(files))
        for layout, files in (("a", 1), ("b", 5))
    ]
    *_, seconds, dollars = build_report(sample_run(records=records), results_file="x").sections[0].switch
    # Of one file: 0.5 s of the client's own; metadata, list and two manifests side by side, two requests of 30 ms each;
    # two requests until its footer is there; then two parts side by side, 30 ms and 180 MB/s.
    # Of five: the ten parts go in two waves of eight, 60 ms and 720 MB/s; half of the client's 0.5 s passes meanwhile.
    assert [row[1].text for row in seconds.rows] == ["1.27 s", "1.18 s"]
    # 8 + 2 + 2 and 8 + 10 + 10 requests, at 0.0004 $ a thousand.
    assert [row[1].text for row in dollars.rows] == ["0.0048 $", "0.0112 $"]
    assert "modelled" in seconds.title
    assert "object-store-costs" in dollars.note


def test_one_layout_is_not_held_against_others() -> None:
    records = [record("planning", "all", "latency_cold", "s", [1.0, 2.0])]
    assert [s.key for s in build_report(sample_run(records=records), results_file="x").sections] == ["planning"]


@pytest.mark.parametrize("lines", [4, 10, 26, 60])
def test_the_verdict_keeps_to_its_lines_and_says_what_it_leaves_out(report: Report, lines: int) -> None:
    out = StringIO()
    console = Console(file=out, width=120)
    for part in verdict(report, console, lines=lines):
        console.print(part)
    text = out.getvalue()
    assert len(text.splitlines()) <= lines
    assert FAILED.message in text
    assert text.splitlines()[-1].endswith("icebench report --print")
    assert ("more remarks and findings" in text) == (lines < 26)


def of_workload(run: Run, name: str, others: Mapping[str, str]) -> Run:
    """The run with its cases in a workload, under the names of others of its layouts and engines."""

    def renamed(case: Case) -> Case:
        layout, engine = (others.get(own, own) for own in (case.layout, case.engine))
        return replace(case, workload=name, layout=layout, engine=engine)

    def moved(each: Measured) -> Measured:
        base = each.evidence.base
        evidence = replace(each.evidence, base=None if base is None else renamed(base))
        return replace(each, case=renamed(each.case), evidence=evidence)

    return replace(run, measured=tuple(map(moved, run.measured)))


def figures(table: Table) -> list[tuple[str, ...]]:
    """What stands in which row and column, whatever the order of rows, columns and engines that share a row."""
    return sorted(
        (*(" ".join(sorted(own.text.split())) for own in row if not own.figure), name, cell.text, cell.detail)
        for row in table.rows
        for name, cell in zip(table.columns, row, strict=True)
        if cell.figure
    )


def test_the_glossary_describes_the_intervals_that_are_shown(report: Report) -> None:
    """That of a ratio is the same for one pair as for many: Student's t, with what is known beforehand."""
    notes = {fact.name: fact.value for fact in report.glossary}
    assert "interval of 95% by Student's t" in notes["Ratio"]
    assert not any("signed-rank" in note for note in notes.values())
    one = record("planning", "all", "latency_cold", "s", [1.0])
    effect = ratio(one, replace(one, samples=(2.0,)))
    assert effect is not None
    assert effect.low < 2 < effect.high


def test_a_report_of_several_workloads_says_of_each_what_a_report_of_it_alone_says() -> None:
    """Of the same layouts, engines, filters and rounds: where the one is fast, the other is slow."""
    costs = run_of(TRIED, {name: 10 * seconds for name, seconds in TRIED.items()}, definition=AXES)
    both = replace(costs, measured=(*sample_run().measured, *costs.measured))
    pairs = (list(TRIED)[:2], LAYOUTS[:2], ENGINES[::2])
    names = {own: other for one, two in pairs for own, other in ((one, two), (two, one))}
    runs = {"few": of_workload(both, "few", {}), "many": of_workload(both, "many", names)}
    mixed = build_report(
        replace(both, measured=tuple(m for run in runs.values() for m in run.measured)), results_file="r"
    )
    for workload, run in runs.items():
        alone = build_report(run, results_file="r")

        def own(texts: Iterable[str], start: str = f"{workload}: ") -> list[str]:
            return [text.removeprefix(start) for text in texts if text.startswith(start)]

        assert own(finding.statement for finding in mixed.findings) == [f.statement for f in alone.findings]
        assert f"{workload}: {alone.answer.partition('; doubts')[0].removesuffix('.')}" in mixed.answer
        sections = [s for s in mixed.sections if s.title.startswith(f"{workload}: ")]
        assert [s.key for s in sections] == [s.key for s in alone.sections]
        for found, expected in zip(sections, alone.sections, strict=True):
            assert own(chart.caption for chart in found.charts) == [chart.caption for chart in expected.charts]
            assert own(table.title for table in found.all_tables) == [table.title for table in expected.all_tables]
            # Rows and columns have one order in the whole report.
            assert list(map(figures, found.all_tables)) == list(map(figures, expected.all_tables))
    page = Page(render(mixed))
    assert len(page.ids) == len(set(page.ids))
    assert not page.unbalanced
    assert len({section.anchor for section in mixed.sections}) == len(mixed.sections)


def test_workloads_of_layouts_of_their_own_share_a_section_and_no_finding() -> None:
    """As tables that are described file by file: a row names its layout, and rows are not compared."""
    plans = of_workload(replace(sample_run(), measured=sample_run().measured[:8]), "a", {})
    others = of_workload(plans, "b", {name: f"{name} again" for name in LAYOUTS})
    report = build_report(replace(plans, measured=(*plans.measured, *others.measured)), results_file="r")
    assert [section.title for section in report.sections] == ["Planning latency"]
    assert len(report.sections[0].tables[0].rows) == 2
    assert [finding.statement.partition(": fastest are")[0] for finding in report.findings] == [
        f"{workload}: {state} planning" for workload in "ab" for state in ("Cold", "Warm")
    ]
