"""What staging a snapshot needs from outside: storage, names, time, chance."""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

from icebench.engine.errors import EngineError
from icebench.engine.runtime.counters import FILES_WRITTEN, Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import METADATA_PATH
from icebench.engine.storage.store import Store


def now_ms() -> int:
    """Milliseconds since 1970 by this machine's clock."""
    return time.time_ns() // 1_000_000


def random_snapshot_id() -> int:
    """A random positive number of 63 bits."""
    return secrets.randbelow(2**63 - 1) + 1


@dataclass(kw_only=True)
class Staging:
    """The surroundings of one commit, the same for all its attempts, and what it has written so far.

    Args:
        store: Where the table is.
        commit_id: Part of the names of the files that this commit writes.
        now_ms: The clock.
        new_snapshot_id: Random positive 63-bit numbers.
        runner: Encodes manifests side by side.
        counters: Counts files and attempts.
    """

    store: Store
    commit_id: uuid.UUID = field(default_factory=uuid.uuid4)
    now_ms: Callable[[], int] = now_ms
    new_snapshot_id: Callable[[], int] = random_snapshot_id
    runner: Runner = field(default_factory=LocalRunner)
    counters: Counters = field(default_factory=Counters)
    written: list[str] = field(default_factory=list, init=False)
    _numbers: Iterator[int] = field(default_factory=count, init=False)

    def new_manifest_location(self, base: TableMetadata) -> str:
        """A name for a manifest, never given before."""
        return metadata_file_location(base, f"{self.commit_id}-m{next(self._numbers)}.avro")

    def new_manifest_list_location(self, base: TableMetadata, snapshot_id: int) -> str:
        """A name for a manifest list, never given before."""
        return metadata_file_location(base, f"snap-{snapshot_id}-{next(self._numbers)}-{self.commit_id}.avro")

    def write(self, location: str, data: bytes) -> None:
        """Write a metadata file under a new name."""
        # Noted first: a write that fails may still have left something behind.
        self.written.append(location)
        self.store.write(location, data)
        self.counters.add(FILES_WRITTEN)

    def discard(self, *, keep: Collection[str] = ()) -> None:
        """Delete what was written, but for `keep`. A file that cannot be deleted stays, for orphan removal to find."""
        for location in self.written:
            if location not in keep:
                with suppress(EngineError):
                    self.store.delete(location)


def metadata_file_location(metadata: TableMetadata, name: str) -> str:
    """Where a metadata file of that name goes: ``write.metadata.path``, or ``metadata/`` below the table."""
    directory = METADATA_PATH.of(metadata.properties) or f"{metadata.location}/metadata"
    return f"{directory.rstrip('/')}/{name}"
