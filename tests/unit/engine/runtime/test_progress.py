from __future__ import annotations

import io
import subprocess
import sys

import pytest

import icebench
from icebench.engine.runtime.progress import Counted


def step(what: str, done: int, total: int | None = None) -> Counted:
    return Counted(what=what, unit="rows", done=done, total=total)


def test_the_last_state_of_each_call_is_written() -> None:
    out = io.StringIO()
    with icebench.progress_bar(out) as bar:
        bar(step("append", 500))
        bar(step("append", 1_234, 1_234))
        bar(step("append", 10))  # the next call of the same method
        bar(step("expire_snapshots", 3, 9))
    lines = [" ".join(line.split()) for line in out.getvalue().splitlines() if line.strip()]
    assert len(lines) == 3
    assert "1,234 of 1,234 rows" in lines[0]
    assert "append" in lines[1]
    assert " 10 rows" in lines[1]
    assert "3 of 9 rows" in lines[2]


def test_an_error_ends_the_bar_and_stays(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        with icebench.progress_bar() as bar:
            bar(step("append", 1))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert "append" in capsys.readouterr().err


def test_nothing_is_loaded_for_a_bar_that_is_not_asked_for() -> None:
    code = "import icebench.engine.runtime.progress, icebench.engine.table, sys; print('rich' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        == "False"
    )
