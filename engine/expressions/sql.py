"""Names and literals as the text that `icebench.engine.expressions.parse` reads back."""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Iterable
from decimal import Decimal

from icebench.engine.expressions.temporal_literals import TemporalLiteral

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Words that begin something else in a filter. A word too many only costs quotes.
_RESERVED = frozenset({
    "all", "alter", "and", "any", "array", "as", "between", "binary", "call", "case", "cast", "char", "collate",
    "create", "cross", "current_catalog", "current_date", "current_time", "current_timestamp", "current_user", "date",
    "datetime", "decimal", "describe", "distinct", "div", "double", "drop", "else", "end", "escape", "except",
    "execute", "exists", "explain", "extract", "false", "fetch", "float", "for", "from", "glob", "grant", "having",
    "if", "ilike", "in", "inner", "insert", "int", "integer", "intersect", "interval", "into", "is", "isnan",
    "isnull", "join", "lateral", "like", "limit", "list", "localtime", "localtimestamp", "long", "map", "nan", "not",
    "notnull", "null", "nullable", "numeric", "nvarchar", "object", "on", "optimize", "or", "order", "outer",
    "partitioned_by", "prepare", "qualify", "range", "regexp", "rename", "returning", "revoke", "rlike", "rollback",
    "row", "select", "session_user", "show", "some", "starts_with", "straight_join", "string", "struct",
    "tablesample", "then", "time", "timestamp", "timestamptz", "true", "try_cast", "uncache", "union", "unique",
    "using", "uuid", "vacuum", "values", "varchar", "when", "where", "with", "x", "xor",
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
            return f"{value:f}" if abs(value.adjusted()) < _LONGEST_SHOWN else str(value)
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
