"""Whether a table can read a file, before it refers to it.

Types are compared by the projection of the read path, applied to a table without rows: what that refuses at any depth
is refused here. A projection takes moments for local times and the reverse, which specification and Iceberg Java
never convert; here they are refused.

Only values show some of it (see `icebench.engine.columnar.projection.depends_on_values`), such as whether nanoseconds
are whole microseconds; bounds of a footer would not. Columns of such types are read and projected; no others are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.types as pat

from icebench.engine.columnar.projection import MissingValues, Projector, depends_on_values
from icebench.engine.columnar.schemas import field_id_of, to_arrow_type
from icebench.engine.errors import CorruptTable, Invalid, Unsupported
from icebench.engine.formats.parquet.source import ParquetSource
from icebench.engine.formats.source import Source
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import NestedField, PrimitiveType, StructType

_ROWS = 1 << 16
"""Rows that are projected at a time."""


def check_readable(source: Source, schema: Schema) -> None:
    """Check that a table can read all rows of an open file.

    Args:
        source: The file, opened for any columns.
        schema: The table's.

    Raises:
        Invalid: The file has no values of a required column, or nulls according to its footer.
        Unsupported: A column is stored in a type, or has values, that cannot be read as the table's type.
        CorruptTable: The file is damaged.
    """
    trial = _Trial(
        missing=_Required(source.location) if source.num_rows else MissingValues(), ambiguous=source.ambiguous_zones()
    )
    if isinstance(source, ParquetSource):
        source.check_nanoseconds(schema.ids_of_nanoseconds)
    with _refusing(source.location):
        trial.table(source.columns.schema.empty_table(), schema)
    _check_nulls(source, schema)
    if trial.doubtful:
        tops = {schema.path_of(field_id)[0] for field_id in trial.doubtful}
        wanted = Schema(tuple(f for f in schema.fields if f.name in tops))
        for group in source.row_groups:
            for rows in source.batches(group.index, wanted, rows=_ROWS) if group.num_rows else ():
                with _refusing(source.location):
                    trial.table(rows, wanted)


@dataclass(frozen=True, kw_only=True)
class _Trial(Projector):
    """Projects what the read path could read.

    Args:
        ambiguous: See `Source.ambiguous_zones`.

    Attributes:
        doubtful: The ids of columns, at any depth, of which only values show whether they can be read.
    """

    ambiguous: Collection[int]
    doubtful: set[int] = field(default_factory=set)

    def array(
        self, array: pa.Array, source: pa.Field, target: NestedField, name: str, wanted: pa.DataType | None = None
    ) -> pa.Array:
        made = super().array(array, source, target, name, wanted)
        if isinstance(target.type, PrimitiveType):
            type_ = to_arrow_type(target.type)
            is_known = target.field_id not in self.ambiguous
            if is_known and pat.is_timestamp(type_) and _has_zone(source.type) not in (None, type_.tz is not None):
                which = "local times are no moments" if type_.tz else "moments are no local times"
                raise CorruptTable(
                    f"column {name!r} is stored as {source.type} and can not be read as {type_}: {which}"
                )
            if depends_on_values(source.type, type_):
                self.doubtful.add(target.field_id)
        return made


def _has_zone(type_: pa.DataType) -> bool | None:
    """Whether values are moments, not local times; None if they are neither."""
    if pat.is_dictionary(type_):
        return _has_zone(type_.value_type)
    if pat.is_timestamp(type_):
        return type_.tz is not None
    return False if pat.is_date(type_) else None


@dataclass(frozen=True)
class _Required:
    """As `MissingValues`, but of any number of rows a required column must not be missing."""

    location: str

    def __call__(self, field_: NestedField, name: str, length: int) -> pa.Array:
        try:
            return MissingValues()(field_, name, length + 1).slice(0, length)
        except CorruptTable as error:
            raise Invalid(f"{self.location}: {error.reason}") from error


@contextmanager
def _refusing(location: str) -> Iterator[None]:
    """Context of projecting decoded rows: what cannot be projected is not damaged, it is of other types."""
    try:
        yield
    except CorruptTable as error:
        raise Unsupported(f"{location}: {error.reason}") from error


def _check_nulls(source: Source, schema: Schema) -> None:
    """Raise Invalid if the footer counts nulls of a required column. Those of a field in an optional struct may be
    nulls of the struct."""
    if not isinstance(source, ParquetSource):
        return
    required = set(_never_null(schema.fields))
    for leaf in source.columns.leaves if required else ():
        field_id = field_id_of(leaf.field)
        if field_id not in required or leaf.repeated:
            continue
        stored = source.footer.schema.column(leaf.index).physical_type
        found = [source.chunks.statistics(group.index, leaf.index, stored) for group in source.row_groups]
        nulls = sum(each.nulls or 0 for each in found if each is not None)
        if nulls:
            some = f"{nulls} null" + ("s" if nulls > 1 else "")
            raise Invalid(f"{source.location}: required column {schema.name_of[field_id]!r} has {some}")


def _never_null(fields: tuple[NestedField, ...]) -> Iterator[int]:
    """The ids of leaves of which no row is null: they and all that they are in are required."""
    for each in fields:
        if each.required and isinstance(each.type, StructType):
            yield from _never_null(each.type.fields)
        elif each.required and isinstance(each.type, PrimitiveType):
            yield each.field_id
