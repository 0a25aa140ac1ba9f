"""Where files go that a process writes, reads and removes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from icebench.engine.spec.locations import parts
from icebench.engine.storage.local import LocalStore
from icebench.engine.storage.object_stores import OBJECT_SCHEMES
from icebench.engine.storage.store import Store


@contextmanager
def scratch_space(store: Store, location: str) -> Iterator[tuple[Store, str]]:
    """A store, and the location of a directory there: `location` itself, or for an object store a temporary directory
    of this machine, which is removed at the end. An object store would have every byte sent to it and back, and holds
    what is written to an open file in memory.

    Args:
        store: The table's.
        location: A directory in it.
    """
    if parts(location)[0] not in OBJECT_SCHEMES:
        yield store, location
        return
    with TemporaryDirectory(prefix="icebench-") as folder:
        yield LocalStore(durable=False), folder
