"""Rewrites delete files: those by position into fewer or into deletion vectors, those by key into either.

Which rows of which data files are deleted is taken from a plan, and must not change. With concurrent writers, this is
ensured as follows:

* A rewritten position-delete file names data files that are live, and takes the greatest sequence number of what it
  replaces: it applies to those data files, and to none that is added later under the same name.
* A deletion vector has all deleted positions of its data file. Concurrent commits that delete rows of it by position,
  or remove it, are conflicts.
* Equality deletes may be removed once their rows are deleted by position: the only data files with a lower sequence
  number that can still be added are those that a rewrite makes of older ones. A rewrite that was planned before the
  equality deletes were committed would bring their rows back. It must conflict with the new position deletes, so these
  are new deletes (operation ``delete``, the snapshot's own sequence number): Iceberg Java overlooks position deletes of
  a ``replace``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from icebench.engine.commit.changes.rewrite_files import RewriteFiles
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.conflicts import Validation
from icebench.engine.commit.file_refs import FileRef, ref_of, ref_to, refs_of_deletes
from icebench.engine.commit.target import Target
from icebench.engine.deletes.files import FileRead
from icebench.engine.deletes.positions import Positions
from icebench.engine.errors import Invalid
from icebench.engine.maintenance.dangling_deletes import live_deletes
from icebench.engine.plan.scan import ScanPlan, table_scan
from icebench.engine.read.matches import MatchedRows, rows_at
from icebench.engine.read.plans import planned_files, request_for
from icebench.engine.read.reader import read_files
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.manifest import ManifestEntry
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.metadata_columns import FILE, POS
from icebench.engine.spec.partitioning import PartitionKey, partition_key
from icebench.engine.spec.properties import DELETE_GRANULARITY, DELETE_TARGET_FILE_SIZE_BYTES
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.write.delete_files import DeletedRows, write_position_deletes
from icebench.engine.write.vectors import write_deletion_vectors

_SMALL = 0.75
"""Position-delete files below this fraction of the target size are small."""
_NO_POSITIONS: Positions = np.zeros(0, np.int64)


@dataclass(frozen=True, kw_only=True)
class RewrittenDeletes:
    """What a rewrite of delete files did.

    Args:
        removed_delete_files: Delete files that were removed; a deletion vector counts as one.
        removed_bytes: Their bytes; for a vector, those of its blob.
        added_delete_files: Delete files that were added.
        added_bytes: Their bytes.
        snapshot: What was committed; None if nothing was due.
    """

    removed_delete_files: int = 0
    removed_bytes: int = 0
    added_delete_files: int = 0
    added_bytes: int = 0
    snapshot: Snapshot | None = None


@dataclass(frozen=True)
class DeleteRewrite:
    """The delete files of a branch, and the data files that they apply to.

    Args:
        table: The table.
        state: The table as loaded.
        branch: The branch to rewrite.
        properties: Entries for the snapshot summary.
    """

    table: Target
    state: TableState
    branch: str
    properties: Mapping[str, str]

    @property
    def _metadata(self) -> TableMetadata:
        return self.state.metadata

    @property
    def _head(self) -> Snapshot | None:
        return self._metadata.existing_head(self.branch)

    def of_positions(
        self, *, min_input_files: int, rewrite_all: bool, dry_run: bool = False
    ) -> tuple[TableState, RewrittenDeletes]:
        if min_input_files < 1:
            raise Invalid(f"min_input_files must be positive, not {min_input_files}")
        old = [
            e
            for e in live_deletes(self.table.store, self.table.runner, self._head)
            if _is_position_delete_file(e.data_file)
        ]
        if not old:
            return self.state, RewrittenDeletes()
        plan = self._plan()
        paths = {entry.data_file.file_path for entry in old}
        files = _with_deletes_in(planned_files(plan), paths)
        vectors = self._metadata.format_version >= 3
        if not vectors:
            old = self._due(old, files, min_input_files=min_input_files, rewrite_all=rewrite_all)
            files = _with_deletes_in(files, {entry.data_file.file_path for entry in old})
        if dry_run:
            shared = not vectors and DELETE_GRANULARITY.of(self._metadata.properties) == "partition"
            return self.state, RewrittenDeletes(
                removed_delete_files=len(old),
                removed_bytes=_size_bytes([entry.data_file for entry in old]),
                added_delete_files=len({file.scope for file in files}) if shared else len(files),
            )
        matches = list(self._rows_at(plan, files, dict.fromkeys((f.file_path for f in files), _NO_POSITIONS)))
        return self._commit(
            self._written(matches),
            old,
            keeps_number=True,
            validation=self._validation([ref_of(match.file) for match in matches] if vectors else ()),
        )

    def of_keys(self) -> tuple[TableState, RewrittenDeletes]:
        entries = live_deletes(self.table.store, self.table.runner, self._head)
        old = [e for e in entries if e.data_file.content is FileContent.EQUALITY_DELETES]
        if not old:
            return self.state, RewrittenDeletes()
        plan = self._plan()
        positions: dict[str, Positions] = {}
        files: list[FileRead] = []
        for file, found in self._matched_by_keys(plan):
            positions[file.file_path] = found
            files.append(file)
        matches = [
            match
            for match in self._rows_at(plan, files, positions)
            if not np.isin(match.positions, match.deleted_before).all()
        ]
        merged = {ref.key for match in matches for ref in refs_of_deletes(match.file, match.superseded)}
        return self._commit(
            self._written(matches),
            old,
            merged=[e for e in entries if ref_to(e.data_file).key in merged],
            validation=self._validation([ref_of(match.file) for match in matches]),
        )

    def _plan(self) -> ScanPlan:
        table = self.table
        scan = table_scan(self._metadata, table.store, ref=self.branch, runner=table.runner, cache=table.cache)
        return scan.plan()

    def _rows_at(
        self, plan: ScanPlan, files: Sequence[FileRead], positions: Mapping[str, Positions]
    ) -> Iterator[MatchedRows]:
        table = self.table
        request = request_for(plan, table.store)
        return rows_at(files, positions, request, runner=table.runner, counters=table.counters)

    def _due(
        self, old: Sequence[ManifestEntry], files: Sequence[FileRead], *, min_input_files: int, rewrite_all: bool
    ) -> list[ManifestEntry]:
        """The position-delete files to rewrite: dangling ones, and small ones where a partition has enough of them. By
        data file, one that is alone with its data file would only be written again."""
        properties = self._metadata.properties
        small = _SMALL * DELETE_TARGET_FILE_SIZE_BYTES.of(properties)
        by_file = DELETE_GRANULARITY.of(properties) == "file"
        used = Counter(d.file_path for file in files for d in file.deletes)
        alone = {file.deletes[0].file_path for file in files if len(file.deletes) == 1} if by_file else set()
        found: list[ManifestEntry] = []
        candidates: dict[PartitionKey, list[ManifestEntry]] = {}
        for entry in old:
            file = entry.data_file
            is_alone = file.referenced_data_file is not None and file.file_path in alone
            if file.file_path not in used:
                found.append(entry)
            elif rewrite_all or (file.file_size_in_bytes < small and not is_alone):
                candidates.setdefault(partition_key(file.spec_id, file.partition), []).append(entry)
        for own in candidates.values():
            if rewrite_all or len(own) >= max(min_input_files, 2):
                found += own
        return found

    def _matched_by_keys(self, plan: ScanPlan) -> Iterator[tuple[FileRead, Positions]]:
        """The data files with rows that equality deletes match, and the positions of these rows."""
        table = self.table
        keyed = {
            file.file_path: file
            for file in planned_files(plan)
            if any(d.content is FileContent.EQUALITY_DELETES for d in file.deletes)
        }
        only_keys = [
            replace(file, deletes=tuple(d for d in file.deletes if d.content is FileContent.EQUALITY_DELETES))
            for file in keyed.values()
        ]
        request = request_for(plan, table.store, projection=Schema((FILE, POS)))
        batches = read_files(only_keys, request, runner=table.runner, counters=table.counters)
        # A batch never crosses a row group, so all its rows are from one file, and files come in order.
        for path, own in groupby(batches, key=lambda batch: str(batch.column(0)[0])):
            file = keyed.pop(path)
            is_matched = np.ones(file.record_count, np.bool_)
            for batch in own:
                is_matched[batch.column(1).to_numpy()] = False
            if is_matched.any():
                yield file, np.flatnonzero(is_matched)
        for file in keyed.values():  # not a row is left
            yield file, np.arange(file.record_count)

    def _written(self, matches: Sequence[MatchedRows]) -> list[DataFile]:
        deleted = [
            DeletedRows(
                file_path=match.file.file_path,
                positions=np.union1d(match.positions, match.deleted_before),
                spec_id=match.file.spec_id,
                partition=match.partition,
            )
            for match in matches
        ]
        write = write_deletion_vectors if self._metadata.format_version >= 3 else write_position_deletes
        table = self.table
        return write(deleted, metadata=self._metadata, store=table.store, counters=table.counters) if deleted else []

    def _validation(self, referenced: Sequence[FileRef]) -> Validation:
        assert self._head is not None
        return Validation(
            starting_snapshot_id=self._head.snapshot_id,
            referenced=referenced,
            # Two vectors of one data file cannot both be in the table; two position-delete files can.
            refuse_deletes="positions" if self._metadata.format_version >= 3 else "none",
        )

    def _commit(
        self,
        new: Sequence[DataFile],
        old: Sequence[ManifestEntry],
        *,
        merged: Sequence[ManifestEntry] = (),
        validation: Validation,
        keeps_number: bool = False,
    ) -> tuple[TableState, RewrittenDeletes]:
        """Commit the new delete files in place of old ones, and of those whose positions they took over."""
        if not old:
            return self.state, RewrittenDeletes()
        numbers = [entry.sequence_number or 0 for entry in old]
        removed = [ref_to(entry.data_file) for entry in old]
        taken_over = [ref_to(entry.data_file) for entry in merged]
        vectors = self._metadata.format_version >= 3
        change = RewriteFiles(
            operation=None if keeps_number or not new else "delete",
            delete_files=new,
            removed_deletes=[*removed, *taken_over] if vectors else removed,
            merged_deletes=() if vectors else taken_over,
            delete_sequence_number=max(numbers) if keeps_number else None,
            planned_version=self._metadata.format_version,
            validation=validation,
            branch=self.branch,
            properties=self.properties,
        )
        state = self.table.commit([change], new)
        gone = [entry.data_file for entry in (*old, *merged)]
        return state, RewrittenDeletes(
            removed_delete_files=len(gone),
            removed_bytes=_size_bytes(gone),
            added_delete_files=len(new),
            added_bytes=_size_bytes(new),
            snapshot=change.snapshot_in(state.metadata),
        )


def _is_position_delete_file(file: DataFile) -> bool:
    return file.content is FileContent.POSITION_DELETES and file.file_format != "puffin"


def _with_deletes_in(files: Iterator[FileRead] | Sequence[FileRead], paths: set[str]) -> list[FileRead]:
    """The files to which any of these delete files applies, with these only."""
    only = (replace(file, deletes=tuple(d for d in file.deletes if d.file_path in paths)) for file in files)
    return [file for file in only if file.deletes]


def _size_bytes(files: Sequence[DataFile]) -> int:
    return sum(file.content_size_in_bytes or file.file_size_in_bytes for file in files)
