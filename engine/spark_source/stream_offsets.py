"""The offsets of a streaming query, and where its next micro-batch ends.

The unit is a data file that an append added: the files of a snapshot have an order (that of its manifests) that never
changes, so an offset between two files stays valid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.plan.incremental import snapshots_between
from icebench.engine.plan.scan import ScanPlan, table_scan
from icebench.engine.plan.snapshots import Selected
from icebench.engine.spark_source.options import StreamOptions
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.snapshots import MAIN, Snapshot
from icebench.engine.table import Table

ALL = -1
"""All files of a snapshot, however many they are."""
_NO_SNAPSHOT = -1
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a branch's history.

    Args:
        snapshot_id: The last snapshot of which something was read; None before the first.
        files: How many of the files that it added were read, or `ALL`.
        is_state: Whether the snapshot is read as a whole table, with all its files and deletes, rather than for the
            files that it added: where a query begins with a table whose older snapshots were expired.
    """

    snapshot_id: int | None
    files: int = ALL
    is_state: bool = False

    def encoded(self) -> dict[str, int | bool]:
        """The position as JSON values."""
        snapshot_id = _NO_SNAPSHOT if self.snapshot_id is None else self.snapshot_id
        return {"snapshot-id": snapshot_id, "files": self.files, "is-state": self.is_state}

    @classmethod
    def decoded(cls, given: Mapping[str, object]) -> Position:
        """The position from JSON values.

        Raises:
            Invalid: The values are not those of a position.
        """
        snapshot_id, files, is_state = given.get("snapshot-id"), given.get("files"), given.get("is-state")
        if not isinstance(snapshot_id, int) or not isinstance(files, int) or not isinstance(is_state, bool):
            raise Invalid(f"{dict(given)} is no position in a table; is the checkpoint of another source?")
        return cls(None if snapshot_id == _NO_SNAPSHOT else snapshot_id, files, is_state)


@dataclass(frozen=True, slots=True)
class Offset:
    """What Spark keeps in its checkpoint.

    Args:
        position: How far was read.
        origin: Where the query began. If the first batch has to run again, Spark asks for it from the beginning, and by
            then "the latest snapshot" may be another.
        is_initial: Whether this is the beginning itself.
        table_uuid: The table's UUID; empty where it has none, or none was kept.
    """

    position: Position
    origin: Position
    is_initial: bool = False
    table_uuid: str = ""

    def encoded(self) -> dict[str, object]:
        """The offset as JSON values. Equal offsets give equal text, by which Spark sees that nothing is new."""
        return {
            "version": _VERSION,
            **self.position.encoded(),
            "is-initial": self.is_initial,
            "origin": self.origin.encoded(),
            "table-uuid": self.table_uuid,
        }

    @classmethod
    def decoded(cls, given: Mapping[str, object]) -> Offset:
        """The offset from JSON values.

        Raises:
            Invalid: The values are not those of an offset.
        """
        origin, table_uuid = given.get("origin"), given.get("table-uuid", "")
        if given.get("version") != _VERSION or not isinstance(origin, Mapping) or not isinstance(table_uuid, str):
            raise Invalid(f"{dict(given)} is no offset of this source; is the checkpoint of another one?")
        return cls(Position.decoded(given), Position.decoded(origin), given.get("is-initial") is True, table_uuid)


@dataclass(frozen=True, slots=True)
class PlanPart:
    """A part of a plan: ``plan.files[begin:end]``."""

    plan: ScanPlan
    begin: int = 0
    end: int | None = None


class StreamPlanner:
    """Plans micro-batches on one state of a table.

    Args:
        table: The table at its current state.
        options: What the query reads.
        columns: Full names of the columns to return; None for all.

    Raises:
        NotFound: No such branch.
    """

    def __init__(self, table: Table, options: StreamOptions, columns: tuple[str, ...] | None = None) -> None:
        self._table = table
        self._metadata: TableMetadata = table.metadata
        self._options = options
        self._columns = columns
        self._head = self._metadata.head(options.branch)
        if self._head is None and options.branch != MAIN:
            self._metadata.ref(options.branch)  # raises: main alone is there before its first snapshot

    def initial(self) -> Position:
        """The offset at which a new query begins.

        Raises:
            NotFound: No such snapshot.
            Invalid: A snapshot that is not in the branch's history.
        """
        options = self._options
        if options.after is not None:
            snapshots_between(self._metadata, options.after, self._head)
            return Position(options.after)
        if self._head is None:
            return Position(None)
        if options.starting == "latest":
            return Position(self._head.snapshot_id)
        return self._first_since(options.from_timestamp_ms) or Position(self._head.snapshot_id)

    def _first_since(self, timestamp_ms: int | None) -> Position | None:
        """The position before the first snapshot at or after a time, or before all; None where all are older."""
        line = self._line()
        for place, snapshot in enumerate(line):
            if timestamp_ms is None or snapshot.timestamp_ms >= timestamp_ms:
                if place or snapshot.parent_snapshot_id is None:
                    return Position(line[place - 1].snapshot_id if place else None)
                # What it added to its parent is known, but not what was there before.
                if timestamp_ms is not None:
                    return Position(snapshot.parent_snapshot_id)
                return Position(snapshot.snapshot_id, 0, is_state=True)
        return None

    def _line(self) -> list[Snapshot]:
        """The branch's history as far as it is retained, oldest first."""
        newest_first = self._metadata.ancestors(None if self._head is None else self._head.snapshot_id)
        return [self._metadata.snapshot(i) for i in newest_first][::-1]

    def following(self, position: Position) -> Position:
        """The position at which the micro-batch after `position` ends: the head of the branch, or earlier by the limits
        of the options.

        Raises:
            Unsupported: The next snapshot deletes or overwrites rows, and the options do not skip it.
            NotFound: The position's snapshot, or one after it, was expired.
            Invalid: The position is no longer in the branch's history.
        """
        if self._options.changelog is not None:
            if position.is_state:
                return Position(position.snapshot_id)
            snapshots_between(self._metadata, position.snapshot_id, self._head)
            return position if self._head is None else Position(self._head.snapshot_id)
        reached, files, rows = position, 0, 0
        for snapshot, taken in self._unread(position):
            is_state = position.is_state and snapshot.snapshot_id == position.snapshot_id
            refused = None if is_state else self._refusal(snapshot)
            if refused is not None and reached == position:
                raise Unsupported(refused)
            if refused is not None:
                return reached
            if self._options.most_files is None and self._options.most_rows is None:
                reached = Position(snapshot.snapshot_id, ALL, is_state)
                continue
            counts = self._record_counts(snapshot, is_state=is_state)
            for place in range(taken, len(counts)):
                if files and self._is_full(files + 1, rows + counts[place]):
                    return reached
                files, rows = files + 1, rows + counts[place]
                reached = Position(snapshot.snapshot_id, place + 1, is_state)
            reached = Position(snapshot.snapshot_id, ALL, is_state)
        return reached

    def _is_full(self, files: int, rows: int) -> bool:
        most_files, most_rows = self._options.most_files, self._options.most_rows
        return (most_files is not None and files > most_files) or (most_rows is not None and rows > most_rows)

    def _unread(self, position: Position) -> Iterator[tuple[Snapshot, int]]:
        """Snapshots with files after `position`, and how many files of the first one were read."""
        if position.files != ALL and position.snapshot_id is not None:
            yield self._metadata.snapshot(position.snapshot_id), position.files
        for snapshot in snapshots_between(self._metadata, position.snapshot_id, self._head):
            yield snapshot, 0

    def _refusal(self, snapshot: Snapshot) -> str | None:
        """Why the changes of a snapshot cannot be returned as appended rows."""
        options = self._options
        if snapshot.operation == "delete" and not options.skips_deletes:
            return _refused(snapshot, "streaming-skip-delete-snapshots")
        if snapshot.operation == "overwrite" and not options.skips_overwrites:
            return _refused(snapshot, "streaming-skip-overwrite-snapshots")
        return None

    def _record_counts(self, snapshot: Snapshot, *, is_state: bool) -> list[int]:
        plan = self._plan_of(snapshot, is_state=is_state)
        counts: list[int] = plan.files.column("record_count").to_pylist()
        return counts

    def between(self, start: Position, end: Position) -> list[PlanPart]:
        """The parts of plans from `start` to `end`, oldest first; errors as `following`."""
        if start == end or end.snapshot_id is None:
            return []
        last = self._metadata.snapshot(end.snapshot_id)
        parts: list[PlanPart] = []
        if start.files != ALL and start.snapshot_id is not None:
            first = self._metadata.snapshot(start.snapshot_id)
            until = end.files if first.snapshot_id == last.snapshot_id and end.files != ALL else None
            parts.append(PlanPart(self._plan_of(first, is_state=start.is_state), start.files, until))
        if start.snapshot_id == last.snapshot_id:
            return parts
        if end.files == ALL:
            return [*parts, PlanPart(self._appends(start.snapshot_id, last.snapshot_id))]
        if last.parent_snapshot_id not in (None, start.snapshot_id):
            parts.append(PlanPart(self._appends(start.snapshot_id, last.parent_snapshot_id)))
        return [*parts, PlanPart(self._plan_of(last, is_state=False), 0, end.files)]

    def _plan_of(self, snapshot: Snapshot, *, is_state: bool) -> ScanPlan:
        """The files of a whole table, or those that one snapshot added; none for a snapshot that is no append."""
        snapshot_id = snapshot.snapshot_id
        if is_state:
            # With the table's schema, like all that follows, rather than the snapshot's own.
            state = table_scan(self._metadata, self._table.store, columns=self._columns, table_name=self._table.name)
            return replace(state, selected=Selected(snapshot, self._metadata.schema)).plan()
        scan = self._table.incremental_append_scan(snapshot_id, snapshot_id, from_inclusive=True, columns=self._columns)
        return scan.plan()

    def _appends(self, after: int | None, until: int | None) -> ScanPlan:
        return self._table.incremental_append_scan(after, until, columns=self._columns).plan()


def _refused(snapshot: Snapshot, option: str) -> str:
    return (
        f"snapshot {snapshot.snapshot_id} is of operation {snapshot.operation}: a stream of appends does not "
        f"include what it changed; option {option}=true skips such snapshots"
    )
