"""Which snapshots and references an expiry takes, and what it depends on; files are the maintenance's matter."""

from __future__ import annotations

from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.changes.expire_snapshots import ExpireSnapshots
from icebench.engine.spec.requirements import AssertRefSnapshotId
from icebench.engine.spec.snapshots import SnapshotRef
from icebench.engine.spec.updates import SetSnapshotRef
from tests.unit.engine.commit.tables import World, data_file, metadata, world

DAY = 86_400_000


def table(**properties: str) -> World:
    """Snapshots 101 to 104 on four days; the clock is at noon of the fourth."""
    w = world(metadata(properties={name.replace("_", "-"): value for name, value in properties.items()}))
    for day in range(4):
        w.now_ms = (day + 1) * DAY
        w.transaction().commit([Append(data_files=[data_file(f"f{day}")])])
    w.now_ms += DAY // 2
    return w


def refer(w: World, name: str, ref: SnapshotRef) -> None:
    w.committer.apply([], [SetSnapshotRef(name, ref)])


def left(w: World) -> list[int]:
    return sorted(w.metadata.snapshot_by_id)


def test_a_branch_has_an_age_limit_of_its_own() -> None:
    w = table()
    refer(w, "b", SnapshotRef(snapshot_id=103, type="branch", max_snapshot_age_ms=2 * DAY))
    w.transaction().commit([ExpireSnapshots(older_than_ms=w.now_ms, retain_last=1)])
    assert left(w) == [103, 104]
    w = table()
    refer(w, "b", SnapshotRef(snapshot_id=103, type="branch", max_snapshot_age_ms=3 * DAY))
    w.transaction().commit([ExpireSnapshots(older_than_ms=w.now_ms, retain_last=1)])
    assert left(w) == [102, 103, 104]
    w = table()
    refer(w, "main", SnapshotRef(snapshot_id=104, type="branch", max_snapshot_age_ms=DAY))
    w.transaction().commit([ExpireSnapshots(older_than_ms=0, retain_last=1)])
    assert left(w) == [104]


def test_main_stays_however_old_it_is() -> None:
    w = table(**{"history.expire.max-ref-age-ms": str(DAY)})
    refer(w, "old", SnapshotRef(snapshot_id=102, type="tag"))
    refer(w, "own", SnapshotRef(snapshot_id=101, type="tag", max_ref_age_ms=9 * DAY))
    w.now_ms += 3 * DAY
    w.transaction().commit([ExpireSnapshots(older_than_ms=w.now_ms, retain_last=1)])
    assert set(w.metadata.refs) == {"main", "own"}
    assert left(w) == [101, 104]
    assert w.metadata.current_snapshot_id == 104


def test_every_reference_must_be_where_it_was() -> None:
    w = table()
    refer(w, "t", SnapshotRef(snapshot_id=102, type="tag"))
    staged = ExpireSnapshots(older_than_ms=w.now_ms, retain_last=1).stage(w.metadata, w.staging())
    required = {r.ref: r.snapshot_id for r in staged.requirements if isinstance(r, AssertRefSnapshotId)}
    assert required == {"main": 104, "t": 102}
