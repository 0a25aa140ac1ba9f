"""Scans as temporary views of a Spark session, and queries over them that skip files by their own filters."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from icebench.engine.errors import Invalid
from icebench.engine.expressions.predicate import TRUE, Predicate, greater_equal, is_in, less_equal
from icebench.engine.expressions.scalar import Argument
from icebench.engine.expressions.temporal_literals import NANOS_PER_DAY, TemporalLiteral
from icebench.engine.spark.java_functions import JavaObject, java_functions
from icebench.engine.spark.pruned_plans import Views, at_one_time, file_indexes, filters_of_views, without_files
from icebench.engine.spark.types import quoted
from icebench.engine.spec.metadata_columns import DELETED
from icebench.engine.spec.types import NestedField, PrimitiveType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from icebench.engine.opening.catalog import Catalog, Name
    from icebench.engine.scan import Scan


@dataclass(frozen=True)
class _View:
    """A view that was registered.

    Args:
        scan: Its scan.
        relations: The file indexes of Spark's relations of it.
        columns: The table's columns by the names that Spark reads them under.
    """

    scan: Scan
    relations: Sequence[JavaObject]
    columns: Mapping[str, NestedField]

    @cached_property
    def files(self) -> Sequence[str]:
        """All that Spark would read."""
        found: list[str] = self.scan.plan().files.column("file_path").to_pylist()
        return found


class _Session:
    """The views that were registered with a session, the last of each name in lower case."""

    def __init__(self, spark: SparkSession) -> None:
        self.names: Views = java_functions(spark).java("java.util.IdentityHashMap")()
        self.views: dict[str, _View] = {}

    def add(self, name: str, scan: Scan, frame: DataFrame) -> None:
        """Add a view, unless its scan has a limit: a query's filters apply after the limit."""
        name = name.lower()
        for relation in self.views.pop(name).relations if name in self.views else ():
            self.names.remove(relation)
        if not scan.is_limited:
            indexes, by_id = file_indexes(frame), scan.plan().schema.by_id
            columns = {column: by_id[i] for _, ids in indexes for column, i in ids.items() if i in by_id}
            self.views[name] = _View(scan, [index for index, _ in indexes], columns)
            for index, _ in indexes:
                self.names.put(index, name)


_SESSIONS: MutableMapping[SparkSession, _Session] = WeakKeyDictionary()

_KEY_TYPES = ("int", "long", "date", "string")
_LARGEST_BYTES = 16_000_000
"""Limit for the files with the keys of a join: reading more takes longer than skipping files is likely to save."""
_MOST_KEYS = 2000
"""More keys are replaced by the range from the least to the greatest."""


def register_views(spark: SparkSession, catalog: Catalog, namespace: Name, tables: Sequence[str] | None) -> list[str]:
    """See `icebench.spark.register_views`."""
    found = {name.rpartition(".")[2]: name for name in catalog.list_tables(namespace)}
    chosen = list(found) if tables is None else list(tables)
    if missing := [name for name in chosen if name not in found]:
        raise Invalid(f"the namespace has no table {missing[0]!r}; it has: {', '.join(sorted(found))}")
    alike = {name.lower(): name for name in chosen}
    for name in chosen:
        if alike[name.lower()] != name:
            raise Invalid(f"{name!r} and {alike[name.lower()]!r} are one name for Spark: give one of them as `tables`")
    _register(spark, {name: catalog.load_table(found[name]).scan() for name in chosen})
    return chosen


def register_view(spark: SparkSession, name: str, scan: Scan) -> None:
    """See `icebench.spark.register_view`."""
    _register(spark, {name: scan})


def prune_files(frame: DataFrame) -> DataFrame:
    """See `icebench.spark.prune_files`."""
    session = _SESSIONS.get(frame.sparkSession)
    if session is None:
        return frame
    views = session.views
    read: dict[tuple[object, ...], Predicate] = {}

    def keys(view: str, predicate: Predicate, column: NestedField, name: str) -> Predicate:
        place = view, predicate, column.name, name
        if place not in read:
            read[place] = _with_keys(views[view].scan, predicate, column, name)
        return read[place]

    columns = {name: view.columns for name, view in views.items()}
    fixed = at_one_time(frame)
    asked = filters_of_views(fixed, session.names, columns, keys)
    excluded = {name: _excluded(views[name], predicate) for name, predicate in asked.items() if predicate != TRUE}
    fewer = {name: locations for name, locations in excluded.items() if locations}
    return without_files(fixed, session.names, fewer) if fewer else frame


def _with_keys(scan: Scan, predicate: Predicate, column: NestedField, name: str) -> Predicate:
    """A filter that a column of this name is one of the values of `column` in the rows that match; `TRUE` if their type
    cannot be a key, or if too much would have to be read for that."""
    if not isinstance(column.type, PrimitiveType) or column.type.name not in _KEY_TYPES:
        return TRUE
    marked = [each.name for each in scan.schema.fields if each.field_id == DELETED.field_id]
    matching = scan.narrowed(predicate, [column.name, *marked])  # rows that are marked as deleted have keys, too
    if matching.plan().size_in_bytes > _LARGEST_BYTES:
        return TRUE
    found = matching.to_arrow().column(column.name).unique().drop_null()
    if column.type.name == "date":  # beyond the years of Python, too
        days = sorted(found.cast("int32").to_pylist())
        keys: list[Argument] = [TemporalLiteral("date", day * NANOS_PER_DAY) for day in days]
    else:
        keys = sorted(found.to_pylist())
    if len(keys) <= _MOST_KEYS:
        return is_in(name, keys)
    return greater_equal(name, keys[0]) & less_equal(name, keys[-1])


def _excluded(view: _View, predicate: Predicate) -> list[str]:
    """The physical locations of the files of a view that no row can match."""
    needed = set(view.scan.narrowed(predicate).plan().files.column("file_path").to_pylist())
    return [view.scan.physical(path) for path in view.files if path not in needed]


def _register(spark: SparkSession, scans: Mapping[str, Scan]) -> None:
    # All scans first: a table that cannot be read leaves the session's views as they were.
    frames = {name: scan.to_spark(spark) for name, scan in scans.items()}
    session = _SESSIONS.get(spark)
    if session is None:
        session = _SESSIONS[spark] = _Session(spark)
    for name, frame in frames.items():
        frame.createOrReplaceTempView(quoted(name))
        session.add(name, scans[name], frame)
