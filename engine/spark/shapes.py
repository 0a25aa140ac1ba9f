"""Conversion of the columns of a group of files to the columns of a scan.

Almost all files have field ids, by which Spark finds their columns. Files of an import (`add_files`, a migrated Hive
table) have none: they are read by the names in the table's name mapping, and columns that they lack are added here:
values of identity partitions, defaults, nulls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from pyspark.sql import types as st

from icebench.engine.columnar.schemas import child_fields, field_id_of
from icebench.engine.deletes.files import FileRead
from icebench.engine.errors import Unsupported
from icebench.engine.formats.parquet.source import ParquetSource
from icebench.engine.read.request import ReadRequest
from icebench.engine.runtime.runner import Runner
from icebench.engine.spark.read_schema import ReadColumn
from icebench.engine.spark.types import null, quoted, read_field, spark_type, sql_literal, struct_of
from icebench.engine.spec.types import ListType, MapType, NestedField, PrimitiveType, StructType, Type
from icebench.engine.spec.values import Value


class Shape(Protocol):
    """What the files of one group have in common."""

    def read_fields(self, columns: Sequence[ReadColumn]) -> list[st.StructField]:
        """The fields to read with Spark's reader."""
        ...

    def completed(self, columns: Sequence[ReadColumn]) -> list[str] | None:
        """The columns of the scan as SQL over what the reader returns; None where they are what it returns."""
        ...


@dataclass(frozen=True)
class ById:
    """Files with field ids."""

    def read_fields(self, columns: Sequence[ReadColumn]) -> list[st.StructField]:
        return [read_field(c.field, c.name) for c in columns]

    def completed(self, columns: Sequence[ReadColumn]) -> list[str] | None:
        return None


@dataclass(frozen=True)
class ByName:
    """Files without field ids that have the same schema and partition values.

    Args:
        schema: The files' schema with the ids that the name mapping assigns.
        constants: Field id -> value of identity-partitioned columns.
    """

    schema: pa.Schema
    constants: Mapping[int, Value | None]

    def read_fields(self, columns: Sequence[ReadColumn]) -> list[st.StructField]:
        found = ((c.field, self._stored(c.field)) for c in columns)
        return [
            st.StructField(stored.name, _stored_type(stored, wanted.type, wanted.name), nullable=True)
            for wanted, stored in found
            if stored is not None
        ]

    def completed(self, columns: Sequence[ReadColumn]) -> list[str] | None:
        made = []
        for c in columns:
            stored = self._stored(c.field)
            column = self._missing(c.field) if stored is None else self._renamed(quoted(stored.name), stored, c.field)
            made.append(f"{column} AS {quoted(c.name)}")
        return made

    def _stored(self, wanted: NestedField) -> pa.Field | None:
        return next((f for f in self.schema if field_id_of(f) == wanted.field_id), None)

    def _missing(self, wanted: NestedField) -> str:
        type_ = wanted.type
        if isinstance(type_, PrimitiveType):
            value = self.constants.get(wanted.field_id, wanted.initial_default)
            if value is not None:
                return sql_literal(type_, value)
        return null(spark_type(type_, column=wanted.name))

    def _renamed(self, column: str, stored: pa.Field, wanted: NestedField) -> str:
        """A file's column with the requested names and fields, nested ones too."""
        inner = child_fields(stored.type)
        match wanted.type:
            case StructType(fields):
                by_id = {field_id_of(f): f for f in inner}
                made = []
                for f in fields:
                    own = by_id.get(f.field_id)
                    part = self._missing(f) if own is None else self._renamed(f"{column}.{quoted(own.name)}", own, f)
                    made.append((f.name, part))
                return struct_of(column, made)
            case ListType(element) if not isinstance(element.type, PrimitiveType):
                return f"transform({column}, x -> {self._renamed('x', inner[0], element)})"
            case MapType(_, value) if not isinstance(value.type, PrimitiveType):
                return f"transform_values({column}, (k, v) -> {self._renamed('v', inner[1], value)})"
        return column


def shapes_of(files: Sequence[FileRead], request: ReadRequest, runner: Runner) -> list[tuple[Shape, list[FileRead]]]:
    """The files by shape. Footers are read only if the table has a name mapping: without one all files have ids."""
    without_ids = request.without_ids
    if request.name_mapping is None and (without_ids is None or without_ids.misplaced_id is None):
        return [(ById(), list(files))] if files else []

    def unnamed(file: FileRead) -> pa.Schema | None:
        with ParquetSource(
            request.store,
            file.file_path,
            name_mapping=request.name_mapping,
            without_ids=without_ids,
            needed_by=request.needed_by,
        ) as source:
            return None if source.has_field_ids else source.columns.schema

    found: dict[tuple[object, ...], tuple[Shape, list[FileRead]]] = {}
    for file, schema in zip(files, runner.map(unnamed, files), strict=True):
        if schema is None:
            key: tuple[object, ...] = ()
            shape: Shape = ById()
        else:
            key = (schema.to_string(show_field_metadata=True), file.scope)
            shape = ByName(schema, request.constants(file))
        found.setdefault(key, (shape, []))[1].append(file)
    return list(found.values())


def _stored_type(stored: pa.Field, wanted: Type, column: str) -> st.DataType:
    """The type to read a file's column as: the requested type with the file's names for nested fields."""
    inner = child_fields(stored.type)
    match wanted:
        case StructType(fields):
            by_id = {f.field_id: f for f in fields}
            both = [(f, by_id[i]) for f in inner if (i := field_id_of(f)) is not None and i in by_id]
            if not both:
                raise Unsupported(f"column {column!r}: a file without field ids has no field of it that is wanted")
            return st.StructType(
                [st.StructField(f.name, _stored_type(f, w.type, f"{column}.{w.name}")) for f, w in both]
            )
        case ListType(element):
            return st.ArrayType(_stored_type(inner[0], element.type, f"{column}.element"))
        case MapType(key, value):
            return st.MapType(_stored_type(inner[0], key.type, column), _stored_type(inner[1], value.type, column))
    return spark_type(wanted, column=column)
