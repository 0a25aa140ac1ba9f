"""Adds files that were written elsewhere, by their descriptions, or by their locations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.changes.change import Change
from icebench.engine.commit.changes.evolution import UpdateProperties
from icebench.engine.commit.changes.row_delta import RowDelta
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.conflicts import Places, Validation
from icebench.engine.commit.file_refs import FileRef, ref_to
from icebench.engine.commit.manifests import AddedFiles
from icebench.engine.commit.snapshot_producer import SnapshotProducer
from icebench.engine.commit.target import Target
from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.operations.file_descriptions import describe_files
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import NAME_MAPPING
from icebench.engine.spec.snapshots import MAIN, Snapshot


def add_files(
    target: Target,
    files: AddedFiles | Sequence[str],
    *,
    check_duplicate_files: bool = True,
    branch: str = MAIN,
    properties: Mapping[str, str] | None = None,
) -> tuple[TableState, Snapshot]:
    """Commit data and delete files in one snapshot. Described files are not opened; a failed commit deletes no file.

    Args:
        target: The table.
        files: At least one; their descriptions are written into manifests unchanged but for row ids. Data files may be
            the rows of an Arrow table, or come from an iterator, which is consumed once and never held as a whole. Or
            locations of data files, which are opened: see `icebench.engine.operations.file_descriptions`. If these have
            no field ids and the table has no name mapping, the same commit sets one.
        check_duplicate_files: Reject files that the branch already lists, in any spelling of their paths. This reads
            all manifests of the branch; without it a file that is listed twice is read twice.
        branch: The branch to change, created if it does not exist.
        properties: Entries for the snapshot summary.

    Returns:
        The table with the files, and the snapshot that added them.

    Raises:
        Invalid: No files, one is given twice, or a description does not fit the table, such as a position-delete file
            in format version 3, which takes deletion vectors.
        AlreadyExists: The branch lists one of the files already.
        Unsupported: A position-delete file that does not name its one data file; delete files in a table or iterator.
        ValidationFailed: A data file that position deletes point into is not in the branch, or the table was upgraded
            to format version 3 concurrently.
        CommitFailed: See `Target.commit`.
    """
    change: SnapshotProducer
    evolution: list[Change] = []
    if isinstance(files, str):
        raise Invalid("add_files takes a list; put the location into one")
    if isinstance(files, Sequence) and files and all(isinstance(file, str) for file in files):
        files, mapping = describe_files([str(file) for file in files], target)
        evolution += [] if mapping is None else [UpdateProperties({NAME_MAPPING.name: mapping})]
    if isinstance(files, Sequence):
        described = [file for file in files if isinstance(file, DataFile)]
        if len(described) < len(files):
            raise Invalid("add_files takes descriptions of files or locations, not both or others")
        change = _change(described, target, branch, properties or {}, check_duplicates=check_duplicate_files)
    else:
        if not isinstance(files, pa.Table | pa.RecordBatchReader):
            files = _data_files(iter(files))
        change = Append(
            data_stream=files,
            must_add=True,
            branch=branch,
            properties=properties or {},
            check_duplicates=check_duplicate_files,
        )
    committed = target.commit([*evolution, change])
    return committed, change.snapshot_in(committed.metadata)


def _change(
    files: Sequence[DataFile], target: Target, branch: str, properties: Mapping[str, str], *, check_duplicates: bool
) -> SnapshotProducer:
    if not files:
        raise Invalid("no files to add")
    deletes = [file for file in files if file.content is not FileContent.DATA]
    if not deletes:
        return Append(data_files=files, branch=branch, properties=properties, check_duplicates=check_duplicates)
    data = [file for file in files if file.content is FileContent.DATA]
    metadata = target.load().metadata
    validation = _validation(deletes, data, metadata, branch)
    return RowDelta(
        data_files=data,
        delete_files=deletes,
        validation=validation,
        planned_version=metadata.format_version if validation is not None and metadata.format_version < 3 else None,
        branch=branch,
        properties=properties,
        check_duplicates=check_duplicates,
    )


def _data_files(files: Iterator[DataFile]) -> Iterator[DataFile]:
    for file in files:
        if file.content is not FileContent.DATA:
            raise Unsupported(f"{file.file_path}: delete files from an iterator; give them in a list")
        yield file


def _validation(
    deletes: Sequence[DataFile], own: Sequence[DataFile], metadata: TableMetadata, branch: str
) -> Validation | None:
    """Data files that position deletes point into must be in the branch, but for the `own` ones of the same commit;
    None for equality deletes, which are valid on any base."""
    referenced = []
    for file in deletes:
        if file.content is FileContent.POSITION_DELETES:
            if file.referenced_data_file is None:
                raise Unsupported(f"{file.file_path}: adding position deletes that do not name their one data file")
            referenced.append(
                FileRef(file_path=file.referenced_data_file, spec_id=file.spec_id, partition=file.partition)
            )
    if not referenced:
        return None
    added = Places([ref_to(file) for file in own])
    ref = metadata.refs.get(branch)
    head = metadata.current_snapshot if ref is None else metadata.snapshot(ref.snapshot_id)
    return Validation(
        starting_snapshot_id=None if head is None else head.snapshot_id,
        referenced=referenced,
        listed=[ref for ref in referenced if ref.file_path not in added],
    )
