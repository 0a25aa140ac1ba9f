"""Texts and names as SQL has them."""

from __future__ import annotations

import re

_WORDS = """
all analyse analyze and anti any array as asc asymmetric begin between both case cast check collate column comment
constraint create cross current_date current_time current_timestamp current_user default deferrable desc describe
distinct do else end except exists false fetch for foreign from full grant group having ilike in initially inner
intersect interval into is join lambda lateral leading left like limit minus natural not null offset on only or
order outer pivot pivot_longer pivot_wider placing primary qualify references returning right rlike select semi show
similar some struct summarize symmetric table then to trailing true union unique unpivot user using values variadic
when where window with
"""
"""Words that an engine which is measured does not take for a column unless they are quoted."""
_RESERVED = frozenset(_WORDS.split())
_QUOTES = re.compile(r"""('(?:[^']|'')*')|"((?:[^"]|"")*)\"""")


def quoted(text: str) -> str:
    """Text as a literal."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A name that may hold anything."""
    return '"' + name.replace('"', '""') + '"'


def plain_or_quoted(name: str) -> str:
    """A name as it is if every engine reads it so: lower case, and no word of SQL."""
    is_plain = re.fullmatch(r"[a-z_][a-z0-9_]*", name) and name not in _RESERVED
    return name if is_plain else identifier(name)


def with_backticks(filter: str) -> str:
    """A filter for Spark, to which double quotes mean text."""

    def quoted_name(match: re.Match[str]) -> str:
        return match[0] if match[1] else "`" + match[2].replace('""', '"').replace("`", "``") + "`"

    return _QUOTES.sub(quoted_name, filter)


def spark_name(name: str) -> str:
    """A name with dots for Spark SQL: parts are quoted if they hold more than ASCII letters, digits and underscores."""
    return ".".join(
        part if re.fullmatch(r"[A-Za-z_]\w*", part, re.ASCII) else "`" + part.replace("`", "``") + "`"
        for part in name.split(".")
    )
