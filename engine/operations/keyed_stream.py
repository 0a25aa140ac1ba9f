"""Writes a keyed change stream: inserts, updates and deletes by key, batch by batch, without reading the table.

The position of a deleted row is unknown, so a delete writes the key (an equality delete), which applies to rows of
older commits. Rows of the same batch are deleted by position: an equality delete cannot distinguish +I -D +I of one key
from +I +I -D, since a commit has a single sequence number.

What is written for a key, in the order of its changes in one batch:

* an insert writes the row;
* an update writes the row, and the key unless the batch wrote a row of that key before;
* a delete writes the key;
* a row of the batch that a later change of its key supersedes is deleted by position (a deletion vector in format
  version 3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebench.engine.columnar.batch_columns import combined
from icebench.engine.columnar.key_index import KeyIndex
from icebench.engine.columnar.partitions import group_rows
from icebench.engine.columnar.rows import table_rows
from icebench.engine.columnar.schemas import to_arrow_schema
from icebench.engine.commit.changes.stream_batch import BatchExists, StreamBatch
from icebench.engine.commit.committed_batches import check_batch_id, last_batch
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.conflicts import Validation
from icebench.engine.commit.file_refs import ref_to
from icebench.engine.commit.staged_snapshot import branch_head
from icebench.engine.commit.target import Target
from icebench.engine.commit.written_for import WrittenFor
from icebench.engine.errors import Invalid, Unsupported, ValidationFailed
from icebench.engine.operations.append import note_empty_batch
from icebench.engine.operations.upsert import key_columns
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import Partition, PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import MAIN, Snapshot
from icebench.engine.write.data_files import remove_files, write_data_files
from icebench.engine.write.delete_files import DeletedRows, write_equality_deletes, write_position_deletes
from icebench.engine.write.vectors import write_deletion_vectors

_INSERT, _UPDATE, _DELETE = 0, 1, 2


@dataclass(kw_only=True)
class KeyedStream:
    """Takes changes in order and commits them batch by batch. Not thread-safe.

    Args:
        target: The table; format version 2 or later.
        on: The key: top-level columns of primitive types. A key may be null; null equals null.
        branch: The branch to change.
        stream_id: Identifies the stream across restarts of its writer; with it every batch needs a number and is
            committed once. None for a stream that never resumes.
        committed: Called with the table after each batch.
    """

    target: Target
    on: Sequence[str]
    branch: str = MAIN
    stream_id: str | None = None
    committed: Callable[[TableState], None] = lambda _: None
    _changes: list[tuple[int, pa.Table]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        metadata = self.target.load().metadata
        if metadata.format_version < 2:
            raise Unsupported("a keyed stream into format version 1, which has no delete files; upgrade the table")
        self._schema = metadata.schema
        self._keys = Schema(key_columns(self.on, metadata.schema))
        _delete_specs(metadata, self._keys)

    def insert(self, rows: pa.Table | pa.RecordBatchReader) -> None:
        """Add rows whose keys are not in the table; if a key is, both rows stay, unless this batch wrote the other."""
        self._take(_INSERT, rows, self._schema)

    def update(self, rows: pa.Table | pa.RecordBatchReader) -> None:
        """Replace the rows with these keys; rows with new keys are added."""
        self._take(_UPDATE, rows, self._schema)

    def delete(self, keys: pa.Table | pa.RecordBatchReader) -> None:
        """Delete the rows with these keys; pass the key columns only."""
        self._take(_DELETE, keys, self._keys)

    @property
    def last_batch(self) -> int | None:
        """The last committed batch of the stream, after which to resume; None for a stream that is not known.

        Raises ValidationFailed where it cannot be known; see `icebench.engine.commit.committed_batches`.
        """
        if self.stream_id is None:
            return None
        return last_batch(self.target.load().metadata, self.branch, self.stream_id, self.target.store)

    def commit(self, batch_id: int | None = None) -> Snapshot | None:
        """Commit the changes since the last commit, in one snapshot.

        Args:
            batch_id: The batch's number, greater than those before; needed with a `stream_id`.

        Returns:
            The snapshot; None if there was no change, or if the table already has this batch.

        Raises:
            Invalid: A number is missing or negative, or the schema has changed since the stream began.
            ValidationFailed: Whether the branch has the batch is unknown; see
                `icebench.engine.commit.committed_batches`.
            CommitFailed: See `Target.commit`; the changes are kept for another try.
        """
        if (batch_id is None) != (self.stream_id is None):
            raise Invalid("a stream with an id numbers its batches, and one without does not")
        if batch_id is not None:
            check_batch_id(batch_id)
        if not self._changes:
            if self.stream_id is not None and batch_id is not None:
                note_empty_batch(self.target, self.target.load(), self.stream_id, batch_id, self.branch)
            return None
        metadata = self.target.load().metadata
        while True:
            if metadata.schema.fields != self._schema.fields:
                raise Invalid("the table's schema has changed since the stream began; begin another one")
            change = self._prepare(metadata, batch_id)
            try:
                done = self.target.commit([change], [*change.data_files, *change.delete_files])
            except BatchExists:
                self._changes.clear()
                return None
            except ValidationFailed:
                planned, metadata = metadata, self.target.load().metadata
                # The written files depend on these; if they are unchanged, writing again would not help.
                same_specs = metadata.partition_specs == planned.partition_specs
                if same_specs and metadata.format_version == planned.format_version:
                    raise
                continue
            self._changes.clear()
            self.committed(done)
            return change.snapshot_in(done.metadata)

    def _take(self, kind: int, rows: pa.Table | pa.RecordBatchReader, schema: Schema) -> None:
        made = pa.Table.from_batches(table_rows(rows, schema), schema=to_arrow_schema(schema))
        if kind == _DELETE and set(rows.schema.names) != {f.name for f in schema.fields}:
            raise Invalid("a delete takes exactly the key columns: " + ", ".join(f.name for f in schema.fields))
        if made.num_rows:
            self._changes.append((kind, made))

    def _prepare(self, metadata: TableMetadata, batch_id: int | None) -> StreamBatch:
        kinds = np.repeat([kind for kind, _ in self._changes], [rows.num_rows for _, rows in self._changes])
        names = [f.name for f in self._keys.fields]
        keys = pa.concat_tables([rows.select(names) for _, rows in self._changes]).combine_chunks()
        writes = [rows for kind, rows in self._changes if kind != _DELETE]
        superseded, wanted = _resolve(kinds, [combined(keys.column(name)) for name in names])
        written: list[DataFile] = []
        try:
            deletes: list[DataFile] = []
            if writes:
                taken_away = superseded[kinds != _DELETE]
                own = self._write_rows(pa.concat_tables(writes).combine_chunks(), taken_away, metadata, written)
                deletes += own
            by_position = bool(deletes)
            deletes += self._write_keys(keys.filter(pa.array(wanted)), metadata)
        except BaseException:
            remove_files(self.target.store, written)
            raise
        head = branch_head(metadata, self.branch)
        return StreamBatch(
            data_files=written,
            delete_files=deletes,
            validation=Validation(
                starting_snapshot_id=None if head is None else head.snapshot_id,
                referenced=[ref_to(file) for file in written],
            ),
            branch=self.branch,
            written_for=WrittenFor(schema=metadata.schema),
            planned_version=metadata.format_version if by_position else None,
            stream_id=self.stream_id,
            batch_id=batch_id,
            key_spec_ids=frozenset(s.spec_id for s in _delete_specs(metadata, self._keys)) if wanted.any() else None,
        )

    def _write_rows(
        self, rows: pa.Table, superseded: npt.NDArray[np.bool_], metadata: TableMetadata, written: list[DataFile]
    ) -> list[DataFile]:
        """Write the rows into `written`, and deletes of the superseded ones."""
        groups = group_rows(rows, metadata.spec, metadata.schema)
        order = np.arange(rows.num_rows) if groups.order is None else groups.order
        # A stream in partition order keeps that order, so positions follow from the files' record counts.
        ordered = rows.take(pa.array(order))
        reader = pa.RecordBatchReader.from_batches(ordered.schema, ordered.to_batches())
        target = self.target
        written += write_data_files(
            reader,
            metadata=metadata,
            store=target.store,
            counters=target.counters,
            mode="clustered",
            runner=target.runner,
        )
        ends = np.cumsum([file.record_count for file in written])
        gone = np.flatnonzero(superseded[order])
        places = np.searchsorted(ends, gone, side="right")
        deleted = [
            DeletedRows(
                file_path=written[place].file_path,
                positions=gone[places == place] - (ends[place] - written[place].record_count),
                spec_id=written[place].spec_id,
                partition=written[place].partition,
            )
            for place in np.unique(places).tolist()
        ]
        if not deleted:
            return []
        write = write_deletion_vectors if metadata.format_version >= 3 else write_position_deletes
        return write(deleted, metadata=metadata, store=target.store, counters=target.counters)

    def _write_keys(self, keys: pa.Table, metadata: TableMetadata) -> list[DataFile]:
        """Equality deletes of these keys, wherever a row with one of them may be."""
        if not keys.num_rows:
            return []
        written: list[DataFile] = []
        try:
            for spec in _delete_specs(metadata, self._keys):
                groups = group_rows(keys, spec, self._keys)
                ordered = keys if groups.order is None else keys.take(pa.array(groups.order))
                for place, partition in enumerate(groups.partitions):
                    start = int(groups.starts[place])
                    own = ordered.slice(start, int(groups.starts[place + 1]) - start)
                    for each in _with_both_zeros(partition):
                        written += write_equality_deletes(
                            own,
                            columns=[f.name for f in self._keys.fields],
                            metadata=metadata,
                            store=self.target.store,
                            spec=spec,
                            partition=each,
                            counters=self.target.counters,
                        )
        except BaseException:
            remove_files(self.target.store, written)
            raise
        return written


def _resolve(
    kinds: npt.NDArray[np.int64], keys: Sequence[pa.Array]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """For each change whether a later one has its key, and whether it is the one whose key is to be written: the first
    delete of a key, or its first change where that is an update."""
    numbers = np.arange(len(kinds))
    last = KeyIndex.build(keys, numbers).greatest(keys)
    # The index keeps the greatest number of equal keys: counted from the end, that is the first.
    first = len(kinds) - 1 - KeyIndex.build(keys, numbers[::-1].copy()).greatest(keys)
    needs_key = (kinds == _DELETE) | ((kinds == _UPDATE) & (first == numbers))
    chosen = np.flatnonzero(needs_key)
    wanted = np.zeros(len(kinds), np.bool_)
    if len(chosen):
        own = [key.take(pa.array(chosen)) for key in keys]
        once = KeyIndex.build(own, chosen).greatest(own) == chosen
        wanted[chosen[once]] = True
    return last != numbers, wanted


def _with_both_zeros(partition: Partition) -> Iterator[Partition]:
    """The partitions that may hold rows of this one.

    -0.0 and 0.0 are two partitions, but some writers compare them as numbers and put rows of both into one. A delete of
    a key in the other partition deletes no other key: keys differ by the sign of zero, too.
    """
    return product(*[(v, -v) if isinstance(v, float) and v == 0 else (v,) for v in partition])


def _delete_specs(metadata: TableMetadata, keys: Schema) -> list[PartitionSpec]:
    """The specs under which a key has to be deleted to reach every row that has it.

    Raises:
        Unsupported: The table is partitioned by a column that is not part of the key.
    """
    for spec in metadata.partition_specs:
        if spec.has_global_deletes:
            return [spec]
    for spec in metadata.partition_specs:
        for f in spec.fields:
            if f.source_id not in keys.by_id:
                raise Unsupported(
                    f"a keyed stream into a table that is partitioned by {f.name!r}, whose source is no key column: "
                    "every partition source column must be part of the key"
                )
    return list(metadata.partition_specs)
