"""Texts and names as SQL has them."""

from __future__ import annotations

import re


def quoted(text: str) -> str:
    """Text as a literal."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A name that may hold anything."""
    return '"' + name.replace('"', '""') + '"'


def spark_name(name: str) -> str:
    """A name with dots for Spark SQL: parts are quoted if they hold more than ASCII letters, digits and underscores."""
    return ".".join(
        part if re.fullmatch(r"[A-Za-z_]\w*", part, re.ASCII) else "`" + part.replace("`", "``") + "`"
        for part in name.split(".")
    )
