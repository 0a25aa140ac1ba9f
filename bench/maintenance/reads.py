"""How much a table's readers have read in vain: by how many reads there are, and for how many commits a cause has been
there.

Work on a table is due when readers have paid as much for the lack of it as it costs. Where a cost grows evenly with the
commits, as that of small files and deletes does, the sum of both is then the least there is: it is that of the best
fixed number of commits between two such works, whatever that number is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import icebench
from icebench.bench.maintenance.policy import Policy

TAG = "icebench.maintenance"
"""The snapshot property that names the action of a maintenance pass."""
_DAY_MS = 86_400_000


@dataclass(frozen=True)
class Reads:
    """Reads of the whole table, or as much in parts.

    Args:
        per_commit: From one sequence number to the next, commits of maintenance included.
        age_of_deletes: For how many of these a row that is deleted has been, on average.
    """

    per_commit: float
    age_of_deletes: float

    @classmethod
    def of(cls, table: icebench.Table, policy: Policy, now_ms: int) -> Reads:
        """By a policy, and by the snapshots that the table still has."""
        history = list(_history(table))
        return cls(_per_commit(history, policy, now_ms), _age_of_deletes(history))

    def in_vain(self, cost_bytes: float, age: float) -> float:
        """The bytes read in vain so far and until the next commit, where a read now reads so many, on average for so
        many commits."""
        return cost_bytes * self.per_commit * age


@dataclass(frozen=True)
class _Commit:
    """`deletes` are the rows and keys of delete files; None if the summary does not say."""

    number: int
    timestamp_ms: int
    is_maintenance: bool
    deletes: int | None


def _history(table: icebench.Table) -> Iterator[_Commit]:
    """The current snapshot and its ancestors, newest first, numbered as they were committed."""
    at, next_number = table.current_snapshot, 1
    while at is not None:
        totals = [at.summary.get(f"total-{kind}-deletes", "") for kind in ("position", "equality")]
        # In version 1 all sequence numbers are 0: of those, each has one less than the commit after it.
        number = at.sequence_number or min(next_number - 1, 0)
        yield _Commit(
            number=number,
            timestamp_ms=at.timestamp_ms,
            is_maintenance=TAG in at.summary,
            deletes=sum(map(int, totals)) if all(map(str.isdecimal, totals)) else None,
        )
        parent, next_number = at.parent_snapshot_id, number
        at = None if parent is None else table.metadata.snapshot_by_id.get(parent)


def _per_commit(history: list[_Commit], policy: Policy, now_ms: int) -> float:
    if not history:
        return 0.0
    newest, oldest = history[0], history[-1]
    if policy.reads_per_day is None:
        return policy.reads * sum(not each.is_maintenance for each in history) / len(history)
    span, commits = newest.timestamp_ms - oldest.timestamp_ms, newest.number - oldest.number
    if not commits:
        span, commits = now_ms - newest.timestamp_ms, 1
    return policy.reads_per_day * max(span, 0) / _DAY_MS / commits


def _age_of_deletes(history: list[_Commit]) -> float:
    """Over the deletes that are there now; the newest commit counts as one.

    What remains of a commit's deletes is the least that there were since. If deletes are older than the oldest
    snapshot, they are taken to have come as evenly as those since.
    """
    now = history[0].deletes if history else None
    if not now:
        return 0.0
    area, least, until = 0.0, now, history[0].number + 1
    for each in history:
        if each.deletes is None:
            break
        least = min(least, each.deletes)
        area += least * (until - each.number)
        until = each.number
    seen = history[0].number - until
    if seen and least < now:
        earlier = min(least * seen / (now - least), max(until - 1, 0))
        area += least * earlier / 2
    return area / now
