"""A scan plan as a Spark DataFrame: our planner picks the files, Spark's vectorized Parquet reader reads them.

Files are grouped by what must be done with their rows: nothing, a filter, deletes by position, deletes by key; the
groups are one DataFrame each, and their union is the scan. Files of an import, which carry no field ids, are grouped
by their schemas too and read by name.

Row order is not kept. Nothing is read before the DataFrame runs, except delete files, and footers where a table has a
name mapping.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as st

from engine.deletes.equality import joined_fields
from engine.deletes.planned import NO_DELETES, FileDeletes, load_deletes
from engine.errors import Unsupported
from engine.expressions.bound import BoundPredicate
from engine.plan.scan import ScanPlan
from engine.read.plans import planned_files, request_for
from engine.read.request import FileRead, ReadRequest
from engine.runtime.counters import Counters
from engine.runtime.local import LocalRunner
from engine.runtime.runner import Runner
from engine.spark.arrow_scan import DRIVER_BYTES, delete_bytes, plan_to_arrow_frame
from engine.spark.deletes import DeletedFile, DeletedGroup
from engine.spark.predicates import ColumnOf, spark_filter
from engine.spark.read_schema import ReadColumn, read_columns
from engine.spark.session import handed_over, scan_session
from engine.spark.shapes import Shape, shapes_of
from engine.spark.types import pruned, quoted, shown, shown_type
from engine.spec.schema import FIRST_METADATA_COLUMN_ID, Schema
from engine.spec.types import NestedField
from engine.storage.store import Store

_READ_OPTIONS = {
    # Paths are files, whatever characters they have; directories mean nothing.
    "recursiveFileLookup": "true",
    "__globPaths__": "false",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    # Dates and times of Iceberg files are in the calendar of ISO 8601, however old.
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "mergeSchema": "false",
}


@dataclass(frozen=True, kw_only=True)
class _Scan:
    """What all groups of one scan share. `deletes` are by data file; a file without any is not there.

    Files are read in the session `spark`; small tables are made in the user's, since PySpark takes the session that
    made a table last for the active one, and `SparkSession.getActiveSession` is the user's business.
    """

    plan: ScanPlan
    request: ReadRequest
    user: SparkSession
    spark: SparkSession
    deletes: Mapping[str, FileDeletes]
    columns: Sequence[ReadColumn]


def plan_to_dataframe(
    spark: SparkSession,
    plan: ScanPlan,
    store: Store,
    *,
    projection: Schema | None = None,
    counters: Counters | None = None,
    runner: Runner | None = None,
    table_name: str | None = None,
    new_id: Callable[[], uuid.UUID] = uuid.uuid4,
    driver_bytes: int = DRIVER_BYTES,
) -> DataFrame:
    """The rows of a plan as a DataFrame of the session `spark`, whose settings stay as they are.

    Args:
        spark: The user's session.
        plan: What to read.
        store: The table's storage; Spark itself opens data files by `Store.physical`.
        projection: The columns to give; those of the plan by default.
        counters: Count delete files and keys.
        runner: Loads delete files in parallel, on this machine.
        table_name: For errors.
        new_id: Makes a name that exists while this function runs.
        driver_bytes: With delete files of more bytes than this in all, executors decode deletes and read the rows in
            Arrow; see `engine.spark.arrow_scan`.

    Raises:
        Unsupported: A data file that is not Parquet, or a column type that Spark does not have; naming it.
        FileNotFound: A delete file is missing.
        CorruptTable: Delete files contradict the table.
    """
    request = request_for(plan, store, projection=projection, table_name=table_name)
    files = list(planned_files(plan))
    if delete_bytes(files) > driver_bytes:
        return plan_to_arrow_frame(spark, plan, store, projection=request.projection, table_name=table_name)
    _refuse(files, request.projection)
    run = runner or LocalRunner()
    deletes, key_schemas = _loaded(files, request, run, counters or Counters())
    scan = _Scan(
        plan=plan,
        request=request,
        user=spark,
        spark=scan_session(spark),
        deletes=deletes,
        columns=read_columns(_needed_fields(request, plan.predicate, key_schemas), plan.metadata),
    )
    frames = [
        _group_frame(group, shape, scan)
        for shape, members in shapes_of(files, request, run)
        for group in _grouped(members, scan)
    ]
    if not frames:
        empty = [st.StructField(f.name, shown_type(f.type, column=f.name)) for f in request.projection.fields]
        return spark.createDataFrame([], st.StructType(empty))
    return handed_over(reduce(DataFrame.unionAll, frames), spark, new_id)


def _refuse(files: Sequence[FileRead], projection: Schema) -> None:
    for file in files:
        name = file.file_path.rpartition("/")[2]
        if file.file_format != "parquet":
            raise Unsupported(f"{file.file_path}: reading {file.file_format} files is not supported, only parquet")
        if name.startswith(("_", ".")) or name.endswith("._COPYING_"):
            raise Unsupported(f"{file.file_path}: Spark takes a file of such a name for hidden; use to_arrow")
    for f in projection.fields:
        if f.field_id >= FIRST_METADATA_COLUMN_ID:
            raise Unsupported(f"the metadata column {f.name!r} in a scan on Spark; use to_arrow")


def _loaded(
    files: Sequence[FileRead], request: ReadRequest, runner: Runner, counters: Counters
) -> tuple[dict[str, FileDeletes], list[Schema]]:
    """What is deleted of each file, and the columns of equality deletes."""
    with_deletes = [file for file in files if file.deletes]
    if not with_deletes:
        return {}, []
    planned = load_deletes(
        (file.planned for file in with_deletes),
        request.schemas,
        store=request.store,
        runner=runner,
        counters=counters,
        needed_by=request.needed_by,
        name_mapping=request.name_mapping,
    )
    found = {file.file_path: planned.of(file.planned) for file in with_deletes}
    # A delete file may be planned for a data file that it says nothing about.
    deleted = {path: own for path, own in found.items() if own.positions is not None or own.equality}
    return deleted, [group.schema for group in planned.equality.groups.values()]


def _needed_fields(request: ReadRequest, predicate: BoundPredicate, key_schemas: Sequence[Schema]) -> list[NestedField]:
    """Top-level columns to read: those of the projection, of the filter and of equality deletes."""
    needed: dict[int, NestedField] = {}
    for schema in (request.projection, request.schema.select(predicate.field_ids), *key_schemas):
        for f in schema.fields:
            needed[f.field_id] = joined_fields(needed[f.field_id], f) if f.field_id in needed else f
    return list(needed.values())


@dataclass(frozen=True, slots=True)
class _Group:
    """Files whose rows are treated alike."""

    files: Sequence[FileRead]
    is_filtered: bool
    is_deleted: bool


def _grouped(files: Sequence[FileRead], scan: _Scan) -> list[_Group]:
    found: dict[tuple[bool, bool, bool], list[FileRead]] = {}
    for file in files:
        deletes = scan.deletes.get(file.file_path, NO_DELETES)
        by_position, by_key = deletes.positions is not None, bool(deletes.equality)
        found.setdefault((file.residual is not None, by_position, by_key), []).append(file)
    return [
        _Group(own, is_filtered, by_position or by_key) for (is_filtered, by_position, by_key), own in found.items()
    ]


def _group_frame(group: _Group, shape: Shape, scan: _Scan) -> DataFrame:
    """The rows of one group, as the user gets them."""
    locations = [spark_location(scan.request.store.physical(file.file_path)) for file in group.files]
    fields = st.StructType(shape.read_fields(scan.columns))
    source = scan.spark.read.schema(fields).options(**_READ_OPTIONS).parquet(*locations)
    deleted = DeletedGroup(
        [
            DeletedFile(file, location, scan.deletes[file.file_path])
            for file, location in zip(group.files, locations, strict=True)
            if group.is_deleted
        ]
    )
    frame = shape.completed(deleted.placed(source), scan.columns)
    column_of = _column_finder(scan.columns)
    if group.is_filtered:
        frame = frame.where(spark_filter(scan.plan.predicate, column_of))
    frame = deleted.live(frame, source.inputFiles, scan.user, column_of)
    return frame.select(*[_output(f, scan.columns) for f in scan.request.projection.fields])


def _column_finder(columns: Sequence[ReadColumn]) -> ColumnOf:
    """Field id -> the column of a group's frame, inside structs too."""
    names = {c.field.field_id: c.name for c in columns}
    known = Schema(tuple(c.field for c in columns))

    def column_of(field_id: int) -> Column:
        path = [field_id]
        while path[-1] in known.parent_of:
            path.append(known.parent_of[path[-1]])
        column = F.col(quoted(names[path[-1]]))
        for inner in reversed(path[:-1]):
            column = column.getField(known.by_id[inner].name)
        return column

    return column_of


def _output(field: NestedField, columns: Sequence[ReadColumn]) -> Column:
    """A column of the projection under its own name, without the metadata that made Spark find it."""
    read = next(c for c in columns if c.field.field_id == field.field_id)
    column = F.col(quoted(read.name))
    if read.field.type != field.type:
        column = pruned(column, read.field.type, field.type)
    return shown(column, field.type).alias(field.name, metadata={})


def spark_location(location: str) -> str:
    """A location as Spark takes it: a plain path is of this machine, whatever Spark's default file system is."""
    return f"file:{location}" if location.startswith("/") else location
