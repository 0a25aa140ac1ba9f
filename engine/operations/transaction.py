"""Transactions: several changes of one table, made one after another and committed as one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Self

from icebench.engine.catalog.identifiers import dotted
from icebench.engine.commit.changes.change import Change
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.target import Target
from icebench.engine.errors import Invalid
from icebench.engine.operations.metadata_operations import MetadataOperations
from icebench.engine.operations.row_operations import RowOperations
from icebench.engine.operations.staged_table import StagedTarget
from icebench.engine.runtime.counters import Counters
from icebench.engine.spec.metadata import TableMetadata


class TableTransaction(MetadataOperations, RowOperations):
    """Changes that become visible together, or not at all.

    For example::

        with table.transaction() as transaction:
            transaction.update_schema(lambda s: s.add_column("x", icebench.LONG))
            transaction.append(rows)

    Each change works on the result of those before it. At the end of the block they are committed in one step, and
    validated against what others committed since the transaction began; an exception in the block discards them all,
    with the files that were written. Snapshots that the changes return carry final ids and preliminary numbers. A row
    that the transaction adds and changes again has a row id of its own in each of its snapshots.

    Args:
        staged: The table.
        committed: Called with the table after the commit.
    """

    def __init__(self, staged: StagedTarget, *, committed: Callable[[TableState], None] = lambda _: None) -> None:
        self._committed = committed
        self._staged = staged
        self._closed = False

    @property
    def name(self) -> str:
        """The table's full name, with dots."""
        return dotted(self._staged.identifier)

    @property
    def metadata(self) -> TableMetadata:
        """The table with the changes so far; ids and numbers of new parts may change at the commit."""
        return self._staged.load().metadata

    def commit(self) -> None:
        """Make the changes visible. Called once, explicitly or at the end of the ``with`` block.

        Raises:
            Invalid: The transaction is over.
            AlreadyExists: The transaction creates a table, and another writer has done so meanwhile.
            CommitFailed: See `icebench.engine.commit.commit_loop`.
        """
        self._end()
        self._committed(self._staged.finish())

    def discard(self) -> None:
        """Discard the changes and delete the files written for them; raises Invalid if the transaction is over."""
        self._end()
        self._staged.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._closed:
            return
        if error is None:
            self.commit()
        else:
            self.discard()

    def _end(self) -> None:
        self._check_open()
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise Invalid("the transaction is over; begin another one with table.transaction()")

    def _change(self, change: Change) -> None:
        self._target(None).commit([change])

    def _target(self, counters: Counters | None) -> Target:
        self._check_open()
        return self._staged if counters is None else replace(self._staged, counters=counters)

    def _advance(self, state: TableState) -> None:
        """The staged target holds the state."""
