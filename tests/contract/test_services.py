"""Servers of tests end with the tests."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.services.processes import ServiceFailed, running

SLEEPER = [sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(60)"]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # One that has ended and that nobody waited for is still there by its number.
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return "Z" not in shown.stdout


def ended(pid: int) -> bool:
    until = time.monotonic() + 10
    while is_running(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not is_running(pid)


def test_a_server_ends_with_its_block(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def interrupted() -> None:
        with running(SLEEPER, log=log, ready=lambda: bool(log.read_text())):
            assert is_running(int(log.read_text()))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert ended(int(log.read_text()))


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit('no port')"]
    with pytest.raises(ServiceFailed, match="no port"), running(command, log=tmp_path / "log", ready=lambda: False):
        pass


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="only Linux's setpriv ties a process to its parent")
def test_a_server_ends_with_a_run_that_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from tests.services.processes import running\n"
        f"log = Path({str(log)!r})\n"
        f"with running({SLEEPER!r}, log=log, ready=lambda: bool(log.read_text())):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == -signal.SIGKILL
    assert ended(int(log.read_text()))
