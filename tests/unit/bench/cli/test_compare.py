from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from icebench.bench.execution.run_file import read_run
from icebench.bench.report.remarks import is_timed
from icebench.bench.report.run_comparison import pairs_of
from tests.unit.bench.cli.test_main import exit_code, write_run


def copied(run: Path, name: str, *changes: tuple[str, str]) -> str:
    text = run.read_text(encoding="utf-8")
    for before, after in changes:
        text = text.replace(before, after)
    (run.parent / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return name


def test_layouts_of_the_latest_run_in_a_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path)
    assert exit_code("--results", tmp_path, "compare", "sorted", "monthly") == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) <= 25
    assert out.startswith("monthly and sorted in 20260101T000000-sample")
    assert "one_item plans the least share of bytes on sorted (30.5x on monthly)" in out
    assert "Share of the table's bytes planned" not in out
    assert exit_code("--results", tmp_path, "compare", "--long") == 0
    assert "Share of the table's bytes planned" in capsys.readouterr().out


def test_layouts_of_a_run_that_is_named_in_another_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path)
    named = tmp_path / "elsewhere.jsonl"
    shutil.move(run, named)
    assert exit_code("--results", tmp_path, "compare", "--run", named, "--json") == 0
    assert {row["layout"] for row in json.loads(capsys.readouterr().out)["rows"]} == {
        "unpartitioned",
        "monthly",
        "sorted",
    }
    assert exit_code("--results", tmp_path, "compare", "--run", named, "--csv") == 0
    assert capsys.readouterr().out.startswith("layout,filter,quantity,")


def test_two_runs_of_one_definition_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path)
    other = copied(run, "other", (run.stem, "other"))
    assert exit_code("--results", tmp_path, "compare", run.stem, other) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"other against {run.stem}")
    assert "difference in time between the two runs is inconclusive" in out
    assert "share no rounds" in out
    assert len(out.splitlines()) <= 25


def test_a_page_has_the_cases_of_both_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each with its own samples: those of the second run are other ones."""
    run = write_run(tmp_path)
    other = copied(run, "other", (run.stem, "other"), ('"wall":0.', '"wall":7.'))
    assert exit_code("--results", tmp_path, "compare", run.stem, other, "--html", tmp_path / "two.html") == 0
    assert capsys.readouterr().out.replace("\n", "") == str(tmp_path / "two.html")
    text = (tmp_path / "two.html").read_text()
    assert re.findall(r"<h1>(.*?)</h1>", text) == [f"other against {run.stem}"]
    (evidence,) = re.findall(r'<script type="application/json" id="evidence">(.*?)</script>', text)
    pairs = [pair for pair in pairs_of(*map(read_run, (run, run.with_stem("other")))) if is_timed(pair[0])]
    cases = json.loads(evidence)["cases"]
    assert len(cases) == len({(record.key, record.samples) for pair in pairs for record in pair}) > len(pairs)
    assert text.count('data-case="') == 2 * len(pairs)


def test_a_page_is_of_two_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path)
    assert exit_code("--results", tmp_path, "compare", "--html", tmp_path / "two.html") == 2
    assert "--html is for two runs" in capsys.readouterr().err


def test_runs_that_are_not_comparable_are_refused_with_what_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path)
    other = copied(run, "other", (run.stem, "other"), ('"cores":2', '"cores":64'))
    assert exit_code("--results", tmp_path, "compare", run.stem, other) == 2
    err = capsys.readouterr().err
    assert err == (
        "icebench: not comparable: environment (cores: 2 -> 64). To compare all the same: --force environment\n"
    )
    assert exit_code("--results", tmp_path, "compare", run.stem, other, "--force", "definition") == 2
    assert exit_code("--results", tmp_path, "compare", run.stem, other, "--force", "environment") == 0


@pytest.mark.parametrize(
    "names", [("RUN", "sorted"), ("RUN",), ("RUN", "RUN", "RUN"), ("sorted", "--force", "outcome")]
)
def test_layouts_and_runs_are_not_mixed(tmp_path: Path, names: tuple[str, ...]) -> None:
    run = write_run(tmp_path)
    assert exit_code("--results", tmp_path, "compare", *(run.stem if n == "RUN" else n for n in names)) == 2


def test_a_name_that_nothing_has_is_reported_with_what_there_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path)
    assert exit_code("--results", tmp_path, "compare", "sortd", "monthly") == 2
    assert "unknown layout 'sortd' (did you mean 'sorted'?)" in capsys.readouterr().err


@pytest.mark.parametrize(("form", "start"), [("csv", "workload,layout,"), ("json", "{"), ("markdown", "# icebench")])
def test_a_report_is_printed_in_other_forms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str, start: str
) -> None:
    write_run(tmp_path)
    assert exit_code("--results", tmp_path, "report", f"--{form}") == 0
    assert capsys.readouterr().out.startswith(start)
    assert not (tmp_path / "reports").exists()
