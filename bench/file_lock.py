"""One process at a time makes what several use."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(entry: Path) -> Iterator[None]:
    """One process or thread at a time makes an entry; others wait, however long, then find it. The lock is a file
    beside it, in a directory that is made when needed. A killed process leaves no lock."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    with entry.with_name(entry.name + ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
