"""Iceberg types as Spark types; single values and columns as Spark SQL."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from pyspark.sql import types as st

from icebench.engine.errors import Unsupported
from icebench.engine.spec.calendar import UNITS_PER_DAY
from icebench.engine.spec.partition_paths import human_value
from icebench.engine.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    DecimalType,
    FixedType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
    children,
)
from icebench.engine.spec.values import Value

FIELD_ID_KEY = "parquet.field.id"
DEFAULT_KEY = "EXISTS_DEFAULT"

_SIMPLE: dict[Type, st.DataType] = {
    BOOLEAN: st.BooleanType(),
    INT: st.IntegerType(),
    LONG: st.LongType(),
    FLOAT: st.FloatType(),
    DOUBLE: st.DoubleType(),
    DATE: st.DateType(),
    TIMESTAMP: st.TimestampNTZType(),
    TIMESTAMPTZ: st.TimestampType(),
    STRING: st.StringType(),
    UUID: st.BinaryType(),
    BINARY: st.BinaryType(),
    UNKNOWN: st.NullType(),
}
_MOMENTS = {"date": "DATE", "timestamp": "TIMESTAMP_NTZ", "timestamptz": "TIMESTAMP_LTZ"}
"""The words of literals. ``TIMESTAMP`` alone is what the session's ``spark.sql.timestampType`` says."""
_FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""Those of the years 1 to 9999."""


def spark_type(type_: Type, *, column: str) -> st.DataType:
    """The Spark type that a column is read as, with field ids in the metadata of struct fields; uuid is read as 16
    bytes.

    Raises:
        Unsupported: Spark has no such type (time, nanoseconds, variant, geometry), or a nested field has a default and
            Spark would fill it with null; the message names the column.
    """
    match type_:
        case DecimalType():
            return st.DecimalType(type_.precision, type_.scale)
        case FixedType():
            return st.BinaryType()
        case StructType(fields):
            return st.StructType([_inner(f, f"{column}.{f.name}") for f in fields])
        case ListType(element):
            return st.ArrayType(spark_type(element.type, column=f"{column}.element"))
        case MapType(key, value):
            keys, values = (spark_type(f.type, column=f"{column}.{f.name}") for f in (key, value))
            return st.MapType(keys, values)
        case _ if type_ in _SIMPLE:
            return _SIMPLE[type_]
    raise Unsupported(f"column {column!r}: Spark has no type for {type_}")


def _inner(field: NestedField, name: str) -> st.StructField:
    if field.initial_default is not None:
        raise Unsupported(f"column {name!r}: on Spark, defaults of fields inside structs are not supported")
    own = spark_type(field.type, column=name)
    return st.StructField(field.name, own, nullable=True, metadata={FIELD_ID_KEY: field.field_id})


def read_field(field: NestedField, name: str) -> st.StructField:
    """The field of a read schema under the given name: found by id, filled with the initial default where a file lacks
    it.

    Raises:
        Unsupported: As `spark_type`, and for defaults of type binary, fixed and uuid.
    """
    metadata: dict[str, object] = {FIELD_ID_KEY: field.field_id}
    if field.initial_default is not None and isinstance(field.type, PrimitiveType):
        if isinstance(spark_type(field.type, column=field.name), st.BinaryType):
            # Spark's vectorized reader fails on them, file by file, and only where a file lacks the column.
            raise Unsupported(f"on Spark, the default of {field.name!r}: Spark fills in no values of type {field.type}")
        metadata[DEFAULT_KEY] = sql_literal(field.type, field.initial_default)
    return st.StructField(name, spark_type(field.type, column=field.name), nullable=True, metadata=metadata)


def sql_literal(type_: PrimitiveType, value: Value) -> str:
    """A single value as a Spark SQL expression of the type that the column is read as."""
    name = type_.name
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case bytes():
            return f"X'{value.hex()}'"
        case Decimal():
            return f"CAST('{value:f}' AS {spark_type(type_, column=name).simpleString()})"
        case float():
            return f"CAST('{value!r}' AS {name})"
        case int() if name in _MOMENTS:
            if not _FIRST_DAY <= value // UNITS_PER_DAY[name] <= LAST_DAY:
                raise Unsupported(f"on Spark, {type_} values outside of the years 1 to 9999: {value}")
            return f"{_MOMENTS[name]}'{human_value(type_, value)}'"
        case int():
            return f"CAST('{value}' AS {spark_type(type_, column=name).simpleString()})"
    return f"X'{value.hex}'"  # uuid


def _text(value: str) -> str:
    # ``${name}`` would be a variable.
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\u0000").replace("$", "\\u0024")
    return f"'{escaped}'"


def quoted(name: str) -> str:
    """A name quoted for Spark SQL, dots and backticks included."""
    return "`" + name.replace("`", "``") + "`"


def null(type_: st.DataType) -> str:
    """A null of a Spark type."""
    return f"CAST(NULL AS {_type_text(type_)})"


def _type_text(type_: st.DataType) -> str:
    match type_:
        case st.StructType():
            return f"STRUCT<{', '.join(f'{quoted(f.name)}: {_type_text(f.dataType)}' for f in type_.fields)}>"
        case st.ArrayType():
            return f"ARRAY<{_type_text(type_.elementType)}>"
        case st.MapType():
            return f"MAP<{_type_text(type_.keyType)}, {_type_text(type_.valueType)}>"
        case st.TimestampType():
            return _MOMENTS["timestamptz"]
    return type_.simpleString()


def struct_of(whole: str, parts: Sequence[tuple[str, str]]) -> str:
    """A struct of `parts`, pairs of name and SQL; null where the struct that they were taken from is null."""
    inside = ", ".join(f"{_text(name)}, {part}" for name, part in parts)
    return f"CASE WHEN {whole} IS NOT NULL THEN named_struct({inside}) END"


def shown(column: str, type_: Type) -> str:
    """A column as it is returned to the user: uuid as string at any depth, everything else as it is read."""
    if not _has_uuid(type_):
        return column
    match type_:
        case StructType(fields):
            return struct_of(column, [(f.name, shown(f"{column}.{quoted(f.name)}", f.type)) for f in fields])
        case ListType(element):
            return f"transform({column}, x -> {shown('x', element.type)})"
        case MapType(key, value):
            with_keys = f"transform_keys({column}, (k, v) -> {shown('k', key.type)})"
            return f"transform_values({with_keys}, (k, v) -> {shown('v', value.type)})"
    pieces = ", ".join(f"hex(substring({column}, {at}, {n}))" for at, n in ((1, 4), (5, 2), (7, 2), (9, 2), (11, 6)))
    return f"CASE WHEN {column} IS NOT NULL THEN lower(concat_ws('-', {pieces})) END"


def shown_type(type_: Type, *, column: str) -> st.DataType:
    """The type of `shown`; arguments and errors as `spark_type`."""
    if not _has_uuid(type_):
        return spark_type(type_, column=column)
    match type_:
        case StructType(fields):
            return st.StructType(
                [st.StructField(f.name, shown_type(f.type, column=f"{column}.{f.name}")) for f in fields]
            )
        case ListType(element):
            return st.ArrayType(shown_type(element.type, column=f"{column}.element"))
        case MapType(key, value):
            keys, values = (shown_type(f.type, column=f"{column}.{f.name}") for f in (key, value))
            return st.MapType(keys, values)
    return st.StringType()


def _has_uuid(type_: Type) -> bool:
    return type_ == UUID or any(_has_uuid(f.type) for f in children(type_))


def pruned(column: str, read: Type, wanted: Type) -> str:
    """The requested nested fields, under the requested names, of a column that is read with others; floating-point
    numbers are `not_pushed`, but for elements of lists and maps, for which Spark pushes no filters."""
    match read, wanted:
        case StructType(), StructType(fields):
            by_id = {f.field_id: f for f in read.fields}
            parts = []
            for f in fields:
                own = by_id[f.field_id]
                parts.append((f.name, pruned(f"{column}.{quoted(own.name)}", own.type, f.type)))
            return struct_of(column, parts)
        case ListType(own), ListType(element) if own.type != element.type:
            return f"transform({column}, x -> {pruned('x', own.type, element.type)})"
        case MapType(_, own), MapType(_, value) if own.type != value.type:
            return f"transform_values({column}, (k, v) -> {pruned('v', own.type, value.type)})"
    return not_pushed(column) if wanted in (FLOAT, DOUBLE) else column


def not_pushed(column: str) -> str:
    """A floating-point column, with the same values, whose comparisons Spark does not push into Parquet: statistics
    leave NaN out, and dictionaries have -0.0 apart from 0.0, so that row groups with matching rows would be skipped."""
    return f"nanvl({column}, {column})"
