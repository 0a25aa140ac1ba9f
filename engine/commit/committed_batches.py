"""Which numbered batches of a stream a branch has; see docs/design/commits.md, "Numbered batches".

The summary of a batch's snapshot names the batch, but the snapshot expires. So the commit of a batch also sets a table
property, a `BatchEntry`, which other engines keep: the last batch of a stream on a branch, and the snapshot that added
it. A branch has the batch if that snapshot is in its history, so a rollback takes the batch away.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from itertools import takewhile

from icebench.engine.codec.metadata_json.table import decode_metadata
from icebench.engine.commit.staged_snapshot import branch_head, requires_ref
from icebench.engine.errors import FileNotFound, Invalid, ValidationFailed
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import STREAM_MAX_AGE_MS
from icebench.engine.spec.requirements import AssertRefSnapshotId
from icebench.engine.spec.snapshots import COUNT_DIGITS, Snapshot, count_of
from icebench.engine.spec.updates import RemoveProperties, SetProperties, TableUpdate
from icebench.engine.storage.store import Store

STREAM_ID = "icebench.stream-id"
"""Summary entry: the stream of the snapshot."""
BATCH_ID = "icebench.stream-batch-id"
"""Summary entry: the batch of the stream; batch ids increase."""
NO_BATCH = -1
"""The batch id of an entry that says that a branch has no batch of a stream."""
_PREFIX = "icebench.stream-batch."


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchEntry:
    """The last batch of a stream on a branch.

    Args:
        stream_id: The stream.
        branch: The branch.
        batch_id: The batch, or `NO_BATCH`.
        snapshot_id: The snapshot that added the batch; if unknown, a later one.
        sequence_number: Of the snapshot that added the batch; None if unknown, and in format version 1.
        present_in: Another snapshot that has the batch: the oldest one of the branch that an expiry kept.
        timestamp_ms: When the batch was committed.
    """

    stream_id: str
    branch: str
    batch_id: int
    snapshot_id: int
    sequence_number: int | None = None
    present_in: int | None = None
    timestamp_ms: int

    @property
    def name(self) -> str:
        """Its table property: a digest, because metastores restrict the length and the letters of names."""
        key = json.dumps([self.branch, self.stream_id])
        return _PREFIX + hashlib.sha256(key.encode()).hexdigest()[:24]

    @property
    def text(self) -> str:
        """The property's value."""
        return json.dumps({_key(name): value for name, value in asdict(self).items() if value is not None})

    @property
    def snapshot_ids(self) -> tuple[int | None, int | None]:
        """Snapshots that have the batch."""
        return self.snapshot_id, self.present_in

    @classmethod
    def of(cls, stream_id: str, branch: str, batch_id: int, snapshot: Snapshot) -> BatchEntry:
        """The entry of a batch that `snapshot` has."""
        is_own = _summary_batch(snapshot, stream_id) == batch_id
        return cls(
            stream_id=stream_id,
            branch=branch,
            batch_id=batch_id,
            snapshot_id=snapshot.snapshot_id,
            sequence_number=(snapshot.sequence_number or None) if is_own else None,
            timestamp_ms=snapshot.timestamp_ms,
        )


def _key(name: str) -> str:
    return name.replace("_", "-")


def _summary_batch(snapshot: Snapshot, stream_id: str) -> int | None:
    is_own = snapshot.summary.get(STREAM_ID) == stream_id
    return count_of(snapshot.summary.get(BATCH_ID)) if is_own else None


def check_batch_id(batch_id: int) -> None:
    """Raise Invalid for a number that would not be found again."""
    if not 0 <= batch_id < 10**COUNT_DIGITS:
        raise Invalid(f"a batch id is a whole number from 0 on, with at most {COUNT_DIGITS} digits")


def batch_entries(base: TableMetadata) -> list[BatchEntry]:
    """All entries; raises Invalid, naming the property, for one that was damaged."""
    return [_decoded(name, text) for name, text in base.properties.items() if name.startswith(_PREFIX)]


def _decoded(name: str, text: str) -> BatchEntry:
    try:
        given = json.loads(text)
        entry = BatchEntry(**{f.name: given[_key(f.name)] for f in fields(BatchEntry) if _key(f.name) in given})
        required = (entry.batch_id, entry.snapshot_id, entry.timestamp_ms)
        optional = [n for n in (entry.sequence_number, entry.present_in) if n is not None]
        if entry.name == name and all(type(n) is int for n in (*required, *optional)):
            return entry
    except (ValueError, TypeError):
        pass
    raise Invalid(f"table property {name}={text!r} is no entry of a stream's last batch")


def updates_to_entries(
    base: TableMetadata, entries: Iterable[BatchEntry], now_ms: int
) -> tuple[list[TableUpdate], list[AssertRefSnapshotId]]:
    """Updates that set entries and remove those of streams without a batch for ``icebench.streams.max-age-ms``, and
    what they require: that no stream has committed to the branches of removed entries meanwhile."""
    new = {entry.name: entry for entry in entries}
    old = batch_entries(base)
    alive = {entry.stream_id for entry in old if not _is_old(entry, base, now_ms)}
    alive.update(entry.stream_id for entry in new.values())
    removed = [entry for entry in old if entry.stream_id not in alive]
    updates: list[TableUpdate] = []
    if new:
        updates.append(SetProperties({name: entry.text for name, entry in new.items()}))
    if removed:
        updates.append(RemoveProperties(frozenset(entry.name for entry in removed)))
    return updates, [requires_ref(base, branch) for branch in sorted({entry.branch for entry in removed})]


def _is_old(entry: BatchEntry, base: TableMetadata, now_ms: int) -> bool:
    return now_ms - entry.timestamp_ms > STREAM_MAX_AGE_MS.of(base.properties)


@dataclass
class _Search:
    """A walk through a branch's history, newest snapshot first, for the last batch of a stream."""

    stream_id: str
    branch: str
    entries: list[BatchEntry]
    found: BatchEntry | None = None
    oldest: Snapshot | None = None

    @classmethod
    def of(cls, entries: Iterable[BatchEntry], branch: str, stream_id: str) -> _Search:
        return cls(stream_id, branch, [entry for entry in entries if entry.stream_id == stream_id])

    def walk(self, line: Iterable[Snapshot]) -> _Search:
        """Go on through these snapshots, until one is known to have a batch."""
        for snapshot in line:
            self.oldest = snapshot
            known = self._known_in(snapshot.snapshot_id)
            if (number := _summary_batch(snapshot, self.stream_id)) is not None:
                known.append(BatchEntry.of(self.stream_id, self.branch, number, snapshot))
            # Of an expired parent the id is left.
            known = known or self._known_in(snapshot.parent_snapshot_id)
            if known:
                self.found = max(known, key=lambda entry: entry.batch_id)
                break
        return self

    def _known_in(self, snapshot_id: int | None) -> list[BatchEntry]:
        return [] if snapshot_id is None else [e for e in self.entries if snapshot_id in e.snapshot_ids]

    @property
    def is_finished(self) -> bool:
        """Whether the walk found a batch, or reached the first snapshot."""
        return self.found is not None or self.oldest is None or self.oldest.parent_snapshot_id is None

    def has(self, batch_id: int) -> bool | None:
        """Whether the branch has the batch or a later one; None if unknown."""
        if self.found is not None:
            return batch_id <= self.found.batch_id
        if self.oldest is None or self.is_finished:
            return False
        if not self.entries:
            # The first batch of a new stream; a later one may be of an engine that kept no entries.
            return False if batch_id == 0 else None
        for entry in self.entries:
            number = entry.sequence_number
            # The walk would have met a snapshot as new as this.
            is_absent = number is not None and self.oldest.sequence_number <= number
            if entry.batch_id > batch_id or (entry.batch_id == batch_id and not is_absent):
                return None
        return False

    def walk_on(self, base: TableMetadata, store: Store, batch_id: int | None = None) -> _Search:
        """Go on where the history was expired, through what former metadata files say of it, until `batch_id` or the
        last batch is known."""
        for former in reversed(base.metadata_log):
            if self.is_finished or (batch_id is not None and self.has(batch_id) is not None):
                break
            assert self.oldest is not None
            try:
                metadata = decode_metadata(store.read(former.metadata_file), location=former.metadata_file)
            except FileNotFound:
                continue
            if metadata.table_uuid == base.table_uuid:
                self.walk(_line(metadata, self.oldest.parent_snapshot_id))
        return self


def _line(metadata: TableMetadata, snapshot_id: int | None) -> Iterator[Snapshot]:
    return map(metadata.snapshot, metadata.ancestors(snapshot_id))


def _history(base: TableMetadata, branch: str) -> Iterator[Snapshot]:
    head = branch_head(base, branch)
    return _line(base, None if head is None else head.snapshot_id)


def has_batch(base: TableMetadata, branch: str, stream_id: str, batch_id: int, store: Store) -> bool:
    """Whether a branch has a batch of a stream, or a later one.

    Raises:
        ValidationFailed: Unknown, because the snapshots that would show it were expired.
    """
    search = _Search.of(batch_entries(base), branch, stream_id).walk(_history(base, branch))
    answer = search.walk_on(base, store, batch_id).has(batch_id)
    if answer is None:
        raise _unknown(stream_id, branch, batch_id)
    return answer


def last_batch(base: TableMetadata, branch: str, stream_id: str, store: Store) -> int | None:
    """The last batch of a stream that a branch has; None for a stream that is not known; raises as `has_batch`."""
    search = _Search.of(batch_entries(base), branch, stream_id).walk(_history(base, branch)).walk_on(base, store)
    if search.found is not None:
        return None if search.found.batch_id == NO_BATCH else search.found.batch_id
    if search.entries and not search.is_finished:
        raise _unknown(stream_id, branch, max(entry.batch_id for entry in search.entries))
    return None


def is_unknown(base: TableMetadata, branch: str, stream_id: str) -> bool:
    """Whether nothing is known of a stream: no entry, and no snapshot in what is left of the branch's history."""
    search = _Search.of(batch_entries(base), branch, stream_id)
    return not search.entries and not search.walk(_history(base, branch)).is_finished


def _unknown(stream_id: str, branch: str, batch_id: int) -> ValidationFailed:
    call = f"table.set_last_batch({stream_id!r}, {{}}, branch={branch!r})"
    return ValidationFailed(
        f"whether branch {branch!r} has batch {batch_id} of stream {stream_id!r} is unknown, because the snapshots "
        f"that would show it were expired; look for the batch's rows, then call {call.format(batch_id)} if they are "
        f"there, {call.format(batch_id - 1)} if not"
    )


def entries_to_keep(
    base: TableMetadata, branches: Iterable[str], kept: Collection[int], store: Store, now_ms: int
) -> Iterator[BatchEntry]:
    """The entries that an expiry has to set, so that batches of streams that are not too old (see `updates_to_entries`)
    are still known when all snapshots but `kept` are gone."""
    entries = batch_entries(base)
    for branch in branches:
        line = list(_history(base, branch))
        left = list(takewhile(lambda snapshot: snapshot.snapshot_id in kept, line))
        if len(left) == len(line):
            continue
        streams = {entry.stream_id for entry in entries}
        streams.update(snapshot.summary[STREAM_ID] for snapshot in line if STREAM_ID in snapshot.summary)
        for stream_id in sorted(streams):
            if _Search.of(entries, branch, stream_id).walk(left).found is None:
                search = _Search.of(entries, branch, stream_id).walk(line).walk_on(base, store)
                entry = _entry_to_keep(search, left[-1], base, kept)
                if entry is not None and not _is_old(entry, base, now_ms):
                    yield entry


def _entry_to_keep(search: _Search, oldest: Snapshot, base: TableMetadata, kept: Collection[int]) -> BatchEntry | None:
    """The entry of the searched branch, whose oldest kept snapshot is `oldest`; None to leave what is there."""
    former = [entry for entry in search.entries if entry.branch == search.branch]
    if search.found is not None:
        entry = replace(search.found, branch=search.branch, present_in=oldest.snapshot_id)
    elif search.is_finished and former:
        entry = BatchEntry.of(search.stream_id, search.branch, NO_BATCH, oldest)
    else:
        return None
    # A later batch was rolled back. Its entry stays as long as a tag or another branch may bring it back.
    if any(e.batch_id > entry.batch_id and _is_reachable(base, e, kept) for e in former):
        return None
    return entry


def _is_reachable(base: TableMetadata, entry: BatchEntry, kept: Collection[int]) -> bool:
    return any(entry.snapshot_id in base.ancestors(snapshot_id) for snapshot_id in kept)
