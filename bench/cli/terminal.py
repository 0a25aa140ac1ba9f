"""The two streams of the program: results on standard output, progress and remarks on standard error."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console


class _Console(Console):
    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - those of rich
        # Brackets are text: names, filters and paths of users have them.
        super().__init__(highlight=False, emoji=False, markup=False, **options)

    def on_broken_pipe(self) -> None:
        """Leave the exit code to `icebench.bench.cli.main`: rich would exit with 1, as for a regression."""
        raise BrokenPipeError


def _out() -> Console:
    # A pipe or a file gets whole lines: a table cut at 80 columns is of no use to grep.
    console = _Console(soft_wrap=False)
    return console if console.is_terminal else _Console(width=max(console.width, 160))


def write_text(out: Console, text: str) -> None:
    """Write text for programs as it is: what a console prints loses carriage returns, and tabs become spaces."""
    out.file.write(text)


@dataclass(frozen=True)
class Terminal:
    """`out` for what was asked for, `err` for the rest; rich drops colour and bars where there is no terminal."""

    out: Console = field(default_factory=_out)
    err: Console = field(default_factory=lambda: _Console(stderr=True))

    @property
    def is_interactive(self) -> bool:
        """Whether somebody can be asked."""
        return self.err.is_terminal and sys.stdin.isatty() and "CI" not in os.environ
