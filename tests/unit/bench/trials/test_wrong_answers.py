"""An engine that answers wrongly is named in the report, and its time is not in it."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from icebench.bench.execution.run_file import Run, RunWriter, read_run
from icebench.bench.report.build import build_report
from icebench.bench.report.console import verdict
from icebench.bench.report.exports import comparison_of, exported
from icebench.bench.report.html import render
from icebench.bench.report.model import Report
from tests.unit.bench.execution.scripted import Clock, ScriptedEngine, recorded
from tests.unit.bench.trials.test_planning import PATHS, PLANNING
from tests.unit.bench.trials.test_scanning import DELETED, TABLES, engine, rows


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two right engines, and a fast one that brings deleted rows back and plans without a file that has a row."""
    path = tmp_path_factory.mktemp("run") / "run.jsonl"
    clock = Clock()
    plans = {("m", None): PATHS, ("m", "x = 1"): PATHS[:1]}
    with RunWriter(path, run_id="r", environment={"id": "e"}) as writer:
        scans = [engine(name, clock) for name in ("right", "slow")]
        wrong = engine("wrong", clock, 0.001, half=rows(1, 3, 4))
        recorded(writer, clock, *scans, wrong, truth=TABLES).measure(DELETED)
        planners = [ScriptedEngine(name, clock, plans=plans, seconds={"m": 2.0}) for name in ("right", "slow")]
        hasty = ScriptedEngine("wrong", clock, plans={**plans, ("m", "x = 1"): PATHS[1:]}, seconds={"m": 0.001})
        recorded(writer, clock, *planners, hasty).measure(PLANNING)
        writer.close(failed=True)
    return read_run(path)


@pytest.fixture(scope="module")
def report(run: Run) -> Report:
    return build_report(run, results_file="r.jsonl")


SAID = (
    "wrong answers wrongly in 2 cases, where its time does not count: deletes of 50% on small; planning of some on "
    "small."
)
WHY = ("delivers wrong rows: 3 rows against 2", "does not plan 1 file (a) with 1 matching rows: its scans lose rows")


def test_its_times_are_not_in_the_run(run: Run) -> None:
    timed = {(r.measurement, r.case) for r in run.records if r.engine == "wrong"}
    assert timed == {("deletes", "none"), ("deletes", "25%"), ("planning", "all")}
    others = {(r.measurement, r.case) for r in run.records if r.engine == "right"}
    assert others - timed == {("deletes", "50%"), ("planning", "some")}


def test_the_report_names_it_first(report: Report) -> None:
    assert report.findings[0].statement == SAID
    assert report.findings[0].evidence == "; ".join(WHY)
    console = Console(file=(written := StringIO()), width=200)
    for part in verdict(report, console, lines=60):
        console.print(part, crop=False)
    assert [line for line in written.getvalue().splitlines() if "wrong answers wrongly" in line] == [
        f"error: wrong answers wrongly: small/deletes/50%/wrong: {WHY[0]}",
        f"error: wrong answers wrongly: small/planning/some/wrong: {WHY[1]}",
        f"- {SAID}",
    ]


def test_the_page_and_the_figures_for_programs_name_it(run: Run, report: Report, tmp_path: Path) -> None:
    page = render(report)
    assert page.count("wrong answers wrongly") == 3
    assert "its time in this case does not count" in page.lower()
    values = json.loads(exported(comparison_of(report, run.records), "json"))
    assert values["findings"][0] == {"statement": SAID, "evidence": "; ".join(WHY)}
    assert [note for note in values["notes"] if note.startswith("wrong answers wrongly: ")]
    cases = {(row["measurement"], row["case"]) for row in values["rows"] if row["engine"] == "wrong"}
    assert cases == {("deletes", "none"), ("deletes", "25%"), ("planning", "all")}
    fastest = [each["statement"] for each in values["findings"][1:] if "fastest" in each["statement"]]
    assert not [text for text in fastest if "50%" in text and "wrong" in text]
