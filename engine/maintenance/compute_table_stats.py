"""Estimates how many distinct values columns have: theta sketches in the statistics file of a snapshot.

If an ancestor has sketches, and all its rows are still there, only files added since then are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icebench.engine.codec.puffin.file import NewBlob, read_blob, read_footer
from icebench.engine.codec.puffin.theta import NDV, SEED, THETA_SKETCH, ThetaSketch, decode_theta, encode_theta
from icebench.engine.columnar.batch_columns import column_by_id
from icebench.engine.columnar.single_values import single_value_hashes
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.target import Target
from icebench.engine.deletes.files import FileRead
from icebench.engine.errors import CorruptTable, FileNotFound, Invalid, Unsupported
from icebench.engine.maintenance.statistics_file import CREATED_BY, commit_blobs, row_field_id
from icebench.engine.plan.scan import ScanPlan, table_scan
from icebench.engine.read.plans import planned_files, request_for
from icebench.engine.read.reader import read_files
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.schema import Schema, list_of_names
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.spec.statistics import StatisticsFile
from icebench.engine.spec.types import INCOMPARABLE, PrimitiveType
from icebench.engine.storage.store import Store

_WITHOUT_VALUES = INCOMPARABLE | {"unknown"}


@dataclass(frozen=True, kw_only=True)
class ComputedTableStats:
    """The result of computing sketches.

    Args:
        snapshot_id: The snapshot.
        statistics_path: Its new statistics file.
        distinct_values: The estimated number for each column, by its full name.
        files: Data files of the snapshot.
        files_read: Those of them that had to be read.
    """

    snapshot_id: int
    statistics_path: str
    distinct_values: Mapping[str, int]
    files: int
    files_read: int


def compute_table_stats(
    table: Target, columns: Sequence[str] | None, snapshot_id: int | None
) -> tuple[TableState, ComputedTableStats]:
    """Sketch columns of a snapshot; see `Maintenance.compute_table_stats`."""
    metadata = table.load().metadata
    snapshot = metadata.current_snapshot if snapshot_id is None else metadata.snapshot(snapshot_id)
    if snapshot is None:
        raise Invalid("a table without a snapshot has no values to count")
    plan = _plan(table, metadata, snapshot)
    ids = _column_ids(plan.schema, columns)
    files = list(planned_files(plan))
    sketches, rest = _load_known(table, plan, ids, files)
    request = request_for(plan, table.store, projection=plan.schema.select(ids))
    for batch in read_files(rest, request, runner=table.runner, counters=table.counters):
        for i in ids:
            hashes = single_value_hashes(column_by_id(batch, request.schema, i), SEED)
            sketches[i] = sketches[i].with_values(hashes)
    blobs = [
        NewBlob(
            type=THETA_SKETCH,
            data=encode_theta(sketch),
            fields=(i,),
            snapshot_id=snapshot.snapshot_id,
            sequence_number=snapshot.sequence_number,
            properties={NDV: str(sketch.estimate)},
            compression="zstd",
        )
        for i, sketch in sketches.items()
    ]
    # Loaded again, for blobs that others added while values were read.
    state, location = commit_blobs(table, table.load().metadata, snapshot, blobs)
    return state, ComputedTableStats(
        snapshot_id=snapshot.snapshot_id,
        statistics_path=location,
        distinct_values={plan.schema.name_of[i]: sketch.estimate for i, sketch in sketches.items()},
        files=len(files),
        files_read=len(rest),
    )


def _plan(table: Target, metadata: TableMetadata, snapshot: Snapshot) -> ScanPlan:
    """A plan of all rows, with the schema of the snapshot."""
    scan = table_scan(metadata, table.store, snapshot_id=snapshot.snapshot_id, runner=table.runner, cache=table.cache)
    return scan.plan()


def _column_ids(schema: Schema, columns: Sequence[str] | None) -> list[int]:
    """By default all columns on the top level whose values can be compared."""
    if columns is None:
        found = [f.field_id for f in schema.fields if isinstance(f.type, PrimitiveType)]
        ids = [i for i in found if schema.row_primitive(i).name not in _WITHOUT_VALUES]
    else:
        names = list_of_names(columns, "columns")
        ids = list(dict.fromkeys(row_field_id(schema, name) for name in names))
    for i in ids:
        type_ = schema.by_id[i].type
        if not isinstance(type_, PrimitiveType) or type_.name in _WITHOUT_VALUES:
            raise Unsupported(f"distinct values of column {schema.name_of[i]!r} of type {type_}")
    if not ids:
        raise Invalid("there is no column to count values of")
    return ids


def _load_known(
    table: Target, plan: ScanPlan, ids: Sequence[int], files: Sequence[FileRead]
) -> tuple[dict[int, ThetaSketch], list[FileRead]]:
    """The sketches of the newest ancestor that has all, and the files that are not in them; else empty ones, and all
    files."""
    metadata, snapshot = plan.metadata, plan.snapshot
    known = {each.snapshot_id: each for each in metadata.statistics}
    for snapshot_id in metadata.ancestors(None if snapshot is None else snapshot.snapshot_id):
        old = metadata.snapshot(snapshot_id)
        sketches = _sketches(known.get(snapshot_id), ids, table.store)
        if sketches is None:
            continue
        schema = metadata.schema_of(old)
        # An int that became a long has another hash.
        if any(i not in schema.by_id or schema.by_id[i].type != plan.schema.by_id[i].type for i in ids):
            break
        before = {(file.file_path, file.deletes) for file in planned_files(_plan(table, metadata, old))}
        rest = [file for file in files if (file.file_path, file.deletes) not in before]
        if len(rest) + len(before) == len(files):
            return sketches, rest
        break
    return dict.fromkeys(ids, ThetaSketch()), list(files)


def _sketches(file: StatisticsFile | None, ids: Sequence[int], store: Store) -> dict[int, ThetaSketch] | None:
    """The sketches of these columns in a file; None unless it has all. Those of other writers are ignored, as they hash
    values of some types in other forms."""
    described = () if file is None else file.blob_metadata
    if file is None or not {blob.fields for blob in described if blob.type == THETA_SKETCH} >= {(i,) for i in ids}:
        return None
    location = file.statistics_path
    try:
        data = store.read(location)
        footer = read_footer(data, location=location)
        if footer.properties.get("created-by") != CREATED_BY:
            return None
        blobs = {blob.fields: blob for blob in footer.blobs if blob.type == THETA_SKETCH}
        return {i: decode_theta(read_blob(data, blobs[i,], location=location), location=location) for i in ids}
    except (FileNotFound, CorruptTable, Unsupported, KeyError):
        return None  # they are made anew
