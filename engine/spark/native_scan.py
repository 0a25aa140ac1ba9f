"""A scan plan as a Spark DataFrame: this engine's planner selects the files, Spark's vectorized Parquet reader reads
them.

Files are grouped by what must be done with their rows: nothing, a filter, deletes by position, equality deletes. Each
group is one DataFrame, and the scan is their union. Files without field ids (of an import) are grouped by schema as
well and read by name.

Metadata columns are computed from the row position that Spark's reader provides and from what the plan knows of each
file.

Row order is not preserved. Nothing is read before the DataFrame runs, except delete files, and footers where a table
has a name mapping.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from icebench.engine.columnar.batch_columns import combined
from icebench.engine.deletes.equality import joined_fields
from icebench.engine.deletes.files import FileRead
from icebench.engine.deletes.loaded_deletes import NO_DELETES, FileDeletes
from icebench.engine.errors import Unsupported
from icebench.engine.expressions.bound import BoundPredicate, tests_of_rows
from icebench.engine.plan.scan import ScanPlan
from icebench.engine.read.plans import planned_files, request_for
from icebench.engine.read.request import ReadRequest
from icebench.engine.runtime.counters import Counters
from icebench.engine.runtime.runner import Runner
from icebench.engine.spark.arrow_scan import DRIVER_BYTES, delete_bytes, plan_to_arrow_frame
from icebench.engine.spark.deletes import DeletedGroup
from icebench.engine.spark.estimates import expansion, row_bytes
from icebench.engine.spark.file_chunks import OF_FILES, ROW, LocatedFile, fact_of_file
from icebench.engine.spark.iceberg_tasks import HandedOver, hand_over
from icebench.engine.spark.partition_directories import PartitionDirectories, Root
from icebench.engine.spark.predicates import ColumnOf, spark_filter
from icebench.engine.spark.read_schema import ReadColumn, are_found_by_name, read_columns
from icebench.engine.spark.session import JavaFrame, ScanSession, has_comet, refuse_unknown_schemes, scan_session
from icebench.engine.spark.shapes import ById, Shape, shapes_of
from icebench.engine.spark.types import pruned, quoted, shown, shown_type
from icebench.engine.spec.metadata_columns import DELETED_ID, LAST_UPDATED, POS_ID, ROW_ID
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import NestedField, PrimitiveType
from icebench.engine.storage.resolve import default_runner
from icebench.engine.storage.store import Store


@dataclass(frozen=True, kw_only=True)
class _Scan:
    """What all groups of one scan share. `deletes` maps a data file to its deletes; files without deletes are absent.

    Files are read in `session`. Small tables are created in the user's session, since PySpark makes the session that
    created a table last the active one, and `SparkSession.getActiveSession` must stay the user's.
    """

    plan: ScanPlan
    request: ReadRequest
    user: SparkSession
    session: ScanSession
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
    driver_bytes: int = DRIVER_BYTES,
    native_deletes: bool = False,
) -> DataFrame:
    """The rows of a plan as a DataFrame of the session `spark`, whose settings are left unchanged.

    Args:
        spark: The user's session.
        plan: What to read.
        store: The table's storage; Spark opens data files itself, at `Store.physical`.
        projection: The columns to return; those of the plan by default. May include metadata columns; ``_deleted``
            keeps deleted rows, marked.
        counters: Counts delete files and keys.
        runner: Loads delete files in parallel, on this machine.
        table_name: For error messages.
        driver_bytes: If the delete files have more bytes than this in all, executors decode them and read the rows with
            the Arrow reader; see `icebench.engine.spark.arrow_scan`. So they do for filters that compute values, which
            Spark would do with other rules, and for nested columns that were renamed, see
            `icebench.engine.spark.read_schema`.
        native_deletes: Have DataFusion Comet read files with deletes, where it can; see
            `icebench.engine.spark.iceberg_tasks`.

    Raises:
        Unsupported: A data file that is not Parquet, a column type that Spark does not have, or a column with the name
            of Spark's row position where positions are needed; the message names it. A session of Spark Connect, or one
            whose Hadoop does not read the storage; the message has the settings that it lacks.
        FileNotFound: A delete file is missing.
        CorruptTable: Delete files contradict the table.
    """
    request = request_for(plan, store, projection=projection, table_name=table_name)
    if tests_of_rows(plan.predicate):
        return plan_to_arrow_frame(spark, plan, store, projection=request.projection, table_name=table_name)
    handed = handed_over(spark, plan, request) if native_deletes else HandedOver(None, list(planned_files(plan)))
    files = handed.rest
    if delete_bytes(files) > driver_bytes:
        return plan_to_arrow_frame(spark, plan, store, projection=request.projection, table_name=table_name)
    _refuse(files)
    run = runner or default_runner(store, plan.metadata.location)
    deletes, key_schemas = _loaded(files, request, run, counters or Counters())
    columns = read_columns(_needed_fields(request, plan.predicate, key_schemas), plan.metadata)
    if files and not are_found_by_name(columns, plan.metadata, all_columns=has_comet(spark)):
        return plan_to_arrow_frame(spark, plan, store, projection=request.projection, table_name=table_name)
    refuse_unknown_schemes(spark, (spark_location(store.physical(file.file_path)) for file in files))
    session = scan_session(spark, row_groups=_row_groups(plan), expansion=_expansion(files, columns))
    scan = _Scan(plan=plan, request=request, user=spark, session=session, deletes=deletes, columns=columns)
    frames = [] if handed.frame is None else [handed.frame]
    frames += [
        _group_frame(group, root, shape, scan)
        for shape, members in shapes_of(files, request, run)
        for root, group in _grouped(members, shape, scan)
    ]
    if not frames:
        empty = [st.StructField(f.name, shown_type(f.type, column=f.name)) for f in request.projection.fields]
        return spark.createDataFrame([], st.StructType(empty))
    return reduce(JavaFrame.union, frames).handed_over(spark)


def handed_over(spark: SparkSession, plan: ScanPlan, request: ReadRequest) -> HandedOver:
    """The part of a plan that Iceberg reads, see `icebench.engine.spark.iceberg_tasks`."""
    column_of = _column_finder([ReadColumn(f, f.name) for f in plan.schema.fields])
    columns = read_columns(_needed_fields(request, plan.predicate, ()), plan.metadata)
    return hand_over(
        spark,
        plan,
        request,
        is_native_without=are_found_by_name(columns, plan.metadata, all_columns=True),
        condition=lambda: spark_filter(plan.predicate, column_of),
    )


def _refuse(files: Sequence[FileRead]) -> None:
    for file in files:
        name = file.file_path.rpartition("/")[2]
        if file.file_format != "parquet":
            raise Unsupported(f"{file.file_path}: reading {file.file_format} files is not supported, only parquet")
        if name.startswith(("_", ".")) or name.endswith("._COPYING_"):
            raise Unsupported(f"{file.file_path}: Spark takes a file of such a name for hidden; use to_arrow")


def _loaded(
    files: Sequence[FileRead], request: ReadRequest, runner: Runner, counters: Counters
) -> tuple[dict[str, FileDeletes], list[Schema]]:
    """The deletes of each file, and the columns that equality deletes compare."""
    with_deletes = [file for file in files if file.deletes]
    if not with_deletes:
        return {}, []
    loaded = request.load_deletes(with_deletes, runner=runner, counters=counters)
    found = {file.file_path: loaded.of(file) for file in with_deletes}
    # A delete file may be planned for a data file that it says nothing about.
    deleted = {path: own for path, own in found.items() if own.positions is not None or own.equality}
    return deleted, [group.schema for group in loaded.equality.groups]


def _row_groups(plan: ScanPlan) -> int | None:
    """The number of row groups of all files of a plan; None where the manifests do not give it."""
    offsets = combined(plan.files.column("split_offsets"))
    return None if offsets.null_count else len(offsets.flatten())


def _expansion(files: Sequence[FileRead], columns: Sequence[ReadColumn]) -> float:
    rows = sum(file.record_count for file in files)
    return expansion(rows * row_bytes(c.field for c in columns), sum(file.file_size_in_bytes or 0 for file in files))


def _needed_fields(request: ReadRequest, predicate: BoundPredicate, key_schemas: Sequence[Schema]) -> list[NestedField]:
    """Top-level columns to read: those of the projection, the filter and the equality deletes."""
    needed: dict[int, NestedField] = {}
    lineage = Schema(tuple(f for f in (ROW_ID, LAST_UPDATED) if f.field_id in request.projection.by_id))
    for schema in (request.stored, lineage, request.schema.select(predicate.field_ids), *key_schemas):
        for f in schema.fields:
            needed[f.field_id] = joined_fields(needed[f.field_id], f) if f.field_id in needed else f
    return list(needed.values())


def _grouped(
    files: Sequence[FileRead], shape: Shape, scan: _Scan
) -> Iterable[tuple[Root | None, Sequence[LocatedFile]]]:
    """Groups of files whose rows are processed alike, each with the root of its partitions' directories."""
    located = [
        LocatedFile(
            file,
            spark_location(scan.request.store.physical(file.file_path)),
            scan.deletes.get(file.file_path, NO_DELETES),
        )
        for file in files
    ]
    roots: Sequence[Root | None] = [None] * len(files)
    if isinstance(shape, ById):
        directories = PartitionDirectories(scan.columns, scan.request.specs, scan.request.schema)
        roots = directories.roots(files, [file.location for file in located])
    found: dict[tuple[Root | None, bool, bool, bool], list[LocatedFile]] = {}
    for file, root in zip(located, roots, strict=True):
        by_position, by_key = file.deletes.positions is not None, bool(file.deletes.equality)
        found.setdefault((root, file.file.residual is not None, by_position, by_key), []).append(file)
    return [(key[0], group) for key, group in found.items()]


def _group_frame(files: Sequence[LocatedFile], root: Root | None, shape: Shape, scan: _Scan) -> JavaFrame:
    """The rows of one group under the names of the scan."""
    is_flat = all(isinstance(c.field.type, PrimitiveType) for c in scan.columns)
    deleted = DeletedGroup(files, scan.request, is_flat=is_flat)
    places = deleted.read_fields()
    if places and any(ROW in {f.name for f in schema.fields} for schema in scan.plan.metadata.schemas):
        raise Unsupported(f"the column {ROW!r}, a name that Spark's reader has for the positions of rows; use to_arrow")
    read = st.StructType([*shape.read_fields(scan.columns), *places])
    source = scan.session.parquet(read, [file.location for file in files], partitions_below=root and root.directory)
    columns = shape.completed(scan.columns)
    frame = source if columns is None else source.select([*columns, *(f.name for f in places)])
    column_of = _column_finder(scan.columns)
    if files[0].file.residual is not None:
        frame = frame.where(spark_filter(scan.plan.predicate, column_of))
    frame = deleted.applied(source, frame, scan.user, column_of)
    outputs = [(f, _output(f, scan.columns, deleted)) for f in scan.request.projection.fields]
    if is_flat:
        return frame.select([text if text == quoted(f.name) else f"{text} AS {quoted(f.name)}" for f, text in outputs])
    # Where Spark prunes fields of a nested column, it reads by the ids that a query's columns have, which those of a
    # scan that was handed over have lost. So they are others, which the optimizer takes for the relation's.
    return frame.select([f"coalesce({text}) AS {quoted(f.name)}" for f, text in outputs])


def _column_finder(columns: Sequence[ReadColumn]) -> ColumnOf:
    """Field id -> column of a group's DataFrame, nested fields included."""
    names = {c.field.field_id: c.name for c in columns}
    known = Schema(tuple(c.field for c in columns))

    def column_of(field_id: int) -> str:
        path = [field_id]
        while path[-1] in known.parent_of:
            path.append(known.parent_of[path[-1]])
        return ".".join(quoted(name) for name in (names[path[-1]], *(known.by_id[i].name for i in reversed(path[:-1]))))

    return column_of


def _output(field: NestedField, columns: Sequence[ReadColumn], deleted: DeletedGroup) -> str:
    """A column of the projection, as SQL."""
    read = next((c for c in columns if c.field.field_id == field.field_id), None)
    if field.field_id == POS_ID:
        return ROW
    if field.field_id == DELETED_ID:
        return deleted.deleted()
    if field.field_id in OF_FILES:
        return fact_of_file(field, None if read is None else read.name)
    assert read is not None
    return shown(pruned(quoted(read.name), read.field.type, field.type), field.type)


def spark_location(location: str) -> str:
    """A location in the form that Spark accepts: a plain path is on this machine, whatever Spark's default file system
    is."""
    return f"file:{location}" if location.startswith("/") else location
