"""Updates the rows for which a filter is true."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from icebench.engine.columnar.batch_columns import combined
from icebench.engine.columnar.rows import table_rows
from icebench.engine.columnar.scalar_evaluation import evaluate
from icebench.engine.columnar.schemas import child_fields, storage_field, to_arrow_field, to_arrow_schema, to_arrow_type
from icebench.engine.commit.committer import TableState
from icebench.engine.commit.target import Target
from icebench.engine.errors import Invalid
from icebench.engine.expressions.literals import exact_value
from icebench.engine.expressions.scalar import SqlExpression
from icebench.engine.operations.delete import ScanOf
from icebench.engine.operations.executor_changes import ExecutorChanges
from icebench.engine.operations.row_changes import Mode, RowChange, chosen_mode
from icebench.engine.operations.row_writer import Matches, RowWriter
from icebench.engine.read.reader import read_files
from icebench.engine.runtime.counters import Counters
from icebench.engine.spec.metadata_columns import LAST_UPDATED
from icebench.engine.spec.properties import UPDATE_ISOLATION, UPDATE_MODE
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import MAIN, Snapshot
from icebench.engine.spec.types import GeospatialType, ListType, MapType, NestedField, PrimitiveType, StructType, Type
from icebench.engine.write.data_files import written_schema

Assignments = Mapping[str, Any] | Callable[[pa.RecordBatch], pa.RecordBatch]
"""Top-level column -> literal, expression, or a function from the rows (all columns, by name) to the column's new
values; or one function from the rows to as many rows. A literal is a value of the column's type, as it is in filters:
nothing is cut off, but floats are rounded. A string is a literal; `icebench.sql` makes an expression."""


def update(
    target: Target,
    scan_of: ScanOf,
    assignments: Assignments,
    *,
    mode: Mode | None = None,
    branch: str = MAIN,
    properties: Mapping[str, str] | None = None,
    executors: ExecutorChanges | None = None,
) -> tuple[TableState, Snapshot | None]:
    """Change the rows for which a scan's filter is true, in one snapshot. In format version 3 rows keep their ids.

    With ``write.update.isolation-level=serializable`` (the default) the commit fails if a concurrent one added rows
    that the filter may be true for; it always fails if one deleted or changed rows of the same data files.

    Args:
        target: The table.
        scan_of: Creates the scan of the branch whose filter selects the rows; its columns are ignored.
        assignments: The new values.
        mode: How; None means the table property ``write.update.mode``, ``copy-on-write`` by default.
        branch: The branch to change.
        properties: Entries for the snapshot summary.
        executors: Do the work, the functions of `assignments` included; None does it in this process.

    Returns:
        The table, and the snapshot; None if no row matched.

    Raises:
        Invalid: No such mode, no such column, values that do not fit it, or an expression that fails for a row.
        Unsupported: An expression on unsupported types, or a mode that the table's format version does not have.
        ValidationFailed: A concurrent commit conflicts with this one.
        CommitFailed: See `Target.commit`.
    """
    state = target.load()
    chosen = chosen_mode(mode, state.metadata, UPDATE_MODE)
    _check(assignments, state.metadata.schema)
    scan = scan_of(state.metadata)
    change = RowChange.of(
        target, scan, mode=chosen, isolation=UPDATE_ISOLATION, branch=branch, properties=properties, executors=executors
    )
    changed = change.changed_by_filter(UpdatedRows(assignments))
    if not changed:
        change.leave()
        return state, None
    return change.commit(changed)


@dataclass(frozen=True)
class UpdatedRows:
    """The matching rows with new values, and their row ids in format version 3."""

    assignments: Assignments

    def __call__(self, writer: RowWriter, matches: Matches) -> pa.RecordBatchReader:
        schema, projection = writer.metadata.schema, written_schema(writer.metadata)
        request = replace(writer.request, projection=projection)
        columns = [f.name for f in schema.fields]
        counters = writer.counters or Counters()

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in read_files(matches.files, request, runner=writer.runner, counters=counters):
                new = self._assigned(batch.select(columns), schema)
                arrays = [new.get(f.name, batch.column(place)) for place, f in enumerate(projection.fields)]
                for place, f in enumerate(projection.fields):
                    if f.field_id == LAST_UPDATED.field_id:
                        arrays[place] = pa.nulls(batch.num_rows, pa.int64())  # null: by this commit
                yield pa.RecordBatch.from_arrays(arrays, schema=request.arrow_schema)

        return pa.RecordBatchReader.from_batches(request.arrow_schema, batches())

    def _assigned(self, batch: pa.RecordBatch, schema: Schema) -> dict[str, pa.Array]:
        """The new columns of a batch."""
        fields = {f.name: f for f in schema.fields}
        if callable(self.assignments):
            made = self.assignments(batch)
            if not isinstance(made, pa.RecordBatch) or set(made.schema.names) != set(batch.schema.names):
                raise Invalid("the update's function must return a RecordBatch with the columns that it was given")
            new = {name: made.column(name) for name in made.schema.names}
        else:
            new = {name: _assign(value, batch, fields[name]) for name, value in self.assignments.items()}
        return {name: _fitting(column, fields[name], batch.num_rows) for name, column in new.items()}


def _check(assignments: Assignments, schema: Schema) -> None:
    """Raise Invalid for errors that do not depend on the rows, before any row is read."""
    if callable(assignments):
        return
    if not assignments:
        raise Invalid("an update assigns at least one column")
    fields = {f.name: f for f in schema.fields}
    arrow_schema = to_arrow_schema(schema)
    none = pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in arrow_schema], schema=arrow_schema)
    for name, value in assignments.items():
        schema.find(name)
        if name not in fields:
            raise Invalid(f"cannot assign {name!r}: only whole top-level columns can be assigned")
        if not callable(value):
            _fitting(_assign(value, none, fields[name]), fields[name], 0)


def _assign(value: Any, batch: pa.RecordBatch, field: NestedField) -> pa.Array:  # noqa: ANN401 - any literal
    if isinstance(value, SqlExpression):
        return evaluate(value, batch, batch.schema.field(field.name))
    return value(batch) if callable(value) else _literal(value, field, batch.num_rows)


def _fitting(column: object, field: NestedField, length: int) -> pa.Array:
    """The column as the table has it: matched, cast and completed as rows that are appended."""
    if isinstance(column, pa.ChunkedArray):
        column = combined(column)
    if not isinstance(column, pa.Array) or len(column) != length:
        raise Invalid(f"the values for column {field.name!r} must be an Arrow array of {length} values")
    given = pa.Table.from_arrays([column], names=[field.name])
    parts = [batch.column(0) for batch in table_rows(given, Schema((field,)))]
    return combined(pa.chunked_array(parts, to_arrow_type(field.type)))


def _literal(value: object, field: NestedField, length: int) -> pa.Array:
    arrow = storage_field(to_arrow_field(field))
    if value is None:
        return pa.nulls(length, arrow.type)
    if isinstance(value, np.datetime64):
        value = pa.scalar(value)
    try:
        if isinstance(value, pa.Scalar):
            single = pa.array([value])
        else:
            stored = _stored(value, field.type)
            single = pa.array([stored], _given_type([stored], arrow.type, field.name))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise Invalid(f"{value!r} is no value of column {field.name!r}, which is {field.type}: {error}") from error
    return single.take(pa.array([0] * length, pa.int32()))


def _stored(value: Any, type_: Type) -> object:  # noqa: ANN401 - any literal
    """A literal as Arrow stores it: left to itself, Arrow cuts numbers and times to fit. Fields that a struct type
    lacks are kept. Raises ValueError for what is no value of the type."""
    if isinstance(value, pa.Scalar | np.generic):
        value = value.as_py() if isinstance(value, pa.Scalar) else pa.scalar(value).as_py()
    if value is None:
        return None
    match type_:
        case StructType(fields) if isinstance(value, Mapping):
            types = {f.name: f.type for f in fields}
            return {key: _stored(own, types[key]) if key in types else own for key, own in value.items()}
        case ListType(element) if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
            return [_stored(own, element.type) for own in value]
        case MapType(key, item) if isinstance(value, Iterable) and not isinstance(value, str | bytes):
            entries = value.items() if isinstance(value, Mapping) else value
            return [(_stored(own, key.type), _stored(its, item.type)) for own, its in entries]
        case GeospatialType() | PrimitiveType(name="variant"):
            return value
        case PrimitiveType():
            is_uuid = type_.name == "uuid" and isinstance(value, bytes)
            found = uuid.UUID(bytes=value) if is_uuid else exact_value(type_, value)
            return found.bytes if isinstance(found, uuid.UUID) else found
    raise ValueError(f"{value!r} is no {type_}")


def _given_type(values: Iterable[Any], type_: pa.DataType, name: str) -> pa.DataType:
    """The type with those fields of structs that the values have: pyarrow ignores fields that the type lacks."""
    present = [value for value in values if value is not None]
    if pat.is_struct(type_) and present and all(isinstance(value, Mapping) for value in present):
        given = {key: f"{name}.{key}" for value in present for key in value}
        known = {f.name: f for f in child_fields(type_)}
        for key, full_name in given.items():
            if key not in known:
                raise Invalid(f"column {full_name!r} is not in the table; the columns are {', '.join(known)}")
        own = ((f, [value.get(f.name) for value in present]) for f in known.values() if f.name in given)
        return pa.struct([f.with_type(_given_type(inner, f.type, given[f.name])) for f, inner in own])
    if pat.is_list(type_):
        element = type_.value_field
        inner = _given_type((each for value in present for each in value), element.type, f"{name}.element")
        return pa.list_(element.with_type(inner))
    if pat.is_map(type_):
        entries = [entry for value in present for entry in (value.items() if isinstance(value, Mapping) else value)]
        item = type_.item_field
        inner = _given_type((entry for _, entry in entries), item.type, f"{name}.value")
        return pa.map_(type_.key_field, item.with_type(inner))
    return type_
