"""Names and literals as the text that `engine.expressions.parse` reads back."""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Iterable
from decimal import Decimal

from engine.expressions.temporal_literals import TemporalLiteral

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Words that begin something else in a filter. A word too many only costs quotes.
_RESERVED = frozenset({
    "all", "and", "any", "as", "between", "binary", "case", "cast", "char", "collate", "current_date", "current_time",
    "current_timestamp", "date", "datetime", "decimal", "distinct", "div", "double", "else", "end", "escape", "exists",
    "extract", "false", "float", "from", "if", "in", "int", "integer", "interval", "is", "isnan", "isnull", "like",
    "limit", "long", "nan", "not", "notnull", "null", "numeric", "nvarchar", "on", "or", "order", "row", "select",
    "some", "starts_with", "string", "struct", "then", "time", "timestamp", "timestamptz", "true", "try_cast", "union",
    "unique", "uuid", "values", "varchar", "when", "where", "with", "x",
})  # fmt: skip


_LONGEST_SHOWN = 300


def shorten(text: str) -> str:
    """Shorten a text for a message."""
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}... ({len(text):,} characters)"


def name_text(name: str) -> str:
    """A full dotted column name; each part is quoted where it has to be."""
    return ".".join(
        part if _PLAIN_NAME.fullmatch(part) and part.lower() not in _RESERVED else '"' + part.replace('"', '""') + '"'
        for part in name.split(".")
    )


def literal_text(value: float | Decimal | str | bytes | uuid.UUID | TemporalLiteral) -> str:
    """The SQL text of a literal."""
    match value:
        case bool():
            return "true" if value else "false"
        case float() if math.isinf(value):
            return "cast('Infinity' as double)" if value > 0 else "cast('-Infinity' as double)"
        case Decimal():
            return f"{value:f}"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes():
            return f"X'{value.hex()}'"
        case uuid.UUID():
            return f"uuid '{value}'"
        case TemporalLiteral():
            return f"{'timestamp' if value.kind == 'timestamptz' else value.kind} '{value}'"
        case _:
            return repr(value)


def binary_operator(word: str, children: Iterable[object], bracketed: tuple[type, ...]) -> str:
    """`a word b word c`, with brackets around children of the `bracketed` kinds."""
    return f" {word} ".join(f"({child})" if isinstance(child, bracketed) else str(child) for child in children)
