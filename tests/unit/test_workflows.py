"""The steps of `.github/` run here as a runner of GitHub runs them: their text in bash, their variables filled in."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

import icebench

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTION = ROOT / ".github" / "actions" / "gate-tables" / "action.yml"
EXPRESSIONS = {
    "github.event.pull_request.base.sha": "BASE-SHA",
    "github.event.pull_request.number": "7",
    "github.token": "hidden",
    "inputs.tables": "mine.toml",
}
DEFINITION = """
name = "mine"
engines = ["icebench"]
measurements = ["planning"]

[[workload]]
kind = "table"
path = "warehouse/db/sales"

[filters]
early = "day < 10"
"""


def filled(text: str) -> str:
    return re.sub(r"\$\{\{ *([\w.]+) *\}\}", lambda found: EXPRESSIONS[found[1]], text)


def run_step(
    step: Mapping[str, Any], folder: Path, environment: Mapping[str, str], *, check: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a step's text with the shell that GitHub takes for it."""
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail"] if step.get("shell") == "bash" else ["bash", "-e"]
    own = {name: filled(value) for name, value in step.get("env", {}).items()}
    command = [*shell, "-c", filled(step["run"])]
    given = {**os.environ, **environment, **own}
    return subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, check=check)


def run_steps() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The steps with a text of their own, by the file that they are in."""
    for path in (*WORKFLOWS, ACTION):
        content = yaml.safe_load(path.read_text())
        for job in content.get("jobs", {"": content.get("runs")}).values():
            yield from ((path.name, step) for step in job["steps"] if "run" in step)


def test_scripts_of_steps_are_there_and_can_be_run() -> None:
    named = [(file, name) for file, step in run_steps() for name in re.findall(r"\.ci/[\w-]+", step["run"])]
    assert {file for file, _ in named} == {"action.yml", "ci.yml", "performance.yml"}
    assert [name for _, name in named if not os.access(ROOT / name, os.X_OK)] == []


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose program is one that notes its arguments and ends as `CODE` says, with the file for a comment;
    and a `gh` that notes its arguments."""
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    (tmp_path / "Makefile").write_text(".venv/.stamp:\n")
    for name, script in (
        (
            ".venv/bin/icebench",
            'echo "$@" >>calls; mkdir -p results/gate; echo said >results/gate/comment.md; exit $CODE',
        ),
        ("bin/gh", 'echo "$@" >>calls; cat results/gate/comment.md'),
    ):
        program = tmp_path / name
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(("code", "passes"), [(0, True), (1, False), (2, False), (3, True), (4, False)])
def test_a_pull_request_fails_by_the_verdict_and_is_commented_either_way(
    checkout: Path, code: int, passes: bool
) -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "performance.yml").read_text())
    measure, comment = (step for step in workflow["jobs"]["gate"]["steps"] if "run" in step)
    environment = {"CODE": str(code), "PATH": os.pathsep.join([str(checkout / "bin"), os.environ["PATH"]])}
    assert (run_step(measure, checkout, environment).returncode == 0) == passes
    assert comment["if"].startswith("always() && ")
    done = run_step(comment, checkout, environment, check=True)
    assert done.stdout == "said\n"
    assert (checkout / "calls").read_text().splitlines() == [
        "gate --base BASE-SHA --budget 15m",
        "pr comment 7 --body-file results/gate/comment.md",
    ]
    shutil.rmtree(checkout / "results")
    assert run_step(comment, checkout, environment, check=True).stdout == ""


@pytest.fixture
def tables(tmp_path: Path) -> icebench.Table:
    """A repository with a table of two files, its definition, and the baseline of that."""
    table = icebench.load_catalog(str(tmp_path / "warehouse")).create_table(
        "db.sales", pa.schema([("day", pa.int32())])
    )
    for start in (0, 10):
        table.append(pa.table({"day": pa.array(range(start, start + 10), pa.int32())}))
    (tmp_path / "mine.toml").write_text(DEFINITION)
    return table


def check_action(repository: Path, table: icebench.Table, environment: Mapping[str, str]) -> None:
    """Without a baseline the step fails; with it, it passes until a plan has more, and the job's summary says it."""
    action = yaml.safe_load(ACTION.read_text())
    [step] = [step for step in action["runs"]["steps"] if "run" in step]
    assert list(action["inputs"]) == ["tables"]
    given = {**environment, "GITHUB_STEP_SUMMARY": "summary.md"}
    assert run_step(step, repository, given).returncode == 4
    accept = {**step, "run": step["run"] + " --accept"}
    run_step(accept, repository, given, check=True)
    files = json.loads((repository / "mine.baseline.json").read_text())["cases"]["sales/early"]["counters"]
    assert files["files_planned"] == 1
    assert "pass: 2 cases" in run_step(step, repository, given, check=True).stdout
    table.append(pa.table({"day": pa.array([5], pa.int32())}))
    done = run_step(step, repository, given)
    assert done.returncode == 1, done.stderr
    assert "sales/early: files_planned increased 1 -> 2 (+100.0%)" in done.stdout
    assert done.stdout in (repository / "summary.md").read_text()


@pytest.mark.slow
def test_the_action_for_other_repositories_passes_the_verdict_on(tmp_path: Path, tables: icebench.Table) -> None:
    program = str(Path(sys.executable).with_name("icebench"))
    environment = {"ICEBENCH": program, "PYTHONPATH": str(ROOT), "GITHUB_ACTION_PATH": str(ACTION.parent)}
    check_action(tmp_path, tables, environment)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_the_action_installs_itself_where_git_is_not(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, tables: icebench.Table
) -> None:
    home = tmp_path_factory.mktemp("action")  # as a runner unpacks it: an archive of the revision
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True)
    subprocess.run(["tar", "-x", "-C", home], input=archive.stdout, check=True)
    check_action(tmp_path, tables, {"GITHUB_ACTION_PATH": str(home / ".github" / "actions" / "gate-tables")})
