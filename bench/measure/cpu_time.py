"""Processor time of what is timed: on a machine that others use too, it says more than the clock.

All threads of this process count, and those of the Java virtual machines that it started where an engine works in one:
its compiler and its garbage collector too.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil

Timed = Callable[[], object]


class CpuMeter:
    """Measures one case.

    Args:
        in_java: Whether the engine works in a Java virtual machine, whose clock ticks in hundredths of a second.
        own_seconds: Processor time of this process.
    """

    def __init__(self, *, in_java: bool, own_seconds: Callable[[], float] = time.process_time) -> None:
        self._machines = [child for child in psutil.Process().children(recursive=True) if in_java and _is_java(child)]
        self._own_seconds = own_seconds
        self.seconds: list[float] = []
        """Of every run, in order."""

    def metered(self, prepare: Callable[[], Timed]) -> Callable[[], Timed]:
        """The same preparation, whose timed part is measured too."""

        def prepared() -> Timed:
            timed = prepare()

            def run() -> object:
                start = self._now()
                result = timed()
                self.seconds.append(self._now() - start)
                return result

            return run

        return prepared

    def _now(self) -> float:
        times = (machine.cpu_times() for machine in self._machines)
        return self._own_seconds() + sum(each.user + each.system for each in times)


def _is_java(process: psutil.Process) -> bool:
    try:
        return process.name().startswith("java")
    except psutil.Error:
        return False
