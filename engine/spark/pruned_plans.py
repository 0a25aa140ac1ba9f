"""Plans of Spark's queries without the files that the queries' own filters exclude.

Spark's optimizer does not know hidden partitions, nor the bounds of manifests. So a query over a view is optimized
once to see what it asks of the view's rows (`icebench.engine.spark.query_filters`), the view's scan is planned with
that, and the relations of the query are exchanged for ones of fewer files. The query keeps all of its conditions.

Where views are joined, the rows of one matter only if they have keys that the filter of the other leaves. These are
read here, where they are few, and become a filter, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession

from icebench.engine.expressions.predicate import TRUE, And, IsNull, Not, Predicate, all_of, any_of
from icebench.engine.spark.java_functions import JavaFunctions, JavaObject, java_functions
from icebench.engine.spark.native_scan import spark_location
from icebench.engine.spark.query_filters import (
    RELATION,
    JoinedColumn,
    implied_filter,
    joined_columns,
    relations_of,
)
from icebench.engine.spark.types import FIELD_ID_KEY
from icebench.engine.spec.types import NestedField

_SEPARATOR = "\0"
_FILES = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"

Columns: TypeAlias = Mapping[str, Mapping[str, NestedField]]
"""View -> the table's columns by the names that relations have them under."""

Views: TypeAlias = JavaObject
"""File index of a relation -> view, as a map of Java's by identity: what Spark makes of a relation keeps its index."""

Keys: TypeAlias = Callable[[str, Predicate, NestedField, str], Predicate]
"""A filter of a column, whose name comes last, for the values that another one has in the rows of a view that match;
`TRUE` where they are not to be asked for."""


def file_indexes(frame: DataFrame) -> list[tuple[JavaObject, Mapping[str, int]]]:
    """The file index of each relation of a scan, and the ids of its columns by name.

    Relations of files without field ids are left out: their columns have the files' own names.
    """
    found: list[tuple[JavaObject, Mapping[str, int]]] = []
    for leaf in _each(frame._jdf.queryExecution().analyzed().collectLeaves()):  # noqa: SLF001
        if leaf.getClass().getName() == RELATION:
            fields = json.loads(leaf.relation().schema().json())["fields"]
            ids = {f["name"]: f["metadata"][FIELD_ID_KEY] for f in fields if FIELD_ID_KEY in f["metadata"]}
            if ids:
                found.append((leaf.relation().location(), ids))
    return found


def at_one_time(frame: DataFrame) -> DataFrame:
    """A query whose current time and date, if it asks for them, are those of now each time that it is executed."""
    spark = frame.sparkSession
    functions = java_functions(spark)
    analyzed = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
    fixed = functions.java("org.apache.spark.sql.catalyst.optimizer.ComputeCurrentTime").apply(analyzed)
    return frame if fixed.fastEquals(analyzed) else _frame_of(spark, fixed)


def filters_of_views(frame: DataFrame, views: Views, columns: Columns, keys: Keys) -> dict[str, Predicate]:
    """What a query asks of the rows of each view: a row of the view that does not match changes nothing of its answer.

    Args:
        frame: The query; it is optimized, and not run.
        views: The views.
        columns: Their columns.
        keys: Gives what a view's rows are joined with.

    Returns:
        View -> filter; `TRUE` where all rows matter. Views that the query does not read are absent.
    """
    functions = java_functions(frame.sparkSession)
    execution = frame._jdf.queryExecution()  # noqa: SLF001
    optimized = execution.optimizedPlan()
    asked: dict[str, list[Predicate]] = {}
    known: set[int] = set()
    for plan in (optimized, *_each(optimized.subqueriesAll())):
        for view, attribute, predicate in _readings(functions, plan, views, columns, keys):
            asked.setdefault(view, []).append(predicate)
            known.add(attribute)
    for view, leaf in _relations(execution.analyzed(), views):
        if leaf.output().head().exprId().id() not in known:  # behind Spark's cache, for example
            asked[view] = [TRUE]
    return {view: any_of(filters) for view, filters in asked.items()}


def _readings(
    functions: JavaFunctions, plan: JavaObject, views: Views, columns: Columns, keys: Keys
) -> Iterator[tuple[str, int, Predicate]]:
    """The view of each relation of a plan, the id of its first attribute, and what is asked of its rows."""
    nodes, known = json.loads(plan.toJSON()), functions.nodes(plan)
    of: dict[int, str] = {}
    first: dict[int, int] = {}
    filters: dict[int, Predicate] = {}
    for relation in relations_of(nodes):
        view = _view_of(views, known.get(relation.place))
        if view is not None:
            own = {i: columns[view][name] for i, name in relation.names.items() if name in columns[view]}
            of[relation.place], first[relation.place] = view, next(iter(relation.names))
            filters[relation.place] = all_of(
                implied_filter(condition, own, _RawValues(functions, known.get(place)))
                for place, condition in relation.conditions
            )
    joined = dict(filters)
    for each in joined_columns(nodes):
        if each.place in of and all(place in of and _leaves_out_keys(filters[place]) for place, _ in each.others):
            joined[each.place] &= _partners(each, of, filters, columns, keys)
    return ((view, first[place], joined[place]) for place, view in of.items())


def _leaves_out_keys(predicate: Predicate) -> bool:
    """Whether a filter asks for more than that columns, as those of joins, are not null."""
    conditions = predicate.children if isinstance(predicate, And) else (predicate,)
    return any(each != TRUE and not (isinstance(each, Not) and isinstance(each.child, IsNull)) for each in conditions)


def _partners(
    joined: JoinedColumn, of: Mapping[int, str], filters: Mapping[int, Predicate], columns: Columns, keys: Keys
) -> Predicate:
    """A filter of a column by the values of those that it is joined with; `TRUE` where there is none."""
    column = columns[of[joined.place]].get(joined.name)
    read: dict[tuple[str, str], list[Predicate]] = {}
    for place, name in joined.others:
        read.setdefault((of[place], name), []).append(filters[place])
    found = []
    for (view, name), wanted in read.items():
        other = columns[view].get(name)
        if column is None or other is None or column.type != other.type:
            return TRUE
        found.append(keys(view, any_of(dict.fromkeys(wanted)), other, column.name))
    return any_of(found)


def without_files(frame: DataFrame, views: Views, excluded: Mapping[str, Iterable[str]]) -> DataFrame:
    """A query that does not read some files.

    Args:
        frame: The query.
        views: The views.
        excluded: View -> the physical locations of the files that it is to be without.
    """
    spark = frame.sparkSession
    functions = java_functions(spark)
    analyzed = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
    others = functions.java("java.util.IdentityHashMap")()
    names = {view: {_name(spark_location(each)) for each in locations} for view, locations in excluded.items()}
    for view, leaf in _relations(analyzed, views):
        if view in names:
            others.put(leaf, _of_fewer_files(functions, leaf, names[view]))
    return _frame_of(spark, analyzed.transformDownWithSubqueries(functions.replacing(others)))


def _frame_of(spark: SparkSession, plan: JavaObject) -> DataFrame:
    datasets = java_functions(spark).java("org.apache.spark.sql.classic.Dataset")
    return DataFrame(datasets.ofRows(spark._jsparkSession, plan), spark)  # noqa: SLF001


def _relations(analyzed: JavaObject, views: Views) -> Iterator[tuple[str, JavaObject]]:
    """The relations of views in a plan and its subqueries."""
    for plan in (analyzed, *_each(analyzed.subqueriesAll())):
        for leaf in _each(plan.collectLeaves()):
            view = _view_of(views, leaf) if leaf.getClass().getName() == RELATION else None
            if view is not None:
                yield view, leaf


def _view_of(views: Views, relation: JavaObject) -> str | None:
    """The view that a logical relation is of; None for other relations."""
    of = relation.relation()
    if of.getClass().getName() != _FILES:
        return None
    found: str | None = views.get(of.location())
    return found


def _of_fewer_files(functions: JavaFunctions, leaf: JavaObject, excluded: Collection[str]) -> JavaObject:
    """A relation with the same columns, without these files; without rows if none are left."""
    relation = leaf.relation()
    listed = str(relation.location().rootPaths().mkString(_SEPARATOR)).split(_SEPARATOR)
    left = [name for name in listed if _name(name) not in excluded]
    if not left:
        empty = functions.java("org.apache.spark.sql.catalyst.plans.logical.LocalRelation")
        return empty(leaf.output(), leaf.output().take(0), False, functions.java("scala.Option").empty())
    reader = relation.sparkSession().read().schema(relation.schema()).options(relation.options())
    paths = functions.java("java.util.regex.Pattern").compile(_SEPARATOR).split(_SEPARATOR.join(left))
    fewer = reader.parquet(paths).queryExecution().analyzed().relation()
    return leaf.copy(fewer, leaf.output(), leaf.catalogTable(), leaf.isStreaming(), leaf.stream())


def _name(location: str) -> str:
    """A location as Hadoop's `Path` spells it."""
    scheme, _, rest = location.partition(":")
    return f"{scheme}:{re.sub('/+', '/', rest)}" if "//" in rest else location


def _each(of: JavaObject) -> list[JavaObject]:
    """The elements of a sequence of Scala's."""
    return [of.apply(place) for place in range(of.size())]


class _RawValues:
    """`icebench.engine.spark.query_filters.RawValues` of the condition of a filter."""

    def __init__(self, functions: JavaFunctions, above: JavaObject) -> None:
        self._functions, self._above = functions, above

    @cached_property
    def _nodes(self) -> JavaObject:
        return self._functions.nodes(self._above.condition())

    def __call__(self, place: int) -> Sequence[object]:
        node = self._nodes.get(place)
        if node.getClass().getSimpleName() == "Literal":
            return [node.value()]
        values = node.hset()
        texts: list[str] = str(values.mkString(_SEPARATOR)).split(_SEPARATOR)
        # Nothing is equal to null, and a text with the separator in it is two here.
        return [] if values.contains(None) or len(texts) != values.size() else texts
