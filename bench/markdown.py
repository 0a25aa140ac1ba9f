"""Text of a run in Markdown, as GitHub renders it."""

from __future__ import annotations

import re

_MARKS = re.compile(
    r"""
      [\\`*|~]                      # escapes, code, emphasis, cells, strokes
    | (?<![^\W_])_ | _(?![^\W_])    # emphasis; within a word, as in store_sales, it is none
    | \](?=[(\[:])                  # the end of a link's text; an interval, [1.2, 3], has no target behind it
    """,
    re.VERBOSE,
)
_ENTITY = re.compile(r"&(?=#?\w+;)")
_BEGINNINGS = re.compile(r"^(?:[#>]|[-+=](?=[-+=\s]|$))|(?<=^\[[ xX])\]")
"""Of headings, quotes, lists and lines, and the box of a list."""
_NUMBER = re.compile(r"^(\d+)([.)])(?=\s|$)")
"""Of a list."""


def escaped(text: str) -> str:
    """Text for a cell, or behind a mark of Markdown or other text: on one line, it shows as it is, and nothing of it is
    markup. What GitHub takes for no markup has no backslash: ``_`` within words, and brackets that are no link."""
    line = _MARKS.sub(r"\\\g<0>", " ".join(text.split()))
    return _ENTITY.sub("&amp;", line).replace("<", "&lt;")


def escaped_block(text: str) -> str:
    """Text for a paragraph, or an item of a list: as `escaped`, and what it begins with is no markup either."""
    return _BEGINNINGS.sub(r"\\\g<0>", _NUMBER.sub(r"\1\\\2", escaped(text)))
