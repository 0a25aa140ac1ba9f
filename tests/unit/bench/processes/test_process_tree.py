"""Processor time: of the timed part alone, whoever waits meanwhile, children too. Memory: the peak, not the rest."""

import os
import subprocess
import sys
import time
from threading import Thread

import pytest

from icebench.bench.processes import process_tree
from icebench.bench.processes.linux_processes import descendants
from icebench.bench.processes.process_tree import ProcessTree


def work(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_work_of_all_threads_counts_and_waiting_does_not() -> None:
    tree = ProcessTree()
    work(0.1)
    tree.start(in_children=False)
    threads = [Thread(target=work, args=(0.05,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    for thread in threads:
        thread.join()
    seconds, _ = tree.stop()
    assert 0.1 <= seconds < 0.3


@pytest.mark.parametrize("in_children", [False, True])
def test_children_that_ended_count(in_children: bool) -> None:
    tree = ProcessTree()
    tree.start(in_children=in_children)
    program = "import time\nwhile time.process_time() < 0.2: pass"
    subprocess.run([sys.executable, "-c", program], check=True)
    seconds, _ = tree.stop()
    assert 0.2 <= seconds < 2


def test_children_that_live_count_where_the_engine_is_there_alone() -> None:
    work_on_request = "sys.stdin.readline()\nwhile time.process_time() < 0.3: pass\nprint('x', flush=True)"
    program = f"import sys, time\n{work_on_request}\nsys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        there, elsewhere = ProcessTree(), ProcessTree()
        there.start(in_children=True)
        elsewhere.start(in_children=False)
        child.stdin.write("\n")
        child.stdin.flush()
        child.stdout.readline()
        assert there.stop()[0] >= 0.2
        assert elsewhere.stop()[0] < 0.2
        child.stdin.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports the peak")
def test_memory_is_the_peak_above_what_was_there() -> None:
    tree = ProcessTree()
    kept = bytearray(64 << 20)
    tree.start(in_children=False)
    del kept
    _, before = tree.stop()
    tree.start(in_children=False)
    bytearray(96 << 20)
    _, memory = tree.stop()
    assert before is not None
    assert memory is not None
    assert before < 32 << 20
    assert 64 << 20 < memory < 160 << 20


def test_where_nothing_reports_memory_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(pid: int) -> int:
        raise PermissionError(pid)

    monkeypatch.setattr(process_tree, "restart_peak", refused)
    tree = ProcessTree()
    tree.start(in_children=False)
    assert tree.stop()[1] is None


def test_processes_of_processes_are_found_whichever_thread_started_them() -> None:
    program = """
import subprocess, sys, threading
def start():
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"])
    print(child.pid, flush=True)
    child.wait()
thread = threading.Thread(target=start)
thread.start()
thread.join()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        assert {child.pid, grandchild} <= set(descendants(os.getpid()))
        child.stdin.close()
    assert not {child.pid, grandchild} & set(descendants(os.getpid()))
    with pytest.raises(OSError, match="children"):
        descendants(child.pid)


def test_children_count_where_the_system_does_not_name_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(pid: int) -> list[int]:
        raise FileNotFoundError(pid)

    monkeypatch.setattr(process_tree, "descendants", unknown)
    test_children_that_live_count_where_the_engine_is_there_alone()
