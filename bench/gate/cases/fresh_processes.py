"""Counts what fresh processes load and hold: modules, memory, and threads that have nothing to do.

A process that ran other cases has loaded everything, and its memory is that of all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping

from icebench.bench.errors import BenchError

_KEPT = ("PATH", "HOME", "PYTHONPATH", "PYTHONHASHSEED")
"""Of the environment: what else a user has set must not count."""

_BEGIN = """
import json, os, sys
before = set(sys.modules)
import icebench
"""
_OPEN = "table = icebench.load_catalog(sys.argv[1]).load_table(sys.argv[2])\n"
_PLAN = "table.scan().plan()\n"
_PLANS = "for _ in range(50): table.scan().plan()\n"
_ROWS = "next(iter(table.scan().to_batches()))\n"
_SCANS = "for _ in range(3): sum(batch.num_rows for batch in table.scan().to_batches())\n"
_MODULES = """
mine = [name for name in sys.modules if name.partition(".")[0] not in sys.stdlib_module_names and name not in before]
print(json.dumps({"modules_imported": len(mine)}))
"""
_THREADS = """
import threading
threads = set()
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, range(os.cpu_count()))
processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
two = threading.Event()
class Noted(icebench.Counters):
    def add(self, name, n=1):
        super().add(name, n)
        if name.startswith("storage_requests_") and threading.current_thread() is not threading.main_thread():
            threads.add(threading.get_ident())
            if len(threads) > 1 or processors == 1:
                two.set()
            two.wait(10)
table.scan(counters=Noted()).plan()
"""
_PEAK = """
import resource
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
if os.path.exists("/proc/self/status"):
    with open("/proc/self/status") as status:
        kilobytes = {name: int(value.split()[0]) for name, _, value in (line.partition(":") for line in status)
                     if name in ("VmHWM", "RssFile", "RssShmem")}
    # How many pages of a library's file are resident depends on the kernel and its cache.
    peak = (kilobytes["VmHWM"] - kilobytes["RssFile"] - kilobytes["RssShmem"]) * 1024
print(json.dumps({"resident_bytes_peak": peak}))
"""
_IDLE = 'print(json.dumps({"threads_idle": min(2, processors) - min(2, max(1, len(threads)))}))\n'

SCRIPTS = {
    "fresh/import": (_BEGIN + _MODULES, ""),
    "fresh/first-plan": (_BEGIN + _OPEN + _PLAN + _MODULES, "partitioned"),
    "fresh/first-rows": (_BEGIN + _OPEN + _ROWS + _MODULES, "partitioned"),
    "fresh/plans": (_BEGIN + _OPEN + _PLANS + _PEAK, "partitioned"),
    "fresh/scans": (_BEGIN + _OPEN + _SCANS + _PEAK, "large"),
    "fresh/threads": (_BEGIN + _OPEN + _THREADS + _IDLE, "hundred"),
}
"""Name -> a program, and the table that it opens."""


class FreshProcessFailed(BenchError):
    """A process that was started for its counters failed."""


def count_fresh(
    warehouse: str, namespace: str, chosen: Callable[[str], bool] = lambda _: True
) -> dict[str, Mapping[str, int]]:
    """What a fresh process counts, for each chosen name of `SCRIPTS`.

    Raises:
        FreshProcessFailed: With the last line of what it said.
    """
    return {
        name: _counted(name, script, warehouse, f"{namespace}.{table}")
        for name, (script, table) in SCRIPTS.items()
        if chosen(name)
    }


def _counted(name: str, script: str, warehouse: str, table: str) -> Mapping[str, int]:
    environment = {key: os.environ[key] for key in _KEPT if key in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", script, warehouse, table], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise FreshProcessFailed(f"{name}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    counted: Mapping[str, int] = json.loads(done.stdout)
    return counted
