"""Committing changes: stage, compare and swap, and try again on the new base where somebody else came first.

Nothing is visible before the catalog's one atomic step, and everything after it. An attempt ends in one of three ways:

* Committed: done.
* Conflicted: the changes are staged again on the table as it is now, and validated against what came in between.
* Unknown: the answer was lost. The table is loaded again, and `icebench.engine.commit.lost_answers` says what it
  proves. If the change did not happen, it is tried again *with the same snapshot id*: should the lost attempt arrive
  late after all, only one of the two can win the compare-and-swap, and the other finds the snapshot there. If the
  outcome stays unknown, it is not tried again. No file is deleted meanwhile.

A conflict that is not certain is looked into in the same way: a transport that sends a request twice may bring back, as
the answer to the second, a conflict that the first, successful one caused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

from icebench.engine.commit.changes.change import Change
from icebench.engine.commit.changes.evolution import UpdateProperties
from icebench.engine.commit.committer import Committed, Committer, Conflicted, Identifier, Outcome, TableState, Unknown
from icebench.engine.commit.lost_answers import LostAttempt
from icebench.engine.commit.retry import Backoff, Waiting
from icebench.engine.commit.staged_snapshot import Staged, move_branch
from icebench.engine.commit.staging_context import Staging
from icebench.engine.errors import CommitConflict, CommitStateUnknown, EngineError
from icebench.engine.runtime.counters import COMMIT_ATTEMPTS
from icebench.engine.spec.checked_properties import valid_table_properties
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import HOST_COMMIT_LOCK
from icebench.engine.spec.requirements import TableRequirement
from icebench.engine.spec.snapshots import MAIN, Snapshot, check_snapshot_ids
from icebench.engine.spec.updates import SetSnapshotRef, TableUpdate, apply_updates
from icebench.engine.storage.host_commit_lock import host_commit_lock


@dataclass
class Transaction:
    """Changes that become visible together.

    Args:
        committer: The catalog.
        identifier: The table.
        staging: The surroundings of this one commit.
        waiting: How waits are made.

    Attributes:
        attempts: How many were begun.
    """

    committer: Committer
    identifier: Identifier
    staging: Staging
    waiting: Waiting = field(default_factory=Waiting)
    attempts: int = field(default=0, init=False)
    _attempts: list[Staged] = field(default_factory=list, init=False)
    _lost: list[LostAttempt] = field(default_factory=list, init=False)

    def commit(self, changes: Sequence[Change]) -> TableState:
        """Commit the changes, in one step; each is staged on the result of those before it.

        Returns:
            The table with the changes.

        Raises:
            CommitConflict: Others came first at every attempt.
            ValidationFailed: What others committed makes a change wrong.
            CommitStateUnknown: The answer was lost and could not be found out; no file was deleted.
            EngineError: Anything else that kept the changes from being made.
        """
        state = self._base()
        attempt, reason = 0, ""
        properties = state.metadata.properties
        if all(isinstance(change, UpdateProperties) for change in changes):
            # A value that is none must not keep the change from being made that replaces it.
            properties = valid_table_properties(properties)
        try:
            backoff = self.waiting.for_commits(properties)
            for attempt in backoff.attempts():
                with self._host_lock(state, properties, backoff) as waited:
                    if attempt > 1 or waited:
                        state = self.committer.load_state(self.identifier)
                        if self._happened(state):
                            return self._done(state)
                    outcome = self._attempt(changes, state)
                if isinstance(outcome, Committed):
                    return self._done(outcome.state)
                if isinstance(outcome, Unknown):
                    reason = f"the catalog's answer was lost: {outcome.cause}"
                else:
                    reason = outcome.reason
                    if outcome.is_certain:
                        continue
                found = self._settle(state, outcome, reason)
                if found is not None:
                    return self._done(found)
                if isinstance(outcome, Conflicted) and outcome.error is not None:
                    raise outcome.error
        except CommitStateUnknown:
            raise
        except EngineError as error:
            raise self._given_up(error, state) from error
        conflict = CommitConflict(f"{self._name}: gave up after {attempt} attempts: {reason}")
        raise self._given_up(conflict, state)

    @property
    def staged_snapshots(self) -> tuple[Snapshot, ...]:
        """The snapshots of the last attempt that could be staged."""
        return self._attempts[-1].snapshots if self._attempts else ()

    def _host_lock(
        self, state: TableState, properties: Mapping[str, str], backoff: Backoff
    ) -> AbstractContextManager[bool]:
        if not HOST_COMMIT_LOCK.of(properties):
            return nullcontext(False)
        table = state.metadata.table_uuid or state.metadata.location
        return host_commit_lock(table, limit_seconds=backoff.longest_lock_wait_seconds, sleep=self.waiting.sleep)

    def _base(self) -> TableState:
        try:
            return self.committer.load_state(self.identifier)
        except EngineError:
            # Nothing was attempted, but a transaction has staged its changes on one another.
            self.staging.discard()
            raise

    @property
    def _name(self) -> str:
        return ".".join(self.identifier)

    def _attempt(self, changes: Sequence[Change], state: TableState) -> Outcome:
        self.staging.counters.add(COMMIT_ATTEMPTS)
        self.attempts += 1
        try:
            staged = stage_all(changes, state.metadata, self.staging)
            self._attempts.append(staged)
            return self.committer.commit(self.identifier, state, staged.requirements, staged.updates)
        except CommitConflict as conflict:
            return Conflicted(str(conflict))

    def _settle(self, before: TableState, outcome: Unknown | Conflicted, reason: str) -> TableState | None:
        """The table, if the change is in it; None if it is not. Raises CommitStateUnknown if nobody can say."""
        answer = outcome if isinstance(outcome, Unknown) else Unknown(cause=CommitConflict(reason))
        lost = LostAttempt(self._attempts[-1], before, answer)
        self._lost.append(lost)
        last: EngineError | None = None
        # A value that is none must not make an outcome unknown.
        waits = self.waiting.for_status_checks(valid_table_properties(before.metadata.properties))
        for _ in waits.attempts():
            try:
                state = self.committer.load_state(self.identifier)
                if self._happened(state):
                    return state
                if isinstance(outcome, Conflicted) and (lost.staged.snapshots or outcome.error is not None):
                    # The answer was to the second copy of the request, and the first came before it.
                    self._lost.remove(lost)
                return None
            except CommitStateUnknown:
                raise
            except EngineError as error:
                last = error
        raise self._unknown(reason, last) from last

    def _happened(self, state: TableState) -> bool:
        """Whether the change is in the table; raises CommitStateUnknown if nobody can say."""
        found = [lost.happened(state, self.staging.store) for lost in self._lost]
        if None in found and True not in found:
            cause = self._lost[found.index(None)].answer.cause
            raise self._unknown(f"{cause}; and the table's history does not show it", None)
        return True in found

    def _done(self, state: TableState) -> TableState:
        """Delete what only failed attempts need; the attempt that won is known by its manifest list."""
        lists = {snapshot.manifest_list for snapshot in state.metadata.snapshots}
        keep = {file for staged in self._attempts if staged.files & lists for file in staged.files}
        if keep:
            self.staging.discard(keep=keep)
        return state

    def _given_up(self, error: EngineError, state: TableState) -> EngineError:
        """The error to raise; files are deleted where the change certainly is not and will not be visible."""
        for lost in self._lost:
            if not lost.is_dead(state):
                return self._unknown(f"the catalog's answer was lost: {lost.answer.cause}", error)
        self.staging.discard()
        return error

    def _unknown(self, reason: str, error: EngineError | None) -> CommitStateUnknown:
        then = f"; then {error}" if error else ""
        return CommitStateUnknown(
            f"{self._name}: whether a commit happened could not be found out: {reason}{then}; no file was deleted, "
            "look for the change before making it again"
        )


def stage_all(changes: Sequence[Change], base: TableMetadata, staging: Staging) -> Staged:
    """The changes as one: each staged on the result of those before it."""
    check_snapshot_ids(base.snapshots, "changes of a table")
    requirements: dict[tuple[object, ...], TableRequirement] = {}
    updates: list[TableUpdate] = []
    files: set[str] = set()
    draft = base
    for change in changes:
        staged = change.stage(draft, staging)
        if MAIN in base.refs and MAIN not in draft.refs:  # replaced, and made anew in the same commit
            staged = replace(staged, updates=tuple(_keeping_retention(each, base) for each in staged.updates))
        for requirement in staged.requirements:
            # The first is about the base, later ones about what earlier changes made of it.
            requirements.setdefault(requirement.subject, requirement)
        updates += staged.updates
        files |= staged.files
        draft = apply_updates(draft, staged.updates, now_ms=staging.now_ms())
    return Staged(requirements=tuple(requirements.values()), updates=tuple(updates), files=frozenset(files))


def _keeping_retention(update: TableUpdate, base: TableMetadata) -> TableUpdate:
    if isinstance(update, SetSnapshotRef) and update.name == MAIN:
        return move_branch(base, MAIN, update.ref.snapshot_id)
    return update
