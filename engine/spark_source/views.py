"""Scans as temporary views of a Spark session, and queries over them that skip files by their own filters."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from icebench.engine.errors import Invalid
from icebench.engine.expressions.predicate import TRUE, Predicate, greater_equal, is_in, less_equal
from icebench.engine.spark.pruned_plans import filters_of_views, without_files
from icebench.engine.spark.read_schema import read_columns
from icebench.engine.spark.types import quoted
from icebench.engine.spec.types import NestedField, PrimitiveType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from icebench.engine.opening.catalog import Catalog, Name
    from icebench.engine.scan import Scan


@dataclass(frozen=True)
class _View:
    """A view that was registered: the name that it has in plans, its scan, and the table's columns by the names that
    Spark reads them under."""

    key: str
    scan: Scan
    columns: Mapping[str, NestedField]


_VIEWS: MutableMapping[SparkSession, dict[str, _View]] = WeakKeyDictionary()
"""Session -> name in lower case -> the view that was registered last."""
_KEYS = count()

_KEY_TYPES = ("int", "long", "date", "string")
_LARGEST_BYTES = 16_000_000
"""Of the files with the keys of a join: more take longer to read than files are likely to be spared."""
_MOST_KEYS = 2000
"""More of them are the range from the least to the greatest."""


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
    views = {view.key: view for view in _VIEWS.get(frame.sparkSession, {}).values()}
    if not views:
        return frame
    asked = filters_of_views(
        frame,
        {key: view.columns for key, view in views.items()},
        lambda key, *keys: _with_keys(views[key].scan, *keys),
    )
    excluded = {key: _excluded(views[key].scan, predicate) for key, predicate in asked.items() if predicate != TRUE}
    fewer = {key: locations for key, locations in excluded.items() if locations}
    return without_files(frame, fewer) if fewer else frame


def _with_keys(scan: Scan, predicate: Predicate, column: NestedField, name: str) -> Predicate:
    """A filter that a column of this name is one of the values of `column` in the rows that match; `TRUE` where they
    are of a type that has no keys, or are too many to be read for that."""
    if not isinstance(column.type, PrimitiveType) or column.type.name not in _KEY_TYPES:
        return TRUE
    matching = scan.narrowed(predicate, [column.name])
    if matching.plan().size_in_bytes > _LARGEST_BYTES:
        return TRUE
    keys = sorted(matching.to_arrow().column(column.name).unique().drop_null().to_pylist())
    if len(keys) <= _MOST_KEYS:
        return is_in(name, keys)
    return greater_equal(name, keys[0]) & less_equal(name, keys[-1])


def _excluded(scan: Scan, predicate: Predicate) -> list[str]:
    """The physical locations of the files of a scan that no row can match."""
    needed = set(scan.narrowed(predicate).plan().files.column("file_path").to_pylist())
    return [scan.physical(path) for path in scan.plan().files.column("file_path").to_pylist() if path not in needed]


def _register(spark: SparkSession, scans: Mapping[str, Scan]) -> None:
    # All scans first: a table that cannot be read leaves the session's views as they were.
    made = {name: _made(spark, scan) for name, scan in scans.items()}
    known = _VIEWS.setdefault(spark, {})
    for name, (frame, view) in made.items():
        frame.createOrReplaceTempView(quoted(name))
        known[name.lower()] = view


def _made(spark: SparkSession, scan: Scan) -> tuple[DataFrame, _View]:
    key, plan = str(next(_KEYS)), scan.plan()
    columns = {column.name: column.field for column in read_columns(plan.schema.fields, plan.metadata)}
    return scan.to_spark(spark, view=key), _View(key, scan, columns)
