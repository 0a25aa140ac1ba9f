from __future__ import annotations

import math
import re
from html import unescape

from icebench.bench.gate.decisions.history import Entry, Measured, series_of
from icebench.bench.report.charts import HistoryChart
from icebench.bench.report.drawing import draw
from icebench.bench.report.history_page import ComparableHistory, history_report, shown_confidence, shown_ratio
from icebench.bench.report.html import render
from icebench.bench.report.model import Report

CASE = "scan/a"
COMMAND = "icebench history --html history.html"
SUBJECT = 'Read <b> & "c" at once'


def case_of(log: float, **counters: int) -> Measured:
    samples = tuple(math.exp(log + offset) for offset in (-0.012, -0.006, -0.002, 0.002, 0.006, 0.012))
    return Measured(ratio=math.exp(log), samples=samples, counters=counters)


def entry(number: int, case: Measured, *, reference: str = "f" * 40) -> Entry:
    return Entry(
        revision=f"{number:09x}" + "0" * 31,
        number=number,
        date=f"2026-01-{number + 1:02}T12:30:00+00:00",
        subject=SUBJECT if number == 4 else f"change {number}",
        reference=reference,
        pairs=6,
        environment={"python": "3.11"},
        cases={CASE: case},
    )


def report_of(*cases: Measured) -> Report:
    entries = [entry(number, case) for number, case in enumerate(cases)]
    return history_report([ComparableHistory(entries=entries, series=series_of(entries))], COMMAND)


STEPPED = [case_of(0.0 if number < 4 else 0.1, files_planned=3 + (number > 4)) for number in range(8)]


def chart_of(report: Report) -> HistoryChart:
    (section,) = report.sections
    (chart,) = section.charts
    assert isinstance(chart, HistoryChart)
    return chart


def test_levels_reach_from_change_to_change_and_say_how_large_it_is() -> None:
    (panel,) = chart_of(report_of(*STEPPED)).panels
    before, now = panel.levels
    assert (before.first, before.last, before.note) == (0, 3, "")
    assert (now.first, now.last, now.note) == (4, 7, "+10.5%")
    assert abs(now.value / before.value - math.exp(0.1)) < 0.001
    assert chart_of(report_of(*STEPPED[:4])).panels[0].levels == ()


def test_a_level_ends_where_the_next_one_starts() -> None:
    logs = [0.0] * 4 + [0.1] * 3 + [0.3] * 4
    (panel,) = chart_of(report_of(*map(case_of, logs))).panels
    assert [(level.first, level.last) for level in panel.levels] == [(0, 3), (4, 6), (7, 10)]


def test_a_revision_that_lacks_the_case_keeps_its_place() -> None:
    cases = [*STEPPED[:2], Measured(error="Gone: no such thing"), *STEPPED[3:]]
    chart = chart_of(report_of(*cases))
    assert [point.place for point in chart.panels[0].points] == [0, 1, 3, 4, 5, 6, 7]
    assert [(level.first, level.last) for level in chart.panels[0].levels] == [(0, 3), (4, 7)]
    assert len(chart.revisions) == 8
    *_, errors = report_of(*cases).sections[0].tables
    assert [[cell.text for cell in row] for row in errors.rows] == [
        ["000000002", "change 2", CASE, "Gone: no such thing"]
    ]


def test_a_point_shows_its_date_and_subject_on_hover() -> None:
    drawn = draw(chart_of(report_of(*STEPPED)), "t")
    texts = [unescape(text) for text in re.findall("<title>([^<]*)</title>", drawn)]
    assert len(texts) == len(STEPPED)
    assert texts[4] == f"1.11x [1.09, 1.12], 000000004 of 2026-01-05T12:30: {SUBJECT}"
    assert "id=" not in drawn.partition("<defs>")[0]
    for axis in ("processor time / that of fffffffff", "revision, with the date of its commit (UTC)"):
        assert axis in drawn


def test_the_dates_below_a_long_history_do_not_overlap() -> None:
    drawn = draw(chart_of(report_of(*(case_of(0.0) for _ in range(30)))), "t")
    assert 5 <= len(re.findall(r"2026-01-\d\d</text>|>2026-01-\d\d<", drawn)) <= 10


def test_the_page_has_every_revision_and_change_by_date_and_subject() -> None:
    report = report_of(*STEPPED)
    (finding,) = report.findings
    assert finding.statement.startswith(f"{CASE}: 1.00x to 1.11x (+10.5%) at 000000004 of 2026-01-05, ")
    revisions, counters = report.sections[0].tables
    assert [row[0].text for row in revisions.rows] == [f"{number:09x}" for number in range(7, -1, -1)]
    assert [cell.text for cell in revisions.rows[3]] == ["000000004", SUBJECT, "1.11x", "6"]
    assert revisions.rows[3][0].detail == "2026-01-05 12:30"
    assert [[cell.text for cell in row] for row in counters.rows] == [
        ["000000005", "change 5", CASE, "files planned", "3", "4"]
    ]
    page = render(report)
    assert "Read &lt;b&gt; &amp;" in page
    assert "<b>" not in page


def test_the_newest_reference_is_first() -> None:
    old = [entry(number, case_of(0.0), reference="e" * 40) for number in range(2)]
    new = [entry(number, case_of(0.0)) for number in range(2, 4)]
    found = history_report([ComparableHistory(entries=own, series=series_of(own)) for own in (old, new)], COMMAND)
    assert [section.title for section in found.sections] == ["Reference fffffffff", "Reference eeeeeeeee"]
    assert found.subtitle == "4 revisions, the newest of 2026-01-04."


def test_figures_are_no_surer_than_they_are() -> None:
    assert [shown_confidence(share) for share in (0.5, 0.98799, 0.9991)] == ["50 %", "98.7 %", "over 99.9 %"]
    assert shown_ratio(Measured(ratio=1.5)) == "1.50x"
    assert shown_ratio(Measured(error="no")) == "cannot run"
