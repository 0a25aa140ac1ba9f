"""Files with deletes as scan tasks of Iceberg Java, for sessions with DataFusion Comet.

Comet reads Spark's Parquet relations in native code, but not the position of a row, which `deletes` tests: Spark's own
reader does that. It also reads Iceberg's own scan tasks in native code, with deletion vectors and position deletes. So
in a session with Comet and Iceberg's runtime the files of a plan that have such deletes can be handed to Iceberg, in
the JSON of the REST protocol (`FetchScanTasksResponse`), beside a table that has the plan's schema and no snapshot:
Iceberg reads no metadata and plans nothing. Filters of the query do not reach these tasks, so a scan has to ask for it.

Spark takes tasks from Iceberg's `ScanTaskSetManager` each time that it plans a query, so they stay there as long as a
DataFrame may use them. They are removed by the first scan that is handed over after Java's garbage collector found
the DataFrame's relation unused.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from icebench.engine.codec.metadata_json.table import encode_metadata
from icebench.engine.codec.metadata_json.values import value_to_json
from icebench.engine.deletes.files import DeleteFile, FileRead
from icebench.engine.plan.scan import ScanPlan
from icebench.engine.read.plans import planned_files
from icebench.engine.read.request import ReadRequest
from icebench.engine.spark.java_functions import JavaObject
from icebench.engine.spark.session import JavaFrame, ScanSession, has_comet, least_tasks, scan_session
from icebench.engine.spark.types import quoted
from icebench.engine.spec.data_file import FileContent
from icebench.engine.spec.schema import FIRST_METADATA_COLUMN_ID
from icebench.engine.spec.types import PrimitiveType
from icebench.engine.storage.store import Store

_TABLE = "org.apache.iceberg.spark.source.SparkRewriteTable"
_NATIVE = "CometIcebergNativeScan"
_TYPES = {"boolean", "int", "long", "float", "double", "decimal", "date", "timestamp", "timestamptz", "string", "uuid"}
_TYPES |= {"fixed", "binary"}
_NUMBERS = count()
"""Of task sets: the virtual machine has one manager of them for all sessions."""
_LEAST_SPLIT, _MOST_SPLIT = 4 << 20, 128 << 20


@dataclass(frozen=True, eq=False)
class Iceberg:
    """Iceberg's runtime in the JVM of a session, and the task sets that were handed to it.

    Args:
        jvm: The JVM.
        alive: Relation -> the id of its task set, while the relation is in use.
        staged: The id of a task set -> the table under which it was staged.
    """

    jvm: JavaObject
    alive: JavaObject
    staged: dict[str, JavaObject] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def stage(self, table: JavaObject, tasks: JavaObject) -> JavaObject:
        """The relation that reads these tasks."""
        manager = self.jvm.org.apache.iceberg.spark.ScanTaskSetManager.get()
        with self.lock:
            used = set(self.jvm.java.lang.String.join("\n", self.alive.values()).split("\n"))
            for unused in self.staged.keys() - used:
                manager.removeTasks(self.staged.pop(unused), unused)
            set_id = f"icebench-{next(_NUMBERS)}"
            manager.stageTasks(table, set_id, tasks)
            self.staged[set_id] = table
            relation = self.jvm.org.apache.iceberg.spark.source.SparkRewriteTable(table, set_id)
            self.alive.put(relation, set_id)
        return relation


_KNOWN: MutableMapping[SparkSession, Iceberg | None] = WeakKeyDictionary()
"""The user's session -> what it has."""


def iceberg_of(spark: SparkSession) -> Iceberg | None:
    """Iceberg's runtime in a session with Comet; None where one of both is missing."""
    if spark not in _KNOWN:
        jvm: Any = spark._jvm  # noqa: SLF001
        has_both = has_comet(spark) and jvm.org.apache.spark.util.Utils.classIsLoadable(_TABLE)
        _KNOWN[spark] = Iceberg(jvm, jvm.java.util.WeakHashMap()) if has_both else None
    return _KNOWN[spark]


@dataclass(frozen=True)
class HandedOver:
    """What Iceberg reads of a plan, and what is left.

    Args:
        frame: The rows that Iceberg reads, under the names of the scan; None for none.
        rest: The other files.
        files: How many Iceberg reads.
        reasons: Why files are among them that Comet does not read, and how many for each reason; empty without Comet.
    """

    frame: JavaFrame | None
    rest: list[FileRead]
    files: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)


def hand_over(
    spark: SparkSession,
    plan: ScanPlan,
    request: ReadRequest,
    *,
    is_native_without: bool,
    condition: Callable[[], str],
) -> HandedOver:
    """Have Iceberg read those files that Comet then reads in native code, as it would not otherwise.

    Args:
        spark: The user's session.
        plan: The plan.
        request: Its request.
        is_native_without: Whether Comet reads files without deletes as they are.
        condition: Gives the filter of the plan as SQL over the columns of the table.
    """
    files = list(planned_files(plan))
    iceberg = iceberg_of(spark)
    if iceberg is None:
        return HandedOver(None, files)
    offsets = _split_offsets(plan)
    refused = _refused(plan, request)
    wanted = [file for file in files if file.deletes or not is_native_without]
    reasons = [refused or _refused_file(file, request.store, len(offsets[file.file_path])) for file in wanted]
    counts = Counter(reason for reason in reasons if reason is not None)
    chosen = [file for file, reason in zip(wanted, reasons, strict=True) if reason is None]
    frames = []
    for members in ([f for f in chosen if f.residual is None], [f for f in chosen if f.residual is not None]):
        if members:
            frame = task_frame(iceberg, spark, plan, members, offsets)
            if members[0].residual is not None:
                frame = frame.where(condition())
            frame = frame.select([quoted(f.name) for f in request.projection.fields])
            if _NATIVE not in frame.dataset.queryExecution().executedPlan().toString():
                # Iceberg's own reader is slower than Spark's with this engine's deletes.
                reason = comet_reasons(spark, frame.dataset) or "Comet leaves it to Spark"
                return HandedOver(None, files, 0, counts + Counter({reason: len(chosen)}))
            frames.append(frame)
    handed = {file.file_path for file in chosen}
    rest = [file for file in files if file.file_path not in handed]
    return HandedOver(reduce(JavaFrame.union, frames) if frames else None, rest, len(chosen), counts)


def _split_offsets(plan: ScanPlan) -> dict[str, list[int]]:
    """Where the row groups of each file begin; nothing where its manifest does not say."""
    paths, offsets = (plan.files.column(name).to_pylist() for name in ("file_path", "split_offsets"))
    return {path: own or [] for path, own in zip(paths, offsets, strict=True)}


def _refused(plan: ScanPlan, request: ReadRequest) -> str | None:
    """Why no file of a plan can be handed over."""
    fields = [*request.projection.fields, *plan.schema.select(plan.predicate.field_ids).fields]
    if any(f.field_id >= FIRST_METADATA_COLUMN_ID for f in fields):
        return "metadata columns are computed from the plan"
    if not fields or not all(isinstance(f.type, PrimitiveType) for f in fields):
        return "only columns that are not nested are handed over"
    if not {f.type.name for f in plan.schema.walk() if isinstance(f.type, PrimitiveType)} <= _TYPES:
        return "the table has a column of a type that Iceberg does not give to Spark"
    if any(f.initial_default is not None for f in fields):
        return "Comet does not fill in defaults"
    if request.name_mapping is not None or (request.without_ids and request.without_ids.misplaced_id is not None):
        return "files may be without field ids"
    names = [f.name.lower() for f in plan.schema.fields]
    if len(set(names)) < len(names):
        return "names of columns differ in case only"
    return None


def _refused_file(file: FileRead, store: Store, row_groups: int) -> str | None:
    """Why a file is not handed over."""
    if file.residual is not None and row_groups != 1:
        return "Spark's reader skips row groups by the filter that is left"
    if any(each.content == FileContent.EQUALITY_DELETES for each in file.deletes):
        return "deletes by key are joined"
    if file.partition is None:
        return "its partition is unknown"
    paths = {file.file_path, *(each.referenced_data_file for each in file.deletes)}
    if len(paths) > 1:  # Iceberg compares the paths in position deletes as they are
        return "position deletes name more files, or this one in another way"
    opened = (file.file_path, *(each.file_path for each in file.deletes))
    if any(store.physical(path).removeprefix("file:") != path.removeprefix("file:") for path in opened):
        return "its location is one of this engine alone"
    return None


def _split_bytes(files: Sequence[FileRead], spark: SparkSession) -> int:
    """The size of tasks with which cores end together, as `session.scan_session` has it."""
    tasks = least_tasks(spark._jsparkSession.leafNodeDefaultParallelism(), 0, None)  # noqa: SLF001
    total = sum(file.file_size_in_bytes or 0 for file in files)
    return max(_LEAST_SPLIT, min(_MOST_SPLIT, -(-total // tasks)))


def comet_reasons(spark: SparkSession, dataset: JavaObject) -> str:
    """Why Comet leaves parts of a query to Spark, in its own words; empty if it does not."""
    jvm: Any = spark._jvm  # noqa: SLF001
    physical = dataset.queryExecution().executedPlan()
    reasons: str = jvm.org.apache.comet.ExtendedExplainInfo().getFallbackReasons(physical).mkString("; ")
    return " ".join(reasons.split())


def task_frame(
    iceberg: Iceberg,
    spark: SparkSession,
    plan: ScanPlan,
    files: Sequence[FileRead],
    offsets: Mapping[str, Sequence[int]],
) -> JavaFrame:
    """All columns of the files, without deleted rows, as Iceberg reads them; `offsets` has their row groups."""
    jvm, session = iceberg.jvm, scan_session(spark, row_groups=None, expansion=1.0)
    table = _table(jvm, session, plan)
    node = jvm.org.apache.iceberg.util.JsonUtil.mapper().readTree(tasks_json(plan, files, offsets))
    parser = jvm.org.apache.iceberg.rest.responses.FetchScanTasksResponseParser
    tasks = parser.fromJson(node, table.specs(), True).fileScanTasks()
    options = jvm.java.util.HashMap()
    options.put("split-size", str(_split_bytes(files, spark)))
    none = jvm.scala.Option.empty()
    relation = jvm.org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation.create(
        iceberg.stage(table, tasks), none, none, jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap(options), none
    )
    return JavaFrame(session, session.datasets.ofRows(session.session, relation))


def _table(jvm: JavaObject, session: ScanSession, plan: ScanPlan) -> JavaObject:
    metadata = replace(
        plan.metadata,
        current_schema_id=plan.schema.schema_id,
        properties={},
        current_snapshot_id=None,
        snapshots=(),
        snapshot_log=(),
        metadata_log=(),
        refs={},
        statistics=(),
        partition_statistics=(),
    )
    location = f"{metadata.location}/metadata/planned.metadata.json"  # is not there, and is not read
    parsed = jvm.org.apache.iceberg.TableMetadataParser.fromJson(location, encode_metadata(metadata).decode())
    io = jvm.org.apache.iceberg.hadoop.HadoopFileIO(session.session.sessionState().newHadoopConf())
    return jvm.org.apache.iceberg.BaseTable(jvm.org.apache.iceberg.StaticTableOperations(parsed, io), metadata.location)


def tasks_json(plan: ScanPlan, files: Sequence[FileRead], offsets: Mapping[str, Sequence[int]]) -> str:
    """The files with their deletes as a response of the REST protocol to a request for scan tasks."""
    places: dict[tuple[str, int | None], int] = {}
    deletes: list[dict[str, Any]] = []
    tasks = []
    for file in files:
        references = []
        partition = _partition_json(plan, file)
        for each in file.deletes:
            key = (each.file_path, each.content_offset)
            if key not in places:
                places[key] = len(deletes)
                deletes.append(_delete_json(each) | partition)
            references.append(places[key])
        described = {
            "content": "data",
            "file-path": file.file_path,
            "file-format": file.file_format,
            "file-size-in-bytes": file.file_size_in_bytes,
            "record-count": file.record_count,
            **partition,
        }
        if offsets[file.file_path]:
            described["split-offsets"] = offsets[file.file_path]
        tasks.append({"data-file": described, "delete-file-references": references, "residual-filter": True})
    return json.dumps({"delete-files": deletes, "file-scan-tasks": tasks})


def _delete_json(file: DeleteFile) -> dict[str, Any]:
    found = {
        "content": "position-deletes",
        "file-path": file.file_path,
        "file-format": file.file_format,
        "file-size-in-bytes": file.file_size_in_bytes,
        "record-count": file.record_count,
        "referenced-data-file": file.referenced_data_file,
        "content-offset": file.content_offset,
        "content-size-in-bytes": file.content_size_in_bytes,
    }
    return {name: value for name, value in found.items() if value is not None}


def _partition_json(plan: ScanPlan, file: FileRead) -> dict[str, Any]:
    """The spec and the partition of a file; a delete file has those of a data file that it applies to."""
    fields = plan.metadata.spec_by_id[file.spec_id].partition_type(plan.schema, plan.metadata.schemas).fields
    assert file.partition is not None
    values = [value_to_json(f.type, value) for f, value in zip(fields, file.partition, strict=True)]
    return {"spec-id": file.spec_id, "partition": values}
