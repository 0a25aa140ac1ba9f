"""Resident memory of a process, its peak and its children, as Linux reports them; imports nothing that a measured
process would not."""

from __future__ import annotations

from pathlib import Path


def status_bytes(name: str, pid: int | str = "self") -> int:
    """A figure about a process's memory: ``VmRSS`` now, ``VmHWM`` the most since it was last restarted.

    Raises:
        OSError: No such process, or not Linux.
        LookupError: The process has ended.
    """
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    found = next((line for line in lines if line.startswith(f"{name}:")), None)
    if found is None:
        raise LookupError(f"process {pid} has ended")
    return int(found.split()[1]) << 10


def restart_peak(pid: int | str = "self") -> int:
    """Count the peak from now on; gives the resident bytes now.

    Raises:
        OSError: No such process, not Linux, or not allowed.
        LookupError: The process has ended.
    """
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="utf-8")
    return status_bytes("VmRSS", pid)


def descendants(pid: int) -> list[int]:
    """The processes that a process and its children started, and that still run. While one of them ends, Linux may
    leave out others (proc_tid_children(5)).

    Raises:
        OSError: No such process, not Linux, or a Linux that does not name children.
    """
    Path(f"/proc/{pid}/task/{pid}/children").read_bytes()
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = _children(waiting.pop())
        found += children
        waiting += children
    return found


def _children(pid: int) -> list[int]:
    """Those that a thread of a process started; none of a process or a thread that has ended, whose children are
    another's now."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except FileNotFoundError:
        return []
    found: list[int] = []
    for thread in threads:
        try:
            found += map(int, (thread / "children").read_bytes().split())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found
