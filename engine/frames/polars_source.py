"""A scan as a LazyFrame of Polars, which pushes columns, filters and limits into the plan."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from icebench.engine.columnar.batch_columns import no_rows
from icebench.engine.columnar.projection import cast_leaves
from icebench.engine.columnar.schemas import storage_field
from icebench.engine.expressions import predicate
from icebench.engine.expressions.predicate import MIRRORED, TRUE, Operator, Predicate
from icebench.engine.expressions.temporal_literals import NANOS_PER_DAY, TemporalLiteral
from icebench.engine.frames.lazy_scan import LazyScan, pushed
from icebench.engine.lazy_module import LazyModule
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.values import decimal_of

pl = LazyModule("polars")
plugins = LazyModule("polars.io.plugins")

_OPERATORS: dict[str, Operator] = {"Eq": "=", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_INTEGERS = {"Int", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"}


def lazy_frame(scan: LazyScan) -> Any:  # noqa: ANN401 - of a package that need not be there
    """The scan as a `polars.LazyFrame`; each collection plans and reads anew.

    Polars' filter is applied to what the plan keeps, so that it decides which rows there are; what the engine knows of
    it prunes.
    """
    schema = scan.arrow_schema

    def source(
        columns: list[str] | None,
        filter: Any,  # noqa: ANN401 - a `polars.Expr`
        rows: int | None,
        batch_rows: int | None,
    ) -> Iterator[Any]:
        wanted = schema.names if columns is None else columns
        tested = () if filter is None else filter.meta.root_names()
        found: LazyScan = scan.narrowed(columns=[*wanted, *(name for name in tested if name not in wanted)])
        if filter is None:
            found = found.narrowed(limit=rows)
        else:
            found, _ = pushed(found, pushed_filter(filter, schema))
        left = rows
        for batch in found.to_batches(batch_rows=batch_rows):
            frame = pl.from_arrow(_storage(pa.Table.from_batches([batch]), found.schema))
            if filter is not None:
                frame = frame.filter(filter)
            frame = frame.select(wanted)
            yield frame if left is None else frame.head(left)
            left = None if left is None else left - len(frame)
            if left is not None and left <= 0:
                return

    empty = pl.from_arrow(_storage(no_rows(schema), scan.schema))
    return plugins.register_io_source(source, schema=empty.schema)


def _storage(rows: pa.Table, schema: Schema) -> pa.Table:
    """The rows with extension types, such as uuid, as what they store."""
    return cast_leaves(rows, schema, pa.schema([storage_field(field) for field in rows.schema]))


def pushed_filter(filter: Any, schema: pa.Schema) -> Predicate:  # noqa: ANN401 - a `polars.Expr`
    """What a filter of Polars says in the engine's words: true wherever it is true, and often nowhere else."""
    try:
        tree = json.loads(filter.meta.serialize(format="json"))
    except ValueError:
        return TRUE  # a Python function has no tree
    return _implied(tree, schema)


def _implied(tree: Any, schema: pa.Schema) -> Predicate:  # noqa: ANN401 - JSON
    match tree:
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
            return _implied(left, schema) & _implied(right, schema)
        case {"BinaryExpr": {"left": left, "op": "Or" | "LogicalOr", "right": right}}:
            return _implied(left, schema) | _implied(right, schema)
        case {"BinaryExpr": {"left": {"Column": str() as name}, "op": str() as op, "right": {"Literal": literal}}}:
            return _compared(name, _OPERATORS.get(op), literal, schema)
        case {"BinaryExpr": {"left": {"Literal": literal}, "op": str() as op, "right": {"Column": str() as name}}}:
            operator = _OPERATORS.get(op)
            return _compared(name, None if operator is None else MIRRORED[operator], literal, schema)
        case {"Function": {"input": [{"Column": str() as name}, *arguments], "function": function}}:
            return _tested(name, function, arguments, schema)
    return TRUE


def _tested(name: str, function: Any, arguments: list[Any], schema: pa.Schema) -> Predicate:  # noqa: ANN401 - JSON
    match function, arguments:
        case {"Boolean": "IsNull"}, []:
            return predicate.is_null(name)
        case {"Boolean": "IsNotNull"}, []:
            return predicate.not_null(name)
        case {"Boolean": {"IsBetween": _}}, [{"Literal": low}, {"Literal": high}]:
            return _compared(name, ">=", low, schema) & _compared(name, "<=", high, schema)
        case {"StringExpr": "StartsWith"}, [{"Literal": {"Scalar": {"String": prefix}} | {"Dyn": {"Str": prefix}}}]:
            return predicate.starts_with(name, prefix)
        case {"Boolean": {"IsIn": {"nulls_equal": False}}}, [{"Literal": {"Scalar": {"List": [*stream]}}}]:
            column = pa.ipc.open_stream(bytes(stream)).read_all().column(0)
            type_ = schema.field(name).type
            if column.type.equals(type_) or (pat.is_integer(column.type) and pat.is_integer(type_)):
                values = column.drop_null().to_pylist()
                if not any(isinstance(value, float) and math.isnan(value) for value in values):
                    return predicate.is_in(name, values)
    return TRUE


def _compared(name: str, operator: Operator | None, literal: Any, schema: pa.Schema) -> Predicate:  # noqa: ANN401
    """A comparison that Polars makes without changing the column's values."""
    if operator is None:
        return TRUE
    value = _value(literal, schema.field(name).type)
    return TRUE if value is None else predicate.compare(name, operator, value)


def _value(literal: Any, type_: pa.DataType) -> Any:  # noqa: ANN401 - JSON, and a literal
    match literal:
        case {"Scalar": {**held}} | {"Dyn": {**held}} if len(held) == 1:
            kind, value = next(iter(held.items()))
        case _:
            return None
    match kind, value:
        case "Decimal", [int() as unscaled, int(), int() as scale] if pat.is_decimal(type_):
            return decimal_of(unscaled, scale)
        case "Date", int() if pat.is_date(type_):
            return TemporalLiteral("date", value * NANOS_PER_DAY)
        case "Datetime", [int() as count, "Microseconds", zone] if pat.is_timestamp(type_) and type_.unit == "us":
            if (zone is None) == (type_.tz is None):
                return TemporalLiteral("timestamp" if zone is None else "timestamptz", count * 1000)
        case _, int() if kind in _INTEGERS and pat.is_integer(type_):
            return value
        case (("Float" | "Float64"), int() | float()) if pat.is_float64(type_):
            return float(value)
        case (("String" | "Str"), str()) if pat.is_string(type_):
            return value
        case (("Boolean"), bool()) if pat.is_boolean(type_):
            return value
    return None
