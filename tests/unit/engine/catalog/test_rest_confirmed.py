"""Updates that servers confirm without carrying them out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.catalog.rest_confirmed import check_confirmed, check_nessie_carries_out
from engine.errors import CommitStateUnknown, Unsupported
from engine.spec.snapshots import MAIN, Snapshot, SnapshotRef
from engine.spec.updates import (
    AddSnapshot,
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetLocation,
    SetProperties,
    SetSnapshotRef,
    TableUpdate,
    UpgradeFormatVersion,
)
from tests.unit.engine.commit.tables import metadata

BASE = metadata()
NEW = AddSnapshot(Snapshot(snapshot_id=7, timestamp_ms=1, manifest_list="s3://b/l", operation=None, summary={}))
BRANCH, TAG = (SnapshotRef(snapshot_id=7, type=kind) for kind in ("branch", "tag"))


@pytest.mark.parametrize(
    ("updates", "named"),
    [
        ([NEW, SetSnapshotRef("audit", BRANCH)], "'audit'"),
        ([NEW, SetSnapshotRef(MAIN, BRANCH), SetSnapshotRef("v1", TAG)], "'v1'"),
        ([RemoveSnapshotRef("audit")], "'audit'"),
        ([SetSnapshotRef(MAIN, replace(BRANCH, snapshot_id=3))], "snapshot 3"),
        ([NEW], "publication"),
        ([RemoveSnapshots(frozenset({1}))], "removing snapshots"),
        ([SetLocation("s3://b/elsewhere")], "moving"),
        ([UpgradeFormatVersion(3)], "format version 3"),
    ],
)
def test_nessie_is_not_sent_what_it_passes_over(updates: list[TableUpdate], named: str) -> None:
    with pytest.raises(Unsupported, match=rf"table db\.t: .*{named}.*Nessie"):
        check_nessie_carries_out(updates, BASE, subject="table db.t")


def test_nessie_is_sent_the_rest() -> None:
    for updates in (
        [NEW, SetSnapshotRef(MAIN, BRANCH)],
        [SetLocation(BASE.location), UpgradeFormatVersion(2), SetProperties({"a": "b"})],
    ):
        check_nessie_carries_out(updates, BASE, subject="table db.t")


@pytest.mark.parametrize(
    ("update", "named", "changed"),
    [
        (SetSnapshotRef("audit", BRANCH), "'audit'", {"refs": {"audit": BRANCH}}),
        (SetLocation("s3://b/elsewhere/"), "s3://b/elsewhere", {"location": "s3://b/elsewhere"}),
        (UpgradeFormatVersion(3), "format version 3", {"format_version": 3}),
    ],
)
def test_what_a_server_left_out_is_reported(update: TableUpdate, named: str, changed: dict[str, object]) -> None:
    with pytest.raises(CommitStateUnknown, match=rf"table db\.t: .*without .*{named}"):
        check_confirmed([update], BASE, subject="table db.t")
    check_confirmed([update], replace(BASE, **changed), subject="table db.t")  # type: ignore[arg-type]


def test_a_reference_that_the_commit_removes_again_is_not_missed() -> None:
    check_confirmed([SetSnapshotRef("at", TAG), RemoveSnapshotRef("at")], BASE, subject="table db.t")
