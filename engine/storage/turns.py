"""Turns: the writers of one machine commit to a table one after the other, as far as that can be had.

Of attempts that overlap only one succeeds, and the others have worked for nothing, on the processors that the first one
needed. Whoever has the turn of a table attempts, the others wait for it. Nothing depends on it: that two changes do not
both succeed is for the catalog alone to see to, and a writer goes ahead without the turn where it had to wait too long,
where turns cannot be had, and beside writers elsewhere, who know nothing of it.

A turn is the lock of an empty file in a directory of the user's own, which the system lets go of when its holder ends,
however that may be.
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
def turn_of(table: str, *, limit_seconds: float, sleep: Callable[[float], None]) -> Iterator[bool]:
    """A block in which this writer has a table's turn, or has waited for it long enough.

    Writers look again and again, the more often the longer they have waited, so that those that came first are the
    likelier to be next.

    A thread that has the turn does not wait for itself.

    Args:
        table: What tells tables apart.
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
    """Where the files are; None where turns cannot be had."""
    if sys.platform == "win32":
        return None
    try:
        place = Path(tempfile.gettempdir()) / f"icebench-turns-{os.geteuid()}"
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
        return True  # a file system without locks: no turns
    return True


def _let_go(descriptor: int) -> None:
    # Not by closing alone: a process that was forked meanwhile has the file open, too.
    if sys.platform != "win32":
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)
