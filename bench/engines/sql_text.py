"""Texts and names as SQL has them."""

from __future__ import annotations


def quoted(text: str) -> str:
    """Text as a literal."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A name that may hold anything."""
    return '"' + name.replace('"', '""') + '"'
