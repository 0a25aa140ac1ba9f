"""A plan in a few lines, and as a funnel: what each stage of planning had, and what it pruned by what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from icebench.engine.display import MOST_ROWS, count_text, html_fold, html_table, printable, size_text
from icebench.engine.expressions.bound import BoundPredicate
from icebench.engine.plan.planner import DELETE_FILES_UNUSED
from icebench.engine.runtime.counters import (
    DELETE_FILES_PLANNED,
    ENTRIES_DECODED,
    ENTRIES_SKIPPED_BY_INDEX,
    ENTRIES_SKIPPED_BY_METRICS,
    ENTRIES_SKIPPED_BY_PARTITION,
    ENTRIES_SKIPPED_BY_SCHEMA_ID,
    FILES_PLANNED,
    MANIFESTS_DECODED,
    MANIFESTS_IN_LIST,
    MANIFESTS_SKIPPED_BY_SUMMARY,
)
from icebench.engine.spec.snapshots import Snapshot

BY_SUMMARY = "partition summaries and counts of the manifest list"
BY_AGE = "age: older than a column that the filter needs"
BY_PARTITION = "partition values"
BY_METRICS = "column bounds and counts"
BY_INDEX = "secondary indexes"
NOT_LIVE = "status: not live, or of no snapshot of the scan"
NO_TARGET = "target: they concern no planned file"
_MANIFESTS = {BY_SUMMARY: MANIFESTS_SKIPPED_BY_SUMMARY}
_ENTRIES = {
    BY_PARTITION: ENTRIES_SKIPPED_BY_PARTITION,
    BY_AGE: ENTRIES_SKIPPED_BY_SCHEMA_ID,
    BY_METRICS: ENTRIES_SKIPPED_BY_METRICS,
    BY_INDEX: ENTRIES_SKIPPED_BY_INDEX,
}

SKIPPED_BY = {counter: text for stage in (_MANIFESTS, _ENTRIES) for text, counter in stage.items()}
"""Counter -> what it counts as skipped by, in words."""


class Plan(Protocol):
    """What is shown of an `icebench.engine.plan.scan.ScanPlan`."""

    @property
    def files(self) -> pa.Table: ...
    @property
    def counters(self) -> Mapping[str, int]: ...
    @property
    def snapshot(self) -> Snapshot | None: ...
    @property
    def predicate(self) -> BoundPredicate: ...
    @property
    def record_count(self) -> int: ...
    @property
    def size_in_bytes(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What a stage of planning had, what it pruned by what, and what it passed on."""

    name: str
    had: int
    pruned: Mapping[str, int]
    left: int


def plan_text(plan: Plan) -> str:
    """Snapshot, filter, files, and what was pruned."""
    at = "no snapshot" if plan.snapshot is None else f"snapshot {plan.snapshot.snapshot_id}"
    lines = [f"ScanPlan({at}, filter: {printable(plan.predicate)}, {_size(plan)})"]
    for stage in funnel(plan.counters):
        pruned = f"; skipped {_reasons(stage)}" if stage.pruned else ""
        lines.append(f"  {stage.name}: {stage.left:,} of {stage.had:,}{pruned}")
    return "\n".join(lines)


def plan_html(plan: Plan) -> str:
    """The funnel, with the files folded below."""
    columns = ("file_path", "record_count", "file_size_in_bytes", "residual")
    listed = plan.files.slice(0, MOST_ROWS).select(columns)
    files = [tuple(row[name] for name in columns) for row in listed.to_pylist()]
    first = "" if plan.files.num_rows <= MOST_ROWS else f", the first {MOST_ROWS}"
    parts = [
        html_table(("stage", "had", "skipped", "left"), funnel_rows(plan.counters)),
        html_fold(
            f"{count_text(plan.files.num_rows, 'file')}{first}",
            [html_table(("file", "rows", "bytes", "filter left to apply"), files)],
        ),
    ]
    return html_fold(f"Plan of {printable(plan.predicate)}: {_size(plan)}", parts, is_open=True)


def funnel(counters: Mapping[str, int]) -> list[Stage]:
    """The stages of a plan: manifests; the entries, of data and delete files, in those that are left; and the delete
    files among the entries that are left."""
    used, unused = counters.get(DELETE_FILES_PLANNED, 0), counters.get(DELETE_FILES_UNUSED, 0)
    kept = counters.get(FILES_PLANNED, 0) + used + unused
    manifests = _pruned(counters, _MANIFESTS)
    entries = _pruned(counters, _ENTRIES)
    decoded = counters.get(ENTRIES_DECODED, 0)
    if rest := decoded - kept - sum(entries.values()):
        entries |= {NOT_LIVE: rest}
    listed = counters.get(MANIFESTS_IN_LIST, 0)
    found = [
        Stage(name="manifests", had=listed, pruned=manifests, left=counters.get(MANIFESTS_DECODED, 0)),
        Stage(name="entries", had=decoded, pruned=entries, left=kept),
    ]
    if used or unused:
        pruned = {NO_TARGET: unused} if unused else {}
        found.append(Stage(name="delete files", had=used + unused, pruned=pruned, left=used))
    return found


def funnel_rows(counters: Mapping[str, int]) -> list[tuple[str, int, str, int]]:
    """Rows of a table of the stages: name, had, skipped by what, left."""
    return [(stage.name, stage.had, _reasons(stage), stage.left) for stage in funnel(counters)]


def _pruned(counters: Mapping[str, int], by: Mapping[str, str]) -> dict[str, int]:
    return {text: counters[counter] for text, counter in by.items() if counters.get(counter)}


def _size(plan: Plan) -> str:
    deletes = plan.counters.get(DELETE_FILES_PLANNED, 0)
    found = [
        count_text(plan.files.num_rows, "file"),
        size_text(plan.size_in_bytes),
        count_text(plan.record_count, "row"),
    ]
    return ", ".join([*found, *([count_text(deletes, "delete file")] if deletes else [])])


def _reasons(stage: Stage) -> str:
    return ", ".join(f"{count:,} by {by}" for by, count in stage.pruned.items())
