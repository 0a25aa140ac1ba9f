"""The kernels of Parquet footers check no bounds by themselves: none of their loads and stores leaves its memory."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.fault.campaign import SEED, Figures, scaled, sizes
from tests.fault.fork_server import REPOSITORY

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="guards are pages of Linux")

_TOUCH = """
import ctypes, sys
from tests.fault.guarded_memory import GuardedMemory
data = ctypes.create_string_buffer(100)
place = GuardedMemory(100).put(ctypes.addressof(data), 100, at_end=sys.argv[1] == "end")
ctypes.memset(place + int(sys.argv[2]), 1, 1)
"""


@pytest.mark.parametrize(("where", "offset", "dies"), [("end", 99, False), ("end", 100, True), ("begin", -1, True)])
def test_guards_end_a_process_that_leaves_its_memory(where: str, offset: int, dies: bool) -> None:
    ended = subprocess.run([sys.executable, "-c", _TOUCH, where, str(offset)], cwd=REPOSITORY, check=False)
    assert ended.returncode == (-signal.SIGSEGV if dies else 0)


@sizes(400, 20_000)
def test_kernels_stay_within_their_memory(figures: Figures, size: int) -> None:
    cases = size if size < 1000 else scaled(size)
    command = [sys.executable, "-m", "tests.fault.guarded_kernels", str(SEED), "0", str(cases)]
    ended = subprocess.run(command, cwd=REPOSITORY, check=False, capture_output=True, text=True)
    *said, last = ended.stdout.splitlines()
    assert ended.returncode == 0, f"seed {SEED}, case {last}: ended by {ended.returncode}\n{ended.stderr[-3000:]}"
    assert len(said) == cases
    figures(cases=cases, seed=SEED, came=last)
