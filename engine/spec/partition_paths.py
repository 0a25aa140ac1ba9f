"""Partition values for people, and the directories named after them (as Iceberg Java writes them).

Directories are labels only: values are those of manifests.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Sequence
from decimal import Decimal
from urllib.parse import quote_plus

from icebench.engine.spec.calendar import UNITS_PER_DAY, UNITS_PER_SECOND, civil_of, iso_clock
from icebench.engine.spec.partitioning import PartitionSpec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Day, Hour, Month, Transform, Year
from icebench.engine.spec.types import UNKNOWN, PrimitiveType
from icebench.engine.spec.values import Value


def human_string(transform: Transform, source: PrimitiveType, value: Value | None) -> str:
    """A partition value as people write it: ``2024-02`` for a month, base64 for binary, ``null``."""
    if value is None:
        return "null"
    if isinstance(value, int) and not isinstance(value, bool):
        match transform:
            case Year():
                return f"{value + 1970:04d}"
            case Month():
                years, months = divmod(value, 12)
                return f"{years + 1970:04d}-{months + 1:02d}"
            case Day():
                return _date(value)
            case Hour():
                days, hours = divmod(value, 24)
                return f"{_date(days)}-{hours:02d}"
    return human_value(transform.result_type(source), value)


def human_value(type_: PrimitiveType, value: Value) -> str:
    """A single value as people write it."""
    match type_.name, value:
        case _, bool():
            return "true" if value else "false"
        case "date", int():
            return _date(value)
        case "time", int():
            return _clock(value, UNITS_PER_SECOND["time"])
        case ("timestamp" | "timestamptz" | "timestamp_ns" | "timestamptz_ns") as name, int():
            days, rest = divmod(value, UNITS_PER_DAY[name])
            zone = "+00:00" if name.startswith("timestamptz") else ""
            return f"{_date(days)}T{_clock(rest, UNITS_PER_SECOND[name])}{zone}"
        case _, bytes():
            return base64.b64encode(value).decode()
        case _, Decimal():
            return f"{value:f}"
        case _, str() | int() | float() | uuid.UUID():
            return str(value)
    raise TypeError(f"{value!r} is not a value of type {type_}")


def partition_path(spec: PartitionSpec, schema: Schema, values: Sequence[Value | None]) -> str:
    """``name=value/name=value`` of a partition tuple, URL-encoded; empty for an unpartitioned spec."""
    parts = []
    for field, value in zip(spec.fields, values, strict=True):
        source = schema.by_id[field.source_id].type if field.source_id in schema.by_id else UNKNOWN
        text = human_string(field.transform, source if isinstance(source, PrimitiveType) else UNKNOWN, value)
        parts.append(f"{quote_plus(field.name)}={quote_plus(text)}")
    return "/".join(parts)


def _date(days: int) -> str:
    year, month, day = civil_of(days)
    return f"{year:04d}-{month:02d}-{day:02d}"


def _clock(units: int, per_second: int) -> str:
    text = iso_clock(units, per_second)
    return text if units % per_second else text.partition(".")[0]
