"""What the optimized plan of a Spark query asks of the rows of its relations, as filters of the engine.

A plan is read from its JSON (`TreeNode.toJSON`): the nodes of a tree in pre-order, each with the number of its
children; an expression within a node is a list of the same form. The optimizer has brought the conditions of a query
to the `Filter` nodes right above a relation, has turned ``cast(ts as date) = date '2024-02-01'`` into a range of the
column, and has added what follows from joins.

A filter that is found here is implied by the query's: every row that the query keeps matches it. What cannot be
translated is left out of a conjunction, and ends everything else.

Rows of one relation may matter only where they have keys of another's: `joined_columns`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np

from icebench.engine.expressions.predicate import (
    MIRRORED,
    TRUE,
    Operator,
    Predicate,
    all_of,
    any_of,
    compare,
    is_in,
    is_nan,
    is_null,
    not_null,
    starts_with,
)
from icebench.engine.expressions.scalar import Argument
from icebench.engine.expressions.temporal_literals import NANOS_PER_DAY, TemporalLiteral, parse_temporal
from icebench.engine.spark.types import spark_type
from icebench.engine.spec.types import NestedField, PrimitiveType

Json: TypeAlias = Mapping[str, Any]

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
_FILTER, _JOIN = f"{_LOGICAL}Filter", f"{_LOGICAL}Join"
RELATION = "org.apache.spark.sql.execution.datasources.LogicalRelation"

_COMPARISONS: Mapping[str, Operator] = {
    "EqualTo": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_KEYED_JOINS = ("Inner", "LeftSemi")
"""Joins that need rows of neither side without a partner."""
_SIDES: Mapping[str, int] = {
    **dict.fromkeys(("LeftSemi", "LeftAnti"), 1),
    **dict.fromkeys(("Inner", "Cross", "LeftOuter", "RightOuter", "FullOuter"), 2),
}
"""Join -> how many of its sides it gives columns of. Of others (LeftSingle) a missing row may hide an error."""
_WHOLE = ("integer", "long")
_FLOATING = ("float", "double")
_NANOS_PER_MICRO = 1000

RawValues: TypeAlias = Callable[[int], Sequence[object]]
"""The values of the literal, or of the set of literals, that is the nth node of a condition, as Spark holds them, but
texts and decimals as text. They are asked for only where the JSON does not have them exactly."""


@dataclass(frozen=True, slots=True)
class RelationNode:
    """A relation of a plan, and the conditions of the filters right above it.

    Args:
        place: Its place among the nodes of the plan, in pre-order.
        names: Its columns by the ids of their attributes; in a condition they are named as the query spells them.
        conditions: The place of each filter, and its condition.
    """

    place: int
    names: Mapping[int, str]
    conditions: tuple[tuple[int, Sequence[Json]], ...]


def relations_of(nodes: Sequence[Json]) -> list[RelationNode]:
    """The relations of a plan.

    Args:
        nodes: The plan, as `TreeNode.toJSON` gives it.
    """
    parents = _parents(nodes)
    found = []
    for place, node in enumerate(nodes):
        if node["class"] == RELATION:
            above, conditions = parents[place], []
            while above is not None and nodes[above]["class"] == _FILTER:
                conditions.append((above, nodes[above]["condition"]))
                above = parents[above]
            names = {each["exprId"]["id"]: each["name"] for (each,) in node["output"]}
            found.append(RelationNode(place, names, tuple(conditions)))
    return found


ColumnOf: TypeAlias = tuple[int, str]
"""The place of a relation, and its column's name there."""


@dataclass(frozen=True, slots=True)
class JoinedColumn:
    """A column of a relation whose rows matter only if it has a value that one of some other columns has, in the rows
    that the conditions of their relations leave.

    Args:
        place: The place of the relation.
        name: Its column's name there.
        others: The other columns; several where a UNION is joined.
    """

    place: int
    name: str
    others: tuple[ColumnOf, ...]


def joined_columns(nodes: Sequence[Json]) -> list[JoinedColumn]:
    """The columns of relations that a plan joins by equality, both ways.

    Between a relation and the join are filters, projections, joins and UNION ALL alone: what else may be there (LIMIT,
    windows) gives other rows where some are missing.

    Args:
        nodes: The plan, as `TreeNode.toJSON` gives it.
    """
    tree = _Tree(nodes)
    found: list[JoinedColumn] = []
    for place, node in enumerate(nodes):
        if node["class"] != _JOIN or _join_type(node) not in _KEYED_JOINS or not node["condition"]:
            continue
        for pair in _equal_attributes(node["condition"]):
            one, two = (tree.sources_below(place, attribute) for attribute in pair)
            for own, other in ((one, two), (two, one)):
                if other.is_whole:
                    found.extend(JoinedColumn(*column, other.columns) for column in own.columns)
    return found


@dataclass(frozen=True, slots=True)
class _Sources:
    """Where the values of an attribute come from.

    Args:
        columns: Columns of relations whose rows give no other value than that of the column, or null.
        is_whole: Whether all values but null are from these.
    """

    columns: tuple[ColumnOf, ...] = ()
    is_whole: bool = False


class _Tree:
    """The nodes of a plan, and what attributes stand for in them."""

    def __init__(self, nodes: Sequence[Json]) -> None:
        self._nodes = nodes
        self._children = _children(nodes)

    def sources_below(self, place: int, attribute: int) -> _Sources:
        """The sources of an attribute in the condition of the join at `place`."""
        return _of_one(self.sources(child, attribute) for child in self._children[place])

    def sources(self, place: int, attribute: int) -> _Sources:
        """The sources of an attribute of the rows of the node at `place`."""
        node, children = self._nodes[place], self._children[place]
        match _kind(node):
            case "LogicalRelation":
                names = [each["name"] for (each,) in node["output"] if each["exprId"]["id"] == attribute]
                return _Sources(((place, names[0]),), is_whole=True) if names else _Sources()
            case "Filter":
                return self.sources(children[0], attribute)
            case "Project":
                below = next((_renamed(e) for e in node["projectList"] if e[0]["exprId"]["id"] == attribute), None)
                return _Sources() if below is None else self.sources(children[0], below)
            case "Join":
                given = children[: _SIDES.get(_join_type(node), 0)]
                return _of_one(self.sources(child, attribute) for child in given)
            case "Union":
                return self._of_union(children, attribute)
        return _Sources()

    def _of_union(self, parts: Sequence[int], attribute: int) -> _Sources:
        """A UNION has the attributes of its first part; those of others have the same places."""
        attributes = [self._attributes(part) for part in parts]
        first = attributes[0]
        if first is None or first.count(attribute) != 1:
            return _Sources()
        number = first.index(attribute)
        found = [
            _Sources() if own is None else self.sources(part, own[number])
            for part, own in zip(parts, attributes, strict=True)
        ]
        columns = tuple(column for each in found for column in each.columns)
        return _Sources(columns, is_whole=all(each.is_whole for each in found))

    def _attributes(self, place: int) -> list[int] | None:
        """The ids of the attributes of a node's rows; None where they are not known."""
        node, children = self._nodes[place], self._children[place]
        match _kind(node):
            case "LogicalRelation":
                return [each["exprId"]["id"] for (each,) in node["output"]]
            case "Filter" | "Union":
                return self._attributes(children[0])
            case "Join" if _SIDES.get(_join_type(node)) == 1:
                return self._attributes(children[0])
            case "Project":
                return [each[0]["exprId"]["id"] for each in node["projectList"]]
        return None


def _of_one(sides: Iterable[_Sources]) -> _Sources:
    """The sources of an attribute that one side of a join has."""
    found = [each for each in sides if each.columns]
    return found[0] if len(found) == 1 else _Sources()


def _renamed(expression: Sequence[Json]) -> int | None:
    """The id of the attribute that an expression of a projection is, or is another name for; None of any other."""
    match [_kind(each) for each in expression]:
        case ["AttributeReference"] | ["Alias", "AttributeReference"]:
            attribute: int = expression[-1]["exprId"]["id"]
            return attribute
    return None


def _equal_attributes(condition: Sequence[Json]) -> list[tuple[int, int]]:
    """The ids of the pairs of attributes that a condition, a conjunction, has equal."""
    children, waiting, found = _children(condition), [0], []
    while waiting:
        place = waiting.pop()
        match _kind(condition[place]), children[place]:
            case "And", parts:
                waiting.extend(parts)
            case "EqualTo", [left, right]:
                pair = condition[left], condition[right]
                if all(_kind(node) == "AttributeReference" for node in pair):
                    found.append((pair[0]["exprId"]["id"], pair[1]["exprId"]["id"]))
    return found


def _join_type(node: Json) -> str:
    of: str = node["joinType"].get("object", "")
    return of.rpartition(".")[2].removesuffix("$")


def implied_filter(condition: Sequence[Json], columns: Mapping[int, NestedField], raw: RawValues) -> Predicate:
    """A filter that is true of every row for which a condition is; `TRUE` where nothing can be said.

    Args:
        condition: The condition, as `TreeNode.toJSON` gives it.
        columns: The table's columns by the ids of the relation's attributes.
        raw: Values that the JSON does not have exactly.
    """
    return _Translation(condition, columns, raw).implied(0)


class _Translation:
    def __init__(self, nodes: Sequence[Json], columns: Mapping[int, NestedField], raw: RawValues) -> None:
        self._nodes = nodes
        self._columns = columns
        self._raw = raw
        self._children = _children(nodes)

    def implied(self, place: int) -> Predicate:
        """What follows from the expression being true."""
        children = self._children[place]
        match self._kind(place):
            case "And":
                return all_of(self.implied(child) for child in children)
            case "Or":
                return any_of(self.implied(child) for child in children)
        found = self._exact(place)
        return TRUE if found is None else found

    def _exact(self, place: int) -> Predicate | None:
        """What is true, false and null where an expression without AND and OR is; None where it cannot be said."""
        children, kind = self._children[place], self._kind(place)
        if kind == "Not":  # Spark brings it to the leaves
            child = self._exact(children[0])
            return None if child is None else ~child
        if kind in _COMPARISONS:
            return self._comparison(children, _COMPARISONS[kind])
        column = self._column(children[0] if children else place)
        return None if column is None else self._test(kind, column, place)

    def _test(self, kind: str, column: NestedField, place: int) -> Predicate | None:
        """`_exact` of an expression whose first operand is a column, or that is one."""
        children = self._children[place]
        match kind:
            case "AttributeReference":
                return compare(column.name, "=", True) if self._type(column) == "boolean" else None
            case "IsNull":
                return is_null(column.name)
            case "IsNotNull":
                return not_null(column.name)
            case "IsNaN":
                return is_nan(column.name)
            case "EqualNullSafe":
                equal = self._comparison(children, "=")
                return None if equal is None else equal & not_null(column.name)
            case "StartsWith" if self._type(column) == "string":
                prefix = self._values(children[1], column)
                return starts_with(column.name, str(prefix[0])) if prefix else None
            case "In":
                lists = [self._values(child, column) for child in children[1:]]
                return None if None in lists else is_in(column.name, [v for each in lists for v in each or ()])
            case "InSet":
                values = self._given(self._type(column), self._raw(place))
                return None if values is None else is_in(column.name, values)
        return None

    def _comparison(self, children: Sequence[int], operator: Operator) -> Predicate | None:
        left, right = children
        column = self._column(left)
        if column is None:
            column, right, operator = self._column(right), left, MIRRORED[operator]
        values = None if column is None else self._values(right, column)
        return None if column is None or not values else compare(column.name, operator, values[0])

    def _column(self, place: int) -> NestedField | None:
        """The column that an expression is; None for any other expression."""
        node, children = self._nodes[place], self._children[place]
        if self._kind(place) == "NaNvl":  # of a column and itself, as scans give floating-point columns
            both = [self._column(child) for child in children]
            return both[0] if both[0] == both[1] else None
        if self._kind(place) != "AttributeReference":
            return None
        column = self._columns.get(node["exprId"]["id"])
        return column if column is not None and node["dataType"] == self._type(column) else None

    def _values(self, place: int, column: NestedField) -> Sequence[Argument] | None:
        """The value of a literal of a column's type; None for null, and for everything else."""
        node, of = self._nodes[place], self._type(column)
        if self._kind(place) != "Literal" or node["value"] is None or of is None or node["dataType"] != of:
            return None
        if of in ("timestamp", "timestamp_ntz"):  # the JSON has it in the time zone of a session
            return self._given(of, self._raw(place))
        if of == "date":
            return [parse_temporal(node["value"])]
        return self._given(of, [node["value"]])

    def _given(self, of: str | None, values: Sequence[object]) -> Sequence[Argument] | None:
        """Values of one of Spark's types, of the JSON or as Spark holds them; None if none are given, or NaN is."""
        texts = [str(value) for value in values]
        if of is None or not texts or any(text == "NaN" for text in texts):
            return None
        if of in _WHOLE:
            return [int(text) for text in texts]
        if of in _FLOATING:  # a Decimal is compared exactly
            return [Decimal(float(np.float32(text) if of == "float" else text)) for text in texts]
        if of == "boolean":
            return [text == "true" for text in texts]
        if of == "date":
            return [TemporalLiteral("date", int(text) * NANOS_PER_DAY) for text in texts]
        if of == "timestamp":
            return [TemporalLiteral("timestamptz", int(text) * _NANOS_PER_MICRO) for text in texts]
        if of == "timestamp_ntz":
            return [TemporalLiteral("timestamp", int(text) * _NANOS_PER_MICRO) for text in texts]
        if of == "string":  # the last is what Java makes of bytes that are no text
            return None if any("\ufffd" in text for text in texts) else texts
        return [Decimal(text) for text in texts] if of.startswith("decimal(") else None

    def _kind(self, place: int) -> str:
        return _kind(self._nodes[place])

    @staticmethod
    def _type(column: NestedField) -> str | None:
        """The type that Spark reads a column as, as its JSON has it; None for types whose values are not compared."""
        of = column.type
        if not isinstance(of, PrimitiveType) or of.name in ("uuid", "fixed", "binary", "unknown"):
            return None
        found = spark_type(of, column=column.name).jsonValue()
        assert isinstance(found, str)
        return found


def _kind(node: Json) -> str:
    name: str = node["class"]
    return name.rpartition(".")[2]


def _children(nodes: Sequence[Json]) -> list[list[int]]:
    """The places of each node's children."""
    found: list[list[int]] = [[] for _ in nodes]
    for place, parent in enumerate(_parents(nodes)):
        if parent is not None:
            found[parent].append(place)
    return found


def _parents(nodes: Sequence[Json]) -> list[int | None]:
    """The place of each node's parent, in a tree in pre-order."""
    found: list[int | None] = []
    waiting: list[list[int]] = []  # places and how many children are to come
    for place, node in enumerate(nodes):
        found.append(waiting[-1][0] if waiting else None)
        if waiting:
            waiting[-1][1] -= 1
        while waiting and not waiting[-1][1]:
            waiting.pop()
        if node["num-children"]:
            waiting.append([place, node["num-children"]])
    return found
