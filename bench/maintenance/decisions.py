"""What is due on a table, by its profile: the gain and the work of each action, in bytes, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import icebench
from icebench.bench.maintenance.policy import Policy
from icebench.bench.maintenance.reads import TAG, Reads
from icebench.engine.display import size_text
from icebench.errors import Invalid

_CLUSTERING = "icebench.clustering."
_MOVED = 2
"""Each rewritten byte is read and written."""
_LEAVE_MANIFESTS = ("compaction", "deletes", "position_deletes", "equality_deletes", "dangling_deletes", "clustering")


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """An action that would change something.

    Args:
        action: Its name in policies.
        why: Figures of the profile.
        gain_bytes: What readers have read in vain for lack of it, opens included, until the next commit; or storage
            that it frees.
        work_bytes: That it reads and writes.
        worth: What it changes for a read, in words; empty where nothing.
        call: The method of `table.maintenance`.
        arguments: For the call.
        needs_gain: Whether it is only done if that is more than it moves.
    """

    action: str
    why: str
    gain_bytes: float
    work_bytes: float
    worth: str = ""
    call: str
    arguments: Mapping[str, Any]
    needs_gain: bool = True

    @property
    def gain_per_byte(self) -> float:
        """The order of actions, but for manifests."""
        return self.gain_bytes / max(self.work_bytes, 1.0)


def find_candidates(
    table: icebench.Table, profile: icebench.TableProfile, policy: Policy, *, decided: Collection[str] = ()
) -> list[Candidate]:
    """The actions of the policy that would change something and are not `decided`, the most gain per byte first;
    manifests after all others, if one of them leaves manifests.

    An action in one of the newest snapshots is not due again while only maintenance has changed the table since.
    """
    finished = _actions_since_others(table)
    policy = replace(policy, actions=policy.actions - set(decided))
    reads = Reads.of(table, policy, profile.profiled_at_ms)
    every = (
        *_by_reasons(table, profile, reads),
        *_delete_files(table, profile, policy, reads),
        *_clustering(table, profile, policy, reads),
        *_orphans(table, policy),
        *_statistics(profile, policy),
    )
    found = [
        each
        for each in every
        if each.action in policy.actions and (each.action not in finished or each.action == "clustering")
    ]
    leaves_manifests = any(each.action in _LEAVE_MANIFESTS for each in found)
    return sorted(found, key=lambda each: (leaves_manifests and each.action == "manifests", -each.gain_per_byte))


def _by_reasons(table: icebench.Table, profile: icebench.TableProfile, reads: Reads) -> Iterator[Candidate]:
    """Candidates for the reasons in the profile."""
    manifests = profile.manifests.size_bytes
    # The action, the bytes that it rewrites, and for how many commits its reason has been there.
    work = {
        "small-files": ("compaction", profile.files.compaction_bytes, profile.files.compaction_age),
        "deletes": ("deletes", profile.deletes.data_bytes, reads.age_of_deletes),
        "dangling-deletes": ("dangling_deletes", manifests, reads.age_of_deletes),
        "manifests": ("manifests", manifests, profile.manifests.age),
        "snapshots": (
            "snapshots",
            manifests + profile.history.metadata_bytes,
            (1 + profile.history.expirable_snapshots) / 2,
        ),
    }
    for reason in profile.reasons:
        if reason.key not in work:
            continue
        action, size, age = work[reason.key]
        arguments = dict(reason.arguments)
        if reason.action == "rewrite_data_files" and action != "dangling_deletes":
            arguments.update(_arrangement(table))
        # Storage is freed once; what a read saves is saved by each, the metadata file's bytes among it.
        once = min(profile.history.expirable_bytes, reason.cost_bytes) if action == "snapshots" else 0
        yield Candidate(
            action=action,
            why=f"{reason.statement}; {reason.gain}",
            gain_bytes=once + reads.in_vain(reason.cost_bytes - once, age),
            work_bytes=_MOVED * size,
            worth=_worth(table, reason.opens, reason.cost_bytes - once - reason.opens * _open_cost(table), once),
            call=reason.action,
            arguments=arguments,
        )


def _delete_files(
    table: icebench.Table, profile: icebench.TableProfile, policy: Policy, reads: Reads
) -> Iterator[Candidate]:
    """Rewrites of delete files that leave the data files as they are."""
    deletes = profile.deletes
    vectors = table.metadata.format_version >= 3
    for action, call, kind, read in (
        ("position_deletes", "rewrite_position_deletes", deletes.positions, 0),
        ("equality_deletes", "convert_equality_deletes", deletes.equality, deletes.data_bytes),
    ):
        files, size, left = kind.files - kind.dangling_files, kind.size_bytes - kind.dangling_bytes, deletes.data_files
        if action not in policy.actions or not files:
            continue
        if action == "position_deletes":
            # Which of them a rewrite takes depends on their partitions and sizes: what it leaves must not be due again.
            plan = table.maintenance.rewrite_position_deletes(dry_run=True)
            files, size = plan.removed_delete_files - kind.dangling_files, plan.removed_bytes - kind.dangling_bytes
            left = plan.added_delete_files
        # In version 3 the vectors of a rewrite share a file.
        fewer = files - (1 if vectors else left)
        if fewer <= 0:
            continue
        yield Candidate(
            action=action,
            why=f"{files:,} {action.replace('_', '-')[:-1]} files are opened with {deletes.data_files:,} data files; "
            f"about {files - fewer:,} would do",
            gain_bytes=reads.in_vain(fewer * _open_cost(table), kind.age),
            work_bytes=_MOVED * size + read,
            worth=_worth(table, fewer),
            call=call,
            arguments={},
        )


def _statistics(profile: icebench.TableProfile, policy: Policy) -> Iterator[Candidate]:
    """Statistics that are missing or stale."""
    kinds = [("table_statistics", "compute_table_stats", profile.table_statistics, profile.files.size_bytes)]
    if profile.partitions is not None:
        size = profile.manifests.size_bytes
        kinds.append(("partition_statistics", "compute_partition_stats", profile.partition_statistics, size))
    for action, call, known, size in kinds:
        if profile.snapshot_id is None or (known is not None and known.changed_share <= policy.changed_share):
            continue
        yield Candidate(
            action=action,
            why="there are none" if known is None else f"{known.changed_share:.0%} of the rows changed since",
            gain_bytes=0,
            work_bytes=size,
            call=call,
            arguments={},
            needs_gain=False,
        )


def _clustering(
    table: icebench.Table, profile: icebench.TableProfile, policy: Policy, reads: Reads
) -> Iterator[Candidate]:
    if "clustering" not in policy.actions or not _is_declared(table):
        return
    plan = table.maintenance.cluster(dry_run=True)
    if not plan.merges:
        return
    mean = profile.files.size_bytes / max(profile.files.files, 1)
    # A filter on a key reads as many files fewer; counted as one such filter for each partition and read.
    partitions = 1 if profile.partitions is None else profile.partitions.partitions
    saved = (plan.depth_before - plan.depth_after) * (mean + _open_cost(table)) * partitions
    yield Candidate(
        action="clustering",
        why=f"{plan.rewritten_data_files:,} files overlap in {plan.merges:,} places: a key is in "
        f"{plan.depth_before:.1f} files, afterwards in about {plan.depth_after:.1f}",
        gain_bytes=reads.in_vain(saved, profile.files.age),
        work_bytes=_MOVED * plan.rewritten_bytes,
        worth=f"a filter on a key opens {(plan.depth_before - plan.depth_after) * partitions:,.1f} files fewer "
        f"(an open counts as {size_text(_open_cost(table))})",
        call="cluster",
        arguments={},
    )


def _orphans(table: icebench.Table, policy: Policy) -> Iterator[Candidate]:
    if "orphans" not in policy.actions:
        return
    found = table.maintenance.remove_orphan_files()
    if found.locations:
        yield Candidate(
            action="orphans",
            why=f"nothing leads to {len(found.locations):,} files of {found.size_bytes:,} bytes",
            gain_bytes=found.size_bytes,
            work_bytes=0,
            worth=f"frees {size_text(found.size_bytes)} of storage",
            call="remove_orphan_files",
            arguments={"dry_run": False},
        )


def _arrangement(table: icebench.Table) -> dict[str, Any]:
    """How a rewrite arranges rows, so that it does not undo a declared clustering."""
    if not _is_declared(table):
        return {}
    strategy = table.metadata.properties[f"{_CLUSTERING}strategy"].lower()
    keys = tuple(name.strip() for name in table.metadata.properties.get(f"{_CLUSTERING}keys", "").split(",") if name)
    by = {"sort": "sort_order", "zorder": "zorder_by", "hilbert": "hilbert_by"}.get(strategy)
    if by is None:
        raise Invalid(f"table property {_CLUSTERING}strategy={strategy!r} is none of sort, zorder, hilbert")
    return {"strategy": strategy, by: keys or None}


def _is_declared(table: icebench.Table) -> bool:
    return f"{_CLUSTERING}strategy" in table.metadata.properties


def _worth(table: icebench.Table, opens: int, read_bytes: int = 0, freed_bytes: int = 0) -> str:
    """What an action saves each read, and what it frees once."""
    parts = []
    if opens:
        files = "1 file" if opens == 1 else f"{opens:,} files"
        parts.append(f"a read opens {files} fewer (an open counts as {size_text(_open_cost(table))})")
    if read_bytes > 0:
        parts.append(f"reads {size_text(read_bytes)} less" if opens else f"a read reads {size_text(read_bytes)} less")
    if freed_bytes:
        parts.append(f"frees {size_text(freed_bytes)} of storage")
    return ", ".join(parts)


def _open_cost(table: icebench.Table) -> int:
    return int(table.metadata.properties.get("read.split.open-file-cost", 4 << 20))


def _actions_since_others(table: icebench.Table) -> set[str]:
    """Actions of the newest snapshots, up to the first that is not a maintenance snapshot."""
    found: set[str] = set()
    at = table.current_snapshot
    while at is not None and TAG in at.summary:
        found.add(at.summary[TAG])
        parent = at.parent_snapshot_id
        at = None if parent is None else table.metadata.snapshot_by_id.get(parent)
    return found
