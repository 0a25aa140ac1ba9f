"""What the guide shows is what happens: its Python examples are run, page by page, each in a directory of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from icebench.bench.cli.baselines import read_baseline
from icebench.bench.gate.decisions.counter_verdict import compare
from tests.tidy.source import REPOSITORY

PAGES = [REPOSITORY / "docs" / "index.md", *sorted((REPOSITORY / "docs" / "guide").glob("*.md"))]
_EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def examples(page: Path) -> list[str]:
    return _EXAMPLE.findall(page.read_text())


@pytest.mark.parametrize("page", [page for page in PAGES if examples(page)], ids=lambda page: page.stem)
def test_examples_of_the_guide_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, example in enumerate(examples(page), 1):
        exec(compile(example, f"{page.name}, example {number}", "exec"), names)


def test_the_guide_shows_the_committed_baseline() -> None:
    baseline = read_baseline(REPOSITORY / "results" / "baselines" / "counters.json")
    verdict = compare(baseline, baseline)
    said = f"pass: {verdict.cases} cases, {verdict.counters} counters compared with results/baselines/counters.json"
    assert said in (REPOSITORY / "docs" / "guide" / "ci.md").read_text().splitlines()


def test_there_are_examples() -> None:
    assert sum(len(examples(page)) for page in PAGES) > 10
