"""Processes that answer with a line of JSON."""

import time

import psutil
import pytest

from icebench.bench.errors import Disagreement, EngineFailed
from icebench.bench.processes import fresh_process as module
from icebench.bench.processes.fresh_process import fresh_process

ANSWER = '{"seconds": 2.0, "cpu_seconds": 1.0, "peak_bytes": 3, "rows": 4}'


def run(code: str) -> list[str]:
    return ["timeit", "-n", "1", "-r", "1", code]


@pytest.mark.timeout(60)
def test_a_process_that_says_much_before_it_answers() -> None:
    cost = fresh_process(run(f"import sys; sys.stderr.write('x' * 10**6); print('{ANSWER}')")).cost(5.0)
    assert (cost.wall, cost.cpu, cost.memory, cost.more) == (2.0, 1.0, 3, {"rows": 4})


def test_why_a_process_failed() -> None:
    with pytest.raises(EngineFailed, match="a fresh process failed: ZeroDivisionError"):
        fresh_process(run("1 / 0")).cost(5.0)


def test_a_process_that_finds_other_rows() -> None:
    with pytest.raises(Disagreement, match="finds 4 rows, not 5"):
        fresh_process(run(f"print('{ANSWER}')"), exactly={"rows": 5}).cost(5.0)
    with pytest.raises(Disagreement, match="finds 4 rows, fewer than 5"):
        fresh_process(run(f"print('{ANSWER}')"), least={"rows": 5}).cost(5.0)


@pytest.mark.timeout(60)
def test_a_process_that_does_not_end_is_killed_with_what_it_started(monkeypatch: pytest.MonkeyPatch) -> None:
    child = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(50)'])"
    started = fresh_process(run(f"import subprocess, sys, time; print({child}.pid, flush=True); time.sleep(50)"))
    monkeypatch.setattr(module, "_TIMEOUT_SECONDS", 0.2)
    with pytest.raises(EngineFailed, match=r"a fresh process did not end within 0.2 s"):
        started.cost(5.0)
    assert started.process.returncode
    deadline = time.monotonic() + 20
    while _runs(int(started.line)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _runs(int(started.line))


@pytest.mark.timeout(60)
def test_a_process_that_does_not_answer_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TIMEOUT_SECONDS", 2)
    for said in ("", "import sys; sys.stdout.write('{'); sys.stdout.flush(); "):
        with pytest.raises(EngineFailed, match=r"a fresh process did not answer within 2 s"):
            fresh_process(run(f"{said}import time; time.sleep(50)"))
    assert not [each for each in psutil.Process().children() if "time.sleep(50)" in " ".join(each.cmdline())]


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
