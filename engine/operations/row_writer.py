"""Writes what becomes of data files that lose rows: in this process, or in tasks of executors, which get a copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebench.engine.codec.manifests.encoded_files import EncodedFiles
from icebench.engine.columnar.lineage import without_preliminary
from icebench.engine.commit.file_refs import FileRef, ref_of
from icebench.engine.deletes.files import FileRead
from icebench.engine.read.matches import MatchedRows, matched_rows
from icebench.engine.read.reader import read_files
from icebench.engine.read.request import ReadRequest
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.metadata_columns import POS
from icebench.engine.spec.properties import DELETE_GRANULARITY
from icebench.engine.spec.schema import Schema
from icebench.engine.storage.store import Store
from icebench.engine.write.data_files import remove_files, write_data_files, written_schema
from icebench.engine.write.delete_files import DeletedRows, write_position_deletes
from icebench.engine.write.locations import FileNames
from icebench.engine.write.vectors import write_deletion_vectors

Rows: TypeAlias = pa.RecordBatchReader | pa.Table
Coming: TypeAlias = "Callable[[RowWriter, Matches], Rows]"
"""The rows that are inserted for deleted ones, with the columns of `written_schema` by name."""


@dataclass(frozen=True, slots=True)
class Matches:
    """Deleted rows: all rows of some data files, some rows of others."""

    gone: list[FileRead] = field(default_factory=list)
    partial: list[MatchedRows] = field(default_factory=list)

    @classmethod
    def of(cls, matches: Sequence[MatchedRows]) -> Matches:
        """Separate files without remaining rows from others."""
        found = cls()
        for match in matches:
            # The number of rows removed by equality deletes is unknown here.
            by_key = any(d.content is FileContent.EQUALITY_DELETES for d in match.file.deletes)
            taken = len(match.positions) + len(match.deleted_before)
            if not by_key and taken == match.file.record_count:
                found.gone.append(match.file)
            else:
                found.partial.append(match)
        return found

    def __bool__(self) -> bool:
        return bool(self.gone or self.partial)

    @property
    def files(self) -> list[FileRead]:
        """The data files that lose rows."""
        return [*self.gone, *(match.file for match in self.partial)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFiles:
    """Data files that lose rows, and the files that were written for that, to which nothing refers yet.

    Args:
        gone: Data files without remaining rows.
        partial: Data files of which some rows remain: in the new data files, or in place beside new delete files.
        data_files: New data files.
        delete_files: New delete files; they have all deletes of their data files, as far as the table's properties let.
    """

    gone: Sequence[FileRead] = ()
    partial: Sequence[FileRead] = ()
    data_files: Sequence[DataFile] = ()
    delete_files: Sequence[DataFile] = ()

    def __bool__(self) -> bool:
        return bool(self.gone or self.partial)

    def __add__(self, other: ChangedFiles) -> ChangedFiles:
        """Both, of different data files."""
        return ChangedFiles(
            gone=[*self.gone, *other.gone],
            partial=[*self.partial, *other.partial],
            data_files=joined_files(self.data_files, other.data_files),
            delete_files=[*self.delete_files, *other.delete_files],
        )

    @property
    def written(self) -> Iterator[DataFile]:
        """The new files."""
        yield from self.data_files
        yield from self.delete_files

    @property
    def refs(self) -> list[FileRef]:
        """The data files that lose rows."""
        return [ref_of(file) for file in [*self.gone, *self.partial]]


def joined_files(first: Sequence[DataFile], second: Sequence[DataFile]) -> Sequence[DataFile]:
    """The files of both; what is encoded stays so."""
    if isinstance(first, EncodedFiles) and isinstance(second, EncodedFiles):
        return first + second
    return [*first, *second] if first and second else first or second


def split_matching(files: Iterable[FileRead], *, drop_whole: bool) -> tuple[list[FileRead], list[FileRead]]:
    """The planned files whose rows all match, which is known without reading them, and the others.

    Args:
        files: The files.
        drop_whole: Also those that may have no live rows.
    """
    whole: list[FileRead] = []
    others: list[FileRead] = []
    for file in files:
        known = file.residual is None and (drop_whole or (not file.deletes and file.record_count > 0))
        (whole if known else others).append(file)
    return whole, others


@dataclass(frozen=True, kw_only=True)
class RowWriter:
    """Writes deleted and inserted rows of one plan. Leaves no files where it fails.

    Args:
        metadata: The table as planned.
        request: How its files are read; columns are ignored.
        mode: How rows are deleted.
        runner: Reads and writes in parallel.
        assigned: Row ids and sequence numbers from these on are preliminary, of rows that the same transaction has
            added: a row gets its id when its last file is committed, as another commit may take the preliminary one.
        names: Unique names for new files.
        counters: Count the work; None counts nothing.
        memory_bytes: See `icebench.engine.write.data_files.write_data_files`.
    """

    metadata: TableMetadata
    request: ReadRequest
    mode: str
    runner: Runner
    assigned: tuple[int, int] | None = None
    names: FileNames = field(default_factory=FileNames)
    counters: Counters | None = None
    memory_bytes: int | None = None

    @property
    def store(self) -> Store:
        """The table's storage."""
        return self.request.store

    def portable(self, memory_bytes: int | None) -> RowWriter:
        """A copy to pickle, for tasks that have so much memory for rows."""
        return replace(self, metadata=self.metadata.without_history(), counters=None, memory_bytes=memory_bytes)

    def changed_by_filter(
        self, files: Sequence[FileRead], coming: Coming | None, *, drop_whole: bool = False
    ) -> ChangedFiles:
        """Delete the rows for which the plan's filter is true, and write those that come instead.

        Args:
            files: Those of the plan.
            coming: The inserted rows; None for none.
            drop_whole: See `split_matching`.
        """
        whole, others = split_matching(files, drop_whole=drop_whole)
        found = Matches.of(list(matched_rows(others, self.request, runner=self.runner, counters=self.counters)))
        matches = Matches([*whole, *found.gone], found.partial)
        if not matches:
            return ChangedFiles()
        return self.changed(matches, None if coming is None else coming(self, matches))

    def changed(self, matches: Matches, coming: Rows | None = None) -> ChangedFiles:
        """Write deleted and inserted rows.

        Args:
            matches: Deleted rows.
            coming: Inserted rows, with the columns of `written_schema` by name. Copy-on-write adds them to the files of
                the remaining rows, which halves the number of files.
        """
        again = self.mode == "copy-on-write" and matches.partial
        if again:
            remaining = _remaining_rows(matches.partial, self)
            coming = remaining if coming is None else _joined(remaining, coming)
        data_files = [] if coming is None else self._write(coming)
        try:
            delete_files = [] if self.mode == "copy-on-write" else self._mark(matches.partial)
        except BaseException:
            remove_files(self.store, data_files)
            raise
        return ChangedFiles(
            gone=matches.gone,
            partial=[match.file for match in matches.partial],
            data_files=data_files,
            delete_files=delete_files,
        )

    def _write(self, rows: Rows) -> list[DataFile]:
        is_kept = self.assigned is None or self.metadata.format_version < 3
        return write_data_files(
            rows if is_kept else self._with_assigned_ids(rows),
            metadata=self.metadata,
            store=self.store,
            schema=written_schema(self.metadata),
            names=self.names,
            counters=self.counters,
            memory_bytes=self.memory_bytes,
            runner=self.runner,
        )

    def _with_assigned_ids(self, rows: Rows) -> pa.RecordBatchReader:
        """The rows without preliminary lineage, which only the commit will assign."""
        assert self.assigned is not None
        next_row_id, last = self.assigned
        batches = rows.to_batches() if isinstance(rows, pa.Table) else rows
        assigned = (without_preliminary(batch, next_row_id, last) for batch in batches)
        return pa.RecordBatchReader.from_batches(rows.schema, assigned)

    def _mark(self, matches: Sequence[MatchedRows]) -> list[DataFile]:
        """Write the positions of deleted rows."""
        if not matches:
            return []
        deleted = [
            DeletedRows(
                file_path=match.file.file_path,
                positions=np.union1d(match.positions, before),
                spec_id=match.file.spec_id,
                partition=match.partition,
            )
            for match, before in zip(matches, self._merged_before(matches), strict=True)
        ]
        write = write_deletion_vectors if self.metadata.format_version >= 3 else write_position_deletes
        return write(deleted, metadata=self.metadata, store=self.store, names=self.names, counters=self.counters)

    @property
    def merges_deletes(self) -> bool:
        """Whether all deletes of a data file go into one file. A deletion vector must have them all; a position-delete
        file does so unless it is for a whole partition, since a reader would otherwise open one file per change."""
        return self.metadata.format_version >= 3 or DELETE_GRANULARITY.of(self.metadata.properties) == "file"

    def _merged_before(self, matches: Sequence[MatchedRows]) -> list[npt.NDArray[np.int64]]:
        """For each data file, the earlier deleted positions that the new deletes replace: all of a deletion vector, and
        those of position-delete files that refer to this data file alone."""
        if self.metadata.format_version >= 3:
            return [match.deleted_before for match in matches]
        nothing = np.empty(0, np.int64)
        own = [replace(match.file, deletes=match.superseded) for match in matches]
        if not self.merges_deletes or not any(each.deletes for each in own):
            return [nothing] * len(own)
        loaded = self.request.load_deletes(own, runner=self.runner, counters=self.counters or Counters())
        found = (loaded.of(each).positions for each in own)
        return [nothing if positions is None else positions for positions in found]


def _remaining_rows(matches: Sequence[MatchedRows], writer: RowWriter) -> pa.RecordBatchReader:
    """The live rows of the data files that do not match, file by file."""
    written = written_schema(writer.metadata)
    request = replace(writer.request, projection=Schema((*written.fields, POS)))
    schema = pa.schema(list(request.arrow_schema)[:-1])
    counters = writer.counters or Counters()

    def batches() -> Iterator[pa.RecordBatch]:
        for match in matches:
            whole = [replace(match.file, residual=None)]
            for batch in read_files(whole, request, runner=writer.runner, counters=counters):
                positions = batch.column(batch.num_columns - 1).to_numpy()
                # Not `isin`, which looks at all positions of the file for each batch.
                nearest = match.positions[np.searchsorted(match.positions[:-1], positions)]
                kept = batch.filter(pa.array(nearest != positions))
                yield pa.RecordBatch.from_arrays(kept.columns[:-1], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _joined(first: pa.RecordBatchReader, second: Rows) -> pa.RecordBatchReader:
    """The rows of both, with the columns of the first."""
    schema = first.schema
    rest = second.to_batches() if isinstance(second, pa.Table) else second

    def batches() -> Iterator[pa.RecordBatch]:
        yield from first
        for batch in rest:
            yield pa.RecordBatch.from_arrays([batch.column(name) for name in schema.names], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())
