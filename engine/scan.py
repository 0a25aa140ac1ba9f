"""`Scan`: the rows of one state of a table, as Arrow data and as frames of other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import pyarrow as pa

from icebench.engine import display
from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.expressions.bound import tests_of_rows
from icebench.engine.expressions.predicate import Filter
from icebench.engine.lazy_module import LazyModule
from icebench.engine.plan.planner import PlanningMode
from icebench.engine.plan.scan import ScanPlan, TableScan
from icebench.engine.runtime.counters import Counters
from icebench.engine.spec.schema import Schema, list_of_names
from icebench.engine.spec.snapshots import Snapshot
from icebench.engine.spec.types import NestedField
from icebench.engine.storage.counting import CountingStore
from icebench.engine.storage.scan_reports import report_scan

if TYPE_CHECKING:
    import pandas as pd

    from icebench.engine.columnar import schemas
    from icebench.engine.frames import duckdb_source, pandas_frame, polars_source
    from icebench.engine.plan import explanation, trace
    from icebench.engine.plan.explanation import Explanation
    from icebench.engine.read import plans, request, row_sample
    from icebench.engine.runtime import metrics_reports
    from icebench.engine.spark import native_scan
    from icebench.engine.spark import planning as spark_planning
    from icebench.engine.spark import readers as spark_readers
else:  # loaded on first use: planning needs neither what reads rows, nor other libraries
    pd = LazyModule("pandas")
    schemas = LazyModule("icebench.engine.columnar.schemas")
    duckdb_source = LazyModule("icebench.engine.frames.duckdb_source")
    pandas_frame = LazyModule("icebench.engine.frames.pandas_frame")
    polars_source = LazyModule("icebench.engine.frames.polars_source")
    explanation = LazyModule("icebench.engine.plan.explanation")
    trace = LazyModule("icebench.engine.plan.trace")
    plans = LazyModule("icebench.engine.read.plans")
    request = LazyModule("icebench.engine.read.request")
    row_sample = LazyModule("icebench.engine.read.row_sample")
    metrics_reports = LazyModule("icebench.engine.runtime.metrics_reports")
    native_scan = LazyModule("icebench.engine.spark.native_scan")
    spark_planning = LazyModule("icebench.engine.spark.planning")
    spark_readers = LazyModule("icebench.engine.spark.readers")

DecimalWidth: TypeAlias = Literal["wide", "narrow"]


class Scan:
    """A scan of one state of a table. `plan` selects what to read; the other methods plan and read at every call.

    Args:
        scan: Snapshot, filter and columns.
        metadata_columns: Columns that readers compute (``_file``, ``_pos``, ...), after those of the table.
        counters: Count planning, reading and storage requests; with None only planning is counted, in
            `ScanPlan.counters`.
        limit: Stop after that many rows; None for all. `plan` lists the files of all rows.
        reporting: Where plans are reported to; None for nowhere.

    Raises:
        Invalid: A negative limit.
    """

    def __init__(
        self,
        scan: TableScan,
        metadata_columns: tuple[NestedField, ...] = (),
        counters: Counters | None = None,
        limit: int | None = None,
        *,
        reporting: metrics_reports.Reporting | None = None,
    ) -> None:
        if limit is not None and limit < 0:
            raise Invalid(f"a limit of {limit} rows")
        self._scan = scan
        self._metadata_columns = metadata_columns
        self._counters = counters
        self._limit = limit
        self._reporting = reporting
        self._planned: pa.ChunkedArray | None = None  # the sizes of the files of the last plan

    def __repr__(self) -> str:
        scan, name = self._scan, self._scan.table_name or self._scan.metadata.location
        said = [display.printable(name), f"filter: {display.printable(scan.predicate)}"]
        said += [] if scan.columns is None else [f"columns: {display.printable(', '.join(scan.columns))}"]
        said += [] if self._limit is None else [f"limit: {self._limit:,}"]
        if self._planned is not None:
            files, size = len(self._planned), sum(self._planned.to_pylist())
            total = None if scan.snapshot is None else scan.snapshot.count("total-data-files")
            of = "" if total is None else f" of {total:,}"
            said += [f"{files:,}{of} files" if of else display.count_text(files, "file"), display.size_text(size)]
        return f"Scan({', '.join(said)})"

    def _repr_html_(self) -> str:
        return display.html_fold(repr(self), [self._scan.schema._repr_html_()])

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that is read; None for a table without one."""
        return self._scan.snapshot

    @property
    def filter(self) -> str:
        """The filter as text.

        Raises:
            Invalid: It does not fit the table's schema.
            Unsupported: It tests a type that has no order.
        """
        _ = self._scan.bound
        return str(self._scan.predicate)

    def tests_of_rows(self) -> tuple[str, ...]:
        """The tests of the filter that no statistics can answer, as text: a plan does not prune by them. Raises as
        `filter`."""
        return tuple(map(str, tests_of_rows(self._scan.bound)))

    @property
    def schema(self) -> Schema:
        """The columns of the result."""
        return Schema((*self._scan.projection.fields, *self._metadata_columns))

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns of the result, as `to_arrow` returns them."""
        return schemas.to_arrow_schema(self.schema)

    @property
    def is_limited(self) -> bool:
        """Whether the scan stops after some rows."""
        return self._limit is not None

    def narrowed(
        self, filter: Filter | None = None, columns: Sequence[str] | None = None, *, limit: int | None = None
    ) -> Self:
        """This scan with a further filter, with only some of its top-level columns (in the order of this scan), or with
        a lower limit.

        Raises:
            Invalid: The filter or a column does not fit the scan.
            Unsupported: A filter for a scan with a limit, as it would have to apply after the limit.
        """
        scan, extra = self._scan, self._metadata_columns
        if filter is not None:
            if self.is_limited:
                raise Unsupported("a filter after the limit of a scan")
            scan = scan.filtered(filter)
        if columns is not None:
            columns, names = list_of_names(columns, "columns"), {field.name for field in self.schema.fields}
            if unknown := [name for name in columns if name not in names]:
                raise Invalid(f"no column {unknown[0]!r} in the scan; the columns are {', '.join(sorted(names))}")
            wanted, present = set(columns), {field.name for field in scan.projection.fields}
            extra = tuple(field for field in extra if field.name in wanted)
            own = [name for name in columns if name in present]
            if scan.columns is not None:  # some fields of a struct, perhaps
                known = scan.schema
                ids = [known.find(c, case_sensitive=scan.case_sensitive).field_id for c in scan.columns]
                own = [known.name_of[field_id] for field_id in ids if known.path_of(field_id)[0] in wanted]
            scan = replace(scan, columns=tuple(own))
        least = min((each for each in (self._limit, limit) if each is not None), default=None)
        _ = scan.bound
        return type(self)(scan, extra, self._counters, least, reporting=self._reporting)

    def cold(self, counters: Counters) -> Self:
        """This scan without decoded manifests of earlier plans, so that it does the same work each time.

        Args:
            counters: Count planning, reading, and storage requests and bytes, in place of those of this scan.
        """
        scan = replace(self._scan, store=CountingStore(self._scan.store, counters), cache=None)
        return type(self)(scan, self._metadata_columns, counters, self._limit, reporting=self._reporting)

    def plan(
        self,
        spark: Any = None,  # noqa: ANN401 - as in `to_spark`
        *,
        mode: PlanningMode | None = None,
    ) -> ScanPlan:
        """Plan the data files to read, with their deletes and residual filters.

        Files and counters do not depend on where planning is done, which `ScanPlan.modes` records.

        Args:
            spark: A `pyspark.sql.SparkSession` whose executors may decode and filter manifests; without one, this
                process does.
            mode: ``"local"`` uses no executors, ``"distributed"`` does, ``"auto"`` does for many manifests
                (`icebench.engine.spark.planning.LOCAL_BYTES`). Defaults to the table properties
                ``read.data-planning-mode`` and ``read.delete-planning-mode``, else to ``"auto"``.

        Raises:
            Invalid: The filter or the columns do not fit the schema; the mode is unknown, or needs a session.
            FileNotFound: A file of the metadata tree is missing.
            CorruptTable: The metadata contradicts the specification.
        """
        scan = self._scan
        if spark is not None:
            properties = scan.metadata.properties
            executors = spark_planning.spark_executors(spark, properties, mode, requests=self._counters)
            scan = replace(scan, executors=executors)
        elif mode not in (None, "auto", "local"):
            raise Invalid(f"planning mode {mode!r} needs a Spark session")
        plan = scan.plan() if self._reporting is None else self._reported(scan, self._reporting)
        self._planned = plan.files["file_size_in_bytes"]
        if self._counters is not None:
            self._counters.merge(plan.counters)
        report_scan(lambda: self._described(plan))
        return plan

    def explain(
        self,
        *,
        row_groups: bool = False,
        spark: Any = None,  # noqa: ANN401 - as in `to_spark`
    ) -> Explanation:
        """Plan, and explain the plan: why each manifest, data file and delete file is planned or skipped, by which
        tests of the filter and which bounds or partition values, and what deletes add.

        Meant for people: with many files it takes far longer than a plan. Print it, or display it in a notebook.

        Args:
            row_groups: Also read the footers of the planned files, to report how many row groups a read skips.
            spark: A `pyspark.sql.SparkSession`: also report which readers `to_spark` uses there, and why not DataFusion
                Comet.

        Raises:
            As `plan`, and with a session as `to_spark`.
        """
        recorded = trace.Trace()
        plan = replace(self._scan, trace=recorded, executors=None).plan()
        self._planned = plan.files["file_size_in_bytes"]
        found = explanation.explained_plan(self._scan, recorded, plan)
        if row_groups:
            found = replace(found, row_groups=self.row_groups(plan))
        if spark is not None:
            name, store = self._scan.table_name, self._scan.store
            readers = spark_readers.readers_of(spark, plan, store, projection=self.schema, table_name=name)
            found = replace(found, spark_readers=readers)
        return found

    def _reported(self, scan: TableScan, reporting: metrics_reports.Reporting) -> ScanPlan:
        begin = reporting.clock()
        plan = scan.plan()
        seconds = reporting.clock() - begin

        def report() -> metrics_reports.ScanReport:
            return metrics_reports.ScanReport(
                catalog_name=reporting.catalog_name,
                table_name=scan.table_name or plan.metadata.location,
                snapshot_id=None if plan.snapshot is None else plan.snapshot.snapshot_id,
                filter=str(scan.predicate),
                projected_field_names=tuple(field.name for field in self.schema.fields),
                planning_seconds=seconds,
                metrics=metrics_reports.scan_metrics(plan.counters, plan.size_in_bytes),
            )

        reporting.send(report)
        return plan

    def _described(self, plan: ScanPlan) -> dict[str, object]:
        """What a report of the scan says (`icebench.engine.storage.scan_reports`)."""
        return {
            "table": self._scan.table_name,
            "location": plan.metadata.location,
            "snapshot_id": None if plan.snapshot is None else plan.snapshot.snapshot_id,
            "filter": str(self._scan.predicate),
            "columns": [field.name for field in self._scan.projection.fields],
            "counters": plan.counters,
        }

    def to_batches(
        self, *, batch_rows: int | None = None, decimal_width: DecimalWidth = "wide"
    ) -> pa.RecordBatchReader:
        """Stream the rows in the order of `plan`, with bounded read-ahead.

        Args:
            batch_rows: Maximum rows of a batch; by default `icebench.engine.read.request.BATCH_ROWS`.
            decimal_width: ``"wide"`` returns decimal128, which every function of Arrow supports; ``"narrow"`` returns
                decimal32 up to 9 digits and decimal64 up to 18, with less work and memory.

        Raises:
            As `plan`; from the stream FileNotFound, CorruptTable, and Unsupported for files of an unsupported format.
        """
        return self._read(self.plan(), batch_rows=batch_rows, narrow_decimals=decimal_width == "narrow")

    to_arrow_batch_reader = to_batches
    """PyIceberg's name for it."""

    def _read(
        self, plan: ScanPlan, *, batch_rows: int | None = None, narrow_decimals: bool = False
    ) -> pa.RecordBatchReader:
        return plans.read_plan(
            plan,
            self._scan.store,
            limit=self._limit,
            projection=self.schema,
            counters=self._counters,
            runner=self._scan.runner,
            batch_rows=batch_rows or request.BATCH_ROWS,
            narrow_decimals=narrow_decimals,
            table_name=self._scan.table_name,
        )

    def to_arrow(self, *, decimal_width: DecimalWidth = "wide") -> pa.Table:
        """The rows as a table; arguments and errors as `to_batches`."""
        return self.to_batches(decimal_width=decimal_width).read_all()

    def to_pandas(self) -> Any:  # noqa: ANN401 - a package that need not be there
        """The rows as a `pandas.DataFrame`, by Arrow's conversion; errors as `to_batches`, and NotInstalled.

        UUIDs are `uuid.UUID`; inside structs, lists and maps they are bytes. Raises Unsupported for dates outside the
        years 1 to 9999, which have no Python object, and for such timestamps in structs and maps.
        """
        _ = pd.DataFrame  # where it is missing, pyarrow's own error says less
        return pandas_frame.frame(self.to_arrow(), self.schema)

    def to_polars(self) -> Any:  # noqa: ANN401 - as above
        """The rows as a `polars.LazyFrame`, which is planned and read when it is collected.

        Polars pushes columns, filters and limits into the plan. Extension types become their storage types: a uuid is
        binary. Errors as `to_batches`, and NotInstalled.
        """
        return polars_source.lazy_frame(self)

    def to_duckdb(self, connection: Any = None) -> Any:  # noqa: ANN401 - as above
        """The rows as a relation of DuckDB, which is planned and read when it is executed.

        DuckDB pushes columns and filters into the plan. Raises NotInstalled; errors of the scan become DuckDB errors.

        Args:
            connection: A `duckdb.DuckDBPyConnection`; by default a new one, in memory.
        """
        return duckdb_source.relation(self, connection)

    def sample_files(self, files: int, *, plan: ScanPlan | None = None) -> pa.RecordBatchReader:
        """The rows of the files of `ScanPlan.sample`. No other file is read. Errors as `to_batches`, and Invalid for
        less than one file.

        Args:
            files: How many.
            plan: An existing plan of this scan; None plans it first.
        """
        return self._read((plan or self.plan()).sample(files))

    def row_groups(self, plan: ScanPlan | None = None, *, files: int | None = None) -> pa.Table:
        """The row groups (ORC: stripes) of the planned files, and which of them a read skips by their statistics. Only
        footers are read. Errors as `to_batches`, and Invalid for less than one file.

        Args:
            plan: An existing plan of this scan; None plans it first.
            files: How many of the planned files, evenly spread over the plan; all by default.

        Returns:
            ``file_path`` (string), ``row_group`` (int32), ``first_row`` (int64, its position in the file),
            ``record_count`` (int64), ``size_in_bytes`` (int64, of all columns, before compression; 0 if the file does
            not record it) and ``is_skipped`` (bool), in the order of `plan`.
        """
        plan = plan or self.plan()
        return plans.row_groups_of(
            plan if files is None else plan.sample(files),
            self._scan.store,
            runner=self._scan.runner,
            table_name=self._scan.table_name,
        )

    def sample(self, rows: int, *, seed: int = 0) -> pa.Table:
        """A random sample of the rows without replacement, in their order; reads all rows. Errors as `to_batches`.

        Args:
            rows: How many; all rows if there are fewer.
            seed: Seed of the draw.
        """
        if rows < 0:
            raise Invalid(f"a sample of {rows} rows")
        return row_sample.sample(self.to_batches(), self.arrow_schema, rows, seed)

    def count(self) -> int:
        """The number of rows. Record counts are used only for files without deletes and without a residual filter;
        raises as `to_batches`."""
        if self._limit is not None:
            return sum(batch.num_rows for batch in self.to_batches())
        return plans.count_rows(
            self.plan(),
            self._scan.store,
            counters=self._counters,
            runner=self._scan.runner,
            table_name=self._scan.table_name,
        )

    def to_spark(
        self,
        spark: Any,  # noqa: ANN401 - Spark's own types are at home in `engine.spark` alone
        *,
        planning_mode: PlanningMode | None = None,
        native_deletes: bool = False,
    ) -> Any:  # noqa: ANN401
        """The rows as a DataFrame of a session; Spark's own Parquet reader reads the planned files.

        See `icebench.engine.spark.native_scan`.

        Args:
            spark: A `pyspark.sql.SparkSession`; its settings are not changed.
            planning_mode: Whether its executors also plan: the `mode` of `plan`.
            native_deletes: In a session with DataFusion Comet and Iceberg's runtime, have Comet read files with deletes
                in native code, where it can. The query's filters then skip no parts of these files; the scan's filter
                does.

        Returns:
            A `pyspark.sql.DataFrame`.

        Raises:
            As `plan`; Unsupported for files that are not Parquet and types that Spark does not have.
        """
        frame = native_scan.plan_to_dataframe(
            spark,
            self.plan(spark, mode=planning_mode),
            self._scan.store,
            projection=self.schema,
            counters=self._counters,
            runner=self._scan.runner,
            table_name=self._scan.table_name,
            native_deletes=native_deletes,
        )
        return frame if self._limit is None else frame.limit(self._limit)

    def physical(self, location: str) -> str:
        """Where other programs (Spark) find a file of the table. It differs from `location` only in relocated
        tables."""
        return self._scan.store.physical(location)
