"""Filters chosen from a table's own bounds, for a table of which nothing is known but its metadata."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from datetime import datetime as DateTime  # noqa: N812 - beside `date`, a type and not a module
from decimal import Context, Decimal

from icebench.bench.engines.sql_text import plain_or_quoted
from icebench.bench.truth.manifests import FileEntry
from icebench.bench.truth.metadata import Column, TableJson

RANGE_SHARE = 0.01
"""How much of a column's span a chosen range covers."""

MOST_COLUMNS = 4

_NOT_IN_FILTERS = re.compile(r'[".]')
"""In a name, what PyIceberg's filters cannot have."""
_EPOCH = date(1970, 1, 1)
_INTEGERS = {"int": "<i", "long": "<q", "date": "<i", "timestamp": "<q", "timestamptz": "<q"}


@dataclass(frozen=True)
class ChosenFilter:
    """A filter and why it was chosen."""

    name: str
    text: str
    reason: str


def choose_filters(table: TableJson, files: Sequence[FileEntry]) -> list[ChosenFilter]:
    """An equality, and for numbers and times a range of one per cent, on up to four columns: those that the table is
    partitioned by, those that it is sorted by, then the first ones that have bounds.

    Empty when no column of a known type has bounds in every file that has rows. Columns with dates or times before the
    year 1 or after 9999 are left out, and those whose names not every engine can have in a filter.
    """
    reasons = dict.fromkeys(table.partition_columns, "partition column")
    reasons |= dict.fromkeys((c for c in table.sort_columns if c not in reasons), "sort column")
    by_name = {column.name: column for column in table.columns}
    ordered = [by_name[name] for name in reasons if name in by_name]
    ordered += [column for column in table.columns if column.name not in reasons]
    chosen: list[ChosenFilter] = []
    used = 0
    for column in ordered:
        span = _span(column, files)
        if span is None or used == MOST_COLUMNS:
            continue
        with suppress(OverflowError):  # of times that Python does not know
            chosen += _filters(column, span, reasons.get(column.name, "one of the first columns with bounds"))
            used += 1
    return chosen


@dataclass(frozen=True)
class _Span:
    """Least, greatest and some existing value of a column: whole numbers (unscaled, days, microseconds) or text."""

    least: int | str
    greatest: int | str
    some: int | str


def _span(column: Column, files: Sequence[FileEntry]) -> _Span | None:
    if not _is_known(column.type) or _NOT_IN_FILTERS.search(column.name):
        return None
    pairs = []
    for file in files:
        low, high = file.lower_bounds.get(column.field_id), file.upper_bounds.get(column.field_id)
        if low is not None and high is not None:
            pairs.append((_decoded(column.type, low), _decoded(column.type, high)))
    # A file without bounds may be one whose values are all null; most files must have them.
    if len(pairs) * 2 <= len(files) or not pairs:
        return None
    lows = sorted(low for low, _ in pairs)
    greatest = max(high for _, high in pairs)
    return _Span(lows[0], greatest, lows[len(lows) // 2])


def _filters(column: Column, span: _Span, reason: str) -> list[ChosenFilter]:
    name, kind = column.name, column.type
    own = plain_or_quoted(name)
    made = [ChosenFilter(f"{name}_equal", f"{own} = {_literal(kind, span.some)}", reason)]
    if isinstance(span.least, int) and isinstance(span.greatest, int) and span.greatest > span.least:
        width = max(1, round((span.greatest - span.least) * RANGE_SHARE))
        start = span.least + (span.greatest - span.least) // 2
        text = f"{own} >= {_literal(kind, start)} and {own} < {_literal(kind, start + width)}"
        made.append(ChosenFilter(f"{name}_range", text, f"{reason}, {RANGE_SHARE:.0%} of its span"))
    return made


def _is_known(kind: str) -> bool:
    return kind in _INTEGERS or kind == "string" or kind.startswith("decimal")


def _decoded(kind: str, data: bytes) -> int | str:
    if kind == "string":
        return data.decode("utf-8", errors="ignore")
    if kind.startswith("decimal"):
        return int.from_bytes(data, "big", signed=True)
    # A bound from before a promotion to long has the width of int.
    layout = "<i" if len(data) == 4 else _INTEGERS[kind]
    value: int = struct.unpack(layout, data)[0]
    return value


def _literal(kind: str, value: int | str) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if kind.startswith("decimal"):
        scale = int(kind.rpartition(",")[2].strip(" )"))
        return str(Decimal(value).scaleb(-scale, Context(prec=38)))
    if kind == "date":
        return f"'{_EPOCH + timedelta(days=value)}'"
    if kind in ("timestamp", "timestamptz"):
        moment = DateTime(1970, 1, 1) + timedelta(microseconds=value)  # noqa: DTZ001 - a zone is added as text
        return f"'{moment.isoformat(timespec='microseconds')}{'+00:00' if kind == 'timestamptz' else ''}'"
    return str(value)
