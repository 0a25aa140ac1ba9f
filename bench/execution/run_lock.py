"""One run at a time writes a run's file.

The lock is ``flock`` on the file itself. It belongs to those who have its descriptor, a run and its further processes,
and the system releases it when the last of them ends, however that is.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from icebench.bench.errors import ConfigError


@contextmanager
def run_lock(path: Path, inherited: int | None = None) -> Iterator[int]:
    """Context in which no other run writes the file.

    Args:
        path: The run's file.
        inherited: The descriptor of the lock of the process that started this one; None takes the lock.

    Yields:
        The lock's descriptor, for further processes.

    Raises:
        ConfigError: A run writes it; the message names the process.
    """
    if inherited is not None:
        yield inherited
        return
    # Systems that keep locks on a server lock what can be written.
    descriptor = os.open(path, os.O_RDWR)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(f"{_writers(path)} is writing this run: wait for its end", path=str(path)) from None
        yield descriptor
    finally:
        os.close(descriptor)


def _writers(path: Path) -> str:
    """The processes that have the file open, as far as this user may know."""
    found = []
    for process in psutil.process_iter(["pid", "name"]):
        try:
            is_open = any(path.samefile(each.path) for each in process.open_files())
        except (psutil.Error, OSError):
            continue
        if is_open and process.pid != os.getpid():
            found.append(f"process {process.pid} ({process.info['name']})")
    return " and ".join(found) or "a process of another user or machine"
