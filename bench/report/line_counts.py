"""How many lines things take in a terminal, for output of at most so many. Needs no statistics, as reports do."""

from __future__ import annotations

from rich.console import Console, RenderableType


def height(console: Console, *parts: RenderableType) -> int:
    """How many lines the parts take in this terminal."""
    return sum(len(console.render_lines(part, pad=False)) for part in parts)
