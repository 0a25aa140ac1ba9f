"""How large a scan's rows are in memory, as Spark's optimizer assumes it when it chooses how to join.

Spark takes the bytes of the files, which are encoded and compressed, times a factor, by default 1. So a table that
compresses to less than ``spark.sql.autoBroadcastJoinThreshold`` is sent to all executors, however many rows it has.
The estimate here is the one that Iceberg Java makes: rows times the widths of the columns that are read, by which the
same joins are broadcast. Columns that a query leaves out are taken off by Spark, which counts eight bytes more of a row
than Iceberg Java does. So of what Spark would say of a row, a share is taken, with which both agree where four columns
of eight bytes are read, as joins do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from icebench.engine.spec.types import DecimalType, ListType, MapType, NestedField, PrimitiveType, StructType, Type

_OF_A_ROW = 8
_SHARE = 32 / (_OF_A_ROW + 32)
_STEPS = 4
"""From one power of two to the next."""
_WIDTHS = {"boolean": 1, "int": 4, "float": 4, "date": 4, "string": 20, "binary": 100, "uuid": 100, "unknown": 1}
"""Spark's ``DataType.defaultSize``; fixed is as binary, and others have 8 bytes."""
_LONG_DIGITS = 18
_LEAST, _MOST = 2.0**-2, 2.0**20


def row_bytes(fields: Iterable[NestedField]) -> int:
    """The bytes of a row with these columns, as Spark estimates it."""
    return _OF_A_ROW + sum(_width(field.type) for field in fields)


def _width(type_: Type) -> int:
    match type_:
        case DecimalType():
            return 8 if type_.precision <= _LONG_DIGITS else 16
        case StructType(fields):
            return sum(_width(field.type) for field in fields)
        case ListType(element):
            return _width(element.type)
        case MapType(key, value):
            return _width(key.type) + _width(value.type)
        case PrimitiveType(name):
            return _WIDTHS.get("binary" if name.startswith("fixed") else name, 8)
    return _OF_A_ROW


def expansion(size_bytes: int, file_bytes: int) -> float:
    """The factor by which bytes of files are multiplied to be the estimate, within limits; 1 for no files.

    Args:
        size_bytes: Rows times `row_bytes`.
        file_bytes: Bytes of their files.

    Returns:
        One of few numbers, as each is a session: within a tenth of the right one.
    """
    if not size_bytes or not file_bytes:
        return 1.0
    steps = round(_STEPS * math.log2(_SHARE * size_bytes / file_bytes))
    return min(max(2.0 ** (steps / _STEPS), _LEAST), _MOST)
