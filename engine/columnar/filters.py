"""Evaluates a bound filter on a batch of rows.

Three-valued logic (Kleene): NaN equals itself and is above all numbers, -0.0 equals 0.0, text is ordered by its UTF-8
bytes. `tests/property/evaluate.py` says the same row by row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from icebench.engine.codec.array_views import boolean_array
from icebench.engine.columnar.batch_columns import column_by_id, no_rows
from icebench.engine.columnar.decimals import is_narrow, unscaled, widen
from icebench.engine.columnar.scalar_evaluation import evaluate_condition, put_together
from icebench.engine.columnar.scalars import FALSE, to_arrow_array, to_arrow_scalar
from icebench.engine.columnar.schemas import storage_of, to_arrow_schema
from icebench.engine.expressions.bound import (
    BoundAnd,
    BoundCompare,
    BoundComputed,
    BoundConstant,
    BoundIn,
    BoundIsNaN,
    BoundIsNull,
    BoundLeaf,
    BoundOr,
    BoundPredicate,
    BoundStartsWith,
    Column,
    tests_of_rows,
)
from icebench.engine.expressions.predicate import Operator
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import PrimitiveType
from icebench.engine.spec.values import Value

_COMPARE: dict[Operator, Callable[[Any, Any], Any]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def row_mask(batch: pa.RecordBatch | pa.Table, bound: BoundPredicate, schema: Schema) -> pa.BooleanArray:
    """A mask that is true where the filter is true, and false where it is false or null; never null.

    Args:
        batch: The filter's columns, and perhaps others, in the table's types, with field ids.
        bound: The filter.
        schema: The schema that its column ids refer to.
    """
    mask = outcomes(batch, bound, schema)
    return pc.fill_null(mask, FALSE) if mask.null_count else mask


def outcomes(batch: pa.RecordBatch | pa.Table, bound: BoundPredicate, schema: Schema) -> pa.BooleanArray:
    """The outcome of the filter for each row: true, false or null. Arguments as for `row_mask`."""
    match bound:
        case BoundConstant(value):
            return boolean_array(np.full(batch.num_rows, value))
        case BoundAnd(children):
            return _combined(pc.and_kleene, batch, children, schema)
        case BoundOr(children):
            return _combined(pc.or_kleene, batch, children, schema)
        case BoundComputed(tree, columns):
            return evaluate_condition(tree, _values(batch, columns, schema))
        case BoundLeaf(column):
            return _leaf(bound, _plain(column_by_id(batch, schema, column.field_id)))
    raise TypeError(f"{bound!r} is not a bound filter")


def _combined(
    kernel: Callable[[Any, Any], Any],
    batch: pa.RecordBatch | pa.Table,
    children: Sequence[BoundPredicate],
    schema: Schema,
) -> pa.BooleanArray:
    """AND or OR of all children. Expressions come last and are evaluated only for rows that the others leave open: a
    condition may guard a division."""
    ordered = sorted(children, key=lambda child: bool(tests_of_rows(child)))
    found = outcomes(batch, ordered[0], schema)
    decisive = kernel is pc.or_kleene
    for child in ordered[1:]:
        if not tests_of_rows(child):
            found = kernel(found, outcomes(batch, child, schema))
            continue
        is_open = pc.fill_null(pc.not_equal(found, decisive), True).to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(is_open)
        decided = kernel(found.take(pa.array(rows)), outcomes(batch.take(pa.array(rows)), child, schema))
        found = put_together([np.flatnonzero(~is_open), rows], [found.filter(pa.array(~is_open)), decided], "a filter")
    return found


def _values(batch: pa.RecordBatch | pa.Table, columns: Sequence[Column], schema: Schema) -> pa.RecordBatch:
    """Columns of an expression by their full names, in the types that compute functions support."""
    found = {"": pa.nulls(batch.num_rows)}  # an expression without columns has rows, too
    for column in columns:
        values = column_by_id(batch, schema, column.field_id)
        if is_narrow(values.type):
            values = widen(values, pa.decimal128(values.type.precision, values.type.scale))
        found[column.name] = storage_of(values)
    return pa.RecordBatch.from_pydict(found)


def check_filter(bound: BoundPredicate, schema: Schema) -> None:
    """Raise what the types of columns in expressions are unfit for: Invalid or Unsupported."""
    for test in tests_of_rows(bound):
        rows = no_rows(to_arrow_schema(schema.select([column.field_id for column in test.columns])))
        outcomes(rows, test, schema)


def _plain(values: pa.Array) -> pa.Array:
    """The array in a type that compute functions support: storage of extension types, unscaled integers of narrow
    decimals."""
    return unscaled(values) if is_narrow(values.type) else storage_of(values)


def _constants(values: pa.Array, type_: PrimitiveType, constants: Sequence[Value | None]) -> pa.Array:
    """Constants of the filter in the type of `values`."""
    return _plain(to_arrow_array(type_, constants, narrow=pat.is_integer(values.type)))


def _leaf(leaf: BoundLeaf, values: pa.Array) -> pa.BooleanArray:
    match leaf:
        case BoundIsNull(negated=negated):
            return values.is_valid() if negated else values.is_null()
        case BoundIsNaN(negated=negated):
            nan = pc.fill_null(pc.is_nan(values), FALSE)
            return pc.invert(nan) if negated else nan
        case BoundCompare(column, operator, value):
            return _compare(values, operator, column.primitive, value)
        case BoundIn(column, members, negated):
            return _is_in(values, column.primitive, members, negated=negated)
        case BoundStartsWith(prefix=prefix, negated=negated):
            if pat.is_fixed_size_binary(values.type):
                values = values.cast(pa.binary())  # Arrow finds no prefixes of fixed-size values
            found = pc.starts_with(values, prefix)
            return pc.invert(found) if negated else found
    raise TypeError(f"{leaf!r} is not a leaf of a bound filter")


def _compare(values: pa.Array, operator: Operator, type_: PrimitiveType, value: Value) -> pa.BooleanArray:
    if pat.is_floating(values.type):
        assert isinstance(value, float)
        return _compare_floats(values, operator, type_, value)
    return _COMPARE[operator](values, _constants(values, type_, [value])[0])


def _compare_floats(values: pa.Array, operator: Operator, type_: PrimitiveType, value: float) -> pa.BooleanArray:
    nan = pc.is_nan(values)
    if math.isnan(value):
        match operator:
            case "=" | ">=":
                return nan
            case "!=" | "<":
                return pc.invert(nan)
            case "<=":
                return pc.or_(nan, pc.invert(nan))
            case ">":
                return pc.and_not(nan, nan)
    found = _COMPARE[operator](values, to_arrow_scalar(type_, value))
    return pc.or_(found, nan) if operator in (">", ">=") else found


def _is_in(values: pa.Array, type_: PrimitiveType, members: tuple[Value, ...], *, negated: bool) -> pa.BooleanArray:
    wanted: list[Value | None] = list(members)
    if pat.is_floating(values.type) and 0.0 in members:
        # Arrow looks values up by their bits, and zero has two.
        wanted += [0.0, -0.0]
    found = pc.is_in(values, value_set=_constants(values, type_, wanted))
    if negated:
        found = pc.invert(found)
    return pc.if_else(values.is_valid(), found, pa.scalar(None, pa.bool_())) if values.null_count else found
