"""Selects the snapshot that a scan reads, and its schema."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from icebench.engine.errors import Invalid
from icebench.engine.expressions.temporal_literals import parse_temporal, to_temporal
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import Snapshot

AsOf = int | str | dt.datetime
"""A time: milliseconds since 1970, an ISO 8601 text with a zone, or a datetime with one."""


@dataclass(frozen=True)
class Selected:
    """A snapshot (None for a table without one) and the schema to read it with."""

    snapshot: Snapshot | None
    schema: Schema


def select(
    metadata: TableMetadata, *, snapshot_id: int | None = None, ref: str | None = None, as_of: AsOf | None = None
) -> Selected:
    """The requested snapshot, or the current one.

    A past state (by id, by time, by tag) is read with its own schema, a branch and the current state with the table's.

    Raises:
        Invalid: More than one of the arguments is set, or a time has no zone.
        NotFound: No such snapshot or reference, or no snapshot at that time.
    """
    if sum(each is not None for each in (snapshot_id, ref, as_of)) > 1:
        raise Invalid("give one of snapshot_id, ref and as_of")
    if ref is not None:
        found = metadata.ref(ref)
        snapshot = metadata.snapshot(found.snapshot_id)
        return Selected(snapshot, metadata.schema_of(snapshot) if found.type == "tag" else metadata.schema)
    if snapshot_id is not None or as_of is not None:
        snapshot = (
            metadata.snapshot(snapshot_id)
            if snapshot_id is not None
            else metadata.snapshot_as_of(milliseconds(as_of if as_of is not None else 0))
        )
        return Selected(snapshot, metadata.schema_of(snapshot))
    return Selected(metadata.current_snapshot, metadata.schema)


def milliseconds(as_of: AsOf) -> int:
    """A time in milliseconds since 1970; raises Invalid for one without a zone."""
    if isinstance(as_of, int):
        return as_of
    moment = parse_temporal(as_of) if isinstance(as_of, str) else to_temporal(as_of)
    if moment.kind != "timestamptz":
        raise Invalid(f"a point in time needs a zone, such as Z or +00:00: {as_of}")
    return moment.nanoseconds // 1_000_000
