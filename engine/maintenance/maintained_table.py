"""The table that is maintained, and how maintenance commits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from engine.commit.changes.change import Change
from engine.commit.committer import Committer, Identifier, TableState
from engine.commit.retry import Waiting
from engine.commit.staging import Staging
from engine.commit.transaction import Transaction
from engine.errors import CommitStateUnknown, EngineError
from engine.plan.cache import ManifestCache
from engine.runtime.counters import Counters
from engine.runtime.local import LocalRunner
from engine.runtime.runner import Runner
from engine.storage.store import Store


@dataclass(frozen=True, kw_only=True)
class MaintainedTable:
    """A table to maintain.

    Args:
        committer: Its catalog.
        identifier: Its name there.
        store: Its storage.
        cache: Its decoded manifests.
        counters: Count the work.
        runner: Reads and plans in parallel.
        new_staging: Makes the surroundings of one commit.
        waiting: How waits between attempts are made.
    """

    committer: Committer
    identifier: Identifier
    store: Store
    cache: ManifestCache | None = None
    counters: Counters = field(default_factory=Counters)
    runner: Runner = field(default_factory=LocalRunner)
    new_staging: Callable[[Store, Counters], Staging] = lambda store, counters: Staging(store=store, counters=counters)
    waiting: Waiting = field(default_factory=Waiting)

    def load(self) -> TableState:
        """The table as it is now; raises NotFound, or StorageFailed when the catalog cannot be asked."""
        return self.committer.load_state(self.identifier)

    def staging(self) -> Staging:
        """The surroundings of one commit."""
        return self.new_staging(self.store, self.counters)

    def commit(self, staging: Staging, changes: Sequence[Change], prepared: Sequence[str] = ()) -> TableState:
        """Commit changes; where they certainly are not visible, delete the files that were prepared for them.

        Raises:
            CommitFailed: See `engine.commit.transaction`.
        """
        try:
            return Transaction(self.committer, self.identifier, staging, self.waiting).commit(changes)
        except CommitStateUnknown:
            raise
        except EngineError:
            for location in prepared:
                with suppress(EngineError):
                    self.store.delete(location)
            raise
