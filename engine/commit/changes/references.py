"""Changes of references: branches, tags, rollback, fast-forward (spec: "Snapshot References")."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from icebench.engine.commit.staged_snapshot import Staged, move_branch, requires_ref
from icebench.engine.commit.staging_context import Staging
from icebench.engine.errors import AlreadyExists, Invalid, NotFound
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.requirements import AssertTableUuid
from icebench.engine.spec.snapshots import MAIN, SnapshotRef
from icebench.engine.spec.updates import RemoveSnapshotRef, SetSnapshotRef

_MOST_SNAPSHOTS, _MOST_MS = 2**31 - 1, 2**63 - 1
"""What Iceberg Java can read; it opens no table with more."""


@dataclass(frozen=True, kw_only=True)
class CreateRef:
    """Creates a branch or tag.

    Args:
        name: Its name.
        type: Branch or tag.
        snapshot_id: Where it points; None: at main's head.
        min_snapshots_to_keep: For expiry, branches only. Here, as for the two ages, None means the table's default.
        max_snapshot_age_ms: For expiry of the branch's snapshots, branches only.
        max_ref_age_ms: For expiry of the reference itself.
        overwrite: Move an existing reference of the same type instead of failing; settings that are None then stay as
            they are.
    """

    name: str
    type: Literal["branch", "tag"]
    snapshot_id: int | None = None
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None
    overwrite: bool = False

    def __post_init__(self) -> None:
        for limit, most in (
            (self.min_snapshots_to_keep, _MOST_SNAPSHOTS),
            (self.max_snapshot_age_ms, _MOST_MS),
            (self.max_ref_age_ms, _MOST_MS),
        ):
            if limit is not None and not (type(limit) is int and 0 < limit <= most):
                raise Invalid(f"retention of {self.name!r} is a whole number from 1 to {most}, not {limit!r}")
        if self.type == "tag" and (self.min_snapshots_to_keep or self.max_snapshot_age_ms):
            raise Invalid(f"{self.name!r} is a tag: only branches keep a number of snapshots or limit their age")

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        old = base.refs.get(self.name)
        if old is not None and not self.overwrite:
            raise AlreadyExists(f"{old.type} {self.name!r} exists already")
        snapshot_id = base.current_snapshot_id if self.snapshot_id is None else self.snapshot_id
        if snapshot_id is None:
            raise Invalid(f"cannot make {self.type} {self.name!r}: the table has no snapshot yet")
        base.snapshot(snapshot_id)
        ref = old or SnapshotRef(snapshot_id=snapshot_id, type=self.type)
        names = ("min_snapshots_to_keep", "max_snapshot_age_ms", "max_ref_age_ms")
        named = {name: value for name in names if (value := getattr(self, name)) is not None}
        moved = replace(ref, snapshot_id=snapshot_id, type=self.type, **named)
        return _set_ref(base, SetSnapshotRef(self.name, moved))


@dataclass(frozen=True)
class RemoveRef:
    """Removes a branch or tag; its snapshots stay until they expire."""

    name: str

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        if self.name == MAIN:
            raise Invalid(f"branch {MAIN!r} cannot be removed")
        base.ref(self.name)
        return Staged(
            requirements=(AssertTableUuid(base.table_uuid), requires_ref(base, self.name)),
            updates=(RemoveSnapshotRef(self.name),),
        )


@dataclass(frozen=True)
class FastForward:
    """Moves a branch to the snapshot of `to`, which must descend from the branch's head.

    A branch that does not exist yet is created.
    """

    branch: str
    to: str

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        target = base.ref(self.to).snapshot_id
        old = base.refs.get(self.branch)
        if old is not None and old.type != "branch":
            raise Invalid(f"{self.branch!r} is a tag and cannot be fast-forwarded")
        if old is not None and old.snapshot_id not in base.ancestors(target):
            raise Invalid(f"cannot fast-forward {self.branch!r} to {self.to!r}: it is not an ancestor of it")
        staged = _set_ref(base, move_branch(base, self.branch, target))
        return replace(staged, requirements=(*staged.requirements, requires_ref(base, self.to)))


@dataclass(frozen=True)
class Rollback:
    """Makes a former state of a branch current again.

    Exactly one argument is set: an ancestor's id, or a time, for the last ancestor before it.
    """

    snapshot_id: int | None = None
    before_ms: int | None = None
    branch: str = MAIN

    def __post_init__(self) -> None:
        if (self.snapshot_id is None) == (self.before_ms is None):
            raise Invalid("a rollback is to a snapshot id or to a time, one of them")

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        old = base.ref(self.branch)
        if old.type != "branch":
            raise Invalid(f"{self.branch!r} is a tag and cannot be rolled back")
        line = list(base.ancestors(old.snapshot_id))
        if self.before_ms is not None:
            past = [i for i in line if base.snapshot(i).timestamp_ms < self.before_ms]
            if not past:
                raise NotFound(f"branch {self.branch!r} has no snapshot from before {self.before_ms} ms")
            target = past[0]
        else:
            assert self.snapshot_id is not None
            target = base.snapshot(self.snapshot_id).snapshot_id
            if target not in line:
                raise Invalid(f"cannot roll back to snapshot {target}: {self.branch!r} was never there")
        return _set_ref(base, move_branch(base, self.branch, target))


@dataclass(frozen=True)
class SetCurrentSnapshot:
    """Makes any snapshot the head of main, an ancestor or not."""

    snapshot_id: int

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        target = base.snapshot(self.snapshot_id).snapshot_id
        return _set_ref(base, move_branch(base, MAIN, target))


def _set_ref(base: TableMetadata, update: SetSnapshotRef) -> Staged:
    return Staged(requirements=(AssertTableUuid(base.table_uuid), requires_ref(base, update.name)), updates=(update,))
