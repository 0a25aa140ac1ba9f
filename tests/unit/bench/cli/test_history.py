from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from icebench.bench.cli import history as commands
from icebench.bench.cli.context import Context
from icebench.bench.cli.failures import run_guarded
from icebench.bench.cli.history import cases_digest, history
from icebench.bench.cli.history_store import read_history, record_revision
from icebench.bench.cli.places import Places
from icebench.bench.cli.terminal import Terminal
from icebench.bench.gate.decisions.history import Entry, Measured
from icebench.bench.gate.revisions.build import CaseProcessFailed, Revision, Unbuildable, commit_of
from tests.simulated_history import RECORDED, planted
from tests.simulated_history import recorded as kept_revisions

CASE = "open/many"
RESULTS = Path("results/asv/results")
GIT = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}


def git(root: Path, *arguments: str, at: int = 0) -> None:
    environment = {**os.environ, **GIT, "GIT_COMMITTER_DATE": f"2026-01-01T00:{at:02d}:00+02:00"}
    subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True, env=environment)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of eight commits, of which the sixth changes nothing of the engine, and the working directory."""
    root = tmp_path / "checkout"
    (root / "engine").mkdir(parents=True)
    git(root, "init", "--quiet")
    for number in range(8):
        (root / ("README" if number == 5 else "engine/code.py")).write_text(str(number))
        git(root, "add", ".")
        git(root, "commit", "--quiet", "--message", f"change {number}", at=number)
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def sides(root: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What each commit takes: seconds, or an error that its process ends with."""
    given: dict[str, Any] = {}

    def run(self: Revision, module: str, *arguments: str, seed: int = 0, **_: object) -> str:
        assert module == "icebench.bench.gate.cases.time_cases"
        found = given.get(self.name, 1.0)
        if isinstance(found, Exception):
            raise found
        case = {"error": found} if isinstance(found, str) else {"seconds": [found]}
        if "--count" not in arguments:
            return json.dumps({CASE: case})
        counted = {**case, "counters": {"files_planned": 3, "function_calls": 1000 + seed % 7}}
        return json.dumps({"cases": {CASE: counted}, "environment": {"python": "3.11"}})

    def build(name: str, *, root: Path, cache: Path) -> Revision:
        commit = commit_of(name, root)
        if isinstance(given.get(commit), Unbuildable):
            raise given[commit]
        return Revision(name=commit, folder=cache, python="python")

    monkeypatch.setattr(Revision, "run", run)
    monkeypatch.setattr(commands, "build", build)
    monkeypatch.setattr(commands, "warehouse_of", lambda _side, cache: cache)
    monkeypatch.setattr(commands, "cpu_model", lambda: "a processor")
    return given


def invoked(*arguments: str) -> tuple[int, str]:
    out = StringIO()
    console = Console(file=out, width=300)
    context = Context(places=Places(Path("results")), terminal=Terminal(out=console, err=console))

    def action() -> int:
        return int(history.main(list(arguments), prog_name="history", standalone_mode=False, obj=context))

    code = run_guarded(action, debug=lambda: False, err=out)
    return code, out.getvalue()


def recorded(*arguments: str) -> tuple[int, str]:
    return invoked("record", "--case", CASE, *arguments)


def entries() -> list[Entry]:
    return read_history(RESULTS)


def test_a_range_is_measured_against_the_frozen_revision_once(root: Path, sides: dict[str, Any]) -> None:
    slow = commit_of("HEAD~1", root)
    sides[slow] = 1.5
    code, text = recorded("HEAD~4..HEAD", "--reference", "HEAD~3", "--pairs", "2")
    assert code == 0, text
    found = entries()
    assert [entry.subject for entry in found] == ["change 4", "change 6", "change 7"]
    assert {entry.reference for entry in found} == {commit_of("HEAD~3", root)}
    assert [entry.cases[CASE].ratio for entry in found] == [1.0, 1.5, 1.0]
    assert found[1].cases[CASE].samples == (1.5, 1.5)
    assert found[0].date == "2025-12-31T22:04:00+00:00"
    assert found[0].environment == {"cpu": "a processor", "cases": cases_digest(), "python": "3.11"}
    assert found[0].cases[CASE].counters == {"files_planned": 3}
    assert recorded("HEAD~5..HEAD")[0] == 0
    first, *others = entries()
    assert first.subject == "change 3"
    assert others == found


def test_a_case_that_a_recorded_revision_lacks_is_named(root: Path, sides: dict[str, Any]) -> None:
    assert recorded("HEAD", "--reference", "HEAD~1")[0] == 0
    before = entries()
    code, text = recorded("HEAD", "--case", "commit/append$")
    assert code == 0
    assert text.splitlines()[-1].endswith("change 7: skipped, as it is recorded, without commit/append")
    assert entries() == before
    assert recorded("HEAD")[1].splitlines()[-1].endswith("change 7: skipped, as it is recorded")


def test_a_revision_that_was_measured_with_other_cases_is_measured_again(
    root: Path, sides: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else would have it in a series with what is measured now."""
    assert recorded("HEAD", "--reference", "HEAD~1")[0] == 0
    monkeypatch.setattr(commands, "cases_digest", lambda: "statements-of-other-cases")
    code, text = recorded("HEAD")
    assert code == 0
    assert text.splitlines()[-1].endswith("change 7: 1 cases")
    assert [entry.environment["cases"] for entry in entries()] == ["statements-of-other-cases"]
    assert recorded("HEAD")[1].splitlines()[-1].endswith("skipped, as it is recorded")


def test_of_a_range_so_many_are_measured_and_the_last_is_one(root: Path, sides: dict[str, Any]) -> None:
    assert recorded("HEAD~7..HEAD", "--most", "2", "--reference", "HEAD")[0] == 0
    assert [entry.subject for entry in entries()] == ["change 3", "change 7"]


def test_what_an_old_engine_cannot_do_is_recorded_by_name(root: Path, sides: dict[str, Any]) -> None:
    sides[commit_of("HEAD~2", root)] = "AttributeError: no scan"
    sides[commit_of("HEAD~1", root)] = CaseProcessFailed("ImportError: no engine")
    sides[commit_of("HEAD", root)] = Unbuildable("SyntaxError")
    for revision in ("HEAD~2", "HEAD~1", "HEAD"):
        assert recorded(revision, "--reference", "HEAD~3")[0] == 0
    one, two, three = entries()
    assert one.cases == {CASE: Measured(error="head: AttributeError: no scan")}
    assert (two.error, three.error) == ("ImportError: no engine", "SyntaxError")
    code, text = invoked("--long")
    assert code == 0
    assert "3 revisions could not run some or all cases:" in text
    assert f"  {one.revision[:9]} {CASE}: head: AttributeError: no scan\n" in text
    assert f"  {two.revision[:9]} all cases: ImportError: no engine\n" in text
    assert "no engine" not in invoked()[1]


def test_an_error_names_no_folder_of_this_machine(root: Path, sides: dict[str, Any]) -> None:
    said = f"cannot import name 'a' ({root}/datasets/cache/gate/engine-1/a.py)"
    sides[commit_of("HEAD~1", root)] = said
    sides[commit_of("HEAD", root)] = Unbuildable(said)
    for revision in ("HEAD~1", "HEAD"):
        assert recorded(revision, "--reference", "HEAD~2")[0] == 0
    one, two = entries()
    assert one.cases[CASE].error.removeprefix("head: ") == two.error == "cannot import name 'a' (engine-1/a.py)"


def test_the_history_says_where_it_changed(root: Path, sides: dict[str, Any]) -> None:
    for number in range(4, 8):
        sides[commit_of(f"HEAD~{7 - number}", root)] = 0.5
    git(root, "commit", "--allow-empty", "--quiet", "--message", "the last", at=8)
    assert recorded("HEAD~8..HEAD", "--reference", "HEAD", "--pairs", "1")[0] == 0
    code, text = invoked()
    assert code == 0
    reference = commit_of("HEAD", root)[:9]
    assert (
        f"6 revisions from 2025-12-31 to 2025-12-31, each interleaved with {reference} "
        f"(pairs of processes: 1, cases {cases_digest()})" in text
    )
    assert "processor time 1.00x -> 0.50x (-50.0%)" in text
    assert f"since {commit_of('HEAD~5', root)[:9]}" in text


def test_a_step_planted_in_a_copy_of_the_files_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(RECORDED, RESULTS)
    case, place, known = "scan/large/decimals", 3, kept_revisions()
    for one in planted(known, case, place, 1.1):
        record_revision(RESULTS, one)
    code, text = invoked("--case", case)
    assert code == 0
    at = known[place]
    step = text[text.index(f"{at.revision[:9]} {at.date[:16]} {at.subject}") :].splitlines()[1]
    before = rf"confidence .*, since {known[place - 1].revision[:9]}"
    said = rf"  {case}: processor time 1.00x -> 1.08x \(\+[78].\d%\), {before}"
    assert re.fullmatch(said, step), step


def test_revisions_are_listed_by_date_and_subject_on_demand(root: Path, sides: dict[str, Any]) -> None:
    assert recorded("HEAD~2..HEAD", "--reference", "HEAD~1")[0] == 0
    one, two = (commit_of(name, root)[:9] for name in ("HEAD~1", "HEAD"))
    assert "change 7" not in invoked()[1]
    code, text = invoked("--revisions")
    assert code == 0
    assert f"\n{one} 2025-12-31T22:06 change 6\n  {CASE}  1.00x [1.00, 1.00]\n" in text
    assert f"\n{two} 2025-12-31T22:07 change 7\n  {CASE}  1.00x [1.00, 1.00]\n" in text
    assert "Changes:" not in text


def test_the_page_has_charts_and_subjects(root: Path, sides: dict[str, Any]) -> None:
    assert recorded("HEAD~2..HEAD", "--reference", "HEAD~1")[0] == 0
    code, text = invoked("--html", "history.html")
    assert (code, text) == (0, "history.html\n")
    page = (root / "history.html").read_text(encoding="utf-8")
    assert page.count("change 7") >= 2, "on hover and in the table"
    assert f"processor time / that of {commit_of('HEAD~1', root)[:9]}" in page
    assert invoked("--case", "a|b", "--html", "some.html")[0] == 0
    assert "icebench history &#39;--case=a|b&#39; --html some.html" in (root / "some.html").read_text(encoding="utf-8")
    code, text = invoked("--long", "--html", "history.html")
    assert code != 0
    assert "--long goes without --html" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no history yet: 'icebench history record' measures revisions"),
        (("record",), "the first record freezes the revision that all are measured against: --reference REV"),
        (("record", "nowhere", "--reference", "HEAD"), "no commit 'nowhere' here"),
        (("record", "HEAD~2..HEAD~2", "--reference", "HEAD"), "no commit of HEAD~2..HEAD~2 changed the engine"),
    ],
)
def test_what_cannot_be_done_is_one_line(sides: dict[str, Any], arguments: tuple[str, ...], message: str) -> None:
    code, text = invoked(*arguments)
    assert code == 4
    assert text.count("\n") == 1
    assert message in text


def test_a_damaged_history_is_refused(root: Path, sides: dict[str, Any]) -> None:
    assert recorded("HEAD", "--reference", "HEAD~1")[0] == 0
    path = RESULTS / "history" / "00000000-beside-00000000.json"
    path.write_text("{", encoding="utf-8")
    code, text = invoked()
    assert code == 4
    assert text.startswith(f"icebench: {path}: damaged")
    assert recorded("HEAD~2")[0] == 4


def test_another_reference_starts_series_of_its_own(root: Path, sides: dict[str, Any]) -> None:
    old, new = (commit_of(name, root) for name in ("HEAD~6", "HEAD~1"))
    assert recorded("HEAD~7..HEAD~2", "--reference", old)[0] == 0
    sides[old] = Unbuildable("no engine of today")
    code, text = recorded("HEAD")
    assert code == 4
    assert text.strip() == (
        "icebench: the reference cannot be built; --reference REV starts series with another: no engine of today"
    )
    assert recorded("HEAD~3", "--reference", new)[0] == 0
    assert recorded("HEAD")[0] == 0
    assert [(entry.subject, entry.reference) for entry in entries() if entry.number > 4] == [
        *sorted([("change 4", old), ("change 4", new)], key=lambda it: it[1]),
        ("change 7", new),
    ]
    before, after = invoked()[1].split("\n\n")
    assert before.startswith(f"4 revisions from 2025-12-31 to 2025-12-31, each interleaved with {old[:9]} ")
    assert after.startswith(f"2 revisions from 2025-12-31 to 2025-12-31, each interleaved with {new[:9]} ")


def test_cases_that_nobody_else_has_measure_nothing(root: Path, sides: dict[str, Any]) -> None:
    (root / "bench").mkdir()
    (root / "bench" / "work.py").write_text("changed")
    code, text = recorded("HEAD", "--reference", "HEAD~1")
    assert code == 4
    assert "bench/: not committed" in text
    assert not entries()


def test_the_digest_of_cases_is_of_what_they_do_not_of_where_their_modules_lie() -> None:
    before = cases_digest(["from a.work import rows\n\nMOST = 3\n\n\ndef case():\n    return rows(MOST)\n"])
    moved = cases_digest(
        ["from a.b.work import rows\nimport json\n\nMOST = 3\n\n\ndef case():\n    return rows(MOST)\n"]
    )
    changed = cases_digest(["from a.work import rows\n\nMOST = 4\n\n\ndef case():\n    return rows(MOST)\n"])
    assert before == moved != changed
    assert before.startswith("statements-"), "digests of whole files are of another kind"
    assert cases_digest() not in {before, changed}
