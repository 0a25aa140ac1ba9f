"""A lock that serialises the commits of one host to a table, best effort.

Of attempts that overlap only one succeeds; the others use the processors that it needs for nothing. A writer that holds
the lock attempts its commit while the others wait. Correctness does not depend on it: the catalog's compare-and-swap
decides, and a writer goes ahead without the lock after waiting too long, where locks are not available, and beside
writers on other hosts.

The lock is ``flock`` on an empty file in a directory of the user's own, which the system releases when the holder ends.
A table asks for it by the property ``icebench.commit.host-lock.enabled``.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_SLOTS = 1024
"""Files, so that they do not grow in number with the tables. Tables that share one wait for each other needlessly."""
_LONGEST_PAUSE, _SHORTEST_PAUSE = 0.02, 0.002
_PATIENCE = 0.1
_HELD = threading.local()


@contextmanager
def host_commit_lock(table: str, *, limit_seconds: float, sleep: Callable[[float], None]) -> Iterator[bool]:
    """A block in which this writer holds a table's lock, or has waited long enough for it.

    Waiting writers try again at intervals that shrink with the time they have waited, so that those that came first are
    likelier to be next. A thread that holds the lock does not wait for itself.

    Args:
        table: What identifies the table.
        limit_seconds: How long to wait at most.
        sleep: Makes waits.

    Yields:
        Whether it had to wait, so that what was loaded before may be outdated.
    """
    held: set[str] = _HELD.__dict__.setdefault("tables", set())
    descriptor = None if table in held else _open(table)
    if descriptor is None:
        yield False
        return
    try:
        waited = 0.0
        while not _lock(descriptor) and waited < limit_seconds:
            pause = max(_LONGEST_PAUSE / (1 + waited / _PATIENCE), _SHORTEST_PAUSE)
            sleep(pause)
            waited += pause
        held.add(table)
        yield waited > 0
    finally:
        held.discard(table)
        _let_go(descriptor)


def directory() -> Path | None:
    """Where the files are; None where locks are not available."""
    if sys.platform == "win32":
        return None
    try:
        place = Path(tempfile.gettempdir()) / f"icebench-commit-locks-{os.geteuid()}"
        place.mkdir(mode=0o700, exist_ok=True)
        status = place.lstat()
    except OSError:
        return None
    # Whoever could write there could hold up everybody's commits.
    own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022
    return place if own else None


def _open(table: str) -> int | None:
    place = directory()
    if place is None:
        return None
    slot = zlib.crc32(table.encode("utf-8", "surrogatepass")) % _SLOTS
    try:
        return os.open(place / f"{slot:04d}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None


def _lock(descriptor: int) -> bool:
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True


def _let_go(descriptor: int) -> None:
    # Not by closing alone: a process that was forked meanwhile has the file open, too.
    if sys.platform != "win32":
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)
