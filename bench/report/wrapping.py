"""Lines that fit a terminal: texts with a hanging indent, and commands that stay ready to be pasted."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.style import StyleType
from rich.text import Text

_UNIT = r"(?:[KMGT]?B|[mnµ]?s|%|\$|minutes|hours|days)"
_WORD = re.compile(rf"(?:\S*\d (?={_UNIT}(?!\w))|[a-z]+_[a-z_]+ (?=\d))?\S+\s*")
"""A word of a text, and the space after it; a figure stays together with its unit, a counter with its figure."""
_ARGUMENT = re.compile(r"""(?:--[\w-]+ (?!-))?(?:'[^']*'|"[^"]*"|[^\s'"])+""")
"""A word of a shell or of SQL: quoted text stays together with what it touches, an option with its value."""
_FEWEST = 20
"""Characters that a line keeps beside its indent, however narrow the terminal."""
_STEP = "    "


@dataclass(frozen=True)
class Hanging:
    """A text beside its lead, such as ``1.`` or a label: in a terminal it is wrapped between words, and further lines
    are indented as far; elsewhere it is one line. A word that is longer than a line stays whole.

    Print it with ``crop=False``.

    Args:
        lead: What the first line begins with.
        text: The rest.
        style: Of the text.
    """

    lead: str | Text
    text: str | Text
    style: StyleType = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = self.text.copy() if isinstance(self.text, Text) else Text(self.text)
        text.stylize(self.style)
        indent = self.lead.cell_len if isinstance(self.lead, Text) else cell_len(self.lead)
        lines: Iterable[Text] = [text]
        if console.is_terminal:
            lines = text.divide(_line_ends(text.plain, options.max_width - indent))
        for number, line in enumerate(lines):
            line.rstrip()
            yield Text.assemble(" " * indent if number else self.lead, line, no_wrap=True, overflow="ignore")


@dataclass(frozen=True)
class Command:
    """A command of a shell, or a statement, that can be pasted: in a terminal it is broken between words, of a shell
    with a backslash at the end of a line; elsewhere it is one line. Print it with ``crop=False``.

    Args:
        text: The command.
        indent: Before each line.
    """

    text: str
    indent: int = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width - self.indent if console.is_terminal else None
        for line in command_lines(self.text, width):
            yield Text(" " * self.indent + line, style="green", no_wrap=True, overflow="ignore")


def command_lines(command: str, width: int | None) -> list[str]:
    """The command in lines of at most `width` characters, if its words let it; in one for None."""
    if width is None or cell_len(command) <= width:
        return [command]
    if not command.startswith(("icebench ", "ALTER ", "CALL ")):  # Python, say, where a line ends a statement
        return [command]
    end = " \\" if command.startswith("icebench ") else ""
    lines = [""]
    for word in _ARGUMENT.findall(command):
        longer = f"{lines[-1]} {word}" if lines[-1].strip() else f"{lines[-1]}{word}"
        if lines[-1].strip() and cell_len(longer) > max(_FEWEST, width - len(end)):
            lines.append(f"{_STEP}{word}")
        else:
            lines[-1] = longer
    return [*(f"{line}{end}" for line in lines[:-1]), lines[-1]]


def wrapped(text: str, width: int) -> str:
    """The text in lines of at most `width` characters; no word is broken."""
    lines = (Text(line).divide(_line_ends(line, width)) for line in text.splitlines())
    return "\n".join(part.plain.rstrip() for parts in lines for part in parts)


def _line_ends(text: str, width: int) -> list[int]:
    """Where lines of at most that many characters begin, but for the first; a longer word has a line of its own."""
    found, used = [], 0
    for word in _WORD.finditer(text):
        if used and used + cell_len(word[0].rstrip()) > max(_FEWEST, width):
            found.append(word.start())
            used = 0
        used += cell_len(word[0])
    return found
