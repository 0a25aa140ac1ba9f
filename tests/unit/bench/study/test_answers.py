"""The answers of the study: of the runs that are kept, and of the same runs with one thing made slower."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from icebench.bench.costs.costing import Costing
from icebench.bench.costs.object_store import MODEL_ERROR
from icebench.bench.execution.run_file import Run
from icebench.bench.records.case import Case, Measured
from icebench.bench.report.charts import DotChart, LineChart
from icebench.bench.report.compare import Records
from icebench.bench.report.layouts import grids
from icebench.bench.report.quantities import quantity
from icebench.bench.study.kept import kept_run
from icebench.bench.study.pages import files_of, with_model_error
from icebench.bench.study.questions import QUESTIONS

ROOT = Path(__file__).resolve().parents[4]
ALONE = {"engine": "icebench", "cache": "cold"}


@cache
def kept(name: str) -> Run:
    run = kept_run(ROOT / "results", QUESTIONS[name])
    assert run is not None
    return run


def slowed(run: Run, factor: float, wanted: dict[str, str]) -> Run:
    """The run in which all that is of cases with these values took so many times as long."""

    def is_meant(case: Case) -> bool:
        return all(getattr(case, name) == value for name, value in wanted.items())

    def slow(each: Measured) -> Measured:
        costs = [replace(sample.cost, wall=sample.cost.wall * factor) for sample in each.samples]
        return replace(each, samples=tuple(map(lambda s, cost: replace(s, cost=cost), each.samples, costs)))

    assert any(is_meant(each.case) and each.samples for each in run.measured)
    return replace(run, measured=tuple(slow(each) if is_meant(each.case) else each for each in run.measured))


def answer_of(name: str, run: Run) -> str:
    return QUESTIONS[name].page(run).answer


def test_pages_are_those_of_the_runs_that_are_kept() -> None:
    """`icebench study --pages` writes them again."""
    made = dict(files_of({question: kept(name) for name, question in QUESTIONS.items()}))
    written = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "study").iterdir()}
    assert written.keys() == made.keys()
    assert [name for name in made if made[name] != written[name]] == []


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_kept_run_is_of_the_definition_and_has_no_failure(name: str) -> None:
    run = kept(name)
    assert run.complete
    assert not run.failed
    assert run.environment["digest"] == QUESTIONS[name].experiment().digest


@pytest.mark.parametrize(
    ("name", "wanted", "ratio"),
    [
        ("layouts", {"layout": "unpartitioned", "measurement": "filtered"}, r"partitions takes (\S+)x"),
        ("sizes", {"layout": "sorted (files=512)"}, r"files of \S+ KB take (\S+)x"),
        ("sizes", {"layout": "sorted (row-group-size-bytes=1 MB)"}, r"row groups of 1 MB take (\S+)x"),
        ("deletes", {"workload": "deletion vectors, random", "label": "1.0%"}, r"deletion vectors (\S+)x"),
        ("deletes", {"workload": "position deletes, random", "label": "1.0%"}, r"position deletes (\S+)x"),
        (
            "deletes",
            {"workload": "equality deletes, random", "label": "1.0%, 1 delete files"},
            r"equality deletes (\S+)x",
        ),
        ("deletes", {"workload": "equality deletes, random", "label": "1.0%, 100 delete files"}, r"100 files (\S+)x"),
        ("planning", {"workload": "1,000,000 files", "filter": "all"}, r"\], (\S+)x \[\S+ \S+\] the time of"),
        ("planning", {"workload": "1,000 files, 5,000 columns", "filter": "all"}, r"1,000 files takes (\S+)x"),
        ("planning", {"workload": "10,000 files, 1,000 manifests", "filter": "all"}, r"manifests take (\S+)x"),
        ("planning", {"workload": "10,000 files, 1 manifest", "filter": "partition"}, r"month takes (\S+)x"),
        ("planning", {"workload": "10,000 files, scattered", "filter": "partition"}, r"in 1 manifest, and (\S+)x"),
        ("decimals", {"label": "decimal(7,2) FIXED, plain, 0% null"}, r"fixed length take (\S+)x"),
        ("decimals", {"label": "decimal(38,2) FIXED, plain, 0% null"}, r"38 digits (\S+)x"),
        ("decimals", {"label": "decimal(7,2) INT32, dictionary, 0% null"}, r"a dictionary take (\S+)x"),
        ("decimals", {"layout": "unpartitioned (compression-codec=gzip)"}, r"gzip take (\S+)x"),
        ("decimals", {"layout": "unpartitioned (page-version=v2)"}, r"version 2 (\S+)x"),
        ("metrics", {"layout": "unpartitioned", "measurement": "planning", "filter": "all"}, r"all files (\S+)x"),
        ("metrics", {"layout": "unpartitioned", "measurement": "filtered"}, r"rows takes (\S+)x"),
        (
            "maintenance",
            {"layout": "deletion vectors, never compacted", "label": "after 200 batches"},
            r"never compacted (\S+)x",
        ),
        (
            "maintenance",
            {"layout": "deletion vectors, kept by policy default", "label": "after 200 batches"},
            r"default (\S+)x",
        ),
    ],
)
def test_what_takes_twice_as_long_is_said_to(name: str, wanted: dict[str, str], ratio: str) -> None:
    said = []
    for factor in (1.0, 2.0):
        found = re.search(ratio, answer_of(name, slowed(kept(name), factor, {**ALONE, **wanted})))
        assert found
        said.append(float(found[1]))
    assert said[1] == pytest.approx(2 * said[0], rel=0.02, abs=0.015)


@pytest.mark.parametrize(
    ("name", "wanted", "ratio"),
    [
        ("queries", {"engine": "duckdb"}, r"duckdb (\S+)x"),
        ("clustering", {"engine": "icebench", "layout": "sorted by day"}, r": icebench (\S+)x"),
        ("clustering", {"engine": "duckdb", "layout": "sorted by day"}, r", duckdb (\S+)x"),
    ],
)
def test_queries_that_take_twice_as_long_are_said_to(name: str, wanted: dict[str, str], ratio: str) -> None:
    said = []
    for factor in (1.0, 2.0):
        found = re.search(ratio, answer_of(name, slowed(kept(name), factor, wanted)))
        assert found
        said.append(float(found[1]))
    assert said[1] == pytest.approx(2 * said[0], rel=0.02, abs=0.015)


@pytest.mark.parametrize("engine", ["icebench", "duckdb"])
def test_sorted_facts_are_a_choice_of_the_engine_that_gains_most(engine: str) -> None:
    run = slowed(kept("clustering"), 0.1, {"engine": engine, "layout": "sorted by day"})
    (choice,) = QUESTIONS["clustering"].page(run).choices
    assert f"({engine})" in choice.of
    assert choice.ratio > 5


def test_queries_without_an_answer_are_named() -> None:
    run = kept("clustering")
    gone = {"engine": "duckdb", "layout": "sorted by day", "label": "q31"}
    left = [each for each in run.measured if any(getattr(each.case, name) != gone[name] for name in gone)]
    assert len(left) == len(run.measured) - 1
    page = QUESTIONS["clustering"].page(replace(run, measured=tuple(left)))
    assert "duckdb gave no answer in time to q31 over sorted by day, so they are not compared." in page.limits
    assert not any("q31" in limit for limit in QUESTIONS["clustering"].page(run).limits)


def test_another_layout_that_is_fastest_is_named() -> None:
    run = slowed(kept("layouts"), 0.01, {"layout": "bucketed", "measurement": "filtered"})
    page = QUESTIONS["layouts"].page(run)
    assert "Over all filters bucketed is the fastest here, and arrival order" in page.answer
    (times, _) = page.tables
    (row,) = (row for row in times.rows if row[0].text == "bucketed")
    assert all(cell.tone.value == "best" for cell in row[1:])


def test_layouts_that_read_as_few_bytes_are_tied() -> None:
    """Of two that differ by 32 bytes of 2.8 MB neither reads the fewest."""
    answer = answer_of("layouts", kept("layouts"))
    assert "unpartitioned (2 filters)" in answer
    assert "unpartitioned and indexed are tied under one_ticket and tickets_1_percent" in answer


def test_layouts_that_do_not_differ_from_the_fastest_are_named() -> None:
    run, names = kept("layouts"), ("monthly", "monthly-sorted")
    near = slowed(slowed(run, 1e-3, {"layout": "sorted", "measurement": "filtered"}), 1.0, {"layout": "monthly"})
    assert "sorted is the fastest here, and" in answer_of("layouts", near)
    assert all(name in answer_of("layouts", run).partition("differ from it at 95%")[0] for name in names)


def test_megabytes_are_drawn_as_they_are_written() -> None:
    run = kept("layouts")
    chart = QUESTIONS["layouts"].page(run).chart
    assert isinstance(chart, DotChart)
    drawn = max(point.value for panel in chart.panels for row in panel.rows for point in row.points)
    (by_bytes,) = (grid for grid in grids(Records(run.records), Costing()) if grid.key == "bytes")
    read = max(by_bytes.values[case, layout] for case in by_bytes.cases for layout in chart.series)
    assert quantity(read, "bytes") == quantity(drawn * (1 << 20), "bytes")


@pytest.mark.parametrize("name", ["layouts", "sizes", "remote"])
def test_intervals_that_are_not_corrected_are_not_called_certain(name: str) -> None:
    """Of twenty layouts, engines or sizes that take as long as the best, one is expected to differ from it at 95 %."""
    page = QUESTIONS[name].page(kept(name))
    said = [page.answer, *(table.note for table in page.tables)]
    assert not any("for certain" in text for text in said)
    assert any("does not differ from it at 95%, compared alone" in text for text in said)


def test_queries_are_counted_that_take_less_and_more_for_certain() -> None:
    """Of 99 intervals of 95 % some leave out 1 where nothing differs."""
    run = kept("queries")
    counted = []
    for factor in (0.01, 100.0):
        chart = QUESTIONS["queries"].page(slowed(run, factor, {"engine": "icebench-spark"})).chart
        found = re.search(r"icebench-spark (\d+) and (\d+) of 99", chart.caption)
        assert found
        counted.append((int(found[1]), int(found[2])))
    (less, none), (no, more) = counted
    assert none == no == 0
    assert min(less, more) > 80


def test_a_size_that_does_not_differ_from_the_best_stands_out() -> None:
    page = QUESTIONS["sizes"].page(kept("sizes"))
    table = next(each for each in page.tables if each.title.startswith("Files: each engine"))
    for row in table.rows:
        for cell in row[1:]:
            ends = re.search(r"\[(\S+), (\S+)\]", cell.text)
            is_best = ends is None or float(ends[1]) <= 1 <= float(ends[2])
            assert (cell.tone.value == "best") == is_best, cell


def test_sizes_between_the_best_that_are_not_among_them_are_not_named() -> None:
    run = slowed(kept("sizes"), 1 / 1.3, {"layout": "sorted"})
    assert "row groups of 8 MB to 128 MB are within a tenth" in answer_of("sizes", run)
    gap = slowed(run, 2.0, {"layout": "sorted (row-group-size-bytes=32 MB)"})
    assert "row groups of 8 MB and 128 MB are within a tenth" in answer_of("sizes", gap)


def test_sizes_that_take_more_from_an_object_store_are_named() -> None:
    """From there row groups of 8 MB take more requests than those of 128 MB, and here hardly more time."""
    run = kept("sizes")
    (limit,) = (each for each in QUESTIONS["sizes"].page(run).limits if "(modelled) row groups of 8 MB" in each)
    found = re.search(r"take (\S+)x the time of those of 128 MB .*, and (\S+)x under one_month", limit)
    assert found
    assert 1.1 < float(found[1]) < float(found[2])
    fast = slowed(run, 1e-3, {"layout": "sorted"})
    assert not any("(modelled) row groups" in each for each in QUESTIONS["sizes"].page(fast).limits)


@pytest.mark.parametrize("what", ["files", "row groups"])
def test_filters_that_another_size_is_best_for_are_named(what: str) -> None:
    layout = {"files": "sorted (files=1)", "row groups": "sorted (row-group-size-bytes=2 MB)"}[what]
    page = QUESTIONS["sizes"].page(slowed(kept("sizes"), 0.5, {"layout": layout, "filter": "one_item"}))
    assert any(f"Other sizes of {what} are best for" in each and "one_item" in each for each in page.limits)


def test_a_choice_costs_what_its_alternative_takes_in_times_of_it() -> None:
    before = QUESTIONS["decimals"].page(kept("decimals")).choices
    slow = kept("decimals")
    for digits in (7, 18):
        slow = slowed(slow, 2.0, {**ALONE, "label": f"decimal({digits},2) FIXED, plain, 0% null"})
    after = QUESTIONS["decimals"].page(slow).choices
    assert after[0].ratio == pytest.approx(2 * before[0].ratio)
    assert after[1:] == before[1:]


def test_fewest_manifests_that_are_best_without_a_filter_are_said_to_be() -> None:
    run = kept("planning")
    slow = slowed(run, 3.0, {**ALONE, "workload": "10,000 files, 1 manifest", "filter": "all"})
    before, after = (QUESTIONS["planning"].page(each).limits for each in (run, slow))
    assert any(
        re.fullmatch(r"Without a filter 10,000 files in 1 manifest take 0\.\S+x .* in 10\.", it) for it in before
    )
    assert not any("Without a filter" in limit for limit in after)


def test_manifests_of_many_columns_are_counted() -> None:
    limits = QUESTIONS["planning"].page(kept("planning")).limits
    assert any("1,000 files of 5,000 columns are in 20 manifests, those of 23 in 1." in limit for limit in limits)


def test_engines_in_which_bytes_of_a_fixed_length_are_not_slower_are_named() -> None:
    run = kept("decimals")
    fast = slowed(run, 0.2, {"engine": "duckdb", "label": "decimal(7,2) FIXED, plain, 0% null"})
    for each, engines in ((run, r"polars \([^)]*\)"), (fast, r"duckdb \([^)]*\) and polars \([^)]*\)")):
        limits = QUESTIONS["decimals"].page(each).limits
        assert any(re.fullmatch(rf"Bytes of a fixed length are not slower .* in {engines}\.", text) for text in limits)


def test_engines_in_which_a_dictionary_makes_bytes_of_a_fixed_length_slower_are_named() -> None:
    run = kept("decimals")
    slow = slowed(run, 5.0, {"engine": "duckdb", "label": "decimal(7,2) FIXED, dictionary, 0% null"})
    for each, named in ((run, ["icebench", "pyiceberg"]), (slow, ["icebench", "pyiceberg", "duckdb"])):
        (limit,) = (text for text in QUESTIONS["decimals"].page(each).limits if "A dictionary makes" in text)
        assert re.findall(r"(\w+) \(\S+x", limit) == named


def test_a_policy_that_costs_twice_as_much_gains_half() -> None:
    """Scans of the table that is kept are what is chosen, and those of the one that is not the alternative."""
    wanted = {**ALONE, "layout": "deletion vectors, kept by policy default", "label": "after 200 batches"}
    before, after = (
        QUESTIONS["maintenance"].page(slowed(kept("maintenance"), factor, wanted)).choices for factor in (1.0, 2.0)
    )
    assert after[1].ratio == pytest.approx(before[1].ratio / 2)
    assert after[0] == before[0]


def test_maintenance_that_takes_twice_as_long_pays_from_twice_as_many_scans_on() -> None:
    """And of scans without maintenance that take twice as long, fewer do."""
    layouts = {how: f"deletion vectors, {how}" for how in ("never compacted", "compacted every 10")}

    def pays(run: Run) -> float:
        found = re.search(r"batch on \(.*\): compacted every 10 (\S+)", answer_of("maintenance", run))
        assert found
        return float(found[1].rstrip(","))

    def longer(each: Measured) -> Measured:
        if each.case.layout == layouts["compacted every 10"]:
            doubled = {name: 2 * figure for name, figure in each.evidence.figures.items()}
            return replace(each, evidence=replace(each.evidence, figures=doubled))
        return each

    def slower(each: Measured) -> Measured:
        if each.case.layout == layouts["never compacted"]:
            costs = [replace(sample.cost, cpu=sample.cost.cpu * 2) for sample in each.samples]
            return replace(each, samples=tuple(map(lambda s, cost: replace(s, cost=cost), each.samples, costs)))
        return each

    run = kept("maintenance")
    usual = pays(run)
    assert pays(replace(run, measured=tuple(map(longer, run.measured)))) == pytest.approx(2 * usual, rel=0.02)
    assert pays(replace(run, measured=tuple(map(slower, run.measured)))) < usual / 2


def _policy_limit(run: Run) -> list[float]:
    """How many times the best fixed rule the policy takes at one scan a batch, and where it overtakes all of them."""
    said = [
        re.search(r"take (\S+)x the processor time kept by policy .* fixed rule: (\S+)", limit)
        for limit in QUESTIONS["maintenance"].page(run).limits
    ]
    return [float(found[place]) for found in said if found for place in (1, 2)]


def test_a_policy_that_costs_more_than_a_fixed_rule_is_said_to() -> None:
    """Twice the maintenance needs more than twice the scans; none at all has no such limit."""
    layout = "deletion vectors, kept by policy default"

    def with_maintenance(run: Run, factor: float) -> Run:
        def changed(each: Measured) -> Measured:
            figures = {name: factor * figure for name, figure in each.evidence.figures.items()}
            is_meant = each.case.layout == layout
            return replace(each, evidence=replace(each.evidence, figures=figures)) if is_meant else each

        return replace(run, measured=tuple(map(changed, run.measured)))

    run = kept("maintenance")
    usual, twice = (_policy_limit(with_maintenance(run, factor)) for factor in (1.0, 2.0))
    assert usual[0] > 1
    assert twice[0] > usual[0]
    assert twice[1] > 2 * usual[1]
    assert _policy_limit(with_maintenance(run, 0.01)) == []


@pytest.mark.parametrize("rounds", range(5))
def test_maintenance_that_saves_nothing_in_some_rounds_may_never_pay(rounds: int) -> None:
    """Of four rounds, all of which are within the interval."""
    layout = "deletion vectors, compacted every 10"

    def slower(each: Measured) -> Measured:
        if each.case.layout != layout:
            return each
        places = sorted({sample.place for sample in each.samples})[:rounds]
        factors = [100 if sample.place in places else 1 for sample in each.samples]
        costs = [replace(s.cost, cpu=s.cost.cpu * f) for s, f in zip(each.samples, factors, strict=True)]
        return replace(each, samples=tuple(map(lambda s, cost: replace(s, cost=cost), each.samples, costs)))

    run = kept("maintenance")
    pages = [
        QUESTIONS["maintenance"].page(each) for each in (run, replace(run, measured=tuple(map(slower, run.measured))))
    ]
    before, after = (
        row[-1].text
        for page in pages
        for table in page.tables
        for row in table.rows
        if table.columns[-1].startswith("pays from") and row[0].text == "compacted every 10"
    )
    if rounds == 0:
        assert after == before
    elif rounds == 4:
        assert after == "never"
    else:
        assert re.fullmatch(r"from \S+ on or never \(87.5%\)", after)
        assert f"compacted every 10 {after}" in pages[1].answer


def test_intervals_of_few_samples_are_not_called_those_of_95_percent() -> None:
    """Of four rounds without maintenance, and of three plans."""
    answer = answer_of("maintenance", kept("maintenance"))
    assert re.search(r"batch on \(.*\): compacted every 10 \S+ \[\S+ \S+\] \(87.5%\)", answer)
    (times, _) = QUESTIONS["planning"].page(kept("planning")).tables
    (row,) = (row for row in times.rows if [c.text for c in row[:2]] == ["10,000 files, 1,000 manifests", "no filter"])
    cells = dict(zip(times.columns, row, strict=True))
    assert cells["iceberg-java"].text.endswith("] (75%)")
    assert cells["icebench"].text.endswith("]")


def test_scans_without_a_common_round_are_said_to_have_none() -> None:
    run, layout = kept("maintenance"), "deletion vectors, compacted every 10"

    def in_another_process(each: Measured) -> Measured:
        if (each.case.layout, each.case.label) != (layout, "after 200 batches"):
            return each
        return replace(each, samples=tuple(replace(sample, process=9) for sample in each.samples))

    with pytest.raises(LookupError, match=f"no round has all scans of {layout}"):
        answer_of("maintenance", replace(run, measured=tuple(map(in_another_process, run.measured))))


def test_the_queries_that_an_engine_gains_and_loses_most_in() -> None:
    """One that is a thousand times as fast as all others is the first, one that is as slow the last."""
    run = slowed(kept("queries"), 1e-3, {"engine": "icebench", "label": "q31"})
    run = slowed(run, 1e3, {"engine": "icebench", "label": "q62"})
    page = QUESTIONS["queries"].page(run)
    (table,) = (each for each in page.tables if each.title.startswith("icebench: queries that it gains"))
    shown = [row[0].text for row in table.rows]
    assert (shown[0], shown[-1], len(shown)) == ("q31", "q62", 10)
    ratios = [float(row[3].text.partition("x")[0].replace(",", "")) for row in table.rows]
    assert ratios == sorted(ratios)


def test_filters_for_which_the_best_layout_takes_far_more_are_named() -> None:
    """From half as much again on."""
    run, case = kept("layouts"), {"layout": "sorted", "measurement": "filtered"}
    best = slowed(run, 1e-4, case)
    assert not any("over all filters, and not for" in limit for limit in QUESTIONS["layouts"].page(best).limits)
    page = QUESTIONS["layouts"].page(run)
    (limit,) = (each for each in page.limits if "over all filters, and not for" in each)
    factors = [float(found) for found in re.findall(r"is (\S+)x as fast", limit)]
    assert factors
    assert min(factors) >= 1.5
    (times, _) = page.tables
    named = limit.partition(" ")[0]
    (own,) = (row for row in times.rows if row[0].text == named)
    slow = 0
    for place in range(1, len(own)):
        seconds = [_seconds(row[place].text) for row in times.rows]
        slow += _seconds(own[place].text) / min(seconds) > 1.5
    assert slow == len(factors)


def _seconds(text: str) -> float:
    number, unit = text.split()
    return float(number) * {"s": 1.0, "ms": 1e-3, "µs": 1e-6}[unit]


def test_charts_have_every_engine_and_level() -> None:
    chart = QUESTIONS["sizes"].page(kept("sizes")).chart
    assert isinstance(chart, LineChart)
    assert [len(line.points) for line in chart.panels[0].lines] == [6] * 4
    assert [len(line.points) for line in chart.panels[2].lines] == [5] * 4


FILTERS = ("one_item", "one_month")


def farther(run: Run, engine: str, factor: float, store: str = "same-region") -> Run:
    """The run in which an engine's reads from a store took so many times as long."""
    for name in FILTERS:
        run = slowed(run, factor, {"engine": engine, "label": f"{store}, {name}"})
    return run


@pytest.mark.parametrize("engine", ["icebench", "duckdb", "pyiceberg"])
def test_what_a_distance_costs_an_engine_is_said(engine: str) -> None:
    said = []
    for factor in (1.0, 2.0):
        found = re.search(rf"{engine} (\S+)x", answer_of("remote", farther(kept("remote"), engine, factor)))
        assert found
        said.append(float(found[1]))
    assert said[1] == pytest.approx(2 * said[0], rel=0.02)


def test_how_far_the_model_is_off_is_said() -> None:
    """Measured in half of the time, it foretells twice as much."""
    errors = []
    for factor in (1.0, 0.5):
        run = slowed(
            kept("remote"), factor, {"engine": "icebench", "layout": "sorted", "label": "same-region, one_item"}
        )
        page = QUESTIONS["remote"].page(run)
        (*_, model) = page.tables
        (row,) = (row for row in model.rows if [cell.text for cell in row[:2]] == ["sorted", "one_item"])
        found = re.search(r"\(([-+]\d+)%\)", row[3].text)
        assert found
        errors.append(int(found[1]))
    assert errors[1] == pytest.approx(2 * (100 + errors[0]) - 100, abs=2)
    assert f"predicts icebench within {errors[1]}%" in page.answer


def test_the_model_is_as_far_off_in_the_median_as_is_assumed() -> None:
    assert f"(median {MODEL_ERROR:.0%})" in answer_of("remote", kept("remote"))


@pytest.mark.parametrize(("name", "tables"), [("layouts", 1), ("sizes", 2)])
def test_the_error_of_the_model_is_below_its_figures(name: str, tables: int) -> None:
    wanted = {"engine": "icebench", "layout": "sorted", "label": "same-region, one_item"}
    for factor, layout in ((1.0, "large-files"), (0.1, "sorted")):
        remote = QUESTIONS["remote"].page(slowed(kept("remote"), factor, wanted))
        pages = {QUESTIONS[name]: QUESTIONS[name].page(kept(name)), QUESTIONS["remote"]: remote}
        notes = [table.note for table in with_model_error(pages)[QUESTIONS[name]].tables]
        assert sum(f"is off the most for {layout}: " in note for note in notes) == tables
        assert sum("odelled" in note or "The model predicts" in note for note in notes) == tables


def test_layouts_that_the_model_does_not_tell_apart_are_all_named() -> None:
    page = QUESTIONS["layouts"].page(kept("layouts"))
    (limit,) = (each for each in page.limits if each.startswith("From S3"))
    assert "hilbert, zorder and monthly-sorted take least over all filters" in limit
    assert re.search(r"monthly 1\.\d+x that", limit)


def test_another_engine_that_is_first_from_afar_is_named() -> None:
    run = farther(kept("remote"), "polars", 1e-3, "cross-region")
    (limit,) = (each for each in QUESTIONS["remote"].page(run).limits if "depends on the store" in each)
    assert "polars (another region)" in limit
    assert "polars (same region)" not in limit


def test_large_files_are_a_choice_by_reads_from_the_same_region() -> None:
    run = slowed(kept("remote"), 2.0, {"engine": "icebench", "layout": "large-files", "label": "same-region, one_item"})
    before, after = (QUESTIONS["remote"].page(each).choices for each in (kept("remote"), run))
    assert after[0].ratio == pytest.approx(before[0].ratio / 2**0.5)
    assert after[1] == before[1]


@pytest.mark.parametrize(("name", "label"), [("deletes", "1.0%"), ("remote", "same-region, one_item")])
def test_figures_of_fewer_than_three_samples_are_marked(name: str, label: str) -> None:
    wanted = {**ALONE, "label": label}

    def marked(samples: int) -> int:
        def fewer(each: Measured) -> Measured:
            is_meant = all(getattr(each.case, key) == value for key, value in wanted.items())
            return replace(each, samples=each.samples[:samples]) if is_meant else each

        run = kept(name)
        table = QUESTIONS[name].page(replace(run, measured=tuple(map(fewer, run.measured)))).tables[0]
        place = table.columns.index("icebench")
        return sum("†" in row[place].text for row in table.rows)

    assert "†" in QUESTIONS[name].page(kept(name)).tables[0].note
    assert marked(2) > marked(9)


def test_the_files_of_layouts_are_those_of_the_run() -> None:
    run = kept("remote")
    (built,) = (r for r in run.records if (r.layout, r.metric) == ("unpartitioned", "build_files"))
    assert QUESTIONS["remote"].page(run).choices[0].worse == f"{built.samples[0]:.0f} files"


def test_the_readme_has_the_choices_that_move_the_cost_most() -> None:
    index, readme = ((ROOT / name).read_text(encoding="utf-8") for name in ("docs/study/index.md", "README.md"))
    rows = [line for line in index.partition("Then:")[0].splitlines() if line.startswith("| [")]
    assert len(rows) == 5
    assert all(re.sub(r"\]\((\w+\.md)\)", r"](docs/study/\1)", row) in readme for row in rows)


def test_an_engine_that_is_left_out_is_not_said_to_read_no_equality_deletes() -> None:
    (by_share, _) = QUESTIONS["deletes"].page(kept("deletes")).tables
    assert "does not read the kind, except duckdb: it reads equality deletes" in by_share.note


def test_the_readme_states_the_error_of_the_model() -> None:
    found = re.search(r"predicts icebench within (\d+%) \(median (\d+%)\)", answer_of("remote", kept("remote")))
    assert found
    within, median = found.groups()
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"predicts icebench within {within} of a server with such delays (median {median})" in text
