from __future__ import annotations

import errno
import json
import math
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from icebench.bench.cli import baselines, compare_revisions
from icebench.bench.cli.baselines import accepted_by
from icebench.bench.cli.compare_revisions import Wanted, compare_two, seconds_of
from icebench.bench.cli.context import Context
from icebench.bench.cli.failures import run_guarded
from icebench.bench.cli.gate import gate
from icebench.bench.cli.places import Places, write_whole
from icebench.bench.cli.terminal import Terminal
from icebench.bench.errors import ConfigError
from icebench.bench.gate.cases.time_cases import TIMED
from icebench.bench.gate.decisions.baseline import Baseline, CaseResult, encode
from icebench.bench.gate.revisions.build import CaseProcessFailed, Revision, Unbuildable
from icebench.bench.tables.cache import source_digest

CASE = "open/many"


def context_of(tmp_path: Path) -> tuple[Context, StringIO]:
    out = StringIO()
    console = Console(file=out, width=200)
    return Context(places=Places(tmp_path / "results"), terminal=Terminal(out=console, err=console)), out


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """Sides whose processes are not run: seconds by side."""
    asked: list[tuple[str, ...]] = []
    taken: dict[str, Any] = {"base": 1.0, "head": 1.0, "asked": asked}

    def run(self: Revision, module: str, *arguments: str, beside: socket.socket | None = None, **given: float) -> str:
        if beside is not None:
            beside.close()
        asked.append((self.name, module, *arguments))
        assert given.get("seed", 0) >= 0
        assert given.get("seconds", math.inf) > 0
        if module == "icebench.bench.gate.cases.count_cases":
            return encode(Baseline(cases={CASE: CaseResult(counters={}, checksum="c")}))
        if "--build" in arguments:
            return ""
        if "--profile" in arguments:
            return json.dumps([[["scan", "decode"], 0.1 * (1 + (self.name == "head"))], [["scan", "open"], 0.1]])
        if isinstance(taken[self.name], Exception):
            raise taken[self.name]
        return json.dumps({CASE: {"seconds": [taken[self.name]]}})

    def build(name: str, *, root: Path, cache: Path) -> Revision:
        del root
        if name == "unbuildable":
            raise Unbuildable("unbuildable: SyntaxError: invalid syntax")
        return Revision(name=name, folder=cache / name, python="python")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Revision, "run", run)
    monkeypatch.setattr(compare_revisions, "build", build)
    monkeypatch.setattr(compare_revisions, "_writer_of", lambda _: "a writer")
    return taken


def compared(tmp_path: Path, base: str = "base", wanted: Wanted | None = None) -> tuple[int, str]:
    context, out = context_of(tmp_path)
    code = compare_two(context, base, "head", wanted or Wanted(("open",)), root=tmp_path)
    return code, out.getvalue()


@pytest.mark.parametrize(("head", "code", "word"), [(1.0, 0, "pass"), (1.5, 1, "regressed")])
def test_the_outcome_is_printed_and_written(
    tmp_path: Path, scripted: dict[str, Any], head: float, code: int, word: str
) -> None:
    scripted["head"] = head
    found, text = compared(tmp_path)
    assert found == code
    assert f"{word}: base -> head" in text
    folder = tmp_path / "results" / "gate"
    assert json.loads((folder / "outcome.json").read_text())["verdict"] == word
    assert (folder / "comment.md").read_text().startswith(f"### icebench gate: {word}")
    assert 'tests="1"' in (folder / "junit.xml").read_text()
    page = folder / "regression.html"
    assert page.exists() == (code == 1)
    if page.exists():
        assert "decode: 200 ms, 66.7%; the other side 100 ms" in page.read_text(encoding="utf-8")


def test_what_is_exact_is_counted_once_and_tables_are_kept(tmp_path: Path, scripted: dict[str, Any]) -> None:
    for base in ("base", "base", "head"):
        assert compared(tmp_path, base)[0] == 0
    modules = [(name, module) for name, module, *_ in scripted["asked"] if module.endswith("count_cases")]
    # Both at once, whichever is first.
    assert sorted(modules) == [
        ("base", "icebench.bench.gate.cases.count_cases"),
        ("head", "icebench.bench.gate.cases.count_cases"),
    ]
    assert len([own for own in scripted["asked"] if "--build" in own]) == 1


def test_a_revision_beside_itself_is_counted_once(tmp_path: Path, scripted: dict[str, Any]) -> None:
    assert compared(tmp_path, "head")[0] == 0
    assert len([module for _, module, *_ in scripted["asked"] if module.endswith("count_cases")]) == 1


def test_tables_are_made_anew_where_another_engine_writes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def run(self: Revision, module: str, *arguments: str, seed: int = 0, seconds: float = math.inf) -> str:
        assert (module, arguments[1:], seed, seconds) == ("icebench.bench.gate.cases.time_cases", ("--build",), 0, 60.0)
        made.append(self.name)
        return ""

    def revision(name: str, **sources: str) -> Revision:
        for room in ("write", "plan"):
            (tmp_path / name / "engine" / room).mkdir(parents=True)
            (tmp_path / name / "engine" / room / "__init__.py").write_text(sources.get(room, ""))
        (tmp_path / name / "engine" / "__pycache__").mkdir()
        return Revision(name=name, folder=tmp_path / name, python="python")

    monkeypatch.setattr(Revision, "run", run)
    first = compare_revisions.warehouse_of(revision("first"), tmp_path, 60.0)
    assert compare_revisions.warehouse_of(revision("reads otherwise", plan="x = 1"), tmp_path, 60.0) == first
    assert compare_revisions.warehouse_of(revision("writes otherwise", write="x = 1"), tmp_path, 60.0) != first
    assert made == ["first", "writes otherwise"]
    digest = source_digest
    monkeypatch.setattr(
        compare_revisions, "source_digest", lambda paths: "" if paths[-1].name == "workloads" else digest(paths)
    )
    assert compare_revisions.warehouse_of(revision("other rows"), tmp_path, 60.0) != first


def test_tables_are_made_once_by_two_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def run(self: Revision, _module: str, folder: str, *_arguments: str, **_given: float) -> str:
        made.append(self.name)
        (Path(folder) / "first").touch()
        if len(made) == 1:
            other = pool.submit(compare_revisions.warehouse_of, side, tmp_path)
            with suppress(TimeoutError):
                other.result(0.5)
        (Path(folder) / "second").touch()
        return ""

    monkeypatch.setattr(Revision, "run", run)
    monkeypatch.setattr(compare_revisions, "_writer_of", lambda _: "a writer")
    side = Revision(name="side", folder=tmp_path, python="python")
    with ThreadPoolExecutor(1) as pool:
        folder = compare_revisions.warehouse_of(side, tmp_path)
        assert {path.name for path in folder.iterdir()} == {"first", "second", ".ready"}
    assert made == ["side"]


def test_what_was_not_built_in_time_is_inconclusive(tmp_path: Path, scripted: dict[str, Any]) -> None:
    assert scripted
    context, out = context_of(tmp_path)
    now = iter(range(0, 10_000, 100))
    code = compare_two(context, "base", "head", Wanted(("open",), 250.0), root=tmp_path, clock=lambda: float(next(now)))
    assert code == 3
    assert "The budget was over while building." in out.getvalue()


def invoked(tmp_path: Path, *arguments: str) -> tuple[int, str]:
    context, _ = context_of(tmp_path)
    err = StringIO()
    context = Context(places=context.places, terminal=Terminal(err=Console(file=err, width=300)))

    def action() -> int:
        code = gate.main(list(arguments), prog_name="gate", standalone_mode=False, obj=context)
        return int(code)

    code = run_guarded(action, debug=lambda: False, err=err)
    return code, err.getvalue()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--base", "unbuildable"], 4, "icebench: unbuildable: SyntaxError: invalid syntax"),
        (["--base", "base", "--case", "no such"], 4, "icebench: no case matches no such; there are "),
        (["--base", "base", "--case", "("], 4, "icebench: --case: not a regular expression"),
        (["--base", "base", "--budget", "soon"], 4, "icebench: --budget: 'soon' is no time"),
        (["--head", "HEAD"], 2, "--head needs --base"),
        (["--base", "base", "--accept"], 2, "--accept goes without --base"),
    ],
)
def test_what_cannot_be_compared_is_one_line_and_a_code(
    tmp_path: Path, scripted: dict[str, Any], arguments: list[str], code: int, message: str
) -> None:
    assert scripted
    found, text = invoked(tmp_path, *arguments)
    assert found == code
    assert message in text


def test_a_head_that_dies_is_an_error(tmp_path: Path, scripted: dict[str, Any]) -> None:
    scripted["worktree"] = CaseProcessFailed("worktree: MemoryError")
    code, text = invoked(tmp_path, "--base", "base", "--case", "open")
    assert code == 2
    assert "icebench: worktree: MemoryError\n" in text


def test_a_damaged_baseline_is_one_line(tmp_path: Path, scripted: dict[str, Any]) -> None:
    assert scripted
    baseline = tmp_path / "results" / "baselines" / "counters.json"
    baseline.parent.mkdir(parents=True)
    baseline.write_text("{")
    for arguments in ([], ["--base", "base", "--case", "open"]):
        code, text = invoked(tmp_path, *arguments)
        assert code == 4
        assert "counters.json: line 1, column 2: not JSON" in text
        assert text.count("\n") == 1


def test_a_commit_has_a_baseline_of_its_own(tmp_path: Path) -> None:
    """What the working tree accepts says nothing of an earlier commit, nor of one that `icebench bisect` asks for."""

    def git(*arguments: str) -> None:
        author = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", "-C", str(tmp_path), *author, *arguments], check=True, capture_output=True)

    path = tmp_path / baselines.COMMITTED
    path.parent.mkdir(parents=True)
    git("init")
    git("commit", "--allow-empty", "--message", "without")
    git("tag", "without")
    for name, rows in (("first", 1), ("second", 2)):
        path.write_text(encode(Baseline(cases={CASE: CaseResult(counters={"rows": rows}, checksum="c")})))
        git("add", ".")
        git("commit", "--message", name)
        git("tag", name)
    path.write_text(encode(Baseline(cases={CASE: CaseResult(counters={"rows": 3}, checksum="c")})))
    found = {head: accepted_by(head, path, tmp_path).cases for head in ("without", "first", "second", "worktree")}
    assert found.pop("without") == {}
    assert {head: cases[CASE].counters["rows"] for head, cases in found.items()} == {
        "first": 1,
        "second": 2,
        "worktree": 3,
    }


def test_the_working_trees_baseline_is_not_that_of_a_commit(tmp_path: Path, scripted: dict[str, Any]) -> None:
    assert scripted
    baseline = tmp_path / "results" / "baselines" / "counters.json"
    baseline.parent.mkdir(parents=True)
    baseline.write_text("{")
    assert compared(tmp_path)[0] == 0


def test_a_full_disk_is_one_line(tmp_path: Path, scripted: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert scripted
    scripted["worktree"] = 1.0

    def full(path: Path, text: str) -> None:
        if path.name != "outcome.json":
            whole(path, text)
            return
        raise OSError(errno.ENOSPC, f"No space left on device after {len(text)} bytes", str(path))

    whole = write_whole
    monkeypatch.setattr(compare_revisions, "write_whole", full)
    code, text = invoked(tmp_path, "--base", "base", "--case", "open")
    assert code == 2
    assert "outcome.json: No space left" in text
    assert "free some space" in text


def test_cases_are_chosen_by_pattern() -> None:
    assert Wanted().names() == list(TIMED)
    assert Wanted(("^open/", "^tasks/")).names() == ["open/many", "tasks/many"]


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("15m", 900), ("1h", 3600)])
def test_a_budget_is_a_number_and_a_unit(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds
    with pytest.raises(ConfigError):
        seconds_of(text + "x")
