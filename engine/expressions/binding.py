"""Binds a filter to a schema: names become field ids, literals internal values, and NOT is pushed to the leaves."""

from __future__ import annotations

from collections.abc import Sequence

from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.expressions.bound import (
    BOUND_FALSE,
    BoundCompare,
    BoundComputed,
    BoundConstant,
    BoundIn,
    BoundIsNaN,
    BoundIsNull,
    BoundPredicate,
    BoundStartsWith,
    Column,
    conjunction,
    disjunction,
)
from icebench.engine.expressions.computed_ranges import range_of
from icebench.engine.expressions.literals import Place, place, valid_text
from icebench.engine.expressions.predicate import (
    NEGATED,
    And,
    Compare,
    Computed,
    Constant,
    In,
    IsNaN,
    IsNull,
    Not,
    Operator,
    Or,
    Predicate,
    StartsWith,
)
from icebench.engine.expressions.scalar import Call, LiteralValue, Node, columns_of, with_columns
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import INCOMPARABLE, UNKNOWN, ListType, MapType, PrimitiveType, Type
from icebench.engine.spec.values import Value


def bind(predicate: Predicate, schema: Schema, *, case_sensitive: bool = True) -> BoundPredicate:
    """Bind a filter to a schema, in the form that `icebench.engine.expressions.bound` describes.

    The bound filter is true for exactly the rows for which the filter is true. Comparisons with literals that are no
    value of the column's type are rewritten, so evaluating a bound filter never fails on a value.

    Raises:
        Invalid: No such column, an ambiguous name, a column inside a list or map, or a literal of another kind.
        Unsupported: Comparison of a type that has no order, or a test of a nested column other than for null.
    """
    return _Binder(schema, case_sensitive=case_sensitive).bind(predicate, negated=False)


def bound_column(schema: Schema, field_id: int) -> Column:
    """The column of that id for a bound filter.

    Raises:
        Invalid: It is inside a list or a map, so a row has no single value of it.
    """
    parent = schema.parent_of.get(field_id)
    while parent is not None:
        if isinstance(schema.by_id[parent].type, (ListType, MapType)):
            raise Invalid(f"column {schema.name_of[field_id]!r} is inside a list or map and cannot be filtered")
        parent = schema.parent_of.get(parent)
    return Column(field_id, schema.name_of[field_id], schema.by_id[field_id].type)


class _Binder:
    def __init__(self, schema: Schema, *, case_sensitive: bool) -> None:
        self._schema = schema
        self._case_sensitive = case_sensitive

    def bind(self, predicate: Predicate, *, negated: bool) -> BoundPredicate:
        match predicate:
            case Constant(value):
                return BoundConstant(value != negated)
            case Not(child):
                return self.bind(child, negated=not negated)
            case And(children):
                return (disjunction if negated else conjunction)(self.bind(c, negated=negated) for c in children)
            case Or(children):
                return (conjunction if negated else disjunction)(self.bind(c, negated=negated) for c in children)
            case IsNull(name):
                return _is_null(self._column(name), negated=negated)
            case IsNaN(name):
                return self._is_nan(self._column(name), negated=negated)
            case Compare(name, operator, literal):
                return self._compare(self._column(name), NEGATED[operator] if negated else operator, literal)
            case In(name, literals):
                return self._in(self._column(name), literals, negated=negated)
            case StartsWith(name, prefix):
                return self._starts_with(self._column(name), prefix, negated=negated)
            case Computed(tree):
                ranges = range_of(tree, self._type_of)
                if ranges is not None:
                    return self.bind(ranges, negated=negated)
                return self._computed(Call("not", (tree,)) if negated else tree)
        raise TypeError(f"{predicate!r} is not a filter")

    def _column(self, name: str) -> Column:
        return bound_column(self._schema, self._schema.find(name, case_sensitive=self._case_sensitive).field_id)

    def _computed(self, tree: Node) -> BoundPredicate:
        columns = {path: self._column(".".join(path)) for path in columns_of(tree)}
        for column in columns.values():
            if isinstance(column.type, PrimitiveType) and column.type.name in INCOMPARABLE:
                raise Unsupported(f"comparison of column {column.name!r} of type {column.type}")
        return BoundComputed(
            with_columns(tree, lambda path: columns[path].name), tuple(dict.fromkeys(columns.values()))
        )

    def _type_of(self, path: tuple[str, ...]) -> Type:
        return self._column(".".join(path)).type

    def _compare(self, column: Column, operator: Operator, literal: LiteralValue) -> BoundPredicate:
        type_ = _comparable(column)
        if type_ == UNKNOWN:
            return BOUND_FALSE  # always null
        return _compare_at(column, operator, place(type_, literal, column.name))

    def _in(self, column: Column, literals: Sequence[LiteralValue], *, negated: bool) -> BoundPredicate:
        type_ = _comparable(column)
        if type_ == UNKNOWN:
            return BOUND_FALSE
        places = [place(type_, literal, column.name) for literal in literals]
        # -0.0 and 0.0 are one value: `+ 0.0` makes it the positive one.
        exact = [p.floor + 0.0 if isinstance(p.floor, float) else p.floor for p in places if p.exact]
        # Python orders text by code points, which is the order of its UTF-8 bytes, and uuids as unsigned bytes.
        values: list[Value] = sorted({v for v in exact if v is not None})
        match values:
            case []:
                return _always(column) if negated else BOUND_FALSE
            case [value]:
                return BoundCompare(column, "!=" if negated else "=", value)
            case _:
                return BoundIn(column, tuple(values), negated)

    def _starts_with(self, column: Column, prefix: str | bytes, *, negated: bool) -> BoundPredicate:
        type_ = _comparable(column)
        if type_ == UNKNOWN:
            return BOUND_FALSE
        if type_.name not in ("string", "binary", "fixed"):
            raise Invalid(f"column {column.name!r} is {type_}; only text and binary columns start with something")
        if not isinstance(prefix, str if type_.name == "string" else bytes):
            raise Invalid(f"column {column.name!r} is {type_} and cannot start with {prefix!r}")
        if isinstance(prefix, str):
            valid_text(prefix)
        if not prefix:
            return BOUND_FALSE if negated else _always(column)
        return BoundStartsWith(column, prefix, negated)

    def _is_nan(self, column: Column, *, negated: bool) -> BoundPredicate:
        if _comparable(column) == UNKNOWN:
            return BoundConstant(negated)
        if _comparable(column).name not in ("float", "double"):
            raise Invalid(f"column {column.name!r} is {column.type}; only float and double columns hold NaN")
        return BoundIsNaN(column, negated)


def _comparable(column: Column) -> PrimitiveType:
    if not isinstance(column.type, PrimitiveType):
        raise Unsupported(f"comparison of the nested column {column.name!r} of type {column.type}")
    return column.type


def _is_null(column: Column, *, negated: bool) -> BoundPredicate:
    if column.type == UNKNOWN:
        return BoundConstant(not negated)
    return BoundIsNull(column, negated)


def _always(column: Column) -> BoundPredicate:
    """True for every value, not for null."""
    return _is_null(column, negated=True)


def _compare_at(column: Column, operator: Operator, at: Place) -> BoundPredicate:
    """`column operator literal` for a literal at this place."""
    floor: Value | None = at.floor
    match operator, at.exact:
        case ("=", False):
            return BOUND_FALSE
        case ("!=", False):
            return _always(column)
        case ("<" | "<=", False):
            if floor is None:
                return BOUND_FALSE
            return _always(column) if at.last else BoundCompare(column, "<=", floor)
        case (">" | ">=", False):
            if floor is None:
                return _always(column)
            return BOUND_FALSE if at.last else BoundCompare(column, ">", floor)
    assert floor is not None
    return BoundCompare(column, operator, floor)
