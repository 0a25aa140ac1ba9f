from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest

from icebench.engine.plan.snapshots import AsOf, milliseconds, select
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import MAIN, Snapshot, SnapshotLogEntry, SnapshotRef
from icebench.engine.spec.types import INT, LONG, NestedField
from icebench.errors import Invalid, NotFound
from tests.property.table_builder import TableBuilder

OLD = Schema((NestedField(field_id=1, name="a", type=INT),), 0)
NEW = Schema((NestedField(field_id=1, name="a", type=LONG),), 1)


@pytest.fixture(scope="module")
def metadata() -> TableMetadata:
    first, second = (
        Snapshot(snapshot_id=i, timestamp_ms=1000 * i, manifest_list="memory://t/x", operation="append", schema_id=0)
        for i in (1, 2)
    )
    made = TableBuilder(NEW, schemas=(OLD, NEW)).metadata()
    return replace(
        made,
        snapshots=(first, second),
        current_snapshot_id=2,
        snapshot_log=tuple(
            SnapshotLogEntry(timestamp_ms=s.timestamp_ms, snapshot_id=s.snapshot_id) for s in (first, second)
        ),
        refs={
            MAIN: SnapshotRef(snapshot_id=2, type="branch"),
            "dev": SnapshotRef(snapshot_id=1, type="branch"),
            "v1": SnapshotRef(snapshot_id=1, type="tag"),
        },
    )


def test_the_current_snapshot_is_read_with_the_tables_schema(metadata: TableMetadata) -> None:
    found = select(metadata)
    assert found.snapshot is not None
    assert (found.snapshot.snapshot_id, found.schema) == (2, NEW)


def test_branches_have_the_tables_schema_and_tags_their_own(metadata: TableMetadata) -> None:
    for ref, schema in (("dev", NEW), ("v1", OLD)):
        found = select(metadata, ref=ref)
        assert found.snapshot is not None
        assert (found.snapshot.snapshot_id, found.schema) == (1, schema)


@pytest.mark.parametrize(
    ("as_of", "snapshot_id"),
    [
        (1000, 1),
        (1999, 1),
        (2000, 2),
        ("1970-01-01T00:00:01.5Z", 1),
        ("1970-01-01T01:00:02+01:00", 2),
        (dt.datetime(1970, 1, 1, 0, 0, 3, tzinfo=dt.UTC), 2),
    ],
)
def test_times(metadata: TableMetadata, as_of: AsOf, snapshot_id: int) -> None:
    found = select(metadata, as_of=as_of)
    assert found.snapshot is not None
    assert (found.snapshot.snapshot_id, found.schema) == (snapshot_id, OLD)


def test_what_cannot_be_found(metadata: TableMetadata) -> None:
    for wrong in ({"snapshot_id": 9}, {"ref": "nowhere"}, {"as_of": 999}):
        with pytest.raises(NotFound):
            select(metadata, **wrong)
    with pytest.raises(Invalid, match="one of"):
        select(metadata, snapshot_id=1, ref="dev")
    for vague in ("1970-01-01T00:00:01", dt.datetime(1970, 1, 1)):  # noqa: DTZ001 - the zone is what is missing
        with pytest.raises(Invalid, match="zone"):
            milliseconds(vague)
