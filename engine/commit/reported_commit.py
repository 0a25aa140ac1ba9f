"""Reports of commits (`icebench.engine.runtime.metrics_reports`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from icebench.engine.commit.committer import Identifier, TableState
from icebench.engine.errors import CommitConflict, CommitStateUnknown, ValidationFailed
from icebench.engine.runtime.metrics_reports import COMMIT_METRICS, CommitReport, Outcome, Reporting
from icebench.engine.spec.snapshots import Snapshot

Attempted = Callable[[], tuple[int, Sequence[Snapshot]]]
"""How many attempts were made, and the snapshots of the last one."""


def reported_commit(
    reporting: Reporting, identifier: Identifier, commit: Callable[[], TableState], attempted: Attempted
) -> TableState:
    """Commit, and report how that ended; returns and raises what `commit` does."""
    begin = reporting.clock()
    outcome: Outcome = "failed"

    def report() -> CommitReport:
        attempts, snapshots = attempted()
        last = snapshots[-1] if snapshots else None
        counted = snapshots if outcome == "committed" else ()
        return CommitReport(
            catalog_name=reporting.catalog_name,
            table_name=".".join(identifier),
            outcome=outcome,
            operation=None if last is None else last.operation,
            snapshot_id=None if last is None else last.snapshot_id,
            sequence_number=None if last is None else last.sequence_number,
            total_seconds=reporting.clock() - begin,
            attempts=attempts,
            metrics={m.name: sum(each.count(m.source) or 0 for each in counted) for m in COMMIT_METRICS},
        )

    try:
        state = commit()
        outcome = "committed"
    except CommitStateUnknown:
        outcome = "unknown"
        raise
    except (CommitConflict, ValidationFailed):
        outcome = "conflict"
        raise
    finally:
        reporting.send(report)
    return state
