"""Plans made once, outside timing, and held against the table's files."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping

from bench.engines.engine import AnyEngine, Plan
from bench.errors import Disagreement
from bench.measure.brute.manifests import FileEntry
from bench.measure.opened import Opened, try_each
from bench.measure.recorder import CaseId
from bench.measure.subject import Bench, Subject


def checked_plans(
    bench: Bench,
    subject: Subject,
    engines: Mapping[str, AnyEngine],
    case: CaseId,
    *,
    files: Mapping[str, FileEntry],
    filter: str | None,
) -> dict[str, tuple[Opened, Plan]]:
    """Every engine's open table and plan; those that fail, or plan what they must not, are recorded as failures.

    A plan without a filter is all of the table's files, and no plan has a file that is not the table's.
    """

    def attempt(engine: AnyEngine) -> tuple[Opened, Plan]:
        opened = Opened.of(engine, subject.metadata_location, filter)
        plan = engine.plan(opened.handle, opened.filter)
        if strangers := plan.files - files.keys():
            raise Disagreement(f"plans {describe(strangers)} that the table does not have")
        if filter is None and (missing := files.keys() - plan.files):
            raise Disagreement(f"without a filter, does not plan {describe(missing)} of the table")
        return opened, plan

    return try_each(engines, attempt, bench.recorder, case)


def plan_checksum(plan: Plan, files: Mapping[str, FileEntry]) -> str:
    """A checksum of the planned files that a rebuilt table gives again, though its files have other names: over their
    row counts."""
    counts = sorted(files[path].records for path in plan.files)
    return hashlib.sha256(repr(counts).encode()).hexdigest()[:20]


def describe(paths: Collection[str]) -> str:
    """How many files, and one of them."""
    example = min(paths).rpartition("/")[2]
    return f"{len(paths)} files (such as {example})" if len(paths) > 1 else f"1 file ({example})"
