"""The table that an operation or maintenance changes, and the one way in which they commit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from icebench.engine.commit.changes.change import Change
from icebench.engine.commit.changes.read import Read
from icebench.engine.commit.commit_loop import Transaction
from icebench.engine.commit.committer import Committer, Identifier, TableState
from icebench.engine.commit.reported_commit import reported_commit
from icebench.engine.commit.retry import Waiting
from icebench.engine.commit.staging_context import Staging
from icebench.engine.errors import CommitStateUnknown, EngineError
from icebench.engine.plan.cache import ManifestCache
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.runtime.metrics_reports import Reporting
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.storage.store import Store


@dataclass(frozen=True, kw_only=True)
class Target:
    """A table to change.

    Args:
        committer: Its catalog.
        identifier: Its name there.
        store: Its storage.
        cache: Its decoded manifests.
        counters: Count the work.
        runner: Reads, plans and writes in parallel.
        new_staging: Makes the surroundings of one commit.
        waiting: How waits between attempts are made.
        reporting: Where commits are reported to; None for nowhere.
    """

    committer: Committer
    identifier: Identifier
    store: Store
    cache: ManifestCache | None = None
    counters: Counters = field(default_factory=Counters)
    runner: Runner = field(default_factory=LocalRunner)
    new_staging: Callable[[Store, Counters], Staging] = lambda store, counters: Staging(store=store, counters=counters)
    waiting: Waiting = field(default_factory=Waiting)
    reporting: Reporting | None = None

    def load(self) -> TableState:
        """The table that the operation is prepared for; NotFound, or StorageFailed when the catalog cannot be asked."""
        return self.committer.load_state(self.identifier)

    def staging(self) -> Staging:
        """The surroundings of one commit."""
        return self.new_staging(self.store, self.counters)

    @property
    def committed_metadata(self) -> TableMetadata | None:
        """What `load` gives without changes that are only staged, which get their numbers and ids from the commit; None
        where there are no such changes."""
        return None

    def read(self, read: Read) -> None:
        """Take note that rows were read and none changed.

        By itself this needs no validation: what was read is the state of one moment. A transaction needs it, because
        its other changes become visible later.
        """

    def commit(self, changes: Sequence[Change], prepared: Iterable[DataFile] = ()) -> TableState:
        """Commit the changes; where they certainly are not visible, delete the files that were prepared for them.

        Raises:
            CommitFailed: See `icebench.engine.commit.commit_loop`.
        """
        return self.commit_staged(self.staging(), changes, {file.file_path for file in prepared})

    def commit_staged(self, staging: Staging, changes: Sequence[Change], prepared: Collection[str]) -> TableState:
        """The same in surroundings that are there already; `prepared` are locations."""
        transaction = Transaction(self.committer, self.identifier, staging, self.waiting)
        try:
            if self.reporting is None:
                return transaction.commit(changes)
            return reported_commit(
                self.reporting,
                self.identifier,
                lambda: transaction.commit(changes),
                lambda: (transaction.attempts, transaction.staged_snapshots),
            )
        except CommitStateUnknown:
            raise
        except EngineError:
            self.discard(prepared)
            raise

    def discard(self, locations: Collection[str]) -> None:
        """Delete files that nothing refers to, in the order of their names; one that cannot be deleted stays, for
        orphan removal to find."""
        for location in sorted(locations):
            with suppress(EngineError):
                self.store.delete(location)
