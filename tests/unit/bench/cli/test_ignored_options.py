from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.bench.cli.test_main import exit_code, write_run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run --table t --warehouse w", "--warehouse needs --catalog"),
        ("run --table t --catalog-name c", "--catalog-name needs --catalog"),
        ("run --catalog-name c", "--catalog-name needs --table"),
        ("run quick --table t", "experiment goes without --table"),
        ("doctor --catalog-name c", "--catalog-name needs a table"),
        ("gate --budget 15m", "--budget needs --base"),
        ("gate --seed 0", "--seed needs --base"),
        ("gate --allow x", "--allow needs --accept"),
        ("report --print --json", "--print goes without --json"),
        ("compare RUN RUN --profile same-region", "--profile is for layouts"),
        ("compare RUN RUN --html PAGE --json", "--html goes without --json"),
        ("compare RUN RUN --html PAGE --long", "--long goes without --html"),
        ("compare --long --csv", "--long goes without --csv"),
        ("advise t --scans LOG --dialect spark", "--dialect needs --queries"),
        ("advise t --scans LOG --called t", "--called needs --queries"),
        ("study --pages --again", "--again measures"),
        ("history --long record", "--long is for what is shown"),
        ("history --case x record", "--case is for what is shown"),
    ],
)
def test_options_without_an_effect_are_refused(
    words: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path)
    given = {"RUN": run.stem, "LOG": str(run), "PAGE": str(tmp_path / "page.html")}
    assert exit_code("--results", tmp_path, *(given.get(word, word) for word in words.split())) == 2
    assert f"Error: {said}" in capsys.readouterr().err
