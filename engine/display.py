"""Short texts and HTML of things, for `repr` and for notebooks: no I/O, no colours, nothing but what it is given.

What comes from a table is not trusted: names may hold control characters, markup, and be of any length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from icebench.engine.errors import without_secrets

LONGEST = 100
MOST_LINES = 20
MOST_ROWS = 200
# As `html.escape`, whose module would be loaded with every table.
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})
_STEPS = ((1 << 40, "TB"), (1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB"))


def printable(text: object, most: int = LONGEST) -> str:
    """One line without secrets or control characters, shortened in its middle to `most` characters."""
    line = without_secrets(str(text))
    if not line.isprintable():
        line = "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in line)
    kept = most // 2 - 1
    return line if len(line) <= most else f"{line[:kept]}…{line[-kept:]}"


def address_text(address: str) -> str:
    """An address without what may hold secrets: user, parameters and fragment."""
    scheme, separator, rest = address.partition("://")
    if not separator:
        return printable(address)
    rest = rest.rpartition("@")[2] if not rest.startswith("/") else rest
    return printable(f"{scheme}://{rest.partition('?')[0].partition('#')[0]}")


def count_text(count: int, noun: str) -> str:
    """``1 file``, ``12,345 files``."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def size_text(size: int) -> str:
    """``999 B``, ``1.6 KB``, in steps of 1,024."""
    for step, unit in _STEPS:
        if size >= step:
            return f"{size / step:.3g} {unit}" if size < 999.5 * step else f"{size / step:,.0f} {unit}"
    return f"{size} B"


def some_lines(lines: Sequence[str], most: int = MOST_LINES) -> list[str]:
    """The first lines, and how many more there are."""
    return [*lines] if len(lines) <= most else [*lines[: most - 1], f"... {len(lines) - most + 1:,} more"]


def html_text(text: object, most: int = LONGEST) -> str:
    """The text as content of an element."""
    return printable(text, most).translate(_ENTITIES)


def html_table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table of texts; numbers are aligned right. Beyond `MOST_ROWS` it says how many more rows there are."""
    head = "".join(f"<th>{html_text(each)}</th>" for each in headers)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:MOST_ROWS])
    if len(rows) > MOST_ROWS:
        body += f'<tr><td colspan="{len(headers)}">... {len(rows) - MOST_ROWS:,} more</td></tr>'
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, int | float):
        return f'<td style="text-align:right">{value:,.{1 if isinstance(value, float) else 0}f}</td>'
    return f'<td style="text-align:left">{html_text("" if value is None else value)}</td>'


def html_fold(title: str, parts: Iterable[str], *, is_open: bool = False) -> str:
    """Markup below a title on which it folds; `title` is text, `parts` are markup."""
    start = '<details open="">' if is_open else "<details>"
    return f"{start}<summary>{html_text(title)}</summary>{''.join(parts)}</details>"


def html_bars(bars: Sequence[tuple[str, int]]) -> str:
    """A bar for each count, the longest for the greatest."""
    greatest = max((count for _, count in bars), default=0) or 1
    rows = "".join(
        f"<tr>{_cell(name)}{_cell(count)}"
        f'<td><div style="background:#4c78a8;height:0.8em;width:{200 * count // greatest}px"></div></td></tr>'
        for name, count in bars
    )
    return f"<table><tbody>{rows}</tbody></table>"
