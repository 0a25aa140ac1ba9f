"""Processor time and memory of this process and of those that it started: on a machine that others use too, processor
time says more than the clock.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

from icebench.bench.processes.linux_processes import descendants, restart_peak, status_bytes


class ProcessTree:
    """Measures one execution after the other, by one thread.

    All threads of this process count, and children that ended meanwhile. Where an engine works in processes that this
    one started, so do they: a process of its own, or a Java virtual machine with its compiler, its garbage collector
    and Spark's workers in Python. Their clock ticks in hundredths of a second. Where an engine does not, they are left
    out: they are idle.

    Args:
        own_seconds: Processor time of this process.
    """

    def __init__(self, own_seconds: Callable[[], float] = time.process_time) -> None:
        self._own_seconds = own_seconds
        self._in_children = False
        self._known: dict[int, psutil.Process] = {}
        self._cpu = 0.0
        self._resident: dict[int, int] | None = {}

    def start(self, *, in_children: bool) -> None:
        """Begin; what is timed follows at once."""
        self._in_children = in_children
        children = self._children() if in_children else []
        self._resident = _restarted_peaks([psutil.Process().pid, *(child.pid for child in children)])
        others = _cpu_of(children)
        self._cpu = others + _reaped() + self._own_seconds()

    def stop(self) -> tuple[float, int | None]:
        """Processor seconds since `start`, and how far resident memory rose above what it was then, at its peak; None
        where the system does not report it."""
        own = self._own_seconds() + _reaped()
        children = self._children() if self._in_children else []
        seconds = max(0.0, own + _cpu_of(children) - self._cpu)
        if self._resident is None:
            return seconds, None
        peaks = {pid: peak for pid in (psutil.Process().pid, *(c.pid for c in children)) if (peak := _peak(pid))}
        return seconds, sum(max(0, peak - self._resident.get(pid, 0)) for pid, peak in peaks.items())

    def _children(self) -> list[psutil.Process]:
        """Those that are named now, and those that were before and still run: of one that is missing by chance (see
        `descendants`), all that it ever did would be taken for a sample's."""
        self._known = {pid: process for pid, process in self._known.items() if process.is_running()}
        self._known |= {process.pid: process for process in _descendants()}
        return list(self._known.values())


def bytes_read(*, in_children: bool) -> int | None:
    """How much this process has read so far, from whatever; with its children where an engine works in them. None where
    the system does not report it."""
    own = psutil.Process()
    if not hasattr(own, "io_counters"):
        return None
    found = 0
    for process in (own, *(_descendants() if in_children else ())):
        try:
            found += process.io_counters().read_chars
        except psutil.Error:
            continue
    return found


def _descendants() -> list[psutil.Process]:
    """The processes that this one and its children started.

    psutil asks every process of the machine for its parent, twice a sample; Linux names the children of a process.
    """
    own = psutil.Process()
    try:
        pids = descendants(own.pid)
    except OSError:
        return own.children(recursive=True)
    found = []
    for pid in pids:
        with suppress(psutil.Error):  # it ended
            found.append(psutil.Process(pid))
    return found


def _cpu_of(processes: list[psutil.Process]) -> float:
    """With that of their children that ended: it moves from the child to its parent, so the sum never falls."""
    total = 0.0
    for process in processes:
        try:
            total += sum(process.cpu_times()[:4])
        except psutil.Error:
            continue  # it ended, and is among its parent's children now
    return total


def _reaped() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _restarted_peaks(pids: list[int]) -> dict[int, int] | None:
    """Resident bytes by process, whose peaks are counted from now on; None where the system does not report it."""
    found = {}
    for pid in pids:
        try:
            found[pid] = restart_peak(pid)
        except (ProcessLookupError, FileNotFoundError, LookupError):
            if pid == pids[0]:
                return None
        except OSError:
            return None
    return found


def _peak(pid: int) -> int | None:
    try:
        return status_bytes("VmHWM", pid)
    except (OSError, LookupError):
        return None
