"""The SQL dialect of filters and expressions."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import tokens
from sqlglot.dialects.dialect import Dialect


class FilterDialect(Dialect):
    """How filters, and expressions, are written: both kinds of quotes for names, one for text."""

    class Tokenizer(tokens.Tokenizer):
        """Quotes."""

        IDENTIFIERS: ClassVar = ['"', "`"]
        QUOTES: ClassVar = ["'"]
        STRING_ESCAPES: ClassVar = ["'"]
        HEX_STRINGS: ClassVar = [("x'", "'"), ("X'", "'")]
