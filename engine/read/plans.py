"""Reads scan plans: converts the table of a plan to the files and deletes that a reader takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebench.engine.codec.array_views import number_array, offsets_of, values_of
from icebench.engine.columnar.batch_columns import combined
from icebench.engine.columnar.partitions import partition_tuples
from icebench.engine.deletes.files import DeleteFile, FileRead
from icebench.engine.expressions.bound import BOUND_TRUE
from icebench.engine.formats.name_mapping import FilesWithoutIds
from icebench.engine.plan.scan import ScanPlan
from icebench.engine.plan.tasks import ScanTask
from icebench.engine.plan.written_schemas import columns_of_all_snapshots
from icebench.engine.read.reader import list_row_groups, read_files
from icebench.engine.read.request import BATCH_ROWS, ReadRequest
from icebench.engine.runtime.counters import ROWS_RETURNED, Counters
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import Partition, PlannedPartitions, has_known_values
from icebench.engine.spec.properties import NAME_MAPPING
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import PrimitiveType
from icebench.engine.storage.resolve import default_runner
from icebench.engine.storage.store import Store


def read_plan(
    plan: ScanPlan,
    store: Store,
    *,
    task: ScanTask | None = None,
    limit: int | None = None,
    projection: Schema | None = None,
    counters: Counters | None = None,
    runner: Runner | None = None,
    batch_rows: int = BATCH_ROWS,
    narrow_decimals: bool = False,
    table_name: str | None = None,
) -> pa.RecordBatchReader:
    """Read the rows of a plan as Arrow batches, in plan order; lazily, with bounded look-ahead.

    Args:
        plan: What to read.
        store: The table's storage.
        task: Read only this part of the plan; see `ScanPlan.tasks`.
        limit: Stop after that many rows; files after those that certainly have them are not opened.
        projection: The columns to return; those of the plan by default. May have metadata columns
            (`icebench.engine.spec.metadata_columns`): ``_file``, ``_pos``, ``_deleted`` (which keeps deleted rows), and
            others.
        counters: Count the work.
        runner: Reads in parallel.
        batch_rows: The most rows of a batch.
        narrow_decimals: See `icebench.engine.read.request.ReadRequest`.
        table_name: For errors.

    Raises:
        FileNotFound: From the reader: a data or delete file is missing; names it, the table and the snapshot.
        CorruptTable: From the reader: a file contradicts the metadata.
        Unsupported: A data or delete file of another format.
    """
    request = request_for(plan, store, projection=projection, batch_rows=batch_rows, table_name=table_name)
    request = replace(request, narrow_decimals=narrow_decimals, limit=limit)
    files = planned_files(plan) if task is None else _pieces(plan, task)
    if limit is not None:
        files = _enough(files, limit)
    run = runner or default_runner(store, plan.metadata.location)
    batches = read_files(files, request, runner=run, counters=counters or Counters())
    if limit is not None:
        batches = _limited(batches, limit)
    return pa.RecordBatchReader.from_batches(request.arrow_schema, batches)


def _enough(files: Iterator[FileRead], rows: int) -> Iterator[FileRead]:
    """The first files that together have that many rows to return."""
    while rows > 0 and (file := next(files, None)) is not None:
        yield file
        if file.residual is None and not file.deletes and file.byte_range is None:
            rows -= file.record_count


def _limited(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    while rows > 0 and (batch := next(batches, None)) is not None:
        yield batch.slice(0, rows)
        rows -= batch.num_rows


def count_rows(
    plan: ScanPlan,
    store: Store,
    *,
    counters: Counters | None = None,
    runner: Runner | None = None,
    table_name: str | None = None,
) -> int:
    """The number of rows of a plan. Files without deletes and without a residual are counted by their record counts."""
    counted = counters or Counters()
    known, unknown = 0, []
    for file in planned_files(plan):
        if file.deletes or file.residual is not None:
            unknown.append(file)
        else:
            known += file.record_count
    request = request_for(plan, store, projection=Schema(()), table_name=table_name)
    run = runner or default_runner(store, plan.metadata.location)
    rest = sum(b.num_rows for b in read_files(unknown, request, runner=run, counters=counted))
    counted.add(ROWS_RETURNED, known)
    return int(known + rest)


ROW_GROUP_SCHEMA = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False),
        pa.field("row_group", pa.int32(), nullable=False),
        pa.field("first_row", pa.int64(), nullable=False),
        pa.field("record_count", pa.int64(), nullable=False),
        pa.field("size_in_bytes", pa.int64(), nullable=False),
        pa.field("is_skipped", pa.bool_(), nullable=False),
    ]
)


def row_groups_of(
    plan: ScanPlan, store: Store, *, runner: Runner | None = None, table_name: str | None = None
) -> pa.Table:
    """The row groups of the files of a plan; see `icebench.engine.scan.Scan.row_groups`."""
    request = request_for(plan, store, table_name=table_name)
    run = runner or default_runner(store, plan.metadata.location)
    rows = [
        {
            "file_path": file.file_path,
            "row_group": group.index,
            "first_row": group.first_row,
            "record_count": group.num_rows,
            "size_in_bytes": group.size_bytes,
            "is_skipped": is_skipped,
        }
        for file, group, is_skipped in list_row_groups(planned_files(plan), request, runner=run)
    ]
    return pa.Table.from_pylist(rows, schema=ROW_GROUP_SCHEMA)


def request_for(
    plan: ScanPlan,
    store: Store,
    *,
    projection: Schema | None = None,
    batch_rows: int = BATCH_ROWS,
    table_name: str | None = None,
) -> ReadRequest:
    """The request of a plan to a reader."""
    metadata = plan.metadata
    settled = columns_of_all_snapshots(metadata)
    mapping, without_ids = FilesWithoutIds.of(NAME_MAPPING.of(metadata.properties), plan.schema, metadata, settled)
    snapshot = f"snapshot {plan.snapshot.snapshot_id}" if plan.snapshot is not None else "no snapshot"
    return ReadRequest(
        store=store,
        projection=plan.projection if projection is None else projection,
        schemas=schemas_by_age(plan.schema, metadata),
        specs=metadata.spec_by_id,
        name_mapping=mapping,
        without_ids=without_ids,
        batch_rows=batch_rows,
        needed_by=f"table {table_name or metadata.location}, {snapshot}",
    )


def schemas_by_age(first: Schema, metadata: TableMetadata) -> tuple[Schema, ...]:
    """`first`, then the table's schemas, newest first: the order in which the type of a dropped column is looked up."""
    return (first, *sorted(metadata.schemas, key=lambda s: s.schema_id, reverse=True))


def _pieces(plan: ScanPlan, task: ScanTask) -> Iterator[FileRead]:
    files = list(planned_files(plan, rows=task.file_index))
    for file, start, length in zip(files, task.start.tolist(), task.length_bytes.tolist(), strict=True):
        yield replace(file, byte_range=(start, length))


def planned_files(plan: ScanPlan, *, rows: npt.NDArray[np.int64] | None = None) -> Iterator[FileRead]:
    """The data files of a plan, one by one; `rows` of ``plan.files`` if given."""
    files = plan.files if rows is None else plan.files.take(pa.array(rows))
    codes = plan.residual_codes if rows is None else plan.residual_codes[rows]
    names = (
        "file_path",
        "file_format",
        "record_count",
        "file_size_in_bytes",
        "spec_id",
        "data_sequence_number",
        "first_row_id",
    )
    columns = [files.column(name).to_pylist() for name in names]
    residuals = [None if r == BOUND_TRUE else r for r in plan.residuals]
    found = zip(*columns, _partitions(plan, files), _deletes(files.column("deletes")), codes.tolist(), strict=True)
    for *own, partition, deletes, code in found:
        known = dict(zip(names, own, strict=True))
        yield FileRead(**known, partition=partition, deletes=deletes, residual=residuals[code])


def _partitions(plan: ScanPlan, files: pa.Table) -> list[Partition | None]:
    """The partition tuple of each file, with the fields of its own spec; None if a value is unknown because its source
    column was dropped."""
    specs, schemas = plan.metadata.spec_by_id, plan.metadata.schemas
    held = PlannedPartitions.of(specs.values(), plan.schema, schemas)
    spec_ids = values_of(combined(files.column("spec_id")))
    structs = combined(files.column("partition"))
    found: list[Partition | None] = [()] * len(spec_ids)
    for spec_id in np.unique(spec_ids).tolist():
        places = list(held.places[spec_id])
        rows = np.flatnonzero(spec_ids == spec_id)
        own = structs.take(number_array(rows))
        types = [type_ for p in places if isinstance(type_ := held.type.fields[p].type, PrimitiveType)]
        tuples: Sequence[Partition | None] = [()] * len(rows)
        if not has_known_values(specs[spec_id], plan.schema, schemas):
            tuples = [None] * len(rows)
        elif places:
            tuples = partition_tuples(types, [own.field(place) for place in places])
        for row, partition in zip(rows.tolist(), tuples, strict=True):
            found[row] = partition
    return found


def _deletes(column: pa.ChunkedArray) -> list[tuple[DeleteFile, ...]]:
    """The delete files of each data file. A delete file that many data files share is one object, and so is a list of
    them; a delete file that was added again has another sequence number, and is another object."""
    found: list[tuple[DeleteFile, ...]] = []
    known: dict[DeleteFile, DeleteFile] = {}
    for chunk in column.chunks:
        references = chunk.flatten()
        indices = values_of(references.indices)
        is_used = np.zeros(len(references.dictionary), np.bool_)
        is_used[indices] = True
        numbers = np.flatnonzero(is_used)
        distinct = map(_delete_file, references.dictionary.take(number_array(numbers)).to_pylist())
        objects = dict(zip(numbers.tolist(), (known.setdefault(d, d) for d in distinct), strict=True))
        lists: dict[bytes, tuple[DeleteFile, ...]] = {}
        width, encoded = indices.itemsize, indices.tobytes()
        for start, end in pairwise([0, *np.cumsum(np.diff(offsets_of(chunk))).tolist()]):
            key = encoded[start * width : end * width]
            own = lists.get(key)
            if own is None:
                own = lists[key] = tuple([objects[number] for number in indices[start:end].tolist()])
            found.append(own)
    return found


def _delete_file(row: dict[str, object]) -> DeleteFile:
    ids = row.pop("equality_ids")
    content = row.pop("content")
    assert isinstance(content, int)
    return DeleteFile(content=FileContent(content), equality_ids=tuple(ids) if isinstance(ids, Sequence) else (), **row)  # type: ignore[arg-type]
